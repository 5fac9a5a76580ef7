//! Where every number of a report comes from.
use crate::Error;
use crate::frozen_core::Core;
use crate::judge::hex;
use crate::network;
use crate::plan::{Plan, Task};
use crate::report::{self, Artifact, Missing, NoiseFacts, Provenance};
use crate::run::{recipe, recipe_digest, words};
use crate::store::Store;
use crate::study::{Arm, Defence, OptimizerKind, Study};
use dosimeter_privacy::{Generator, Sampler};

pub(super) fn provenance(
    study: &Study,
    core: Option<&Core>,
    plan: &Plan,
    store: &Store,
    missing: &[Missing],
) -> Result<Provenance, Error> {
    let mut recipes = Vec::new();
    let mut noise = Vec::new();
    for arm in &study.arms {
        recipes.push(report::Recipe {
            setting: arm.setting.clone(),
            text: recipe_line(study, core, arm),
            digest: recipe_digest(study, arm)?,
        });
        // Checked here too: a recipe that the trainer would refuse must not reach a report.
        recipe(study, arm)?;
        let mechanism = match arm.defence {
            Defence::Central { .. } => "gaussian",
            Defence::Local { .. } | Defence::EdgeRandomizedResponse { .. } => "randomized-response",
            Defence::Pixelization { .. } => "laplace",
            Defence::NoDp | Defence::ClipOnly { .. } => continue,
        };
        noise.push(NoiseFacts {
            setting: arm.setting.clone(),
            mechanism: mechanism.to_owned(),
            generator: match study.noise.generator {
                Generator::OperatingSystem => "operating system",
                Generator::ReplayableChaCha => "replayable, ChaCha20",
                Generator::ReplayableFast => "replayable, not cryptographic",
            }
            .to_owned(),
            sampler: match study.noise.sampler {
                Sampler::Exact => "exact integer",
                Sampler::Float => "fast float",
            }
            .to_owned(),
        });
    }
    // Of a setting without a result nothing is shown, so nothing is to be traced.
    let has_result = |arm: usize| missing.iter().all(|m| m.setting != study.arms[arm].setting);
    let groups = plan.groups.iter().filter(|group| has_result(group.arm));
    let artifacts = plan
        .features
        .iter()
        .chain(groups.flat_map(crate::plan::Group::tasks))
        .map(|task: &Task| {
            Ok(Artifact {
                task: words(study, task),
                id: task.id.as_str().to_owned(),
                digest: store.digest(&task.id)?,
            })
        })
        .collect::<Result<_, Error>>()?;
    Ok(Provenance {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        study_digest: study_digest(study, plan)?,
        seed: hex(&study.seed.to_be_bytes()),
        command: format!("dosimeter run {} --out RUN", study.file.display()),
        kernel: plan.kernel.clone(),
        platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        noise,
        recipes,
        artifacts,
    })
}

/// Digest of what decides the figures of a report: the tasks, which know their data, and the limits.
pub(crate) fn study_digest(study: &Study, plan: &Plan) -> Result<String, Error> {
    let mut digest = blake3::Hasher::new();
    for group in &plan.groups {
        digest.update(group.judge.id.as_str().as_bytes());
    }
    digest.update(&serde_json::to_vec(&study.limits).map_err(Error::Encode)?);
    if study.show_images > 0 {
        digest.update(&(study.show_images as u64).to_le_bytes());
    }
    Ok(digest.finalize().to_hex().to_string())
}

fn recipe_line(study: &Study, core: Option<&Core>, arm: &Arm) -> String {
    let target = &study.target;
    let optimizer = match target.optimizer {
        OptimizerKind::Sgd => "sgd",
        OptimizerKind::Adam => "adam",
    };
    let front = study.target.core.as_ref().zip(core).map_or_else(String::new, |(spec, core)| {
        let name = spec.path.file_name().unwrap_or_default().to_string_lossy();
        let (digest, width) = (&core.file_digest[..16], core.width());
        format!("frozen core {name} (BLAKE3 {digest}) with {width} outputs, then ")
    });
    let mut line = format!(
        "{front}{}, {optimizer} at {}, batch {}, at most {} epochs, l2 {}",
        network::line(&target.architecture),
        arm.learning_rate,
        arm.batch_size,
        arm.epochs,
        target.l2,
    );
    if let Some(decay) = target.averaging {
        line.push_str(&format!(", weights averaged at {decay}"));
    }
    if let Some(stopping) = target.early_stopping {
        line.push_str(&format!(", patience {}", stopping.patience));
    }
    match arm.defence {
        Defence::NoDp => {}
        Defence::ClipOnly { clipping_norm } => {
            line.push_str(&format!(", clipping norm {clipping_norm}"));
        }
        Defence::Central { clipping_norm, noise_multiplier } => line.push_str(&format!(
            ", clipping norm {clipping_norm}, noise multiplier {noise_multiplier}, Poisson batches"
        )),
        Defence::Local { epsilon_per_feature } => {
            line.push_str(&format!(", features randomized at {epsilon_per_feature} nats each"));
        }
        Defence::Pixelization { cell, neighbouring_pixels, epsilon } => line.push_str(&format!(
            ", images averaged over cells of {cell} x {cell} with noise for {epsilon} nats between images that differ in \
             {neighbouring_pixels} pixels"
        )),
        Defence::EdgeRandomizedResponse { epsilon } => {
            line.push_str(&format!(", pairs of nodes randomized at {epsilon} nats each"));
        }
    }
    line
}
