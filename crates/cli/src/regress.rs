//! `dosimeter regress`.
use crate::data::write;
use crate::output::{Failure, millionths_up, print, print_json, print_table, say};
use crate::progress::{stop_on_interrupt, words};
use dosimeter_study::Error;
use dosimeter_study::account::Epsilon;
use dosimeter_study::regression::{
    self as study, Cell, FitOptions, FitPlan, Fitted, InversionPlan, Measured, Progress,
    RegressionReport, RegressionSession, RegressionSpec, RegressionStudy,
};
use dosimeter_study::run::Speed;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Private linear regression: fit, predict, invert, simulate, compare.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Regress {
    /// Fit a linear model to a table with differential privacy
    Fit(Fit),
    /// Predict with a fitted model; a table without the target does
    Predict(Predict),
    /// Guess an attribute of the rows of a table from a model and the rows' true targets, which the table must have
    Invert(Invert),
    /// What the doses of a warfarin model would do to patients
    Simulate(Simulate),
    /// Fit every mechanism at several epsilons and compare their errors
    Compare(Compare),
}
#[derive(Debug, clap::Args)]
struct Table {
    /// A CSV with a header (also gzipped), or a Parquet file; or give --iwpc
    #[arg(required_unless_present = "iwpc", requires = "bounds")]
    table: Option<PathBuf>,
    /// Public bounds of its columns and its target, in TOML (docs/guide/regression.md)
    #[arg(long, value_name = "FILE")]
    bounds: Option<PathBuf>,
    /// Instead of a table: the IWPC's warfarin doses, CSV, by its published rules and public bounds
    #[arg(long, value_name = "FILE", conflicts_with_all = ["table", "bounds"])]
    iwpc: Option<PathBuf>,
    /// What is predicted, if it is to be checked: the bounds name it. With --iwpc: square-root-weekly-mg (if left out), weekly-mg or daily-mg
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,
}
impl Table {
    fn spec(&self, needs_target: bool) -> Result<RegressionSpec, Failure> {
        let wrong = |what: String, hint: &str| Failure::Argument { what, hint: hint.into() };
        if let Some(path) = self.iwpc.clone() {
            let name = self.target.as_deref().unwrap_or("square-root-weekly-mg");
            let target = study::IwpcTarget::named(name).ok_or_else(|| {
                let hint = "give square-root-weekly-mg, weekly-mg or daily-mg";
                wrong(format!("--target is `{name}`, which is no dose of the IWPC's table"), hint)
            })?;
            return Ok(RegressionSpec::Iwpc(study::Iwpc { path, target }));
        }
        let (Some(path), Some(bounds)) = (self.table.clone(), self.bounds.clone()) else {
            return Err(wrong("needed a table and --bounds".into(), "or give --iwpc"));
        };
        let spec = RegressionSpec::Bounded(study::BoundedFile { path, bounds });
        let named = spec.layout(needs_target).map_err(Error::from)?.target.name;
        match &self.target {
            Some(target) if *target != named => Err(wrong(
                format!("--target is `{target}`, and the bounds have the target `{named}`"),
                "give the target that the bounds are for",
            )),
            _ => Ok(spec),
        }
    }
    /// The files it names.
    fn files(&self) -> Vec<&PathBuf> {
        [&self.table, &self.bounds, &self.iwpc].into_iter().flatten().collect()
    }
}
#[derive(Debug, clap::Args)]
pub(crate) struct Fit {
    #[command(flatten)]
    table: Table,
    /// Privacy loss, nats, above 0
    #[arg(long, value_name = "NUMBER")]
    epsilon: f64,
    /// Failure probability; 0.01 over the number of rows if left out
    #[arg(long, value_name = "NUMBER")]
    delta: Option<f64>,
    /// See `dosimeter list regressions`
    #[arg(long, value_name = "NAME", default_value = "ada_ssp")]
    mechanism: String,
    /// Length at which rows, scaled to numbers from -1 to 1, are cut off; no row is if left out
    #[arg(long, value_name = "NUMBER")]
    radius: Option<f64>,
    /// Noise that can be had again, for tests: a model of it is not to be given away
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Threads that parse a CSV; one per core if left out. Changes no number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Where to write the model, as JSON; stdout if left out
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Where to write it as an ONNX model too
    #[arg(long, value_name = "FILE")]
    onnx: Option<PathBuf>,
}
#[derive(Debug, clap::Args)]
pub(crate) struct Predict {
    /// A model written by `regress fit`
    model: PathBuf,
    #[command(flatten)]
    table: Table,
    /// Where to write the predictions, as CSV; stdout if left out
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}
#[derive(Debug, clap::Args)]
pub(crate) struct Invert {
    /// A model written by `regress fit`
    model: PathBuf,
    #[command(flatten)]
    table: Table,
    /// The attribute to be guessed: a column with categories
    #[arg(long, value_name = "COLUMN")]
    attribute: String,
    /// Other columns or attributes, by their names in the bounds, that are not known to the attacker
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    unknown: Vec<String>,
    /// Divides the rows into the attacker's and those that are judged
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}
#[derive(Debug, clap::Args)]
pub(crate) struct Simulate {
    /// Models of the warfarin dose, written by `regress fit --iwpc`; none: the published one alone
    models: Vec<PathBuf>,
    /// The IWPC's table of patients, CSV
    #[arg(long, value_name = "FILE")]
    iwpc: PathBuf,
    /// How many of them, at least 2
    #[arg(long, value_name = "NUMBER", default_value = "1000")]
    patients: usize,
    /// Dose of the arm that others are compared with, mg a day: 0 to 100
    #[arg(long, value_name = "NUMBER", default_value = "10")]
    fixed_mg: f64,
    /// Every number follows from it
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}
#[derive(Debug, clap::Args)]
pub(crate) struct Compare {
    #[command(flatten)]
    table: Table,
    /// Privacy losses, nats
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "0.1,0.3,1,3,10")]
    epsilons: Vec<f64>,
    /// Failure probability; 0.01 over the number of fitted rows if left out
    #[arg(long, value_name = "NUMBER")]
    delta: Option<f64>,
    /// Mechanisms; all if left out
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    mechanisms: Vec<String>,
    /// Splits, each with noise of its own
    #[arg(long, value_name = "NUMBER", default_value = "100")]
    draws: u32,
    /// A column with categories, to be guessed from the models
    #[arg(long, value_name = "COLUMN")]
    attribute: Option<String>,
    /// Every number follows from it
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    seed: u64,
    /// Run directory: report.html, report.json, cells.csv
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Threads; one per core if left out. Changes no number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// No progress on stderr
    #[arg(long, short)]
    quiet: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

