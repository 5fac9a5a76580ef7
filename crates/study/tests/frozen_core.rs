//! A frozen core: studies whose heads are trained on what a public network makes of the records.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use dosimeter_model::onnx;
use dosimeter_model::{Activation, Arithmetic, Combine, Elementwise, Graph, Layer, zoo};
use dosimeter_study::models::{self, Part};
use dosimeter_study::plan::{Stage, Task};
use dosimeter_study::run::{Silent, Speed, Watch};
use dosimeter_study::{Error, Preparation, Session};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// 240 grey images of 6 x 5 in IDX: class 1 is bright below, class 0 above.
fn write_images(folder: &Path) {
    const SIDES: [u32; 2] = [6, 5];
    let records = 240_u32;
    let mut images = vec![0, 0, 8, 3];
    let mut labels = vec![0, 0, 8, 1];
    labels.extend(records.to_be_bytes());
    for size in [records, SIDES[0], SIDES[1]] {
        images.extend(size.to_be_bytes());
    }
    for record in 0..records {
        let class = record % 2;
        labels.push(class as u8);
        for place in 0..SIDES[0] * SIDES[1] {
            let bright = (2 * (place / SIDES[1]) >= SIDES[0]) == (class == 1);
            let grain = (record.wrapping_mul(2_654_435_761) ^ place.wrapping_mul(40_503)) >> 7;
            images.push(if bright { 140 } else { 60 } + (grain % 50) as u8);
        }
    }
    std::fs::write(folder.join("images-idx3"), images).unwrap();
    std::fs::write(folder.join("labels-idx1"), labels).unwrap();
}

/// A core that reads three channels of 28 x 28 and gives seven numbers between 0 and 1.
fn core() -> Graph {
    let mut rng = dosimeter_data::Seed::root(3).rng();
    let mut graph = zoo::small_cnn(&[3, 28, 28], 7, Activation::Tanh, &mut rng).unwrap();
    let output = graph.output();
    graph.add(Layer::Activation(Activation::Sigmoid), &[output]).unwrap();
    graph
}

const STUDY: &str = r#"name = "bright"
seed = 3
[dataset]
kind = "idx"
path = "images-idx3"
[split]
train = 30
test = 60
[target]
core = { path = "core.onnx", highest = 255, mean = [120, 110, 100], deviation = 64 }
hidden = [5]
learning_rate = 0.05
batch_size = 10
epochs = 40
[shadows]
count = 1
[[arms]]
central = { noise_multipliers = [1], clipping_norm = 1 }
[[arms]]
local = { pixelization = { cell = 2, neighbouring_pixels = 3, epsilons = [50] } }
[attacks]
names = ["loss_threshold", "shadow_model"]
shadow_model = { epochs = 3 }
"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_images(folder.path());
    std::fs::write(folder.path().join("core.onnx"), onnx::write(&core()).unwrap()).unwrap();
    folder
}
fn study(folder: &Path, text: &str) -> PathBuf {
    let file = folder.join("bright.toml");
    std::fs::write(&file, text).unwrap();
    file
}
fn threads(threads: usize) -> Speed {
    Speed { threads: Some(threads) }
}
fn json(root: &Path) -> String {
    std::fs::read_to_string(root.join("report.json")).unwrap()
}

/// Stops as soon as so many records have been through the core, and counts tasks.
#[derive(Default)]
struct Counting {
    stop_at_record: Option<usize>,
    records: AtomicUsize,
    most: AtomicUsize,
    /// One more than were done when the first count was told.
    first: AtomicUsize,
    features: AtomicUsize,
    others: AtomicUsize,
}
impl Watch for Counting {
    fn done(&self, task: &Task, reused: bool) {
        let features = matches!(task.stage, Stage::Features { .. });
        let counter = if features { &self.features } else { &self.others };
        counter.fetch_add(usize::from(!reused), Ordering::SeqCst);
    }
    fn records(&self, _: &Task, done: usize, of: usize) {
        assert!(done <= of && of <= 240, "{done} of {of}");
        self.most.fetch_max(of, Ordering::SeqCst);
        let _ = self.first.compare_exchange(0, 1 + done, Ordering::SeqCst, Ordering::SeqCst);
        self.records.fetch_max(done, Ordering::SeqCst);
    }
    fn stop(&self) -> bool {
        self.stop_at_record.is_some_and(|most| self.records.load(Ordering::SeqCst) >= most)
    }
}

