//! Studies of regression from file to report, on a table whose answer is known and on the IWPC's patients.
#![expect(clippy::unwrap_used, reason = "tests")]
use dosimeter_study::regression::{
    BoundedFile, FitOptions, InvertOptions, Iwpc, IwpcTarget, MOST_COLUMNS, Progress,
    RegressionReport, RegressionSession, RegressionSpec, SimulateOptions, fit, invert, onnx,
    predict, read_model, simulate, table_facts,
};
use dosimeter_study::run::Speed;
use dosimeter_study::{Error, regression};
use dosimeter_testing::shared;
use dosimeter_train::regression::REGRESSIONS;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const BOUNDS: &str = r#"
[columns.age]
lower = 0
upper = 100

[columns.town]
categories = ["Ulm", "Bonn", "Kiel"]

[target]
name = "cost"
lower = 0
upper = 50
"#;

/// Rows `cost = 20 + 0.1 age + (0, 10, -10) by town`, and a remainder that goes round.
fn table(folder: &Path, rows: usize) -> BoundedFile {
    let mut text = "age,town,cost\n".to_owned();
    for i in 0..rows {
        let (age, town) = (i * 37 % 101, i * 13 % 3);
        let noise = (i * 29 % 17) as f64 / 17.0 - 0.5;
        let cost = 0.1f64.mul_add(age as f64, 20.0) + [0.0, 10.0, -10.0][town] + noise;
        writeln!(text, "{age},{},{cost}", ["Ulm", "Bonn", "Kiel"][town]).unwrap();
    }
    let (path, bounds) = (folder.join("visits.csv"), folder.join("visits.bounds.toml"));
    std::fs::write(&path, text).unwrap();
    std::fs::write(&bounds, BOUNDS).unwrap();
    BoundedFile { path, bounds }
}
fn study(folder: &Path, rest: &str) -> PathBuf {
    let file = folder.join("study.toml");
    let text = format!(
        "name = \"visits\"\n[regression]\nkind = \"bounded\"\npath = \"visits.csv\"\nbounds = \"visits.bounds.toml\"\n{rest}"
    );
    std::fs::write(&file, text).unwrap();
    file
}
struct Stops(AtomicU32);
impl Progress for Stops {
    fn done(&self, _: u32, _: u32, _: bool) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
    fn stop(&self) -> bool {
        self.0.load(Ordering::SeqCst) >= 2
    }
}
struct Goes;
impl Progress for Goes {}

#[test]
fn a_study_is_the_same_on_any_threads_and_after_a_stop_and_finds_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    table(folder.path(), 1200);
    let plan = "[fit]\nepsilons = [1.0, 30.0]\ndraws = 6\n[inversion]\nattribute = \"town\"\n[shares]\nshares = [0.5, 1.0]\nepsilon = 30.0\n";
    let file = study(folder.path(), plan);
    assert!(regression::is_regression(&file));
    let session = RegressionSession::open(&file).unwrap();
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    let stops = Stops(AtomicU32::new(0));
    let single = Speed { threads: Some(1) };
    assert!(matches!(session.run(&one, single, &stops), Err(Error::Stopped)));
    let report = session.run(&one, single, &Goes).unwrap();
    let again = session.run(&other, Speed { threads: Some(2) }, &Goes).unwrap();
    assert_eq!(report, again);
    for name in ["report.json", "report.html", "cells.csv"] {
        assert_eq!(
            std::fs::read(one.join(name)).unwrap(),
            std::fs::read(other.join(name)).unwrap()
        );
    }
    let text = std::fs::read_to_string(one.join("report.json")).unwrap();
    assert_eq!(serde_json::from_str::<RegressionReport>(&text).unwrap(), report);
    // Every mechanism at both epsilons but the one without; the half at one.
    let names = REGRESSIONS.len() + 1;
    assert_eq!(report.cells.len(), (names - 1) * 2 + 1 + names);
    let cell = |name: &str, epsilon: Option<f64>| {
        let found = report.cells.iter();
        let mut found =
            found.filter(|c| c.mechanism == name && c.epsilon == epsilon && c.share >= 1.0);
        found.next().unwrap()
    };
    // The remainder is uniform on a width of 1: variance 1/12. Towns are 10 apart: all guessed right.
    let plain = cell("least_squares", None);
    assert!((plain.error.unwrap().mean - 1.0 / 12.0).abs() < 0.01, "{plain:?}");
    assert!(plain.inversion.unwrap().mean > 0.999 && plain.epsilon_upper.is_none());
    assert!(plain.inversion_null.unwrap().mean < 0.5);
    let auc = plain.membership_auc.unwrap();
    assert!((auc.mean - 0.5).abs() < 0.05, "{auc:?}");
    let (weak, strong) = (cell("ada_ssp", Some(30.0)), cell("ada_ssp", Some(1.0)));
    assert!(weak.error.unwrap().mean < strong.error.unwrap().mean);
    assert!(strong.epsilon_upper.unwrap() <= 1.0 && strong.epsilon_upper.unwrap() > 0.9);
    assert!(cell("tuned_paper_sum", Some(1.0)).epsilon_upper.is_none());
    assert!(cell("rls_out_oracle", Some(1.0)).epsilon_upper.is_none());
    let baselines = report.baselines.unwrap();
    assert!(baselines.prior.mean < 0.45 && baselines.ideal.mean > 0.8, "{baselines:?}");
    let page = std::fs::read_to_string(one.join("report.html")).unwrap();
    assert!(page.contains("epsilon_upper") && !page.contains("<script"));
}

