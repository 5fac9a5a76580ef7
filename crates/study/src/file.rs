//! The study file: TOML, read so that all problems are reported at once.
mod arms;

use crate::Error;
use crate::preparation::Preparation;
use crate::report::plain;
use crate::source::{Field, Problem, Section, Source};
use crate::study::{
    Arm, Audit, CoreSpec, EarlyStopping, Figure, Limit, MembershipRule, OptimizerKind, Study,
    Target,
};
use dosimeter_attack::ATTACKS;
use dosimeter_attack::membership::{ShadowModelSettings, WhiteBoxSettings};
use dosimeter_data::graphs::GRAPHS;
use dosimeter_data::{DatasetSpec, GraphSpec, SplitSpec};
use dosimeter_model::{Activation, Pool, zoo};
use dosimeter_privacy::{Generator, NoiseSource, Sampler};
use dosimeter_train::Architecture;
use std::path::Path;

macro_rules! fields {
    ($($section:literal { $($key:literal: $needed:literal, $default:expr, $meaning:literal;)* })*) => {
        &[$($(Field { section: $section, key: $key, needed: $needed, default: $default, meaning: $meaning },)*)*]
    };
}

/// Every field of a study file, in the order of the reference page.
pub const FIELDS: &[Field] = fields! {
    "" {
        "name": "text of letters, digits, `-` and `_`", None, "Name of the study. A run directory holds runs of one name.";
        "description": "text", Some("none"), "One or two sentences, shown on the report.";
        "seed": "a whole number from 0 to 9223372036854775807", None, "Root of every seed: splits, membership, weights, replayable noise.";
        "repeats": "a whole number from 1 to 1000", Some("1"), "Independent repetitions; intervals over repeats need at least 2.";
        "noise": "\"experiment\" or \"exact\"", Some("\"experiment\""), "`experiment`: fast float noise from the seed; `exact`: integer samplers on ChaCha20, replayable from the seed.";
        "show_images": "a whole number from 0 to 100", Some("0"), "So many members of the first repeat are shown: as they are, as each arm of pixelization randomized them, and as an attacker with the shadow pool brings them back, with the error. **The report then holds records**: page and `report.json` are as confidential as the data.";
        "dataset": "a table", None, "Where records come from; see the data sets page.";
        "split": "a table", None, "How records are divided.";
        "target": "a table", None, "The network and its training.";
        "shadows": "a table", Some("{}"), "Shadow models.";
        "arms": "an array of tables", None, "The settings compared. An arm without DP is always there.";
        "attacks": "a table", Some("{}"), "Which attacks run, and their settings.";
        "audit": "a table", Some("{}"), "Confidence, delta and rates.";
        "limits": "an array of tables", Some("[]"), "What must hold for exit code 0.";
    }
    "split" {
        "train": "a whole number from 2 to 100000000", None, "Nominal training-set size `n`; `2 n` candidates are drawn.";
        "test": "a whole number from 1 to 100000000", None, "Records for test accuracy.";
        "membership": "\"coins\" or \"fixed-half\"", Some("\"coins\""), "`coins`: a fair coin per candidate, as the one-run bound assumes; `fixed-half`: exactly half of each class.";
    }
    "target" {
        "core": "a table", Some("none"), "A frozen, public network in front: it turns each record into features, once, and `mlp` is trained on them. It gets no guarantee and needs none.";
        "model": "\"mlp\", \"lenet\", \"small-cnn\", \"cnn\", \"alexnet\", \"vgg16\", \"mobilenet-v1\" or \"dgcnn\"", Some("\"mlp\""), "The network: `mlp`, a perceptron, reads tables and images, `dgcnn` graphs, all others images.";
        "hidden": "a list of whole numbers from 1 to 65536", Some("[128]"), "Units of each hidden layer of `mlp`, where `[]` is a linear model, or behind the convolutions of `vgg16`, where it is `[4096, 4096]` if left out.";
        "activation": "\"tanh\", \"relu\" or \"sigmoid\"", Some("\"tanh\""), "Between layers of `mlp`, `small-cnn` and `cnn`.";
        "pooling": "\"max\" or \"average\"", Some("\"max\""), "Between convolutions of `cnn`. `max` learns much faster under DP.";
        "nodes": "a whole number from 10 to 4096", Some("as many as nine tenths of the graphs do not exceed"), "Nodes of a graph kept by the sort pooling of `dgcnn`; where there are fewer, zeros follow. Numbers of nodes count as public.";
        "optimizer": "\"adam\" or \"sgd\"", Some("\"adam\""), "Update rule.";
        "learning_rate": "a number above 0", None, "Step size.";
        "momentum": "a number from 0 to below 1", Some("0"), "Of SGD.";
        "batch_size": "a whole number from 1 to `split.train`, the training-set size", None, "Records per step; the expected number where batches are Poisson samples.";
        "epochs": "a whole number from 1 to 1000000", None, "Most passes over the training set.";
        "l2": "a number of at least 0", Some("0"), "Weight of half the squared parameter norm; outside of clipping.";
        "averaging": "a number from 0 to below 1", Some("none"), "Decay of an average of the weights over the steps, which is given and judged in place of the last weights; 0.999 looks back over about a thousand steps. It costs no privacy.";
        "early_stopping": "a table", Some("none"), "Stop when the validation loss no longer falls.";
    }
    "target.core" {
        "path": "the name of a file", None, "An ONNX model or a checkpoint, relative to the study file. Images are scaled (bilinear) to the size that it reads, grey ones repeated for three channels.";
        "output": "the name of a value of the model", Some("its only output"), "Where the core ends: any value of an ONNX model on the way; whatever its shape, its numbers are the features.";
        "input": "a list of whole numbers from 1 to 65536", Some("as in the model"), "Shape of one record where the model leaves it open, such as `[3, 224, 224]`.";
        "highest": "a number above 0", Some("1"), "The number that stands for full brightness: 255 where the core was made for bytes. Records are multiplied by it first.";
        "mean": "a number, or a list of one for each channel", Some("0"), "Subtracted then.";
        "deviation": "a number above 0, or a list of one for each channel", Some("1"), "By which is divided last.";
    }
    "target.early_stopping" {
        "patience": "a whole number from 1 to 1000000", None, "Epochs without a lower loss before stopping.";
        "records": "a whole number from 1 to 100000000", None, "Validation records, taken from the shadow pool.";
    }
    "shadows" {
        "count": "a whole number from 0 to 10000", Some("10"), "Shadow models per arm and repeat; none are trained if no attack needs them.";
    }
    "arms" {
        "no_dp": "an empty table", Some("none"), "The arm without DP, to override its training; added when absent.";
        "clip_only": "a table", Some("none"), "Clipping without noise.";
        "central": "a table", Some("none"), "DP training, one arm per noise multiplier; where arms of one noise multiplier differ in their clipping norm, labels name it: `central z=2 C=1`.";
        "local": "a table", Some("none"), "Local randomization of each record before training, one arm per epsilon: `epsilons_per_feature`, `pixelization` or `edge_randomized_response`.";
        "epochs": "a whole number from 1 to 1000000", Some("as the target"), "Override for these arms.";
        "learning_rate": "a number above 0", Some("as the target"), "Override for these arms.";
        "batch_size": "a whole number from 1 to `split.train`, the training-set size", Some("as the target"), "Override for these arms.";
    }
    "arms.no_dp" {}
    "arms.clip_only" {
        "clipping_norm": "a number from 1e-18 to 1e18", None, "L2 bound of a record's gradient.";
    }
    "arms.central" {
        "noise_multipliers": "a list of numbers from 1e-12 to 1e12", None, "Noise standard deviation over clipping norm.";
        "clipping_norm": "a number from 1e-18 to 1e18", None, "L2 bound of a record's gradient.";
    }
    "arms.local" {
        "epsilons_per_feature": "a list of numbers from 1e-9 to 1000", Some("none"), "Loss of one feature, nats; a record's loss is the sum over its features.";
        "pixelization": "a table", Some("none"), "Images averaged over square cells, with Laplace noise on each average (Fan 2018).";
        "edge_randomized_response": "a table", Some("none"), "Every pair of nodes of a graph answers whether it is an edge, truly with probability `e^epsilon / (1 + e^epsilon)`; a node left alone gets one edge to any other.";
    }
    "arms.local.edge_randomized_response" {
        "epsilons": "a list of numbers above 0 and at most 1000", None, "Loss of one pair of nodes, nats. The loss of a whole graph is larger: as many times as the largest graph has pairs, and the report leads with that. Numbers of nodes, tags and classes are public.";
    }
    "arms.local.pixelization" {
        "cell": "a whole number from 1 to 65536", None, "Side of a cell, pixels, at most the longer side of the images. Cells at the right and lower edge are smaller where it does not divide the side.";
        "neighbouring_pixels": "a whole number from 1 to 4294967296", None, "Pixels in which two images may differ and still be protected at epsilon, at most all of an image. A colour pixel counts once, and all its channels may differ.";
        "epsilons": "a list of numbers from 1e-9 to 1000000", None, "Loss between two such images, nats. The loss between any two images is larger: pixels of an image over `neighbouring_pixels` times as much, and the report leads with that.";
    }
    "attacks" {
        "names": "a list of attack names", Some("every attack"), "Which attacks run, in this order.";
        "shadow_model": "a table", Some("{}"), "Settings of `shadow_model`; see the attacks page.";
        "white_box": "a table", Some("{}"), "Settings of `white_box`; see the attacks page.";
    }
    "audit" {
        "confidence": "a number above 0.5 and at most 0.999999", Some("0.95"), "Of every interval and bound.";
        "delta": "\"1/n\" or a number above 0 and below 1", Some("0.01/n"), "Of epsilon, proved and measured; a tenth of it is always reported too. At `\"1/n\"`, as in the paper, releasing one record whole is allowed, and one training run can show next to nothing.";
        "false_positive_rates": "a list of different numbers above 0 and below 1", Some("[0.001, 0.01, 0.1]"), "Where the true-positive rate is reported.";
    }
    "limits" {
        "arms": "a list of arm labels such as \"central z=2\"", Some("every arm with a guarantee"), "Which arms must hold it.";
        "max_epsilon_upper": "a number of at least 0", Some("none"), "Largest proved epsilon. More by 1e-12 of it counts as equal, since what is proved is rounded up.";
        "max_epsilon_lower": "a number of at least 0", Some("none"), "Largest measured epsilon over all attacks.";
        "max_auc": "a number from 0 to 1", Some("none"), "Largest AUC over all attacks.";
        "max_tpr": "a number from 0 to 1", Some("none"), "Largest true-positive rate over all attacks.";
        "at_fpr": "a number above 0 and below 1", Some("0.01"), "The false-positive rate of `max_tpr`; must be one of `audit.false_positive_rates`.";
        "claimed_epsilon": "a number of at least 0", Some("none"), "An epsilon that somebody claims for these arms: violated when more is measured.";
    }
};