#[test]
fn a_head_is_trained_on_features_that_are_made_once_and_kept() {
    let folder = folder();
    let file = study(folder.path(), STUDY);
    let session = Session::open(&file).unwrap();
    let stages = |randomized: bool| {
        let wanted = Stage::Features { randomized };
        session.plan.tasks().filter(|t| t.stage == wanted).count()
    };
    assert_eq!((stages(false), stages(true)), (1, 1), "once, and once more for the local arm");

    let one = folder.path().join("one");
    let report = session.run(&one, threads(1), &Silent).unwrap();
    assert!(report.arms[0].test_accuracy.value > 0.9, "{:?}", report.arms[0].test_accuracy);
    let recipe = &report.provenance.recipes[0].text;
    let hash = blake3_of(&folder.path().join("core.onnx"));
    let front =
        format!("frozen core core.onnx (BLAKE3 {}) with 7 outputs, then hidden 5", &hash[..16]);
    assert!(recipe.starts_with(&front), "{recipe}");
    assert!(report.notes.iter().any(|n| n.text.contains("The core counts as public")));
    // 30 pixels, 10 times 3: whole images cost ten times as much, core or not.
    let whole = &report.arms[2].epsilon_upper[0];
    assert!((whole.value.get() - 500.0).abs() < 1e-6, "{whole:?}");

    let path = dosimeter_study::trace::record(&one, report.risk[0].records[0].record).unwrap();
    let step = path.iter().find(|s| s.stage == "run the core").unwrap();
    assert!(step.what.contains("becomes 7 features"), "{step:?}");
    assert!(one.join(step.artifact.as_ref().unwrap()).is_file());

    let four = folder.path().join("four");
    session.run(&four, threads(4), &Silent).unwrap();
    assert_eq!(json(&four), json(&one), "four threads");

    // Stopped amid the features: no artifact, no report; then it goes on to the same bytes.
    let halted = folder.path().join("halted");
    let watch = Counting { stop_at_record: Some(64), ..Counting::default() };
    assert!(matches!(session.run(&halted, threads(1), &watch), Err(Error::Stopped)));
    assert_eq!(watch.features.load(Ordering::SeqCst), 0);
    session.run(&halted, threads(2), &Silent).unwrap();
    assert_eq!(json(&halted), json(&one), "stopped");

    // Stopped late, it keeps the parts that were made.
    let late = folder.path().join("late");
    let watch = Counting { stop_at_record: Some(140), ..Counting::default() };
    assert!(matches!(session.run(&late, threads(1), &watch), Err(Error::Stopped)));
    let watch = Counting::default();
    session.run(&late, threads(1), &watch).unwrap();
    let first = watch.first.load(Ordering::SeqCst);
    assert!(first > 128, "begins behind {first} records");
    assert_eq!(json(&late), json(&one), "stopped late");

    // Only what is used went through: 60 candidates, test records and those of the shadow models, not all 240.
    let watch = Counting::default();
    let fewer = STUDY.replace("count = 1", "count = 0").replace(
        "names = [\"loss_threshold\", \"shadow_model\"]\nshadow_model = { epochs = 3 }",
        "names = [\"loss_threshold\"]",
    );
    let fewer = fewer.replace("[[arms]]\nlocal", "[[ARMS]]\nlocal");
    let (before, after) = fewer.split_once("[[ARMS]]").unwrap();
    let fewer = format!("{before}{}", &after[after.find("[attacks]").unwrap()..]);
    let few = folder.path().join("few");
    let session = Session::open(&study(folder.path(), &fewer)).unwrap();
    session.run(&few, threads(1), &watch).unwrap();
    let (train, test) = (session.study.split.train, session.study.split.test);
    assert!(2 * train + test < 240, "{train} {test}");
    let most = watch.most.load(Ordering::SeqCst);
    assert!(most <= session.study.repeats as usize * (2 * train + test) && most < 240, "{most}");

    // Another head: the features are there already. Another core of the same name: they are not.
    let watch = Counting::default();
    let text = STUDY.replace("hidden = [5]", "hidden = []");
    Session::open(&study(folder.path(), &text)).unwrap().run(&one, threads(2), &watch).unwrap();
    assert_eq!(watch.features.load(Ordering::SeqCst), 0);
    assert!(watch.others.load(Ordering::SeqCst) > 0);
    let mut other = core();
    other.parameters_mut()[0] += 0.5;
    std::fs::write(folder.path().join("core.onnx"), onnx::write(&other).unwrap()).unwrap();
    let watch = Counting::default();
    Session::open(&file).unwrap().run(&one, threads(2), &watch).unwrap();
    assert_eq!(watch.features.load(Ordering::SeqCst), 2);
    assert_ne!(json(&one), json(&four));
}