impl Regress {
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        let result = match self {
            Self::Fit(command) => command.run(),
            Self::Predict(command) => command.run(),
            Self::Invert(command) => command.run(),
            Self::Simulate(command) => command.run(),
            Self::Compare(command) => command.run(),
        };
        result.map_err(|failure| match failure {
            // There is no study here whose data could be inspected.
            Failure::Study(Error::Data(error)) => Failure::Argument {
                what: error.to_string(),
                hint: "docs/guide/regression.md says what a table, its bounds and a model hold"
                    .into(),
            },
            other => other,
        })
    }
}

/// What is proved of a model, in words.
fn promise(fitted: &Fitted) -> String {
    match fitted.epsilon_upper.and_then(|e| Epsilon::new(e).ok()) {
        Some(epsilon) => format!(
            "{}, epsilon_upper {} at delta {} ({}, unit {}, {})",
            fitted.claim.name(),
            millionths_up(epsilon),
            fitted.delta,
            fitted.relation,
            fitted.unit,
            fitted.accountant
        ),
        None => {
            format!("{}: no epsilon_upper, nothing is proved of this model", fitted.claim.name())
        }
    }
}

/// A result must not take the place of what it is made from, or of another result.
pub(crate) fn distinct(out: Option<&PathBuf>, others: &[&PathBuf]) -> Result<(), Failure> {
    let same = |a: &Path, b: &Path| {
        a == b || a.canonicalize().ok().is_some_and(|a| b.canonicalize().is_ok_and(|b| a == b))
    };
    match out {
        Some(out) if others.iter().any(|other| same(out, other)) => Err(Failure::Argument {
            what: format!("{} is named twice: it would be overwritten", out.display()),
            hint: "give the result a name of its own".into(),
        }),
        _ => Ok(()),
    }
}

/// From here on the number of columns is told before a fit.
const MANY_COLUMNS: usize = 1_000;