const LARGE: u64 = 100_000_000;
const EPOCHS: u64 = 1_000_000;

/// Reads and checks a study file.
///
/// # Errors
/// [`Error::Disk`] if it cannot be read, [`Error::Study`] with every problem in it otherwise.
pub fn read(file: &Path) -> Result<Study, Error> {
    check(file, &text_of(file)?).map_err(Error::Study)
}

/// The text of a file that people write or a run leaves behind; an error names it. One without an end is refused.
pub(crate) fn text_of(file: &Path) -> Result<String, Error> {
    dosimeter_data::settings::text(file).map_err(|error| match error {
        dosimeter_data::Error::Read { file, source } => Error::Disk { path: file, source },
        error => Error::Data(error),
    })
}

/// The name of the study in the text of a study file, whatever else is in it.
pub(crate) fn name_in(text: &str) -> Option<String> {
    let (table, _) = toml::de::DeTable::parse_recoverable(text);
    table.get_ref().get("name")?.get_ref().as_str().map(str::to_owned)
}

/// Checks the text of a study file. Paths in it are relative to the folder of `file`.
///
/// # Errors
/// Every problem, in the order of its lines.
pub fn check(file: &Path, text: &str) -> Result<Study, Vec<Problem>> {
    let source = Source::new(file, text, FIELDS);
    let table = source.parse();
    let study = if source.has_problems() {
        None // of syntax: what follows would only be noise
    } else {
        let top = Section::open(&source, "", String::new(), Some(table.get_ref()), 0);
        study(file, text, &top)
    };
    match study {
        Some(study) if !source.has_problems() => Ok(study),
        _ => Err(source.into_problems()),
    }
}

