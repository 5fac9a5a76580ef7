//! Study files: what is refused, with line and field, and what is made of those that are not.
use dosimeter_study::file::{FIELDS, check};
use dosimeter_study::regression::RegressionStudy;
use dosimeter_study::study::Defence;
use std::path::Path;

const GOOD: &str = r#"name = "small"
seed = 7
[dataset]
kind = "skewed-purchases"
classes = 10
train_records = 1000
test_records = 300
[split]
train = 100
test = 100
[target]
hidden = [16]
learning_rate = 0.01
batch_size = 20
epochs = 5
[shadows]
count = 2
[[arms]]
central = { noise_multipliers = [1, 2.5], clipping_norm = 1 }
[[arms]]
local = { epsilons_per_feature = [0.5] }
epochs = 9
"#;

fn problems(text: &str) -> Vec<String> {
    match check(Path::new("studies/small.toml"), text) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn a_grid_becomes_one_arm_per_value_with_the_arm_without_dp_first() {
    let study = check(Path::new("studies/small.toml"), GOOD).unwrap();
    let settings: Vec<&str> = study.arms.iter().map(|a| a.setting.as_str()).collect();
    assert_eq!(settings, ["no DP", "central z=1", "central z=2.5", "local eps=0.5"]);
    assert_eq!(study.arms[0].defence, Defence::NoDp);
    assert_eq!(study.arms[0].epochs, 5);
    assert_eq!(study.arms[3].epochs, 9, "an arm's own setting goes before the target's");
    assert_eq!(
        study.arms[2].defence,
        Defence::Central { clipping_norm: 1.0, noise_multiplier: 2.5 }
    );
}

#[test]
fn arms_of_one_noise_and_several_clipping_norms_are_told_apart_by_their_labels() {
    let settings = |arms: &str| -> Vec<String> {
        let study = check(Path::new("small.toml"), &format!("{GOOD}{arms}")).unwrap();
        study.arms.into_iter().map(|a| a.setting).collect()
    };
    let other = "[[arms]]\ncentral = { noise_multipliers = [2.5, 3], clipping_norm = 0.5 }\n";
    assert_eq!(
        settings(other),
        [
            "no DP",
            "central z=1",
            "central z=2.5 C=1",
            "local eps=0.5",
            "central z=2.5 C=0.5",
            "central z=3"
        ]
    );
    let clipping = |norm: &str| format!("[[arms]]\nclip_only = {{ clipping_norm = {norm} }}\n");
    assert_eq!(settings(&clipping("1"))[4..], ["clipping only"]);
    assert_eq!(
        settings(&(clipping("1") + &clipping("1e9")))[4..],
        ["clipping only C=1", "clipping only C=1e9"]
    );
    // The same noise and norm, but other epochs: the label would not say what differs.
    let same = "[[arms]]\ncentral = { noise_multipliers = [1], clipping_norm = 1 }\nepochs = 9\n";
    let found = problems(&format!("{GOOD}{same}"));
    assert_eq!(found, ["studies/small.toml:23: arms[3]: a second arm called `central z=1`"]);
}

#[test]
fn pixelization_becomes_one_arm_per_epsilon() {
    let pixelization = "pixelization = { cell = 4, neighbouring_pixels = 16, epsilons = [1, 1e3] }";
    let text = GOOD.replace("epsilons_per_feature = [0.5]", pixelization);
    let study = check(Path::new("small.toml"), &text).unwrap();
    let settings: Vec<&str> = study.arms[3..].iter().map(|a| a.setting.as_str()).collect();
    assert_eq!(settings, ["pixelization b=4 m=16 eps=1", "pixelization b=4 m=16 eps=1000"]);
    let defence = Defence::Pixelization { cell: 4, neighbouring_pixels: 16, epsilon: 1000.0 };
    assert_eq!(study.arms[4].defence, defence);
    assert!(defence.is_private() && defence.is_local());
}

#[test]
fn every_model_is_read_with_the_settings_that_it_has() {
    use dosimeter_model::Pool;
    use dosimeter_train::Architecture;
    let read = |lines: &str| {
        let text = GOOD.replace("hidden = [16]", lines);
        check(Path::new("small.toml"), &text).unwrap().target.architecture
    };
    let (tanh, relu) = (dosimeter_model::Activation::Tanh, dosimeter_model::Activation::Relu);
    for (lines, architecture) in [
        ("", Architecture::Mlp { hidden: vec![128], activation: tanh }),
        ("model = \"mlp\"\nhidden = []", Architecture::Mlp { hidden: vec![], activation: tanh }),
        ("model = \"lenet\"", Architecture::Lenet),
        ("model = \"small-cnn\"", Architecture::SmallCnn { activation: tanh }),
        (
            "model = \"cnn\"\nactivation = \"relu\"",
            Architecture::Cnn { activation: relu, pool: Pool::Max },
        ),
        (
            "model = \"cnn\"\npooling = \"average\"",
            Architecture::Cnn { activation: tanh, pool: Pool::Average },
        ),
        ("model = \"alexnet\"", Architecture::Alexnet),
        ("model = \"vgg16\"", Architecture::Vgg16 { hidden: vec![4096, 4096] }),
        ("model = \"vgg16\"\nhidden = [8]", Architecture::Vgg16 { hidden: vec![8] }),
        ("model = \"mobilenet-v1\"", Architecture::MobilenetV1),
    ] {
        assert_eq!(read(lines), architecture, "{lines}");
    }
}

#[test]
fn an_arm_without_dp_that_is_asked_for_is_moved_to_the_front_and_not_doubled() {
    let study =
        check(Path::new("small.toml"), &format!("{GOOD}[[arms]]\nno_dp = {{}}\nepochs = 50\n"))
            .unwrap();
    assert_eq!(study.arms.len(), 4);
    assert_eq!((study.arms[0].setting.as_str(), study.arms[0].epochs), ("no DP", 50));
    assert_eq!(study.arms[1].setting, "central z=1");
}

#[test]
fn paths_are_relative_to_the_study_file() {
    let text = GOOD.replace(
        "kind = \"skewed-purchases\"\nclasses = 10\ntrain_records = 1000\ntest_records = 300",
        "kind = \"location\"\npath = \"../data/location.npz\"",
    );
    let study = check(Path::new("studies/small.toml"), &text).unwrap();
    assert_eq!(study.dataset.path().unwrap(), Path::new("studies/../data/location.npz"));
}

/// (what to replace, by what, the one problem it makes)
#[test]
fn every_kind_of_mistake_is_named_with_its_line() {
    let table: &[(&str, &str, &str)] = &[
        (
            "seed = 7",
            "seed = -7",
            "studies/small.toml:2: seed: needs a whole number from 0 to 9223372036854775807, got -7",
        ),
        (
            "seed = 7",
            "sed = 7\nseed = 7",
            "studies/small.toml:2: sed: unknown key, did you mean `seed`?",
        ),
        (
            "seed = 7\n",
            "",
            "studies/small.toml:1: seed: missing; needs a whole number from 0 to 9223372036854775807",
        ),
        (
            "\"small\"",
            "\"a b\"",
            "studies/small.toml:1: name: needs text of letters, digits, `-` and `_`, got \"a b\"",
        ),
        (
            "train = 100",
            "train = 1",
            "studies/small.toml:9: split.train: needs a whole number from 2 to 100000000, got 1",
        ),
        (
            "train = 100",
            "train = 100\nmembership = \"coin\"",
            "studies/small.toml:10: split.membership: needs one of \"coins\", \"fixed-half\", got \"coin\"; did you mean \"coins\"?",
        ),
        (
            "learning_rate = 0.01",
            "learning_rate = nan",
            "studies/small.toml:13: target.learning_rate: needs a finite number above 0, got nan",
        ),
        (
            "learning_rate = 0.01",
            "learning_rate = inf",
            "studies/small.toml:13: target.learning_rate: needs a finite number above 0, got inf",
        ),
        (
            "hidden = [16]",
            "hidden = [16, 0]",
            "studies/small.toml:12: target.hidden: needs a list of whole numbers from 1 to 65536, got [16, 0]",
        ),
        (
            "batch_size = 20",
            "batch_size = 200",
            "studies/small.toml:14: target.batch_size: needs a whole number from 1 to `split.train`, the training-set size (here 1 to 100), got 200",
        ),
        (
            "epochs = 5",
            "epochs = \"5\"",
            "studies/small.toml:15: target.epochs: needs a whole number from 1 to 1000000, got \"5\"",
        ),
        (
            "epochs = 5",
            "epochs = 5\nmomentum = 0.9",
            "studies/small.toml:16: target.momentum: belongs to optimizer = \"sgd\"",
        ),
        (
            "[target]\nhidden = [16]",
            "[target]\nmodel = \"lenett\"",
            "studies/small.toml:12: target.model: needs one of \"mlp\", \"lenet\", \"small-cnn\", \"cnn\", \"alexnet\", \"vgg16\", \"mobilenet-v1\", \"dgcnn\", got \"lenett\"; did you mean \"lenet\"?",
        ),
        (
            "[target]",
            "[target]\nmodel = \"cnn\"",
            "studies/small.toml:13: target.hidden: belongs to model = \"mlp\" or \"vgg16\"",
        ),
        (
            "[target]",
            "[target]\nmodel = \"vgg16\"\nactivation = \"relu\"",
            "studies/small.toml:13: target.activation: belongs to model = \"mlp\" or \"small-cnn\" or \"cnn\"",
        ),
        (
            "[1, 2.5]",
            "[]",
            "studies/small.toml:19: arms[1].central.noise_multipliers: needs a list of numbers from 1e-12 to 1e12, got an empty list",
        ),
        (
            "[1, 2.5]",
            "[1, 0]",
            "studies/small.toml:19: arms[1].central.noise_multipliers: needs a list of numbers from 1e-12 to 1e12, got [1, 0]",
        ),
        ("[1, 2.5]", "[1, 1]", "studies/small.toml:18: arms[1]: a second arm called `central z=1`"),
        (
            ", clipping_norm = 1",
            "",
            "studies/small.toml:19: arms[1].central.clipping_norm: missing; needs a number from 1e-18 to 1e18",
        ),
        (
            "local = { epsilons_per_feature = [0.5] }",
            "",
            "studies/small.toml:20: arms[2]: needs exactly one of `no_dp`, `clip_only`, `central`, `local`, got none",
        ),
        ("kind = \"skewed-purchases\"", "kind = \"purchse\"", ""),
        (
            "{ epsilons_per_feature = [0.5] }",
            "{}",
            "studies/small.toml:21: arms[2].local: needs exactly one of `epsilons_per_feature`, `pixelization`, `edge_randomized_response`, got none",
        ),
        (
            "{ epsilons_per_feature = [0.5] }",
            "{ epsilons_per_feature = [0.5], pixelization = { cell = 1, neighbouring_pixels = 1, epsilons = [1] } }",
            "studies/small.toml:21: arms[2].local: needs exactly one of `epsilons_per_feature`, `pixelization`, `edge_randomized_response`, got epsilons_per_feature and pixelization",
        ),
        (
            "{ epsilons_per_feature = [0.5] }",
            "{ pixelization = { cell = 0, neighbouring_pixels = 1, epsilons = [1] } }",
            "studies/small.toml:21: arms[2].local.pixelization.cell: needs a whole number from 1 to 65536, got 0",
        ),
        (
            "{ epsilons_per_feature = [0.5] }",
            "{ pixelization = { cell = 1, neighbouring_pixels = 1.5, epsilons = [1] } }",
            "studies/small.toml:21: arms[2].local.pixelization.neighbouring_pixels: needs a whole number from 1 to 4294967296, got 1.5",
        ),
        (
            "{ epsilons_per_feature = [0.5] }",
            "{ pixelization = { cell = 1, neighbouring_pixels = 1, epsilons = [1, 0] } }",
            "studies/small.toml:21: arms[2].local.pixelization.epsilons: needs a list of numbers from 1e-9 to 1000000, got [1, 0]",
        ),
        (
            "[shadows]",
            "[audit]\nfalse_positive_rates = [0.1, 0.01, 1e-1]\n[shadows]",
            "studies/small.toml:17: audit.false_positive_rates: 0.1 stands there twice",
        ),
        (
            "count = 2",
            "count = 0",
            "studies/small.toml:1: attacks.names: `shadow_model` needs at least 1 shadow models, got shadows.count = 0",
        ),
    ];
    for (from, to, expected) in table {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(&text, GOOD, "`{from}` is not in the file");
        let found = problems(&text);
        if expected.is_empty() {
            assert!(!found.is_empty(), "{to}");
        } else {
            assert_eq!(found, [*expected], "{to}");
        }
    }
}

#[test]
fn all_problems_are_reported_at_once_in_the_order_of_their_lines() {
    let text = GOOD
        .replace("seed = 7", "seed = 0.5")
        .replace("test = 100", "tset = 100")
        .replace("clipping_norm = 1 }", "clipping_norm = -1 }")
        + "[attacks]\nnames = [\"loss_treshold\"]\n[audit]\nconfidence = 1.0\n";
    let found = problems(&text);
    let fields: Vec<&str> = found.iter().map(|p| p.split(": ").nth(1).unwrap()).collect();
    assert_eq!(
        fields,
        [
            "seed",
            "split.test",
            "split.tset",
            "arms[1].central.clipping_norm",
            "attacks.names",
            "audit.confidence"
        ],
        "{found:#?}"
    );
    assert!(found[4].ends_with("did you mean `loss_threshold`?"), "{}", found[4]);
}

/// Tables that other crates read: they stop at their first problem and know no lines.
#[test]
fn all_problems_of_the_data_and_of_an_attack_are_reported_at_once() {
    let text = GOOD.replace(
        "kind = \"skewed-purchases\"\nclasses = 10\ntrain_records = 1000\ntest_records = 300\n",
        "kind = \"csv\"\npath = 3\nlabel = \"y\"\ncolour = 1\nheader = \"no\"\n\
         [dataset.columns.age]\nkind = \"real\"\nlow = \"a\"\nhigh = \"b\"\n\
         [dataset.columns.size]\nkind = \"real\"\nlow = 1\n\
         [dataset.columns.town]\nkind = \"town\"\n",
    ) + "[attacks]\nwhite_box = { filters = 0, epochs = \"x\", dropout = 2 }\nshadow_model = { hiden = 3 }\n";
    let found = problems(&text);
    let places: Vec<&str> =
        found.iter().map(|p| &p[..p.match_indices(": ").nth(1).unwrap().0]).collect();
    assert_eq!(
        places,
        [
            "studies/small.toml:5: dataset.path",
            "studies/small.toml:7: dataset.colour",
            "studies/small.toml:8: dataset.header",
            "studies/small.toml:11: dataset.columns.age.low",
            "studies/small.toml:12: dataset.columns.age.high",
            "studies/small.toml:13: dataset.columns.size",
            "studies/small.toml:17: dataset.columns.town.kind",
            "studies/small.toml:34: attacks.white_box.dropout",
            "studies/small.toml:34: attacks.white_box.epochs",
            "studies/small.toml:34: attacks.white_box.filters",
            "studies/small.toml:35: attacks.shadow_model.hiden",
        ],
        "{found:#?}"
    );
    assert!(found[5].ends_with("missing field `high`"), "{}", found[5]);
    let missing = problems(
        &GOOD
            .replace("kind = \"skewed-purchases\"\n", "kind = \"csv\"\npath = \"x\"\n")
            .replace("classes = 10\ntrain_records = 1000\ntest_records = 300\n", ""),
    );
    assert_eq!(missing, ["studies/small.toml:3: dataset: missing field `label`"]);
}

#[test]
fn broken_toml_is_refused_with_its_line_and_nothing_else_is_said() {
    let found = problems("name = \"x\"\nseed = = 3\n");
    assert!(!found.is_empty());
    assert!(found.iter().all(|p| p.starts_with("studies/small.toml:2: ")), "{found:#?}");
}

#[test]
fn a_limit_for_an_arm_that_is_not_there_is_refused() {
    let found = problems(&format!("{GOOD}[[limits]]\narms = [\"central z=3\"]\nmax_auc = 0.6\n"));
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("no arm is called `central z=3`"), "{}", found[0]);
}

