//! Studies of images: networks that need them, their sizes, and a whole run.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
#![expect(clippy::suboptimal_flops, reason = "checks written as worked by hand")]

use dosimeter_study::Session;
use dosimeter_study::account::{Relation, Unit};
use dosimeter_study::run::{Silent, Speed};
use std::path::{Path, PathBuf};

/// `[records, side, side]` in IDX with two classes: class 1 is bright below, class 0 above.
fn write_images(folder: &Path, records: u32, side: u32) {
    let mut images = vec![0, 0, 8, 3];
    let mut labels = vec![0, 0, 8, 1];
    labels.extend(records.to_be_bytes());
    for size in [records, side, side] {
        images.extend(size.to_be_bytes());
    }
    for record in 0..records {
        let class = record % 2;
        labels.push(class as u8);
        for place in 0..side * side {
            let bright = (2 * (place / side) >= side) == (class == 1);
            let grain = (record.wrapping_mul(2_654_435_761) ^ place.wrapping_mul(40_503)) >> 7;
            images.push(if bright { 140 } else { 60 } + (grain % 50) as u8);
        }
    }
    std::fs::write(folder.join("images-idx3"), images).unwrap();
    std::fs::write(folder.join("labels-idx1"), labels).unwrap();
}

const STUDY: &str = r#"name = "bright"
seed = 3
[dataset]
kind = "idx"
path = "images-idx3"
[split]
train = 40
test = 60
[target]
model = "lenet"
learning_rate = 0.01
batch_size = 10
epochs = 4
[shadows]
count = 1
[[arms]]
central = { noise_multipliers = [1], clipping_norm = 1 }
[[arms]]
local = { pixelization = { cell = 5, neighbouring_pixels = 9, epsilons = [2] } }
[attacks]
white_box = { filters = 4, epochs = 3 }
"#;

fn study(folder: &Path, text: &str) -> PathBuf {
    let file = folder.join("bright.toml");
    std::fs::write(&file, text).unwrap();
    file
}

#[test]
fn a_study_of_images_runs_from_the_file_to_the_report() {
    let folder = tempfile::tempdir().unwrap();
    write_images(folder.path(), 300, 12);
    let session = Session::open(&study(folder.path(), STUDY)).unwrap();
    let root = folder.path().join("run");
    let report = session.run(&root, Speed { threads: Some(2) }, &Silent).unwrap();
    assert_eq!(report.arms.len(), 3);
    let plain = &report.arms[0];
    assert!(plain.test_accuracy.value > 0.9, "{:?}", plain.test_accuracy);
    assert!(report.arms[1].epsilon_upper[0].value.get() < 20.0);
    assert_eq!(
        report.provenance.recipes[0].text,
        "lenet, adam at 0.01, batch 10, at most 4 epochs, l2 0"
    );
    assert!(plain.attacks.iter().any(|a| a.attack == "white_box"));

    // 144 pixels are 16 times 9: whole images cost 16 times 2 nats, and that leads.
    let pixelized = &report.arms[2];
    assert_eq!(pixelized.setting, "pixelization b=5 m=9 eps=2");
    let (whole, few) = (&pixelized.epsilon_upper[0], pixelized.epsilon_upper.last().unwrap());
    assert_eq!((whole.unit, whole.delta.to_bits()), (Unit::FeatureVector, 0.0_f64.to_bits()));
    assert!((whole.value.get() - 32.0).abs() < 1e-6, "{whole:?}");
    assert_eq!((few.unit, few.relation), (Unit::Pixels(9), Relation::Local));
    assert!((few.value.get() - 2.0).abs() < 1e-9, "{few:?}");
    let page = std::fs::read_to_string(root.join("report.html")).unwrap();
    assert!(page.contains("9 pixels") && page.contains("feature vector"));
    let json = std::fs::read_to_string(root.join("report.json")).unwrap();
    assert_eq!(dosimeter_study::report::from_json(&json).unwrap(), report);
}