fn study(file: &Path, text: &str, top: &Section<'_>) -> Option<Study> {
    let name = top.text("name", None).filter(|name| {
        let fine = !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if !fine {
            top.wrong("name", &format!("\"{name}\""));
        }
        fine
    });
    let description = top.text("description", Some(""));
    let seed = top.whole("seed", 0..=i64::MAX as u64, None);
    let repeats = top.whole("repeats", 1..=1000, Some(1));
    let noise = top.choice(
        "noise",
        &[
            (
                "experiment",
                NoiseSource { generator: Generator::ReplayableFast, sampler: Sampler::Float },
            ),
            (
                "exact",
                NoiseSource { generator: Generator::ReplayableChaCha, sampler: Sampler::Exact },
            ),
        ],
        Some(NoiseSource { generator: Generator::ReplayableFast, sampler: Sampler::Float }),
    );
    let show_images = top.size("show_images", 0..=100, Some(0));
    let dataset = dataset(file, top);
    let (split, membership) = split(&top.table("split", "split"));
    let target = target(file, &top.table("target", "target"), split);
    let shadows = top.table("shadows", "shadows").whole("count", 0..=10_000, Some(10));
    let arms = arms::arms(top, target.as_ref(), split);
    let attacks = attacks(&top.table("attacks", "attacks"), shadows);
    let audit = audit(&top.table("audit", "audit"), split);
    let limits = limits(top, arms.as_deref(), audit.as_ref());
    let (attacks, attack_settings) = attacks?;
    Some(Study {
        file: file.to_owned(),
        text: text.to_owned(),
        name: name?.to_owned(),
        description: description.filter(|d| !d.is_empty()).map(str::to_owned),
        seed: seed?,
        repeats: u32::try_from(repeats?).ok()?,
        dataset: dataset?,
        split: split?,
        membership: membership?,
        target: target?,
        noise: noise?,
        shadows: u32::try_from(shadows?).ok()?,
        arms: arms?,
        attacks,
        attack_settings,
        audit: audit?,
        limits: limits?,
        show_images: show_images?,
    })
}