impl Fit {
    fn run(&self) -> Result<ExitCode, Failure> {
        let mut given = self.table.files();
        distinct(self.onnx.as_ref(), &given)?;
        given.extend(&self.onnx);
        distinct(self.out.as_ref(), &given)?;
        let options = FitOptions {
            mechanism: self.mechanism.clone(),
            epsilon: self.epsilon,
            delta: self.delta,
            radius: self.radius,
            seed: self.seed,
            threads: self.threads.map(usize::from).and_then(NonZeroUsize::new),
        };
        let table = self.table.spec(true)?;
        let columns = table.layout(true).map_err(Error::from)?.width();
        if (MANY_COLUMNS..=study::MOST_COLUMNS).contains(&columns) {
            say(&format!(
                "note: {columns} columns once every category has its own; time grows with their cube, to about {} beside the reading",
                words(study::fit_seconds(columns))
            ));
        }
        let (fitted, clipped) = study::fit(&table, &options)?;
        let mut json =
            serde_json::to_string_pretty(&fitted).map_err(|e| Failure::Output(e.into()))?;
        json.push('\n');
        match &self.out {
            Some(out) => write(out, |o| o.write_all(json.as_bytes()))?,
            None => print(&json)?,
        }
        if let Some(onnx) = &self.onnx {
            let bytes = study::onnx(&fitted)?;
            write(onnx, |o| o.write_all(&bytes))?;
        }
        say(&format!("{} on {} rows: {}", fitted.mechanism, fitted.rows, promise(&fitted)));
        say(&format!(
            "moved into their bounds: {} features, {} targets, {} rows; {} missing values filled in (not private: keep these counts to yourself)",
            clipped.features, clipped.targets, clipped.rows, clipped.missing
        ));
        if self.seed.is_some() {
            say(
                "note: the noise can be had again from the seed, so this model is not to be given away",
            );
        } else if fitted.noise.iter().any(|n| n.sampler == study::Sampler::Float) {
            say(
                "note: this mechanism has only a floating-point sampler, whose lowest bits may give something away",
            );
        }
        Ok(ExitCode::SUCCESS)
    }
}
impl Predict {
    fn run(&self) -> Result<ExitCode, Failure> {
        let mut given = self.table.files();
        given.push(&self.model);
        distinct(self.out.as_ref(), &given)?;
        let fitted = study::read_model(&self.model)?;
        let (predictions, error) = study::predict(&fitted, &self.table.spec(false)?)?;
        let lines: String = predictions.iter().map(|p| format!("{p}\n")).collect();
        let text = format!("{}\n{lines}", fitted.model.target.replace(',', " "));
        match &self.out {
            Some(out) => write(out, |o| o.write_all(text.as_bytes()))?,
            None => print(&text)?,
        }
        let error = error.map_or_else(
            || format!("no column `{}` to compare with", fitted.model.target),
            |error| format!("mean squared error {error:.6} (of these data, not private)"),
        );
        say(&format!("{} rows, {error}", predictions.len()));
        Ok(ExitCode::SUCCESS)
    }
}
impl Invert {
    fn run(&self) -> Result<ExitCode, Failure> {
        let fitted = study::read_model(&self.model)?;
        let options = study::InvertOptions {
            attribute: self.attribute.clone(),
            unknown: self.unknown.clone(),
            seed: self.seed,
        };
        let found = study::invert(&fitted, &self.table.spec(true)?, &options)?;
        if self.json {
            print_json(&found)?;
            return Ok(ExitCode::SUCCESS);
        }
        let share = |name: &str, s: &study::Share| {
            vec![
                name.to_owned(),
                format!("{:.3}", s.value),
                format!("{:.3} to {:.3}", s.low, s.high),
                format!("{}/{}", s.right, s.rows),
            ]
        };
        let rows = vec![
            share("with the model", &found.with_model),
            share("prior alone", &found.prior),
            share("other attributes, no model", &found.without_model),
            share("other attributes and response, no model", &found.ideal),
            share("null: responses dealt out anew", &found.null),
        ];
        print_table(&["guess", "right", "95 % interval", "rows"], &[1, 2, 3], rows)?;
        Ok(ExitCode::SUCCESS)
    }
}
impl Simulate {
    fn run(&self) -> Result<ExitCode, Failure> {
        let models = self.models.iter().map(|m| {
            let name = m.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Ok((name, study::read_model(m)?))
        });
        let models = models.collect::<Result<Vec<_>, Error>>()?;
        let options = study::SimulateOptions {
            iwpc: self.iwpc.clone(),
            patients: self.patients,
            fixed_mg: self.fixed_mg,
            seed: self.seed,
        };
        let report = study::simulate(&models, &options)?;
        if self.json {
            print_json(&report)?;
            return Ok(ExitCode::SUCCESS);
        }
        let risk = |i: &study::Interval| format!("{:.3} ({:.3} to {:.3})", i.value, i.low, i.high);
        let rows = report.arms.iter().map(|arm| {
            vec![
                arm.name.clone(),
                risk(&arm.relative_risk.mortality),
                risk(&arm.relative_risk.haemorrhage),
                risk(&arm.relative_risk.stroke),
                format!("{:.3}", arm.in_range),
            ]
        });
        let header = ["arm", "death", "major bleeding", "stroke", "days in range"];
        print_table(&header, &[1, 2, 3, 4], rows.collect())?;
        say(&format!("relative risks over {} patients with 95 % intervals", report.patients));
        Ok(ExitCode::SUCCESS)
    }
}
impl Compare {
    fn run(&self) -> Result<ExitCode, Failure> {
        let table = self.table.spec(true)?;
        let name = table.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let plan = RegressionStudy {
            name,
            description: None,
            seed: self.seed,
            regression: table,
            fit: FitPlan {
                mechanisms: self.mechanisms.clone(),
                epsilons: self.epsilons.clone(),
                delta: self.delta,
                draws: self.draws,
                ..FitPlan::default()
            },
            inversion: self.attribute.clone().map(|attribute| InversionPlan { attribute }),
            simulation: None,
            shares: None,
        };
        let session = RegressionSession::new(plan)?;
        run_regression(&session, &self.out, self.threads, self.quiet, self.json)
    }
}

