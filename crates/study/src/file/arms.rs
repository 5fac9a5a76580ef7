//! The arms of a study file.
use super::{EPOCHS, most_per_batch};
use crate::report::plain;
use crate::source::Section;
use crate::study::{Arm, Defence, Target};
use dosimeter_data::SplitSpec;

/// Every arm, the one without DP first.
pub(super) fn arms(
    top: &Section<'_>,
    target: Option<&Target>,
    split: Option<SplitSpec>,
) -> Option<Vec<Arm>> {
    let sections = top.tables("arms", "arms");
    let mut found: Vec<(&Section<'_>, Arm)> = Vec::new();
    let mut complete = true;
    for section in &sections {
        match arms_of(section, target, split) {
            Some(arms) => found.extend(arms.into_iter().map(|arm| (section, arm))),
            None => complete = false,
        }
    }
    tell_norms_apart(&mut found);
    for (i, (section, arm)) in found.iter().enumerate() {
        if found[..i].iter().any(|(_, before)| before.setting == arm.setting) {
            section.report("", format!("a second arm called `{}`", arm.setting));
        }
    }
    let mut arms: Vec<Arm> = found.into_iter().map(|(_, arm)| arm).collect();
    if complete && !arms.iter().any(|a| a.defence != Defence::NoDp) {
        top.report("arms", "needs at least one arm with `central`, `local` or `clip_only`".into());
    }
    // The yardstick of every other arm comes first, asked for or not.
    match arms.iter().position(|a| a.defence == Defence::NoDp) {
        Some(at) => arms[..=at].rotate_right(1),
        None => {
            let target = target?;
            arms.insert(
                0,
                Arm {
                    setting: "no DP".to_owned(),
                    defence: Defence::NoDp,
                    epochs: target.epochs,
                    learning_rate: target.learning_rate,
                    batch_size: target.batch_size,
                },
            );
        }
    }
    complete.then_some(arms)
}

/// The arms of one table: one per noise multiplier or epsilon.
fn arms_of(
    section: &Section<'_>,
    target: Option<&Target>,
    split: Option<SplitSpec>,
) -> Option<Vec<Arm>> {
    let epochs = section.size("epochs", 1..=EPOCHS, Some(target.map_or(1, |t| t.epochs)));
    let learning_rate =
        section.real("learning_rate", |x| x > 0.0, Some(target.map_or(1.0, |t| t.learning_rate)));
    let batch_size = section.size(
        "batch_size",
        1..=most_per_batch(split),
        Some(target.map_or(1, |t| t.batch_size)),
    );
    let defences = defences(section);
    let (epochs, learning_rate, batch_size) = (epochs?, learning_rate?, batch_size?);
    let arm = |(setting, defence)| Arm { setting, defence, epochs, learning_rate, batch_size };
    Some(defences?.into_iter().map(arm).collect())
}

fn defences(section: &Section<'_>) -> Option<Vec<(String, Defence)>> {
    // Noise and norm, and their product, are normal numbers in single precision.
    let norm = |x: f64| (1e-18..=1e18).contains(&x);
    let multiplier = |x: f64| (1e-12..=1e12).contains(&x);
    let kinds: Vec<&str> =
        ["no_dp", "clip_only", "central", "local"].into_iter().filter(|k| section.has(k)).collect();
    match kinds.as_slice() {
        ["no_dp"] => {
            section.table("no_dp", "arms.no_dp");
            Some(vec![("no DP".to_owned(), Defence::NoDp)])
        }
        ["clip_only"] => {
            let inner = section.table("clip_only", "arms.clip_only");
            let clipping_norm = inner.real("clipping_norm", norm, None)?;
            Some(vec![("clipping only".to_owned(), Defence::ClipOnly { clipping_norm })])
        }
        ["central"] => {
            let inner = section.table("central", "arms.central");
            let clipping_norm = inner.real("clipping_norm", norm, None);
            let noise = inner.reals("noise_multipliers", multiplier, None);
            let (clipping_norm, noise) = (clipping_norm?, noise?);
            let arm = |noise_multiplier| {
                let setting = format!("central z={}", plain(noise_multiplier));
                (setting, Defence::Central { clipping_norm, noise_multiplier })
            };
            Some(noise.into_iter().map(arm).collect())
        }
        ["local"] => {
            let inner = section.table("local", "arms.local");
            local(&inner)
        }
        others => {
            section.report(
                "",
                format!(
                    "needs exactly one of `no_dp`, `clip_only`, `central`, `local`, got {}",
                    if others.is_empty() { "none".to_owned() } else { others.join(" and ") }
                ),
            );
            None
        }
    }
}

/// The arms of a `local` table.
fn local(section: &Section<'_>) -> Option<Vec<(String, Defence)>> {
    const KINDS: [&str; 3] = ["epsilons_per_feature", "pixelization", "edge_randomized_response"];
    let kinds: Vec<&str> = KINDS.into_iter().filter(|kind| section.has(kind)).collect();
    match kinds.as_slice() {
        ["epsilons_per_feature"] => {
            let epsilons =
                section.reals("epsilons_per_feature", |x| (1e-9..=1000.0).contains(&x), None)?;
            let arm = |epsilon_per_feature| {
                let setting = format!("local eps={}", plain(epsilon_per_feature));
                (setting, Defence::Local { epsilon_per_feature })
            };
            Some(epsilons.into_iter().map(arm).collect())
        }
        ["pixelization"] => {
            let inner = section.table("pixelization", "arms.local.pixelization");
            let cell = inner.size("cell", 1..=65_536, None);
            let neighbouring_pixels = inner.whole("neighbouring_pixels", 1..=1 << 32, None);
            let epsilons = inner.reals("epsilons", |x| (1e-9..=1e6).contains(&x), None)?;
            let (cell, neighbouring_pixels) = (cell?, neighbouring_pixels?);
            let arm = |epsilon| {
                let setting =
                    format!("pixelization b={cell} m={neighbouring_pixels} eps={}", plain(epsilon));
                (setting, Defence::Pixelization { cell, neighbouring_pixels, epsilon })
            };
            Some(epsilons.into_iter().map(arm).collect())
        }
        ["edge_randomized_response"] => {
            let inner =
                section.table("edge_randomized_response", "arms.local.edge_randomized_response");
            let epsilons = inner.reals("epsilons", |x| x > 0.0 && x <= 1000.0, None)?;
            let arm = |epsilon| {
                let setting = format!("edges eps={}", plain(epsilon));
                (setting, Defence::EdgeRandomizedResponse { epsilon })
            };
            Some(epsilons.into_iter().map(arm).collect())
        }
        others => {
            let got = if others.is_empty() { "none".to_owned() } else { others.join(" and ") };
            let what = "needs exactly one of `epsilons_per_feature`, `pixelization`, `edge_randomized_response`";
            section.report("", format!("{what}, got {got}"));
            None
        }
    }
}

/// Arms of one label that differ in their clipping norm are different settings: the label says it too.
fn tell_norms_apart(found: &mut [(&Section<'_>, Arm)]) {
    let norm = |defence| match defence {
        Defence::ClipOnly { clipping_norm } | Defence::Central { clipping_norm, .. } => {
            Some(clipping_norm)
        }
        Defence::NoDp
        | Defence::Local { .. }
        | Defence::Pixelization { .. }
        | Defence::EdgeRandomizedResponse { .. } => None,
    };
    let before: Vec<(String, Option<f64>)> =
        found.iter().map(|(_, arm)| (arm.setting.clone(), norm(arm.defence))).collect();
    for ((_, arm), (setting, own)) in found.iter_mut().zip(&before) {
        let other = before.iter().any(|(s, norm)| s == setting && norm != own);
        if let Some(norm) = own.filter(|_| other) {
            arm.setting.push_str(&format!(" C={}", plain(norm)));
        }
    }
}