fn split(section: &Section<'_>) -> (Option<SplitSpec>, Option<MembershipRule>) {
    let train = section.size("train", 2..=LARGE, None);
    let test = section.size("test", 1..=LARGE, None);
    let membership = section.choice(
        "membership",
        &[("coins", MembershipRule::Coins), ("fixed-half", MembershipRule::FixedHalf)],
        Some(MembershipRule::Coins),
    );
    (train.zip(test).map(|(train, test)| SplitSpec { train, test }), membership)
}

fn target(file: &Path, section: &Section<'_>, split: Option<SplitSpec>) -> Option<Target> {
    let architecture = architecture(section);
    let core = section.has("core").then(|| core(file, &section.table("core", "target.core")));
    if core.is_some()
        && architecture.as_ref().is_some_and(|a| !matches!(a, Architecture::Mlp { .. }))
    {
        let what = "needs \"mlp\" behind a core, which gives numbers and no images";
        section.report("model", what.to_owned());
    }
    let optimizer = section.choice(
        "optimizer",
        &[("adam", OptimizerKind::Adam), ("sgd", OptimizerKind::Sgd)],
        Some(OptimizerKind::Adam),
    );
    let learning_rate = section.real("learning_rate", |x| x > 0.0, None);
    let momentum = section.real("momentum", |x| (0.0..1.0).contains(&x), Some(0.0));
    let batch_size = section.size("batch_size", 1..=most_per_batch(split), None);
    let epochs = section.size("epochs", 1..=EPOCHS, None);
    let l2 = section.real("l2", |x| x >= 0.0, Some(0.0));
    let averaging = if section.has("averaging") {
        Some(section.real("averaging", |x| (0.0..1.0).contains(&x), None)?)
    } else {
        None
    };
    let early_stopping = if section.has("early_stopping") {
        let inner = section.table("early_stopping", "target.early_stopping");
        let patience = inner.size("patience", 1..=EPOCHS, None);
        let records = inner.size("records", 1..=LARGE, None);
        Some(EarlyStopping { patience: patience?, records: records? })
    } else {
        None
    };
    if optimizer == Some(OptimizerKind::Adam) && section.has("momentum") {
        section.report("momentum", "belongs to optimizer = \"sgd\"".to_owned());
    }
    Some(Target {
        core: match core {
            Some(core) => Some(core?),
            None => None,
        },
        architecture: architecture?,
        optimizer: optimizer?,
        learning_rate: learning_rate?,
        momentum: momentum?,
        batch_size: batch_size?,
        epochs: epochs?,
        l2: l2?,
        averaging,
        early_stopping,
    })
}