/// Progress on stderr, and Ctrl-C.
struct Lines {
    quiet: bool,
    start: Instant,
    spoke: Mutex<Instant>,
    fresh: AtomicU32,
    stop: Arc<AtomicBool>,
}
impl Progress for Lines {
    fn done(&self, finished: u32, of: u32, reused: bool) {
        let fresh =
            self.fresh.fetch_add(u32::from(!reused), Ordering::Relaxed) + u32::from(!reused);
        let mut spoke = self.spoke.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if self.quiet || (spoke.elapsed() < Duration::from_secs(5) && finished < of) {
            return;
        }
        *spoke = Instant::now();
        let each = self.start.elapsed().as_secs_f64() / f64::from(fresh.max(1));
        let left = each * f64::from(of - finished);
        say(&format!(
            "{finished} of {of} draws, {:.1} a second, about {left:.0} s left",
            1.0 / each.max(1e-9)
        ));
    }
    fn stop(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

/// Runs a study of regression and prints what it found.
pub(crate) fn run_regression(
    session: &RegressionSession,
    out: &Path,
    threads: Option<u16>,
    quiet: bool,
    json: bool,
) -> Result<ExitCode, Failure> {
    let now = Instant::now();
    let progress = Lines {
        quiet,
        start: now,
        spoke: Mutex::new(now),
        fresh: 0.into(),
        stop: stop_on_interrupt(),
    };
    let report = session.run(out, Speed { threads: threads.map(usize::from) }, &progress)?;
    if json {
        print_json(&report)?;
    } else {
        table(&report)?;
        say(&format!("report: {}", out.join("report.html").display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn table(report: &RegressionReport) -> Result<(), Failure> {
    let number = |x: f64| format!("{x:.4}");
    let measured = |m: Option<Measured>| {
        m.map_or("-".into(), |m| format!("{:.4} ({:.4} to {:.4})", m.mean, m.low, m.high))
    };
    let rows = report.cells.iter().map(|c: &Cell| {
        let upper = c.epsilon_upper.and_then(|e| Epsilon::new(e).ok());
        vec![
            c.mechanism.clone(),
            c.claim.name().into(),
            c.epsilon.map_or("-".into(), |e| e.to_string()),
            upper.map_or("none".into(), millionths_up),
            c.share.to_string(),
            format!("{}/{}", c.released, report.draws),
            measured(c.error),
            c.error.map_or("-".into(), |m| number(m.median)),
            measured(c.inversion),
        ]
    });
    let header = [
        "mechanism",
        "promise",
        "epsilon",
        "epsilon_upper",
        "share",
        "released",
        "mean squared error",
        "median",
        "inversion",
    ];
    print_table(&header, &[2, 3, 4, 5, 6, 7, 8], rows.collect())?;
    print(&format!(
        "epsilon_upper: pld, one record replaced, delta {}; no model: mean squared error {}",
        report.delta,
        number(report.variance.mean)
    ))
}