#[test]
fn every_field_is_listed_once() {
    for (i, field) in FIELDS.iter().enumerate() {
        let same = |f: &&dosimeter_study::Field| (f.section, f.key) == (field.section, field.key);
        assert_eq!(FIELDS.iter().filter(same).count(), 1, "{}.{} ({i})", field.section, field.key);
    }
}

#[test]
fn the_studies_in_the_repository_are_right() {
    let folder = dosimeter_testing::workspace().join("studies");
    let mut checked = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "toml") {
            let wrong = if dosimeter_study::regression::is_regression(&path) {
                RegressionStudy::read(&path).err()
            } else {
                dosimeter_study::file::read(&path).err()
            };
            assert!(wrong.is_none(), "{}", wrong.unwrap());
            checked += 1;
        }
    }
    assert!(checked >= 6, "only {checked} studies found");
}

/// A whole study is read as it stands, `[[limits]]` behind a study, and a `[dataset]` in place of the data of one.
#[test]
fn every_example_in_the_documentation_is_right() {
    let root = dosimeter_testing::workspace();
    let mut pages = vec![root.join("README.md")];
    for folder in ["docs", "docs/guide", "docs/reference", "docs/concepts", "docs/decisions"] {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        pages.extend(
            entries.map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "md")),
        );
    }
    let (mut whole, mut parts) = (0, 0);
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for block in text.split("```toml\n").skip(1) {
            let example = block.split("```").next().unwrap();
            if example.lines().next().is_some_and(|l| l.ends_with(".bounds.toml")) {
                let folder = tempfile::tempdir().unwrap();
                let file = folder.path().join("bounds.toml");
                std::fs::write(&file, example).unwrap();
                let bounds = dosimeter_data::regression::TableBounds::read(&file);
                assert!(bounds.is_ok(), "{}: {}", page.display(), bounds.unwrap_err());
                continue;
            }
            if example.starts_with("[regression]\n") {
                type Tables = std::collections::BTreeMap<String, dosimeter_data::RegressionSpec>;
                let read = toml::from_str::<Tables>(example);
                assert!(read.is_ok(), "{}: {example}\n{read:?}", page.display());
                continue;
            }
            let generated = "[dataset]\nkind = \"skewed-purchases\"\nclasses = 10\ntrain_records = 1000\ntest_records = 300\n";
            let study = if example.contains("[target]") {
                whole += 1;
                example.to_owned()
            } else if example.starts_with("[dataset]\n") {
                parts += 1;
                GOOD.replace(generated, example)
            } else {
                parts += 1;
                format!("{}{example}", GOOD.replace("[1, 2.5]", "[1, 2]"))
            };
            let found = problems(&study);
            assert!(found.is_empty(), "{}:\n{example}\n{found:#?}", page.display());
        }
    }
    assert!(whole >= 1 && parts >= 9, "only {whole} whole studies and {parts} parts found");
}