fn core(file: &Path, section: &Section<'_>) -> Option<CoreSpec> {
    let path = section.text("path", None);
    let output = section.text("output", Some(""));
    let input = section.sizes("input", &(1..=65_536), Some(Vec::new()));
    let highest = section.real("highest", |x| x > 0.0 && x <= 1e6, Some(1.0));
    let means = section.real_or_reals("mean", |x| x.abs() <= 1e6);
    let deviations = section.real_or_reals("deviation", |x| (1e-6..=1e6).contains(&x));
    #[expect(clippy::cast_possible_truncation, reason = "pixels are single precision")]
    let single = |numbers: Vec<f64>| numbers.into_iter().map(|x| x as f32).collect();
    Some(CoreSpec {
        path: file.parent().unwrap_or(Path::new("")).join(path?),
        output: output.filter(|o| !o.is_empty()).map(str::to_owned),
        input: input.map(|sides| (!sides.is_empty()).then_some(sides))?,
        preparation: Preparation {
            #[expect(clippy::cast_possible_truncation, reason = "pixels are single precision")]
            highest: highest? as f32,
            means: single(means?),
            deviations: single(deviations?),
        },
    })
}

fn architecture(section: &Section<'_>) -> Option<Architecture> {
    const MODELS: [&str; 8] =
        ["mlp", "lenet", "small-cnn", "cnn", "alexnet", "vgg16", "mobilenet-v1", "dgcnn"];
    let model = section.choice("model", &MODELS.map(|name| (name, name)), Some("mlp"));
    let usual = if model == Some("vgg16") { vec![4096, 4096] } else { vec![128] };
    let hidden = section.sizes("hidden", &(1..=65_536), Some(usual));
    let activation = section.choice(
        "activation",
        &[("tanh", Activation::Tanh), ("relu", Activation::Relu), ("sigmoid", Activation::Sigmoid)],
        Some(Activation::Tanh),
    );
    let pool = section.choice(
        "pooling",
        &[("max", Pool::Max), ("average", Pool::Average)],
        Some(Pool::Max),
    );
    let nodes = if section.has("nodes") {
        let (least, most) = (zoo::LEAST_NODES as u64, zoo::MOST_NODES as u64);
        section.size("nodes", least..=most, None).map(Some)
    } else {
        Some(None)
    };
    for (key, of) in [
        ("hidden", &["mlp", "vgg16"][..]),
        ("activation", &["mlp", "small-cnn", "cnn"]),
        ("pooling", &["cnn"]),
        ("nodes", &["dgcnn"]),
    ] {
        if section.has(key) && model.is_some_and(|model| !of.contains(&model)) {
            let of: Vec<String> = of.iter().map(|model| format!("\"{model}\"")).collect();
            section.report(key, format!("belongs to model = {}", of.join(" or ")));
        }
    }
    let (hidden, activation, pool) = (hidden?, activation?, pool?);
    Some(match model? {
        "lenet" => Architecture::Lenet,
        "small-cnn" => Architecture::SmallCnn { activation },
        "cnn" => Architecture::Cnn { activation, pool },
        "alexnet" => Architecture::Alexnet,
        "vgg16" => Architecture::Vgg16 { hidden },
        "mobilenet-v1" => Architecture::MobilenetV1,
        "dgcnn" => Architecture::Dgcnn { nodes: nodes? },
        _ => Architecture::Mlp { hidden, activation },
    })
}