#[test]
fn images_are_shown_and_brought_back_only_where_the_study_asks_for_it() {
    let folder = tempfile::tempdir().unwrap();
    write_images(folder.path(), 300, 12);
    // One cell is one pixel. At 90 nats noise has scale 1/10, at 1e-6 it drowns everything.
    let two = STUDY
        .replace("cell = 5", "cell = 1")
        .replace("epsilons = [2]", "epsilons = [90, 1e-6]")
        .replace("[attacks]", "[attacks]\nnames = [\"loss_threshold\"]");
    let run = |text: &str, name: &str| {
        let session = Session::open(&study(folder.path(), text)).unwrap();
        let root = folder.path().join(name);
        let report = session.run(&root, Speed { threads: Some(2) }, &Silent).unwrap();
        let page = std::fs::read_to_string(root.join("report.html")).unwrap();
        let json = std::fs::read_to_string(root.join("report.json")).unwrap();
        assert_eq!(dosimeter_study::report::from_json(&json).unwrap(), report);
        (report, page)
    };
    let (hidden, page) = run(&two, "hidden");
    assert!(hidden.reconstructions.is_empty() && !page.contains("data:image/png"));

    let shown = format!("show_images = 3\n{two}");
    let (report, page) = run(&shown, "shown");
    // Each arm shows the mean image, and of three members three.
    assert_eq!(page.matches("<img src=\"data:image/png;base64,").count(), 2 * (1 + 3 * 3));
    assert!(report.notes.iter().any(|n| n.text.contains("as confidential as the data")));
    assert_eq!(report.arms, hidden.arms, "no other figure moves");
    assert_ne!(report.provenance.study_digest, hidden.provenance.study_digest);
    let [some, none] = report.reconstructions.as_slice() else { panic!("two arms") };
    assert_eq!((some.setting.as_str(), some.pictures.len()), ("pixelization b=1 m=9 eps=90", 3));
    // Pool: 300 - 80 candidates - 60 test records.
    assert_eq!(some.fitted_on, 160);
    let members = report.arms[0].repeats[0].members;
    assert_eq!((some.images, none.images), (members, members));
    // The two classes are plain to see through noise of a tenth, and the estimator is better than the noise.
    assert!(some.gain.interval.as_ref().unwrap().low > 0.0, "{:?}", some.gain);
    assert!(some.reconstructed_error.value < some.randomized_error.value, "{some:?}");
    assert!(
        (some.null_error.value - some.reconstructed_error.value - some.gain.value).abs() < 1e-12
    );
    // Where nothing is released nothing comes back but the mean image, whose bytes may round otherwise.
    assert!(none.gain.value.abs() < 1e-6, "{:?}", none.gain);
    assert!(some.pictures.iter().all(|p| p.reconstructed != some.mean_image));
    assert_eq!(some.pictures[0].original, none.pictures[0].original);

    for (text, wanted) in [
        (shown.split("[[arms]]\nlocal").next().unwrap().to_owned(), "needs an arm of pixelization"),
        (
            shown
                .replace("train = 40\ntest = 60", "train = 120\ntest = 60")
                .replace("count = 1", "count = 0"),
            "shadow pool",
        ),
        (shown.replace("= 3\nname", "= 101\nname"), "needs a whole number from 0 to 100, got 101"),
    ] {
        let error = Session::open(&study(folder.path(), &text)).unwrap_err().to_string();
        assert!(error.contains(":1: show_images: ") && error.contains(wanted), "{error}");
    }
}

