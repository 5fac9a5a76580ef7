//! What a reader must know before using a number.
use crate::frozen_core::Core;
use crate::report::{self, ArmKind, CandidateLaw, Note, Severity};
use crate::study::{Defence, MembershipRule, Study};
use dosimeter_audit::interval;
use dosimeter_data::Dataset;
use dosimeter_privacy::Sampler;

/// What a reader must know before using a number.
pub(super) fn notes(
    study: &Study,
    dataset: &Dataset,
    core: Option<&Core>,
    arms: &[report::Arm],
) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut note = |severity, setting: Option<&str>, text: String| {
        notes.push(Note { severity, setting: setting.map(str::to_owned), text });
    };
    if study.arms.iter().any(|a| a.defence.is_local()) {
        note(
            Severity::Info,
            None,
            "Local arms: each feature vector is randomized before training and its label is public, so the guarantee is \
             local and for the feature vector. Attacks measure whether a record was trained on at all, an add-remove \
             question; the two are shown side by side and neither contradicts the other. Accuracy and attack features \
             come from the records as they are, not from the randomized ones."
                .to_owned(),
        );
    }
    if let Some(core) = core {
        note(
            Severity::Info,
            None,
            format!(
                "A frozen core turned each record into {} numbers once, and only the head behind it is trained and attacked. \
                 The core counts as public: no guarantee here covers the records that it was itself made from, and if \
                 candidates are among them, that is neither counted nor measured.",
                core.width()
            ),
        );
    }
    if study.show_images > 0 {
        note(
            Severity::Caution,
            None,
            "This page and report.json hold records: images of members as they are. They are as confidential as the data."
                .to_owned(),
        );
    }
    if study.arms.iter().any(|a| matches!(a.defence, Defence::Pixelization { .. })) {
        note(
            Severity::Info,
            None,
            "Pixelization arms have two guarantees for the same noise. The first is for the whole image: any two images. \
             The one per so many pixels holds only between images that differ in no more pixels than that, which two \
             pictures of different people hardly ever do."
                .to_owned(),
        );
    }
    if dataset.graphs().is_some() {
        note(
            Severity::Info,
            None,
            "Records are graphs. Their numbers of nodes are public in every arm: they choose how many nodes the network keeps."
                .to_owned(),
        );
    }
    for arm in &study.arms {
        let Ok(Some(edges)) = arm.defence.edges() else { continue };
        let Ok(expected) = edges.expect(dataset) else { continue };
        let text = format!(
            "Nodes, tags and classes are public, edges are not. The first guarantee is for a whole graph, the largest one with {} \
             pairs of nodes; the one per edge holds only between graphs that differ in one edge. {}",
            expected.most_pairs,
            crate::plan::edges_line(&expected)
        );
        note(Severity::Info, Some(arm.setting.as_str()), text);
    }
    if study.arms.iter().any(|a| a.defence.is_private()) && study.noise.sampler == Sampler::Float {
        note(
            Severity::Caution,
            None,
            "Noise was drawn by a fast replayable generator in floating point: right for an experiment, not for a \
             release. `noise = \"exact\"` uses integer samplers."
                .to_owned(),
        );
    }
    if study.audit.delta.is_none() {
        note(
            Severity::Info,
            None,
            "Delta is 1/n, as in the paper. That is too weak to exclude releasing one whole record, so epsilon at a \
             tenth of it is given too."
                .to_owned(),
        );
    }
    if study.membership == MembershipRule::FixedHalf {
        note(
            Severity::Caution,
            None,
            "Exactly half of the candidates are members, so their coins are not independent and the one-run bound does \
             not hold; measured bounds carry that caveat."
                .to_owned(),
        );
    }
    if study.target.early_stopping.is_some() {
        note(
            Severity::Info,
            None,
            "Training stopped on the loss of validation records taken from the shadow pool; epsilon counts the steps \
             actually taken. The guarantee does not cover the validation records."
                .to_owned(),
        );
    }
    if dataset.test_law.is_some() {
        note(
            Severity::Caution,
            None,
            "Test records follow another law than training records. Figures marked `test law` take their non-members from \
             it, as the paper does: an attack can then succeed without looking at the model, as the blind baseline shows. \
             Audits, limits and verdicts use non-members of the train law."
                .to_owned(),
        );
    }
    if study.arms.iter().filter(|a| a.defence.is_private()).count() > 1 {
        note(
            Severity::Info,
            None,
            "Each epsilon is for one training. Choosing among arms by looking at their results on the same records spends \
             more privacy than any one of them."
                .to_owned(),
        );
    }
    for arm in arms {
        let setting = Some(arm.setting.as_str());
        for repeat in &arm.repeats {
            for problem in repeat.mimicry.iter().flat_map(|m| &m.problems) {
                note(
                    Severity::Caution,
                    setting,
                    format!(
                        "Shadow models do not mimic the target of repeat {}: {problem}.",
                        repeat.repeat
                    ),
                );
            }
            for attack in &repeat.attacks {
                if attack.candidate_law == CandidateLaw::SameLaw
                    && attack.null_check.as_ref().is_some_and(|n| !n.passed)
                {
                    note(
                        Severity::Invalid,
                        setting,
                        format!(
                            "The null self-check of {} in repeat {} failed: its epsilon_lower must not be used.",
                            attack.attack, repeat.repeat
                        ),
                    );
                }
            }
        }
    }
    if let Some(text) = poor_yardstick(arms, study.split.test as u64, study.audit.confidence) {
        note(Severity::Caution, None, text);
    }
    // The blind baseline is about records, the same for all arms.
    for blind in arms.first().into_iter().flat_map(|a| &a.repeats).flat_map(|r| &r.blind) {
        if blind.separable && blind.candidate_law == CandidateLaw::SameLaw {
            note(
                Severity::Caution,
                None,
                format!(
                    "Members can be told from non-members without the model (blind AUC {:.3}): part of what attacks show \
                     may not come from the model.",
                    blind.auc.value
                ),
            );
        }
    }
    notes
}