/// The slow way: a study whose images lie on disk as the core's outputs. Its head learns the same.
#[test]
fn the_head_learns_what_it_would_learn_from_the_same_numbers_in_a_table() {
    let folder = folder();
    let text = STUDY.split("[[arms]]\nlocal").next().unwrap().replace("count = 1", "count = 0")
        + "[attacks]\nnames = [\"loss_threshold\"]\n";

    let session = Session::open(&study(folder.path(), &text)).unwrap();
    let behind = session.run(&folder.path().join("behind"), threads(2), &Silent).unwrap();

    let preparation =
        Preparation { highest: 255.0, means: vec![120.0, 110.0, 100.0], deviations: vec![64.0] };
    let (core, file) = (folder.path().join("core.onnx"), folder.path().join("bright.toml"));
    let mut outputs = Vec::new();
    models::run(&core, &Part::default(), &file, &preparation, None, Some(&mut outputs)).unwrap();
    let outputs = std::str::from_utf8(&outputs).unwrap().replace("record,class", "number,class");
    let rows = outputs.lines().map(|line| line.split_once(',').unwrap().1);
    let table: String = rows.flat_map(|row| [row, "\n"]).collect();
    std::fs::write(folder.path().join("features.csv"), table).unwrap();
    let mut text = text.replace("kind = \"idx\"", "kind = \"csv\"\nlabel = \"class\"");
    text = text.replace("images-idx3\"", "features.csv\"\ncolumns = { COLUMNS }");
    let columns: Vec<String> =
        (0..7).map(|i| format!("output_{i} = {{ kind = \"real\", low = 0, high = 1 }}")).collect();
    text = text.replace("COLUMNS", &columns.join(", "));
    let core = text.lines().find(|l| l.starts_with("core = ")).unwrap().to_owned();
    let file = study(folder.path(), &text.replace(&core, ""));
    let session = Session::open(&file).unwrap();
    let of_table = session.run(&folder.path().join("table"), threads(2), &Silent).unwrap();
    assert_eq!(behind.arms.len(), 2);
    for (a, b) in behind.arms.iter().zip(&of_table.arms) {
        assert_eq!(a.train_accuracy, b.train_accuracy, "{}", a.setting);
        assert_eq!(a.test_accuracy, b.test_accuracy, "{}", a.setting);
        assert_eq!(a.attacks[0].auc, b.attacks[0].auc, "{}", a.setting);
        assert_eq!(a.epsilon_upper, b.epsilon_upper, "{}", a.setting);
    }
}

#[test]
fn cores_that_cannot_be_read_or_do_not_fit_are_refused_with_their_line() {
    let folder = folder();
    std::fs::write(folder.path().join("broken.onnx"), b"\x08\x07garbage").unwrap();
    let of = |from: &str, to: &str| {
        let text = STUDY.replace(from, to);
        assert_ne!(text, STUDY);
        Session::open(&study(folder.path(), &text)).unwrap_err().to_string()
    };
    for (from, to, wanted) in [
        ("core.onnx", "missing.onnx", "target.core.path: cannot be read: "),
        ("core.onnx", "broken.onnx", "not a model that can be read"),
        ("core.onnx\"", "core.onnx\", output = \"nowhere\"", "it has no value \"nowhere\""),
        (
            "mean = [120, 110, 100]",
            "mean = [120, 110]",
            "3 channels need as many means and deviations, got 2",
        ),
        ("deviation = 64", "deviation = 0", "target.core.deviation: needs a number above 0"),
        (
            "deviation = 64",
            "deviaton = 64",
            "target.core.deviaton: unknown key, did you mean `deviation`?",
        ),
        ("highest = 255", "highest = -1", "target.core.highest: needs a number above 0, got -1"),
        ("path = \"core.onnx\", ", "", "target.core.path: missing; needs the name of a file"),
        ("hidden = [5]", "model = \"lenet\"", "target.model: needs \"mlp\" behind a core"),
        ("core = {", "core = 7 #", "target.core: needs a table, got integer"),
    ] {
        let error = of(from, to);
        assert!(error.contains(wanted), "{to}: {error}");
        let line = if to.contains("lenet") { ":11: " } else { ":10: " };
        assert!(error.contains(line), "{to}: {error}");
    }
    // A table has no channels to repeat.
    let generated =
        "kind = \"skewed-purchases\"\nclasses = 10\ntrain_records = 1000\ntest_records = 300";
    let idx = "kind = \"idx\"\npath = \"images-idx3\"";
    let text = STUDY.replace(idx, generated);
    let text = text.split("[[arms]]\nlocal").next().unwrap();
    let error = Session::open(&study(folder.path(), text)).unwrap_err().to_string();
    assert!(
        error.contains("it takes records of shape [3, 28, 28], the data have 600 numbers"),
        "{error}"
    );
}

#[test]
fn a_core_that_gives_no_numbers_is_named_and_not_the_records() {
    let folder = folder();
    let file = study(folder.path(), &STUDY.replace(", mean = [120, 110, 100], deviation = 64", ""));
    // The square of e to the 80th is beyond single precision.
    let exponential = Layer::Elementwise(Elementwise::Exponential);
    let mut core = Graph::chain(&[1, 6, 5], vec![exponential]).unwrap();
    let large = core.output();
    let operation = Arithmetic::Multiply;
    core.add(Layer::Combine(Combine { operation }), &[large, large]).unwrap();
    std::fs::write(folder.path().join("core.onnx"), onnx::write(&core).unwrap()).unwrap();
    let session = Session::open(&file).unwrap();
    let error = session.run(&folder.path().join("run"), threads(1), &Silent).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("core.onnx: as a core, gives inf as feature"), "{text}");
    assert!(text.contains("`highest`, `mean` and `deviation` of target.core"), "{text}");
}
fn blake3_of(path: &Path) -> String {
    blake3::hash(&std::fs::read(path).unwrap()).to_hex().to_string()
}