#[test]
fn study_files_that_make_no_sense_are_refused_with_the_field() {
    let folder = tempfile::tempdir().unwrap();
    table(folder.path(), 60);
    for (rest, wanted) in [
        ("[fit]\nepsilons = [0.0]\n", "fit.epsilons: needed numbers above 0"),
        ("[fit]\nepsilons = []\n", "fit.epsilons: needed numbers above 0"),
        ("[fit]\nepsilons = [inf]\n", "fit.epsilons: needed numbers above 0"),
        ("[fit]\nmechanisms = [\"ridge\"]\n", "there is no `ridge`; there are ada_ssp"),
        ("[fit]\ndraws = 1\n", "fit.draws: needed at least 2"),
        ("[fit]\ndraws = -1\n", "study.toml:7: "),
        ("[fit]\nfitted = 1.0\n", "fit.fitted: needed a number between 0 and 1"),
        ("[fit]\nfitted = 0.99\n", "needed at least one row to fit and four others"),
        ("[fit]\nradius = 0.0\n", "fit.radius: needed a number above 0"),
        ("[fit]\ndelta = 1.0\n", "fit.delta: needed a number between 0 and 1"),
        ("[fit]\nepsilon = 1.0\n", "unknown field `epsilon`"),
        ("[inversion]\nattribute = \"age\"\n", "there is no attribute `age`; there are: town"),
        ("[fit]\nepsilons = [1.0, 1.0]\n", "fit.epsilons: needed each once"),
        ("[shares]\nshares = [0.0]\nepsilon = 1.0\n", "shares.shares: needed numbers above 0"),
        ("[simulation]\n", "needed the patients of `kind = \"iwpc\"`"),
    ] {
        let file = study(folder.path(), rest);
        let said = RegressionSession::open(&file).unwrap_err().to_string();
        assert!(said.contains(wanted), "{rest}: {said}");
    }
}

fn options(mechanism: &str, epsilon: f64) -> FitOptions {
    FitOptions {
        mechanism: mechanism.into(),
        epsilon,
        delta: None,
        radius: None,
        seed: Some(1),
        threads: None,
    }
}

#[test]
fn every_mechanism_fits_a_file_and_its_model_predicts_inverts_and_goes_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = table(folder.path(), 3000);
    let spec = RegressionSpec::Bounded(file.clone());
    for mechanism in REGRESSIONS {
        let (fitted, clipped) = fit(&spec, &options(mechanism.name(), 50.0)).unwrap();
        assert_eq!((fitted.rows, clipped.features, clipped.targets), (3000, 0, 0));
        let path = folder.path().join("model.json");
        std::fs::write(&path, serde_json::to_string(&fitted).unwrap()).unwrap();
        assert_eq!(read_model(&path).unwrap(), fitted);
        let (predictions, error) = predict(&fitted, &spec).unwrap();
        assert_eq!(predictions.len(), 3000);
        assert!(error.unwrap().is_finite() && !onnx(&fitted).unwrap().is_empty());
    }
    let (fitted, _) = fit(&spec, &options("ada_ssp", 50.0)).unwrap();
    let asked = |attribute: &str, unknown: &[&str]| InvertOptions {
        attribute: attribute.into(),
        unknown: unknown.iter().map(|u| (*u).to_owned()).collect(),
        seed: 1,
    };
    let found = invert(&fitted, &spec, &asked("town", &[])).unwrap();
    assert!(found.with_model.value > 0.99 && found.prior.high < 0.5, "{found:?}");
    assert!(found.null.value < 0.5 && found.with_model.rows == 1500);
    let blind = invert(&fitted, &spec, &asked("town", &["age"])).unwrap();
    assert!(blind.with_model.value > 0.8 && blind.with_model.value <= found.with_model.value);
    // Other bounds make another model of it.
    std::fs::write(&file.bounds, BOUNDS.replace("upper = 100", "upper = 90")).unwrap();
    let said = predict(&fitted, &spec).unwrap_err().to_string();
    assert!(said.contains("other bounds of `age`"), "{said}");
    std::fs::write(&file.bounds, BOUNDS).unwrap();
    for wrong in [asked("age", &[]), asked("town", &["height"]), asked("town", &["town"])] {
        assert!(invert(&fitted, &spec, &wrong).is_err());
    }
}