fn most_per_batch(split: Option<SplitSpec>) -> u64 {
    split.map_or(LARGE, |s| s.train as u64)
}

fn attacks(
    section: &Section<'_>,
    shadows: Option<u64>,
) -> Option<(Vec<String>, dosimeter_attack::Settings)> {
    let all: Vec<&str> = ATTACKS.iter().map(|a| a.name()).collect();
    let names = section.texts("names", Some(all.clone()))?;
    let mut known = true;
    for (i, name) in names.iter().enumerate() {
        let Some(attack) = ATTACKS.iter().find(|a| a.name() == *name) else {
            let near = crate::source::nearest(name, all.iter().copied());
            section.report(
                "names",
                near.map_or_else(
                    || format!("no attack is called `{name}`; there are {}", all.join(", ")),
                    |near| format!("no attack is called `{name}`, did you mean `{near}`?"),
                ),
            );
            known = false;
            continue;
        };
        if names[..i].contains(name) {
            section.report("names", format!("`{name}` stands there twice"));
        }
        let needed = attack.needs().shadows as u64;
        if shadows.is_some_and(|have| have < needed) {
            section.report(
                "names",
                format!(
                    "`{name}` needs at least {needed} shadow models, got shadows.count = {}",
                    shadows.unwrap_or(0)
                ),
            );
        }
    }
    if names.is_empty() {
        section.report("names", "needs at least one attack, got an empty list".to_owned());
    }
    let shadow_model = section.deserialize("shadow_model", |s: &ShadowModelSettings| {
        s.check().map_err(|error| error.to_string())
    });
    let white_box = section.deserialize("white_box", |s: &WhiteBoxSettings| {
        s.check().map_err(|error| error.to_string())
    });
    let settings =
        dosimeter_attack::Settings { shadow_model: shadow_model?, white_box: white_box? };
    known.then(|| (names.into_iter().map(str::to_owned).collect(), settings))
}

fn audit(section: &Section<'_>, split: Option<SplitSpec>) -> Option<Audit> {
    let open_unit = |x: f64| x > 0.0 && x < 1.0;
    let confidence = section.real("confidence", |x| x > 0.5 && x <= 0.999_999, Some(0.95));
    let mut delta = section.real_or_word("delta", "1/n", open_unit);
    if section.value("delta").is_none() {
        delta = split.map(|split| Some(0.01 / split.train as f64));
    }
    let rates = section.reals("false_positive_rates", open_unit, Some(vec![0.001, 0.01, 0.1]));
    for (i, rate) in rates.iter().flatten().enumerate() {
        if rates.iter().flatten().take(i).any(|before| before.total_cmp(rate).is_eq()) {
            section.report("false_positive_rates", format!("{} stands there twice", plain(*rate)));
        }
    }
    Some(Audit { confidence: confidence?, delta: delta?, false_positive_rates: rates? })
}

fn limits(top: &Section<'_>, arms: Option<&[Arm]>, audit: Option<&Audit>) -> Option<Vec<Limit>> {
    let mut limits = Vec::new();
    for section in top.tables("limits", "limits") {
        let settings = section.texts("arms", Some(Vec::new()))?;
        let labels = || arms.into_iter().flatten().map(|a| a.setting.as_str());
        if settings.is_empty() && section.has("arms") {
            section.wrong("arms", "an empty list");
        } else if settings.is_empty()
            && arms.is_some_and(|arms| !arms.iter().any(|a| a.defence.is_private()))
        {
            let all: Vec<&str> = labels().collect();
            section.report(
                "",
                format!(
                    "applies to no arm: without `arms` it is for every arm with a guarantee, and there are {}",
                    all.join(", ")
                ),
            );
        }
        for setting in &settings {
            if arms.is_some() && !labels().any(|l| l == *setting) {
                let all: Vec<&str> = labels().collect();
                section.report(
                    "arms",
                    format!("no arm is called `{setting}`; there are {}", all.join(", ")),
                );
            }
        }
        let fpr = section.real("at_fpr", |x| x > 0.0 && x < 1.0, Some(0.01))?;
        let at_least_0 = |x: f64| x >= 0.0;
        let unit = |x: f64| (0.0..=1.0).contains(&x);
        let mut any = false;
        for (key, figure, ok) in [
            ("max_epsilon_upper", Figure::EpsilonUpper, &at_least_0 as &dyn Fn(f64) -> bool),
            ("max_epsilon_lower", Figure::EpsilonLower, &at_least_0),
            ("max_auc", Figure::Auc, &unit),
            ("max_tpr", Figure::TruePositiveRate { fpr }, &unit),
            ("claimed_epsilon", Figure::ClaimedEpsilon, &at_least_0),
        ] {
            if !section.has(key) {
                continue;
            }
            any = true;
            if key == "max_tpr"
                && audit.is_some_and(|a| {
                    a.false_positive_rates.iter().all(|f| f.total_cmp(&fpr).is_ne())
                })
            {
                section.report(
                    "at_fpr",
                    format!("needs one of audit.false_positive_rates, got {}", plain(fpr)),
                );
            }
            let at_most = section.real(key, ok, None)?;
            limits.push(Limit {
                settings: settings.iter().map(|s| (*s).to_owned()).collect(),
                figure,
                at_most,
            });
        }
        if !any {
            section.report("", "needs at least one `max_...` or `claimed_epsilon`".to_owned());
        }
    }
    Some(limits)
}

