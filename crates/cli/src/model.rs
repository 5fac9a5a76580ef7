//! `dosimeter model`.
use crate::data::write;
use crate::output::{Failure, print, print_json, print_table, say};
use crate::regress::distinct;
use dosimeter_study::Error;
use dosimeter_study::Preparation;
use dosimeter_study::models::{self, Change, Facts, Part, Ran};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Inspect, run or convert a network: an ONNX model, or a checkpoint of this project.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Model {
    /// Say what a network is made of and whether it can be trained with DP
    Inspect(Inspect),
    /// Run a network on the data of a study file
    Run(Run),
    /// Fold batch normalizations into the layers before them, or put ones that can be trained with DP in their place
    Fold(Fold),
    /// Write a network as an ONNX model, or as a checkpoint
    Export(Export),
}
#[derive(Debug, clap::Args)]
struct Source {
    /// The network
    model: PathBuf,
    /// Shape of a record, where an ONNX model leaves it open: 3,224,224
    #[arg(long, value_name = "SIDES", value_delimiter = ',')]
    shape: Option<Vec<usize>>,
    /// Value of an ONNX model that is to be the output, by its name there; its only output if left out
    #[arg(long, value_name = "NAME")]
    output: Option<String>,
}
#[derive(Debug, clap::Args)]
pub(crate) struct Inspect {
    #[command(flatten)]
    source: Source,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    #[command(flatten)]
    source: Source,
    /// A study file, or a file with a `dataset` table alone
    study: PathBuf,
    /// By which the data, which lie in [0, 1], are multiplied first: 255 for a network made for bytes
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = above_zero)]
    highest: f32,
    /// Subtracted from the data then: one number, or one for each channel
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', allow_negative_numbers = true)]
    mean: Vec<f32>,
    /// By which the data are divided afterwards
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = above_zero)]
    deviation: Vec<f32>,
    /// File to write each record's outputs to, as CSV
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write only so many outputs of each record, the largest first, and say how often its class is among them
    #[arg(long, value_name = "COUNT")]
    top: Option<NonZero<usize>>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    #[command(flatten)]
    source: Source,
    /// File to write: an ONNX model if it ends in .onnx, else a checkpoint
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}
#[derive(Debug, clap::Args)]
pub(crate) struct Fold {
    #[command(flatten)]
    to: Export,
    /// Put group normalizations of so many groups in the place of batch normalizations; they are to be trained
    #[arg(long, value_name = "GROUPS")]
    group_normalization: Option<usize>,
}

impl Source {
    fn part(&self) -> Part {
        Part { input: self.shape.clone(), output: self.output.clone() }
    }
}