#[test]
fn a_limit_that_no_arm_has_to_hold_is_refused() {
    let clipped = GOOD
        .replace(
            "central = { noise_multipliers = [1, 2.5], clipping_norm = 1 }",
            "clip_only = { clipping_norm = 1 }",
        )
        .replace("[[arms]]\nlocal = { epsilons_per_feature = [0.5] }\nepochs = 9\n", "");
    let found = problems(&format!("{clipped}[[limits]]\nmax_auc = 0.01\n"));
    assert_eq!(
        found,
        [
            "studies/small.toml:20: limits[1]: applies to no arm: without `arms` it is for every arm with a guarantee, and \
          there are no DP, clipping only"
        ]
    );
    let named = format!("{clipped}[[limits]]\narms = [\"clipping only\"]\nmax_auc = 0.01\n");
    assert_eq!(problems(&named), [""; 0]);
    let found = problems(&format!("{GOOD}[[limits]]\narms = []\nmax_auc = 0.01\n"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("limits[1].arms: needs") && found[0].ends_with("got an empty list"),
        "{found:?}"
    );
}

#[test]
fn noise_and_norms_that_no_sampler_draws_are_refused_with_their_line() {
    for noise in ["1e308", "1e-200"] {
        let found = problems(&GOOD.replace("[1, 2.5]", &format!("[1, {noise}]")));
        assert_eq!(found.len(), 1, "{noise}: {found:?}");
        assert!(found[0].starts_with("studies/small.toml:19: arms[1].central.noise_multipliers: needs a list of numbers from 1e-12 to 1e12, got"), "{found:?}");
    }
    for norm in ["1e308", "1e-320"] {
        let found =
            problems(&GOOD.replace("clipping_norm = 1 ", &format!("clipping_norm = {norm} ")));
        assert_eq!(found.len(), 1, "{norm}: {found:?}");
        assert!(
            found[0].contains(
                ":19: arms[1].central.clipping_norm: needs a number from 1e-18 to 1e18, got"
            ),
            "{found:?}"
        );
    }
}
