//! `dosimeter data`.
use crate::output::{Failure, millionths_up, print, print_json, say};
use dosimeter_study::Error;
use dosimeter_study::account::Epsilon;
use dosimeter_study::regression::{TableFacts, table_facts};
use dosimeter_study::tables::{self, ClassCount, Facts, GraphFacts, Quantiles};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Generate, inspect or randomize data.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Data {
    /// Write Skewed Purchases as CSV
    Generate(Generate),
    /// Load the data of a study file and say what is in it
    Inspect(Inspect),
    /// Randomize every record of a study file's data by local DP and write it as CSV
    Randomize(Randomize),
}
#[derive(Debug, clap::Args)]
pub(crate) struct Generate {
    /// Classes, a divisor of 600
    #[arg(long, default_value_t = 100)]
    classes: usize,
    /// Records of the train law
    #[arg(long, default_value_t = 10_000)]
    train_records: u32,
    /// Records of the test law
    #[arg(long, default_value_t = 0)]
    test_records: u32,
    /// Root seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// File to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}
#[derive(Debug, clap::Args)]
pub(crate) struct Inspect {
    /// A study file, also one of regression, or a file with a `dataset` table alone
    study: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}
#[derive(Debug, clap::Args)]
pub(crate) struct Randomize {
    /// A study file, or a file with a `dataset` table alone
    study: PathBuf,
    /// Loss of one feature, nats; a record's loss is the sum over its features
    #[arg(long, value_name = "EPSILON", value_parser = epsilon, allow_negative_numbers = true)]
    epsilon_per_feature: Epsilon,
    /// Draw the noise from this seed, for experiments; left out, it comes from the operating system
    #[arg(long)]
    seed: Option<u64>,
    /// File to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What `inspect` prints as JSON: the facts, and what each class and column holds.
#[derive(Debug, serde::Serialize)]
struct Inspected<'a, Runs> {
    #[serde(flatten)]
    facts: &'a Facts,
    class_counts: &'a [ClassCount],
    column_runs: &'a Runs,
}

impl Data {
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        match self {
            Self::Generate(g) => {
                let dataset = tables::generate(g.classes, g.train_records, g.test_records, g.seed)
                    .map_err(|error| of_arguments(&error))?;
                write(&g.out, |out| tables::write_csv(&dataset, "label", out))?;
                show(&tables::facts(&dataset), g.json)?;
            }
            Self::Inspect(i) => {
                if let Some(facts) = table_facts(&i.study)? {
                    if i.json {
                        print_json(&facts)?
                    } else {
                        print(&of_regression(&facts))?
                    }
                    return Ok(ExitCode::SUCCESS);
                }
                if let Some(facts) = tables::graph_facts(&i.study).map_err(of_table)? {
                    if i.json {
                        print_json(&facts)?
                    } else {
                        print(&of_graphs(&facts))?
                    }
                    return Ok(ExitCode::SUCCESS);
                }
                let dataset = tables::load(&i.study).map_err(of_table)?;
                let (facts, runs) = (tables::facts(&dataset), dataset.column_runs());
                let class_counts =
                    tables::class_counts(&dataset.class_names, &dataset.class_counts());
                if i.json {
                    let class_counts = &class_counts;
                    print_json(&Inspected { facts: &facts, class_counts, column_runs: &runs })?;
                } else {
                    show(&facts, false)?;
                    print(&of_classes(&class_counts))?;
                    let lines: Vec<String> = runs.iter().map(|run| format!("  {run}")).collect();
                    print(&format!("what the columns hold\n{}", lines.join("\n")))?;
                }
            }
            Self::Randomize(r) => {
                let label = r.spare_the_source()?;
                let dataset = tables::load(&r.study).map_err(of_table)?;
                let (randomized, spent) =
                    tables::randomize(&dataset, r.epsilon_per_feature, r.seed)?;
                write(&r.out, |out| tables::write_csv(&randomized, &label, out))?;
                if r.json {
                    print_json(&spent)?;
                } else {
                    print(&format!(
                        "epsilon_upper {} for the feature vector of a record (local, delta 0); the label is public",
                        millionths_up(spent.epsilon_upper)
                    ))?;
                    if spent.replayable {
                        say("warning: noise from a seed can be replayed: not for a release");
                    }
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Randomize {
    /// Refuses to put the randomized records where the only copy of the true ones may be. Gives the name of the label.
    fn spare_the_source(&self) -> Result<String, Failure> {
        let (dataset, _) = dosimeter_study::file::read_dataset(&self.study)?;
        let source = dataset.path().and_then(|path| path.canonicalize().ok());
        if source.is_some() && self.out.canonicalize().ok() == source {
            return Err(Failure::Argument {
                what: format!("--out {}: needs a file other than the data set", self.out.display()),
                hint: "the records themselves would be lost".to_owned(),
            });
        }
        Ok(dataset.label().to_owned())
    }
}

/// A wrong argument of `generate` is told by the generator.
fn of_arguments(error: &Error) -> Failure {
    let hint = "`dosimeter data generate --help` says what it takes".to_owned();
    Failure::Argument { what: error.to_string(), hint }
}

/// What is wrong with a table needs another hint here than within a run.
fn of_table(error: Error) -> Failure {
    match error {
        Error::Data(error) => Failure::Argument {
            what: error.to_string(),
            hint: "docs/reference/datasets.md says what each kind of data set may hold, docs/guide/your-own-table.md more of tables".to_owned(),
        },
        error => error.into(),
    }
}

/// Writes a file whole or not at all.
pub(crate) fn write(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), Failure> {
    // A device or a pipe is written to, never replaced by a file.
    if std::fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        let attempt = || {
            let mut out = BufWriter::new(File::options().write(true).open(path)?);
            fill(&mut out)?;
            out.flush()
        };
        return attempt().map_err(|source| Error::Disk { path: path.to_owned(), source }.into());
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".unfinished");
    let temporary = path.with_file_name(name);
    let attempt = || {
        let mut out = BufWriter::new(File::create(&temporary)?);
        fill(&mut out)?;
        out.into_inner()?.sync_all()?;
        std::fs::rename(&temporary, path)
    };
    attempt().map_err(|source| {
        let _ = std::fs::remove_file(&temporary);
        Error::Disk { path: path.to_owned(), source }.into()
    })
}

/// What the first classes hold, a line each.
fn of_classes(classes: &[ClassCount]) -> String {
    let mut text = "records of each class".to_owned();
    for count in classes.iter().take(20) {
        text.push_str(&format!("\n  {}: {}", count.class, count.records));
    }
    if let Some(more) = classes.len().checked_sub(20).filter(|&more| more > 0) {
        text.push_str(&format!("\n  and {more} more classes"));
    }
    text + "\n"
}

/// What a set of graphs holds.
fn of_graphs(facts: &GraphFacts) -> String {
    let sizes = |of: &Quantiles| {
        format!(
            "per graph {} to {}: a tenth up to {}, half up to {}, nine tenths up to {}",
            of.least, of.most, of.tenth, of.median, of.ninety
        )
    };
    let tags = match (facts.node_tags, facts.node_attributes) {
        (0, 0) => "none".to_owned(),
        (tags, 0) => format!("{tags} different"),
        (tags, numbers) => format!("{tags} different, and {numbers} numbers per node"),
    };
    let mut text = format!(
        "{}\ngraphs       {}\nnodes        {} ({})\nedges        {} ({})\nnode tags    {tags}\n",
        facts.name,
        facts.graphs,
        facts.nodes,
        sizes(&facts.nodes_per_graph),
        facts.edges,
        sizes(&facts.edges_per_graph),
    );
    let dropped = facts.dropped;
    if dropped.self_loops + dropped.repeated > 0 {
        text.push_str(&format!(
            "left out     {} entries of a node as its own neighbour, {} of a neighbour twice\n",
            dropped.self_loops, dropped.repeated
        ));
    }
    text.push_str(&format!("fingerprint  {}\n", facts.fingerprint));
    text + &of_classes(&facts.class_counts)
}

fn show(facts: &Facts, json: bool) -> Result<(), Failure> {
    if json {
        return print_json(facts);
    }
    let mut text = format!(
        "{}\nrecords      {}\ncolumns      {}\ninputs       {}\nclasses      {} of {} to {} records\n",
        facts.name,
        facts.records,
        facts.columns,
        facts.width,
        facts.classes,
        facts.class_sizes.0,
        facts.class_sizes.1,
    );
    if let Some([channels, height, width]) = facts.shape {
        text.push_str(&format!("shape        {channels} x {height} x {width}\n"));
    }
    if let Some(ones) = facts.ones {
        text.push_str(&format!("ones         {ones:.4}\n"));
    }
    if let Some(records) = facts.test_law_records {
        text.push_str(&format!("test law     {records} records\n"));
    }
    text.push_str(&format!("fingerprint  {}\n", facts.fingerprint));
    print(&text)
}

fn epsilon(text: &str) -> Result<Epsilon, String> {
    // As `epsilons_per_feature` of a study: less than that no sampler draws, and more protects nothing.
    let needed = "--epsilon-per-feature needs a number of nats from 1e-9 to 1000";
    let number: f64 = text.parse().map_err(|_| format!("{needed}, got `{text}`"))?;
    if !(1e-9..=1000.0).contains(&number) {
        return Err(format!("{needed}, got {text}"));
    }
    Epsilon::new(number).map_err(|e| e.to_string())
}

fn of_regression(facts: &TableFacts) -> String {
    let target = &facts.layout.target;
    let mut lines = vec![
        format!("{}: {} rows, {} columns", facts.name, facts.rows, facts.layout.width()),
        format!("to predict {} from {} to {}", target.name, target.lower, target.upper),
    ];
    lines.extend(
        facts
            .layout
            .columns
            .iter()
            .map(|column| format!("  {} from {} to {}", column.name, column.lower, column.upper)),
    );
    for group in &facts.layout.groups {
        let levels: Vec<&str> = group.levels.iter().map(|level| level.name.as_str()).collect();
        lines.push(format!("attribute {}: {}", group.name, levels.join(", ")));
    }
    let counts = [
        ("left out", &facts.counts.left_out),
        ("moved into its bounds", &facts.counts.clipped),
        ("filled in", &facts.counts.imputed),
    ];
    for (what, counts) in counts {
        lines.extend(counts.iter().map(|(field, count)| format!("{what}: {count} of {field}")));
    }
    lines.extend(facts.missing.iter().map(|(column, rule)| format!("missing {column}: {rule}")));
    lines.push(format!("fingerprint {}", &facts.fingerprint[..12]));
    lines.join("\n")
}