#[test]
fn what_cannot_be_fitted_is_refused_and_no_number_of_a_record_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = table(folder.path(), 30);
    let spec = RegressionSpec::Bounded(file.clone());
    let refused = |options: &FitOptions| fit(&spec, options).unwrap_err().to_string();
    assert!(refused(&options("lasso", 1.0)).starts_with("there is no mechanism `lasso`"));
    for epsilon in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        refused(&options("ada_ssp", epsilon));
        refused(&options("rls_out", epsilon));
    }
    for delta in [2.0, 1.0, -0.1, f64::NAN] {
        refused(&FitOptions { delta: Some(delta), ..options("least_squares", 1.0) });
    }
    refused(&FitOptions { radius: Some(-1.0), ..options("ada_ssp", 1.0) });
    assert!(refused(&options("tukey_em", 0.1)).contains("do not agree"));
    for (row, wanted) in [
        ("12,Ulm,NaN", "row 32"),
        ("12,Ulm,inf", "row 32"),
        ("12345678.5,Ulm", "row 32"),
        ("12,Hamburg,3", "row 32"),
        (",Ulm,3", "row 32"),
        ("98765.4x,Ulm,3", "row 32"),
    ] {
        let text = std::fs::read_to_string(&file.path).unwrap();
        std::fs::write(&file.path, format!("{text}{row}\n")).unwrap();
        let said = fit(&spec, &options("ada_ssp", 1.0)).unwrap_err().to_string();
        assert!(said.contains(wanted) || said.contains(":32"), "{row}: {said}");
        assert!(!said.contains("98765") && !said.contains("12345678") && !said.contains("Hamburg"));
        std::fs::write(&file.path, text).unwrap();
    }
    // Out of bounds is moved and counted; a file without rows has nothing to fit.
    let text = std::fs::read_to_string(&file.path).unwrap();
    std::fs::write(&file.path, format!("{text}400,Ulm,-3\n")).unwrap();
    let (_, clipped) = fit(&spec, &options("ada_ssp", 1.0)).unwrap();
    assert_eq!((clipped.features, clipped.targets), (1, 1));
    std::fs::write(&file.path, "age,town,cost\n").unwrap();
    assert!(refused(&options("ada_ssp", 1.0)).contains("visits.csv: needed at least one row"));
    std::fs::write(folder.path().join("model.json"), "{}").unwrap();
    assert!(read_model(&folder.path().join("model.json")).is_err());
}

/// The expectations of the paper's re-examination: the error without noise near 1.0 in root-dose units, VKORC1 guessed right in 0.57 of
/// held-out patients against a prior of 0.36, and the published doses safer than a fixed 10 mg.
#[test]
fn the_iwpc_is_as_was_found_before() {
    let Some(path) = shared("data/iwpc-warfarin/warfarin.csv") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("warfarin.toml");
    let text = format!(
        "name = \"warfarin\"\n[regression]\nkind = \"iwpc\"\npath = {:?}\n[fit]\nmechanisms = [\"least_squares\", \"ada_ssp\"]\nepsilons = [1.0]\ndraws = 20\n[inversion]\nattribute = \"VKORC1\"\n[simulation]\npatients = 50\n",
        path.display().to_string()
    );
    std::fs::write(&file, text).unwrap();
    let session = RegressionSession::open(&file).unwrap();
    let report = session.run(&folder.path().join("run"), Speed::default(), &Goes).unwrap();
    assert_eq!((report.rows, report.features), (4017, 14));
    let [private, plain] = [&report.cells[1], &report.cells[0]];
    assert_eq!(plain.mechanism, "least_squares");
    assert!((plain.error.unwrap().mean - 1.0).abs() < 0.05, "{plain:?}");
    assert!((plain.inversion.unwrap().mean - 0.57).abs() < 0.02, "{plain:?}");
    let baselines = report.baselines.unwrap();
    assert!((baselines.prior.mean - 0.36).abs() < 0.02, "{baselines:?}");
    assert!(private.error.unwrap().mean > plain.error.unwrap().mean);
    assert!(plain.risks.unwrap().mortality.high < 0.6 && plain.risks.unwrap().stroke.low > 1.0);
    let options = SimulateOptions { iwpc: path, patients: 200, fixed_mg: 10.0, seed: 1 };
    let simulated = simulate(&[], &options).unwrap();
    assert!(simulated.arms[1].relative_risk.haemorrhage.high < 0.6, "{simulated:?}");
}

