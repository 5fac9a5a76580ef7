//! What can go wrong with a study.
use crate::diverged::Diverged;
use crate::report::{Check, Missing};
use crate::source::Problem;
use std::path::PathBuf;

/// Why a study could not be read, planned, run or shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The study file has problems.
    #[error("{}", lines(.0))]
    Study(Vec<Problem>),
    /// The data could not be loaded or divided.
    #[error(transparent)]
    Data(#[from] dosimeter_data::Error),
    /// A training failed.
    #[error("{task}: {source}")]
    Train {
        /// Which one, in words.
        task: String,
        /// Why.
        source: dosimeter_train::Error,
    },
    /// An attack failed.
    #[error("attack {attack} on {setting}: {source}")]
    Attack {
        /// Which attack.
        attack: String,
        /// On which arm, and in which repeat where there is one.
        setting: String,
        /// Why.
        source: dosimeter_attack::Error,
    },
    /// Scores could not be judged.
    #[error("judging {setting}: {source}")]
    Audit {
        /// Which arm.
        setting: String,
        /// Why.
        source: dosimeter_audit::Error,
    },
    /// A guarantee that no accountant here can compute.
    #[error(transparent)]
    Unsupported(#[from] dosimeter_privacy::Unsupported),
    /// Accounting or noise that cannot be done.
    #[error(transparent)]
    Privacy(#[from] dosimeter_privacy::Error),
    /// A number of a guarantee outside its range.
    #[error(transparent)]
    OutOfRange(#[from] dosimeter_privacy::OutOfRange),
    /// A report that cannot be written or read.
    #[error(transparent)]
    Report(#[from] crate::report::Error),
    /// A file that cannot be read or written.
    #[error("{}: {source}", path.display())]
    Disk {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another run holds the directory.
    #[error("{}: another run is writing here", path.display())]
    Locked {
        /// The run directory.
        path: PathBuf,
    },
    /// A directory with something else in it.
    #[error("{}: needs an empty folder or one of an earlier run, and there are other files in it", path.display())]
    NotARun {
        /// The directory.
        path: PathBuf,
    },
    /// A directory with the run of another study.
    #[error("{}: holds the run of the study `{there}`, and this is the study `{here}`", path.display())]
    OtherStudy {
        /// The directory.
        path: PathBuf,
        /// Name of the study whose run it holds.
        there: String,
        /// Name of the study that was to run.
        here: String,
    },
    /// A directory with a comparison of regressions under other settings.
    #[error("{}: holds a run of `{name}` with other settings ({})", path.display(), differing.join(", "))]
    OtherSettings {
        /// The directory.
        path: PathBuf,
        /// Name of both.
        name: String,
        /// The settings that differ.
        differing: Vec<&'static str>,
    },
    /// A run of a study of regression, where one of classification is needed.
    #[error(
        "{}: holds the run of a study of regression; trace, report and compare follow studies of membership",
        path.display()
    )]
    RegressionRun {
        /// The directory.
        path: PathBuf,
    },
    /// A run whose data are no longer those it was made from.
    #[error("{}: the data differ from those of the run", path.display())]
    OtherData {
        /// The run directory.
        path: PathBuf,
    },
    /// A directory without a finished report.
    #[error("{}: no finished run here", path.display())]
    NoReport {
        /// The directory.
        path: PathBuf,
    },
    /// A report file that is none.
    #[error("{}: {source}", path.display())]
    BadReport {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: crate::report::Error,
    },
    /// An artifact of a finished run that is gone or damaged.
    #[error("{}: {why}", path.display())]
    BadArtifact {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// An id that is not in a data set.
    #[error("record {record}: the data set has records 0 to {last}")]
    NoSuchRecord {
        /// The id asked for.
        record: u32,
        /// The last one there is.
        last: u32,
    },
    /// A specification that cannot be written as JSON.
    #[error("encoding: {0}")]
    Encode(serde_json::Error),
    /// A network that cannot be written.
    #[error("encoding a network: {0}")]
    Network(#[from] dosimeter_model::Error),
    /// A network from elsewhere that cannot be read, run or written.
    #[error("{}: {what}", path.display())]
    Model {
        /// The file.
        path: PathBuf,
        /// What was needed and what was there.
        what: String,
    },
    /// An artifact whose header cannot be read.
    #[error("decoding an artifact: {0}")]
    Decode(serde_json::Error),
    /// An artifact whose parts do not fit its header.
    #[error("an artifact holds other arrays than its header says")]
    ArtifactShape,
    /// Threads could not be started.
    #[error("starting threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// A regression that cannot be fitted.
    #[error(transparent)]
    Regression(#[from] dosimeter_train::regression::Error),
    /// A setting given by a caller that makes no sense.
    #[error("{0}")]
    Setting(String),
    /// A training ran away, so that its setting has no result. The other settings go on.
    #[error("{}: {}", .0.task, .0.reason)]
    Lost(Box<Missing>),
    /// Every setting lost a training: there is no result.
    #[error("no setting has a result\n{}", missing.iter().map(|m| format!("{}: {}", m.task, m.reason)).collect::<Vec<_>>().join("\n"))]
    NothingLeft {
        /// Why, for each.
        missing: Vec<Missing>,
        /// The limits and claims of the study, none of which can be judged.
        undecided: Vec<Check>,
    },
    /// Asked to stop. Finished tasks are kept.
    #[error("stopped on request; what is finished is kept")]
    Stopped,
}

impl Error {
    /// Whether a training ran away, which a smaller learning rate may prevent.
    #[must_use]
    pub fn is_divergence(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::NothingLeft { .. }) || Diverged::of(self).is_some()
    }
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