#[test]
fn pixelization_of_tables_and_with_cells_or_pixels_that_images_do_not_have_is_refused_with_its_line()
 {
    let folder = tempfile::tempdir().unwrap();
    write_images(folder.path(), 300, 12);
    let idx = "kind = \"idx\"\npath = \"images-idx3\"";
    let generated =
        "kind = \"skewed-purchases\"\nclasses = 10\ntrain_records = 1000\ntest_records = 300";
    let table = STUDY.replace(idx, generated).replace("\"lenet\"", "\"mlp\"");
    for (text, wanted) in [
        (
            STUDY.replace("cell = 5", "cell = 13"),
            ":19: arms[2].local.pixelization.cell: `pixelization b=13 m=9 eps=2`: `cell` needs a whole number from 1 to 12 for images of 12 x 12",
        ),
        (
            STUDY.replace("pixels = 9", "pixels = 145"),
            ":19: arms[2].local.pixelization.neighbouring_pixels: `pixelization b=5 m=145 eps=2`: `neighbouring_pixels` needs a whole number from 1 to 144 for images of 12 x 12 (an image has no more pixels to differ in), got 145",
        ),
        (
            table,
            ": arms: `pixelization b=5 m=9 eps=2`: column bit 0: pixelization needs images, and this is a table",
        ),
    ] {
        let error = Session::open(&study(folder.path(), &text)).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

/// Hand-worked: at 12 x 12 `lenet` has 16 numbers behind its convolutions (6 x 25 + 6 and 16 x 150 + 16 parameters) and layers of 120,
/// 84 and 2.
#[test]
fn the_parameters_of_every_network_are_counted_and_too_many_are_refused_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    write_images(folder.path(), 300, 32);
    // (model, its line, needs, or how the refusal begins)
    for (model, refused) in [
        ("\"lenet\"", ""),
        ("\"cnn\"\nactivation = \"relu\"", ""),
        ("\"small-cnn\"\nactivation = \"sigmoid\"", ""),
        ("\"vgg16\"\nhidden = []", ""),
        (
            "\"vgg16\"\nhidden = [65536, 65536]",
            "target.hidden: needs a network of at most 100000000 parameters, got 4343",
        ),
        (
            "\"mlp\"\nhidden = [65536, 65536]",
            "target.hidden: needs a network of at most 100000000 parameters, got 4362",
        ),
        ("\"alexnet\"", "target.model: cannot take images of 1 x 32 x 32: "),
    ] {
        let text = STUDY.replace("\"lenet\"", model);
        let opened = Session::open(&study(folder.path(), &text));
        if refused.is_empty() {
            let session = opened.unwrap();
            assert!(session.plan.estimated_seconds() > 0.0, "{model}");
        } else {
            let error = opened.unwrap_err().to_string();
            assert!(error.contains(refused), "{model}: {error}");
            let line = if model.contains("hidden") { ":11: " } else { ":10: " };
            assert!(error.contains(line), "{model}: {error}");
        }
    }
}

#[test]
fn a_network_for_images_on_a_table_or_on_images_that_are_too_small_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    write_images(folder.path(), 300, 8);
    let error = Session::open(&study(folder.path(), STUDY)).unwrap_err().to_string();
    assert!(
        error.contains("bright.toml:10: target.model: cannot take images of 1 x 8 x 8: "),
        "{error}"
    );
    let table = STUDY.replace(
        "kind = \"idx\"\npath = \"images-idx3\"",
        "kind = \"skewed-purchases\"\nclasses = 10\ntrain_records = 1000\ntest_records = 300",
    );
    let error = Session::open(&study(folder.path(), &table)).unwrap_err().to_string();
    assert!(
        error.ends_with("bright.toml:12: target.model: needs images, got a table of 600 inputs"),
        "{error}"
    );
}

/// A convolution multiplies at every place: `cnn` has 550,570 parameters and far more multiplications than those.
#[test]
fn the_estimate_counts_every_place_of_a_convolution() {
    let folder = tempfile::tempdir().unwrap();
    write_images(folder.path(), 300, 32);
    let seconds = |model: &str| {
        let text = STUDY.replace("\"lenet\"", model);
        let study = dosimeter_study::file::check(&study(folder.path(), &text), &text).unwrap();
        let dataset = dosimeter_study::session::load(&study).unwrap();
        let rate = dosimeter_study::plan::Rate::default();
        let plan = dosimeter_study::plan::plan(&study, &dataset, None, "any", rate).unwrap();
        plan.groups[0].train.estimated_seconds
    };
    // lenet at 32 x 32: 6 x 784 x 25 + 16 x 100 x 150 + 400 x 120 + 120 x 84 + 84 x 2 multiplications, 61,026 parameters; four
    // epochs of 40 records, three products each, and 16 steps of 20 passes over the parameters.
    let multiplications = 117_600.0 + 240_000.0 + 48_000.0 + 10_080.0 + 168.0;
    let by_hand = 4.0 * 40.0 * 3.0 * multiplications + 16.0 * 20.0 * 61_026.0;
    assert!((seconds("\"lenet\"") * 1e10 / by_hand - 1.0).abs() < 1e-9);
    // A perceptron costs what it did: as many multiply-adds as parameters.
    let parameters = 1025.0 * 128.0 + 129.0 * 2.0;
    let by_hand = 4.0 * 40.0 * 3.0 * parameters + 16.0 * 20.0 * parameters;
    assert!((seconds("\"mlp\"") * 1e10 / by_hand - 1.0).abs() < 1e-9);
}