#[test]
fn a_table_without_its_target_is_predicted_and_not_inverted() {
    let folder = tempfile::tempdir().unwrap();
    let file = table(folder.path(), 500);
    let spec = RegressionSpec::Bounded(file.clone());
    let (fitted, _) = fit(&spec, &options("ada_ssp", 50.0)).unwrap();
    let (with, error) = predict(&fitted, &spec).unwrap();
    assert!(error.is_some());
    let text = std::fs::read_to_string(&file.path).unwrap();
    let without: String =
        text.lines().map(|line| format!("{}\n", line.rsplit_once(',').unwrap().0)).collect();
    std::fs::write(&file.path, without).unwrap();
    assert_eq!(predict(&fitted, &spec).unwrap(), (with, None));
    let asked = InvertOptions { attribute: "town".into(), unknown: Vec::new(), seed: 1 };
    let said = invert(&fitted, &spec, &asked).unwrap_err().to_string();
    assert!(said.contains("no column `cost`"), "{said}");
    assert!(
        fit(&spec, &options("ada_ssp", 1.0)).unwrap_err().to_string().contains("no column `cost`")
    );
}

#[test]
fn the_threads_that_read_change_no_bit_of_a_model() {
    let folder = tempfile::tempdir().unwrap();
    // More than a piece of the file for each thread.
    let spec = RegressionSpec::Bounded(table(folder.path(), 60_000));
    let with = |threads| FitOptions {
        threads: std::num::NonZeroUsize::new(threads),
        ..options("least_squares", 1.0)
    };
    let one = fit(&spec, &with(1)).unwrap();
    for threads in [2, 5] {
        assert_eq!(fit(&spec, &with(threads)).unwrap(), one);
    }
}

#[test]
fn a_model_says_what_a_missing_value_counted_as_and_how_far_noise_moved_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = table(folder.path(), 500);
    let bounds = BOUNDS.replace("upper = 100\n", "upper = 100\nmissing = \"midpoint\"\n");
    std::fs::write(&file.bounds, bounds).unwrap();
    let text = std::fs::read_to_string(&file.path).unwrap();
    std::fs::write(&file.path, format!("{text}NA,Ulm,20\n")).unwrap();
    let (fitted, clipped) = fit(&RegressionSpec::Bounded(file), &options("ada_ssp", 5.0)).unwrap();
    assert_eq!(clipped.missing, 1);
    let json = serde_json::to_value(&fitted).unwrap();
    assert_eq!(json["missing"], serde_json::json!({ "age": "midpoint" }));
    assert!(json["model"]["bounds"].get("missing").is_none(), "{json}");
    let intercept = fitted.model.intercept_noise_deviation.unwrap();
    assert!(intercept > 0.0 && intercept.is_finite());
}

#[test]
fn too_many_columns_are_refused_before_the_rows_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = table(folder.path(), 10);
    let towns: Vec<String> = (0..MOST_COLUMNS + 1).map(|i| format!("\"t{i}\"")).collect();
    let bounds = BOUNDS.replace("\"Ulm\", \"Bonn\", \"Kiel\"", &towns.join(", "));
    std::fs::write(&file.bounds, bounds).unwrap();
    let said =
        fit(&RegressionSpec::Bounded(file), &options("ada_ssp", 1.0)).unwrap_err().to_string();
    assert!(said.contains("4001 columns once every category has its own, at most 4000"), "{said}");
}