impl Model {
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        match self {
            Self::Inspect(i) => {
                let network = models::load(&i.source.model, &i.source.part())?;
                show(&models::facts(&network), i.json)?;
            }
            Self::Run(r) => {
                let ran = r.run()?;
                if r.json {
                    print_json(&ran)?;
                } else {
                    let mut text = format!("records   {}\noutputs   {}", ran.records, ran.outputs);
                    if let Some(accuracy) = ran.accuracy {
                        text.push_str(&format!("\naccuracy  {accuracy:.4}"));
                    }
                    if let Some((accuracy, top)) = ran.accuracy_within_top.zip(r.top) {
                        text.push_str(&format!(
                            "\nclass among the {top} largest outputs  {accuracy:.4}"
                        ));
                    }
                    if let Some(shape) = ran.scaled_from {
                        text.push_str(&format!(
                            "\nimages of {shape:?} were brought to the size and channels that the network reads"
                        ));
                    }
                    if ran.not_finite > 0 {
                        text.push_str(&format!(
                            "\nnote: outputs of {} records are not finite numbers; --highest, --mean and --deviation say how the network wants its images",
                            ran.not_finite
                        ));
                    }
                    if ran.channels_last {
                        text.push_str("\nimages were turned to have their channels last");
                    }
                    print(&text)?;
                }
            }
            Self::Fold(fold) => {
                let change = fold.group_normalization.map_or(Change::Fold, Change::Groups);
                fold.to.write(change)?;
            }
            Self::Export(export) => export.write(Change::None)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Export {
    fn write(&self, change: Change) -> Result<(), Failure> {
        distinct(Some(&self.out), &[&self.source.model])?;
        let network = models::load(&self.source.model, &self.source.part())?;
        let normalized = network.batch_normalizations() > 0;
        let as_onnx = self.out.extension().is_some_and(|x| x.eq_ignore_ascii_case("onnx"));
        let (network, bytes) = models::export(&self.source.model, &network, change, as_onnx)?;
        write(&self.out, |out| out.write_all(&bytes))?;
        if change != Change::None && !normalized {
            say("note: the network has no batch normalization; it is as it was");
        }
        show(&models::facts(&network), self.json)
    }
}

impl Run {
    fn run(&self) -> Result<Ran, Failure> {
        let part = self.source.part();
        let preparation = Preparation {
            highest: self.highest,
            means: self.mean.clone(),
            deviations: self.deviation.clone(),
        };
        let (model, study): (&Path, &Path) = (&self.source.model, &self.study);
        let data = dosimeter_study::file::read_dataset(&self.study)
            .ok()
            .and_then(|(dataset, _)| dataset.path().map(std::borrow::ToOwned::to_owned));
        let mut given = vec![&self.source.model, &self.study];
        given.extend(&data);
        distinct(self.out.as_ref(), &given)?;
        let Some(file) = &self.out else {
            return Ok(models::run(model, &part, study, &preparation, self.top, None)?);
        };
        let mut result: Option<Result<Ran, Error>> = None;
        let written = write(file, |out| {
            let ran = models::run(model, &part, study, &preparation, self.top, Some(out));
            let failed = ran.is_err();
            result = Some(ran);
            if failed { Err(std::io::Error::other("the network was not run")) } else { Ok(()) }
        });
        match (result, written) {
            (Some(Ok(ran)), Ok(())) => Ok(ran),
            (Some(Err(error)), _) => Err(error.into()),
            // The file could not be made or finished.
            (_, Err(failure)) => Err(failure),
            (None, Ok(())) => Err(Error::Stopped.into()),
        }
    }
}

fn above_zero(text: &str) -> Result<f32, String> {
    let number: f32 = text.parse().map_err(|_| format!("{text} is no number"))?;
    if number > 0.0 && number.is_finite() {
        Ok(number)
    } else {
        Err(format!("needs finite numbers above 0, got {text}"))
    }
}

fn show(facts: &Facts, json: bool) -> Result<(), Failure> {
    if json {
        return print_json(facts);
    }
    let mut text = facts.format.to_owned();
    if let Some(opset) = facts.opset {
        text.push_str(&format!(" opset {opset}"));
    }
    if let Some(producer) = facts.producer.as_ref().filter(|p| !p.is_empty()) {
        text.push_str(&format!(" by {}", producer.escape_debug()));
    }
    text.push_str(&format!(
        "\ninput            {:?}\noutput           {:?}\nparameters       {}\nmultiplications  {} per record\n",
        facts.input, facts.output, facts.parameters, facts.multiplications
    ));
    text.push_str(match facts.trainable {
        true => "DP training      possible: the gradient of each record can be clipped\n",
        false => "DP training      not as it is\n",
    });
    for remark in &facts.remarks {
        text.push_str(&format!("note: {remark}\n"));
    }
    print(&text)?;
    let reads = |reads: &[Option<usize>]| {
        let one = |r: &Option<usize>| r.map_or_else(|| "input".to_owned(), |r| r.to_string());
        reads.iter().map(one).collect::<Vec<_>>().join(" ")
    };
    let rows = facts.layers.iter().enumerate().map(|(i, layer)| {
        vec![
            i.to_string(),
            layer.kind.to_owned(),
            reads(&layer.reads),
            format!("{:?}", layer.shape),
            layer.parameters.to_string(),
            layer.multiplications.to_string(),
            layer.name.chars().take(40).collect::<String>().escape_debug().to_string(),
        ]
    });
    let header = ["", "layer", "reads", "shape", "parameters", "multiplications", "name"];
    print_table(&header, &[0, 4, 5], rows.collect())
}
