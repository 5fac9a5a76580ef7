//! The relative privacy-accuracy trade-off phi, in both published forms.
use crate::Error;
use crate::error::within;
use serde::{Deserialize, Serialize};

/// An attack figure (AUC or average precision) and a test accuracy, with and without protection, and what chance gives.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Attack figure against the unprotected model, `[0, 1]`.
    pub attack_original: f64,
    /// Attack figure against the protected model, `[0, 1]`.
    pub attack: f64,
    /// Attack figure of guessing: 0.5.
    pub attack_baseline: f64,
    /// Test accuracy of the unprotected model, `[0, 1]`.
    pub accuracy_original: f64,
    /// Test accuracy of the protected model, `[0, 1]`.
    pub accuracy: f64,
    /// Test accuracy of guessing, `1 / classes`. A majority class gives more than that without learning anything: then the
    /// relative loss of accuracy never reaches 1.
    pub accuracy_baseline: f64,
}
impl Figures {
    fn checked(&self) -> Result<(), Error> {
        for (what, value) in [
            ("attack figure without protection", self.attack_original),
            ("attack figure", self.attack),
            ("attack baseline", self.attack_baseline),
            ("accuracy without protection", self.accuracy_original),
            ("accuracy", self.accuracy),
            ("accuracy baseline", self.accuracy_baseline),
        ] {
            within(what, "in [0, 1]", value, |x| (0.0..=1.0).contains(&x))?;
        }
        Ok(())
    }
    /// Why no ratio exists, if none does.
    fn undefined(&self) -> Option<Undefined> {
        if self.attack_original <= self.attack_baseline {
            Some(Undefined::NothingLeaked)
        } else if self.accuracy_original <= self.accuracy_baseline {
            Some(Undefined::NothingLearned)
        } else {
            None
        }
    }
    const fn clamped(self, below_baseline: BelowBaseline) -> Self {
        match below_baseline {
            BelowBaseline::Literal => self,
            BelowBaseline::Clamp => Self {
                attack: self.attack.max(self.attack_baseline),
                accuracy: self.accuracy.max(self.accuracy_baseline),
                ..self
            },
        }
    }
}

/// What to do with a protected figure below its baseline (an AUC of 0.49 is noise, and counts as more than all of the loss).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BelowBaseline {
    /// Take it as it is: the papers' formula.
    #[default]
    Literal,
    /// Lift it to the baseline.
    Clamp,
}

/// Why there is no ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undefined {
    /// The attack on the unprotected model is no better than guessing: there was nothing to protect.
    NothingLeaked,
    /// The unprotected model is no better than guessing: there was nothing to lose.
    NothingLearned,
    /// The divisor is 0: the attack on the protected model is exactly at its baseline (patent form only).
    AttackAtBaseline,
}

/// Relative loss of the attacker over relative loss of accuracy, as far as it is defined.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Phi {
    /// A plain ratio.
    Defined {
        /// The value.
        value: f64,
    },
    /// Accuracy did not fall, so the ratio has no divisor; the paper sets phi to 2, its largest value.
    AccuracyKept {
        /// Whether the attack fell at all. If not, 2 is the literal rule but praises nothing: protection changed nothing.
        attack_fell: bool,
    },
    /// No ratio exists.
    Undefined {
        /// Why.
        why: Undefined,
    },
}
impl Phi {
    /// Largest value of the paper's form.
    pub const LARGEST: f64 = 2.0;
    /// The number to print, where there is one.
    #[must_use]
    pub const fn value(&self) -> Option<f64> {
        match *self {
            Self::Defined { value } => Some(value),
            Self::AccuracyKept { .. } => Some(Self::LARGEST),
            Self::Undefined { .. } => None,
        }
    }
    /// Whether the number follows from the rule's letter only: neither accuracy nor attack fell.
    #[must_use]
    pub const fn is_degenerate(&self) -> bool {
        matches!(self, Self::AccuracyKept { attack_fell: false })
    }
}

/// The paper's phi: relative fall of the attack over relative fall of accuracy, in `[0, 2]`.
///
/// `min(2, max(0, A_o - A) (C_o - C_b) / ((C_o - C) (A_o - A_b)))` with `A` the attack figure, `C` accuracy, `o` original,
/// `b` baseline; 2 when accuracy did not fall; 0 when the attack rose. Above 1 the attacker lost more than the user.
///
/// # Source
/// Bernau, Robl, Grassal, Schneider & Kerschbaum, *Comparing Local and Central Differential Privacy Using Membership Inference
/// Attacks*, DBSec 2021, the relative privacy-accuracy trade-off, rearranged so that the bounds apply.
///
/// # Errors
/// [`Error::OutOfRange`] unless all figures are in `[0, 1]`.
pub fn phi(figures: &Figures, below_baseline: BelowBaseline) -> Result<Phi, Error> {
    figures.checked()?;
    let f = figures.clamped(below_baseline);
    if let Some(why) = f.undefined() {
        return Ok(Phi::Undefined { why });
    }
    let attack_fall = (f.attack_original - f.attack).max(0.0);
    let accuracy_fall = f.accuracy_original - f.accuracy;
    if accuracy_fall <= 0.0 {
        return Ok(Phi::AccuracyKept { attack_fell: attack_fall > 0.0 });
    }
    let value = attack_fall * (f.accuracy_original - f.accuracy_baseline)
        / (accuracy_fall * (f.attack_original - f.attack_baseline));
    Ok(Phi::Defined { value: value.min(Phi::LARGEST) })
}

/// The patent's phi: relative accuracy kept over relative attack figure kept. Not bounded, and negative when one of the
/// protected figures is below its baseline.
///
/// `((C - C_b) / (C_o - C_b)) / ((A - A_b) / (A_o - A_b))`, letters as in [`phi`], `A` the attack's precision.
///
/// # Source
/// The 2019 patent application of the same authors, equation 2.
///
/// # Errors
/// [`Error::OutOfRange`] unless all figures are in `[0, 1]`.
pub fn phi_patent(figures: &Figures, below_baseline: BelowBaseline) -> Result<Phi, Error> {
    figures.checked()?;
    let f = figures.clamped(below_baseline);
    if let Some(why) = f.undefined() {
        return Ok(Phi::Undefined { why });
    }
    let attack_kept = (f.attack - f.attack_baseline) / (f.attack_original - f.attack_baseline);
    let accuracy_kept =
        (f.accuracy - f.accuracy_baseline) / (f.accuracy_original - f.accuracy_baseline);
    let value = accuracy_kept / attack_kept;
    Ok(if value.is_finite() {
        Phi::Defined { value }
    } else {
        Phi::Undefined { why: Undefined::AttackAtBaseline }
    })
}
