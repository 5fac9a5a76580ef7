//! The black-box shadow-model attack.
use crate::{Access, Attack, Error, Needs, Outcome, View};
use serde::{Deserialize, Serialize};

/// What an attack network sees of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputForm {
    /// The softmax vector, as in the paper.
    #[default]
    Probabilities,
    /// Its logarithm from the logits, each class standardised over the network's training rows.
    LogProbabilities,
}

/// How many rows of a class each shadow gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Balance {
    /// As many members as non-members, as many as the class allows.
    #[default]
    Stratified,
    /// The same number for every class: what the scarcest class of that shadow allows.
    Equal,
}

/// Settings of [`ShadowModel`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShadowModelSettings {
    /// What the networks see.
    pub input: InputForm,
    /// How many rows of a class each shadow gives.
    pub balance: Balance,
    /// Hidden units of each attack network, at least 1.
    pub hidden: usize,
    /// Passes over a class's rows, at least 1.
    pub epochs: usize,
    /// Rows per step, at least 1.
    pub batch_size: usize,
    /// Adam's learning rate, positive.
    pub learning_rate: f32,
    /// Weight of half the squared norm of the weights in the loss, at least 0.
    pub l2: f32,
    /// Members, and non-members, that a class must have for a network of its own, at least 1.
    pub least_rows: usize,
}
impl ShadowModelSettings {
    /// One hidden layer of 64, Adam at 0.01, 50 epochs of batches of 100, L2 of 1e-6.
    pub const DEFAULT: Self = Self {
        input: InputForm::Probabilities,
        balance: Balance::Stratified,
        hidden: 64,
        epochs: 50,
        batch_size: 100,
        learning_rate: 0.01,
        l2: 1e-6,
        least_rows: 20,
    };
    /// Checks the ranges.
    ///
    /// # Errors
    /// Naming the first field out of range.
    pub fn check(&self) -> Result<(), Error> {
        let bad = |field, needed, have| {
            Err(Error::Setting { attack: "shadow_model", field, needed, have })
        };
        for (field, value) in [
            ("hidden", self.hidden),
            ("epochs", self.epochs),
            ("batch_size", self.batch_size),
            ("least_rows", self.least_rows),
        ] {
            if value == 0 {
                return bad(field, "at least 1", 0.0);
            }
        }
        if !(self.learning_rate.is_finite() && self.learning_rate > 0.0) {
            return bad("learning_rate", "positive and finite", self.learning_rate.into());
        }
        if !(self.l2.is_finite() && self.l2 >= 0.0) {
            return bad("l2", "at least 0 and finite", self.l2.into());
        }
        Ok(())
    }
}
impl Default for ShadowModelSettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// One attack network per class, trained on the answers of shadow models.
#[derive(Debug, Clone, Copy)]
pub struct ShadowModel {
    /// Settings.
    pub settings: ShadowModelSettings,
}
impl ShadowModel {
    /// With default settings.
    pub const DEFAULT: Self = Self { settings: ShadowModelSettings::DEFAULT };
}

impl Attack for ShadowModel {
    fn name(&self) -> &'static str {
        "shadow_model"
    }
    fn title(&self) -> &'static str {
        "shadow models: one network per class learns how answers to members look"
    }
    fn source(&self) -> &'static str {
        "Shokri et al., Membership Inference Attacks Against Machine Learning Models, S&P 2017"
    }
    fn needs(&self) -> Needs {
        Needs { shadows: 1, access: Access::BlackBox, known_membership: false }
    }
    fn run(&self, view: &View<'_>) -> Result<Outcome, Error> {
        self.settings.check()?;
        let _ = view;
        todo!()
    }
}
