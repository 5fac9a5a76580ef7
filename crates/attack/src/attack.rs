//! What an attack is and what it asks for.
use crate::{Error, View};
use dosimeter_audit::Scores;
use serde::{Deserialize, Serialize};

/// How much of the target the attacker sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// The answer of the model to a query.
    BlackBox,
    /// Its parameters too: everything computed on the way to the answer.
    WhiteBox,
}

/// What must be there before an attack can be run; the study takes the union over the attacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Needs {
    /// The smallest number of shadow models with which the attack works at all.
    pub shadows: usize,
    /// Access to the target.
    pub access: Access,
    /// Whether the attacker is told the membership of a part of the candidates. These are never judged.
    pub known_membership: bool,
}

/// Something a reader of the scores should know.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Note {
    /// A class had too few rows for a network of its own and was judged by the one shared by such classes.
    PooledClass {
        /// The class.
        class: u32,
        /// Rows of this class in all shadow models together, members and non-members each.
        rows: usize,
    },
    /// How the training of the attack's network ended.
    Fitted {
        /// Epochs run.
        epochs: usize,
        /// The epoch whose parameters were kept, from 1.
        best_epoch: usize,
        /// Accuracy in `[0, 1]` on the validation fold at that epoch, balanced between members and non-members.
        validation_accuracy: f64,
    },
}
impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::PooledClass { class, rows } => {
                write!(
                    f,
                    "class {class} has {rows} members and non-members to learn from: judged by the network shared by rare classes"
                )
            }
            Self::Fitted { epochs, best_epoch, validation_accuracy } => write!(
                f,
                "network of epoch {best_epoch} of {epochs} kept, validation accuracy {validation_accuracy:.3}"
            ),
        }
    }
}

/// Scores and what a reader of them should know.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// One number per judged record; larger = more likely a member.
    pub scores: Scores,
    /// Remarks, in a fixed order.
    pub notes: Vec<Note>,
}

/// A membership inference attack: pure, the same view gives the same scores on any number of threads.
pub trait Attack: std::fmt::Debug + Send + Sync {
    /// Name in study files and reports: lower-case words joined by `_`.
    fn name(&self) -> &'static str;
    /// One line for people.
    fn title(&self) -> &'static str;
    /// Paper and section.
    fn source(&self) -> &'static str;
    /// What must be in the view.
    fn needs(&self) -> Needs;
    /// Judges every candidate whose membership is not already known to the attacker, and says what to know about it.
    ///
    /// # Errors
    /// When the view does not hold what [`Attack::needs`] asks for, or a setting is out of range.
    fn run(&self, view: &View<'_>) -> Result<Outcome, Error>;
    /// The scores alone; larger = more likely a member.
    ///
    /// # Errors
    /// As [`Attack::run`].
    fn score(&self, view: &View<'_>) -> Result<Scores, Error> {
        Ok(self.run(view)?.scores)
    }
}