fn dataset(file: &Path, top: &Section<'_>) -> Option<DatasetSpec> {
    if !top.has("dataset") {
        top.report("dataset", "missing; needs a table with `kind = \"...\"`".to_owned());
        return None;
    }
    let mut spec: DatasetSpec = top.deserialize("dataset", |_| Ok(()))?;
    if let Some(path) = spec.path_mut() {
        // `join` keeps absolute paths as they are.
        *path = file.parent().unwrap_or(Path::new("")).join(&*path);
    }
    Some(spec)
}

/// Whether the `dataset` table is of a kind of graphs.
fn is_of_graphs(top: &Section<'_>) -> bool {
    let table = top.value("dataset").and_then(|value| value.get_ref().as_table());
    let kind = table.and_then(|table| table.get("kind")?.get_ref().as_str());
    GRAPHS.iter().any(|graphs| Some(graphs.name) == kind)
}

/// The `dataset` table of a study file if it is of a kind of graphs, and nothing else of it. `None` if it is not, or cannot be parsed:
/// [`dataset_in`] says why.
///
/// # Errors
/// [`Error::Study`] with every problem of the table.
pub(crate) fn graphs_in(file: &Path, text: &str) -> Result<Option<GraphSpec>, Error> {
    let source = Source::new(file, text, FIELDS);
    let table = source.parse();
    if source.has_problems() {
        return Ok(None);
    }
    let top = Section::open(&source, "", String::new(), Some(table.get_ref()), 0);
    if !is_of_graphs(&top) {
        return Ok(None);
    }
    let found = top.deserialize("dataset", |_: &GraphSpec| Ok(()));
    match found {
        Some(mut spec) if !source.has_problems() => {
            let path = spec.path_mut();
            *path = file.parent().unwrap_or(Path::new("")).join(&*path);
            Ok(Some(spec))
        }
        _ => Err(Error::Study(source.into_problems())),
    }
}

/// Reads the seed and the `dataset` table of a study file, and nothing else of it.
///
/// # Errors
/// [`Error::Disk`] if it cannot be read, [`Error::Study`] with every problem of these two.
pub fn read_dataset(file: &Path) -> Result<(DatasetSpec, u64), Error> {
    dataset_in(file, &text_of(file)?)
}

/// As [`read_dataset`], of the text of a study file.
pub(crate) fn dataset_in(file: &Path, text: &str) -> Result<(DatasetSpec, u64), Error> {
    let source = Source::new(file, text, FIELDS);
    let table = source.parse();
    let found = if source.has_problems() {
        None
    } else {
        let top = Section::open(&source, "", String::new(), Some(table.get_ref()), 0);
        dataset(file, &top).zip(top.whole("seed", 0..=i64::MAX as u64, Some(0)))
    };
    match found {
        Some(found) if !source.has_problems() => Ok(found),
        _ => Err(Error::Study(source.into_problems())),
    }
}
