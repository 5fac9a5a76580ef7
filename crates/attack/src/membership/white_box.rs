//! The white-box attack on the last layer.
use crate::{Access, Attack, Error, Needs, Outcome, View};
use serde::{Deserialize, Serialize};

/// Settings of [`WhiteBox`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WhiteBoxSettings {
    /// Kernels over the gradient, at least 1. 1000 in the paper; cost and memory grow with it.
    pub filters: usize,
    /// Neighbouring outputs that one kernel spans, at least 1; no more than there are classes is used.
    pub conv_height: usize,
    /// Normalise every convolution output over the batch.
    pub batch_norm: bool,
    /// Fraction of units dropped in training, in `[0, 1)`.
    pub dropout: f32,
    /// Adam's learning rate, positive.
    pub learning_rate: f32,
    /// Records per step, at least 2, half members and half non-members.
    pub batch_size: usize,
    /// Most passes over the known records, at least 1.
    pub epochs: usize,
    /// Passes without a better validation accuracy before stopping, at least 1.
    pub patience: usize,
    /// Fraction of the known records kept apart to decide when to stop, in `(0, 1)`.
    pub validation: f64,
}
impl WhiteBoxSettings {
    /// The paper's attack.
    pub const DEFAULT: Self = Self {
        filters: 1000,
        conv_height: 4,
        batch_norm: true,
        dropout: 0.2,
        learning_rate: 1e-4,
        batch_size: 64,
        epochs: 500,
        patience: 10,
        validation: 0.2,
    };
    /// Checks the ranges.
    ///
    /// # Errors
    /// Naming the first field out of range.
    pub fn check(&self) -> Result<(), Error> {
        let bad =
            |field, needed, have| Err(Error::Setting { attack: "white_box", field, needed, have });
        for (field, value) in [
            ("filters", self.filters),
            ("conv_height", self.conv_height),
            ("epochs", self.epochs),
            ("patience", self.patience),
        ] {
            if value == 0 {
                return bad(field, "at least 1", 0.0);
            }
        }
        if self.batch_size < 2 {
            return bad("batch_size", "at least 2", self.batch_size as f64);
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return bad("dropout", "at least 0 and below 1", self.dropout.into());
        }
        if !(self.learning_rate.is_finite() && self.learning_rate > 0.0) {
            return bad("learning_rate", "positive and finite", self.learning_rate.into());
        }
        if !(self.validation > 0.0 && self.validation < 1.0) {
            return bad("validation", "above 0 and below 1", self.validation);
        }
        Ok(())
    }
}
impl Default for WhiteBoxSettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A network on gradient, answer, loss and label, trained on the half of the candidates whose membership is known.
#[derive(Debug, Clone, Copy)]
pub struct WhiteBox {
    /// Settings.
    pub settings: WhiteBoxSettings,
}
impl WhiteBox {
    /// With default settings.
    pub const DEFAULT: Self = Self { settings: WhiteBoxSettings::DEFAULT };
}

impl Attack for WhiteBox {
    fn name(&self) -> &'static str {
        "white_box"
    }
    fn title(&self) -> &'static str {
        "white box: a network on last-layer gradient, answer, loss and label learns from the known half"
    }
    fn source(&self) -> &'static str {
        "Nasr et al., Comprehensive Privacy Analysis of Deep Learning, S&P 2019, last layer only"
    }
    fn needs(&self) -> Needs {
        Needs { shadows: 0, access: Access::WhiteBox, known_membership: true }
    }
    fn run(&self, view: &View<'_>) -> Result<Outcome, Error> {
        self.settings.check()?;
        let _ = view;
        todo!()
    }
}