#[test]
fn a_plan_is_of_the_draws_and_takes_their_time() {
    let folder = tempfile::tempdir().unwrap();
    table(folder.path(), 200);
    let file = study(
        folder.path(),
        "[fit]\nmechanisms = [\"ada_ssp\", \"tuned_paper_mean\"]\nepsilons = [1.0, 2.0]\ndraws = 7\n",
    );
    let plan = RegressionSession::open(&file).unwrap().plan().unwrap();
    assert_eq!((plan.draws, plan.rows, plan.fitted, plan.features), (7, 200, 160, 3));
    let fits: Vec<_> =
        plan.fits.iter().map(|f| (f.mechanism.as_str(), f.claim, f.epsilon)).collect();
    assert_eq!(
        fits,
        [
            ("ada_ssp", "approximate", Some(1.0)),
            ("ada_ssp", "approximate", Some(2.0)),
            ("tuned_paper_mean", "unsound", Some(1.0)),
            ("tuned_paper_mean", "unsound", Some(2.0)),
        ]
    );
    assert!(plan.seconds_per_draw > 0.0);
    assert!((plan.estimated_seconds / plan.seconds_per_draw - 7.0).abs() < 1e-12);
    let facts = table_facts(&file).unwrap().unwrap();
    assert_eq!(
        (facts.rows, facts.layout.width(), facts.fingerprint),
        (200, 3, plan.data_fingerprint)
    );
}

#[test]
fn other_settings_do_not_take_the_place_of_a_comparison() {
    let folder = tempfile::tempdir().unwrap();
    let spec = RegressionSpec::Bounded(table(folder.path(), 200));
    let session = |epsilons: &[f64], draws| {
        let fit = regression::FitPlan {
            mechanisms: vec!["ada_ssp".into()],
            epsilons: epsilons.to_vec(),
            draws,
            ..regression::FitPlan::default()
        };
        let (name, regression) = ("visits".to_owned(), spec.clone());
        let study = regression::RegressionStudy {
            name,
            description: None,
            seed: 1,
            regression,
            fit,
            inversion: None,
            simulation: None,
            shares: None,
        };
        RegressionSession::new(study).unwrap()
    };
    let out = folder.path().join("run");
    let run = |s: RegressionSession| s.run(&out, Speed::default(), &Goes);
    run(session(&[1.0], 3)).unwrap();
    let report = std::fs::read_to_string(out.join("report.json")).unwrap();
    let said = run(session(&[2.0], 3)).unwrap_err().to_string();
    assert!(said.ends_with("holds a run of `visits` with other settings (epsilons)"), "{said}");
    assert_eq!(std::fs::read_to_string(out.join("report.json")).unwrap(), report);
    // More draws of the same go on.
    assert_eq!(run(session(&[1.0], 4)).unwrap().draws, 4);
    // A file that was edited goes on too, and what it made before does not pass for its report.
    let edited =
        study(folder.path(), "[fit]\nmechanisms = [\"ada_ssp\"]\nepsilons = [3.0]\ndraws = 3\n");
    let stopped =
        RegressionSession::open(&edited).unwrap().run(&out, Speed::default(), &Stops(9.into()));
    assert!(matches!(stopped, Err(Error::Stopped)) && !out.join("report.json").exists());
    for said in [
        dosimeter_study::trace::epsilon(&out).unwrap_err().to_string(),
        dosimeter_study::trace::record(&out, 0).unwrap_err().to_string(),
    ] {
        assert!(said.contains("holds the run of a study of regression"), "{said}");
    }
}

/// The features of the IWPC's file fit a model that doses its patients.
#[test]
fn a_dose_model_is_fitted_to_the_iwpc_and_simulated() {
    let Some(path) = shared("data/iwpc-warfarin/warfarin.csv") else {
        return;
    };
    let spec = RegressionSpec::Iwpc(Iwpc { path: path.clone(), target: IwpcTarget::DailyMg });
    let (fitted, clipped) = fit(&spec, &options("ada_ssp", 20.0)).unwrap();
    assert_eq!((fitted.rows, fitted.model.features.len()), (4017, 14));
    assert_eq!(fitted.model.target, "daily warfarin dose in mg");
    assert!(clipped.missing > 0 && fitted.missing.contains_key("VKORC1"));
    let options = SimulateOptions { iwpc: path, patients: 100, fixed_mg: 10.0, seed: 1 };
    let simulated = simulate(&[("mine".to_owned(), fitted)], &options).unwrap();
    let arms: Vec<&str> = simulated.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert!(arms.contains(&"mine"), "{arms:?}");
    for (patients, fixed_mg, wanted) in [
        (100, 1e300, "needed 0 to 100 mg a day"),
        (100, -1.0, "needed 0 to 100"),
        (1, 5.0, "needed at least 2"),
    ] {
        let options = SimulateOptions { patients, fixed_mg, ..options.clone() };
        let said = simulate(&[], &options).unwrap_err().to_string();
        assert!(said.contains(wanted), "{said}");
    }
}