/// Noise takes accuracy away. Where a private setting is more accurate than the one without DP, interval above interval, the latter
/// was not trained well, and what is measured against it says little. The intervals are those over the repeats, which of two
/// are too wide to show anything, or in every repeat those of its `tested` records.
fn poor_yardstick(arms: &[report::Arm], tested: u64, confidence: f64) -> Option<String> {
    let original = arms.iter().find(|a| a.kind == ArmKind::NoDp)?;
    let ends = |arm: &report::Arm| arm.test_accuracy.interval.as_ref().map(|i| (i.low, i.high));
    let over_repeats = |arm| match (ends(arm), ends(original)) {
        (Some((least, _)), Some((_, most))) => least > most,
        _ => false,
    };
    let of_records = |accuracy: f64| {
        #[expect(clippy::cast_precision_loss, reason = "records fit")]
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share")]
        let right = (accuracy * tested as f64).round() as u64;
        interval::clopper_pearson(right.min(tested), tested, confidence).ok()
    };
    let in_every_repeat = |arm: &report::Arm| {
        let mut pairs = arm.repeats.iter().zip(&original.repeats);
        !arm.repeats.is_empty()
            && pairs.all(|(private, original)| {
                match (of_records(private.test_accuracy), of_records(original.test_accuracy)) {
                    (Some(private), Some(original)) => private.low > original.high,
                    _ => false,
                }
            })
    };
    let better: Vec<&str> = arms
        .iter()
        .filter(|a| matches!(a.kind, ArmKind::Central | ArmKind::Local))
        .filter(|a| over_repeats(a) || in_every_repeat(a))
        .map(|a| a.setting.as_str())
        .collect();
    (!better.is_empty()).then(|| {
        format!(
            "The setting without DP is less accurate on test records than {}, beyond the intervals of both (over the repeats, or of the test records of each): it was not trained well \
             (its learning rate, epochs or batch size do not fit), so that phi and drops of accuracy say little.",
            better.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Arm, Estimate, Interval, Repeat};

    fn repeat(test_accuracy: f64) -> Repeat {
        Repeat {
            repeat: 0,
            seed: String::new(),
            members: 100,
            steps: 10,
            epsilon_upper: Vec::new(),
            train_accuracy: 0.5,
            test_accuracy,
            attacks: Vec::new(),
            blind: Vec::new(),
            mimicry: None,
            confidence: Vec::new(),
        }
    }
    fn arm(setting: &str, kind: ArmKind, [low, high]: [f64; 2]) -> Arm {
        let interval = Interval { low, high, confidence: 0.95, method: String::new() };
        let accuracy = Estimate { value: f64::midpoint(low, high), interval: Some(interval) };
        Arm {
            setting: setting.to_owned(),
            kind,
            noise_multiplier: None,
            clipping_norm: None,
            epsilon_per_feature: None,
            epsilon_upper: Vec::new(),
            epsilon_claimed: None,
            train_accuracy: accuracy.clone(),
            test_accuracy: accuracy,
            attacks: Vec::new(),
            repeats: Vec::new(),
        }
    }

    #[test]
    fn a_setting_without_dp_below_a_private_one_gets_a_caution() {
        let original = || arm("no DP", ArmKind::NoDp, [0.5, 0.6]);
        let private = |low| arm("central z=1", ArmKind::Central, [low, low + 0.1]);
        let clipped = arm("clipping only", ArmKind::ClipOnly, [0.7, 0.8]);
        let of = |arms: &[Arm]| poor_yardstick(arms, 300, 0.95);
        assert_eq!(of(&[original(), clipped, private(0.59)]), None);
        let said = of(&[original(), private(0.61)]).unwrap();
        assert!(said.contains("less accurate on test records than central z=1,"), "{said}");
        assert_eq!(of(&[private(0.61)]), None, "nothing to compare with");
        // Of two repeats the intervals overlap, and those of 300 test records do not: 0.14 reaches to 0.18, 0.32 down to 0.27.
        let two = |setting, kind, accuracies: [f64; 2]| Arm {
            repeats: accuracies.map(repeat).into(),
            ..arm(setting, kind, [0.0, 1.0])
        };
        let original = || two("no DP", ArmKind::NoDp, [0.14, 0.127]);
        let private = |accuracies| two("central z=1", ArmKind::Central, accuracies);
        assert!(of(&[original(), private([0.32, 0.353])]).is_some());
        assert_eq!(
            of(&[original(), private([0.32, 0.15])]),
            None,
            "one repeat tells nothing apart"
        );
    }
}
