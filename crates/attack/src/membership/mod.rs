//! The registry of membership inference attacks.
mod entropy;
mod loss_threshold;
mod shadow_model;
mod white_box;

use crate::Attack;
use serde::{Deserialize, Serialize};

pub use entropy::{Entropy, ModifiedEntropy};
pub use loss_threshold::LossThreshold;
pub use shadow_model::{Balance, InputForm, ShadowModel, ShadowModelSettings};
pub use white_box::{WhiteBox, WhiteBoxSettings};

/// Every attack with its default settings. Adding one: its file in this folder, its `mod` line above, its lines here and in [`configured`].
pub const ATTACKS: &[&dyn Attack] =
    &[&LossThreshold, &Entropy, &ModifiedEntropy, &ShadowModel::DEFAULT, &WhiteBox::DEFAULT];

/// Settings of the attacks that have any, as in a study file.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Of `shadow_model`.
    pub shadow_model: ShadowModelSettings,
    /// Of `white_box`.
    pub white_box: WhiteBoxSettings,
}
impl Settings {
    /// Checks every setting.
    ///
    /// # Errors
    /// Naming the attack, the field, what it must be and what it is.
    pub fn check(&self) -> Result<(), crate::Error> {
        self.shadow_model.check()?;
        self.white_box.check()
    }
}

/// The attack called `name` with `settings`, or `None` if there is no such attack.
#[must_use]
pub fn configured(name: &str, settings: &Settings) -> Option<Box<dyn Attack>> {
    Some(match name {
        "loss_threshold" => Box::new(LossThreshold),
        "entropy" => Box::new(Entropy),
        "modified_entropy" => Box::new(ModifiedEntropy),
        "shadow_model" => Box::new(ShadowModel { settings: settings.shadow_model }),
        "white_box" => Box::new(WhiteBox { settings: settings.white_box }),
        _ => return None,
    })
}
