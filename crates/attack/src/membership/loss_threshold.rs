//! The loss threshold attack.
use crate::{Access, Attack, Error, Needs, Outcome, Scores, View};

/// Small loss, probably a member: the score is minus the cross-entropy, computed from the logits.
///
/// Every threshold at once, so no threshold has to be chosen: the ROC belongs to the audit. Any monotone form of the
/// loss (probability, log-odds of the true class) has the same ROC.
///
/// # Source
/// Yeom et al., *Privacy Risk in Machine Learning*, CSF 2018 (arXiv:1709.01604), adversary 2 without its fixed threshold.
#[derive(Debug, Clone, Copy, Default)]
pub struct LossThreshold;

impl Attack for LossThreshold {
    fn name(&self) -> &'static str {
        "loss_threshold"
    }
    fn title(&self) -> &'static str {
        "loss threshold: a small loss means a member"
    }
    fn source(&self) -> &'static str {
        "Yeom et al., Privacy Risk in Machine Learning, CSF 2018"
    }
    fn needs(&self) -> Needs {
        Needs { shadows: 0, access: Access::BlackBox, known_membership: false }
    }
    fn run(&self, view: &View<'_>) -> Result<Outcome, Error> {
        Ok(per_row(view, |row| -view.target().loss(row)))
    }
}

/// Judges every candidate by a function of its row.
pub(super) fn per_row(view: &View<'_>, score: impl Fn(usize) -> f64) -> Outcome {
    let judged =
        view.target().records.iter().enumerate().map(|(row, &r)| (r, score(row))).collect();
    Outcome { scores: Scores { judged, not_assessable: Vec::new() }, notes: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelSignals;
    use dosimeter_data::{RecordId, Seed};

    /// By hand: logits (ln 3, 0) give p = 3/4, loss ln(4/3); logits (0, 0) give ln 2; the wrong class of the first, ln 4.
    #[test]
    fn the_score_is_minus_the_cross_entropy_of_the_true_class() {
        let z = 3f32.ln();
        let target = ModelSignals {
            records: vec![RecordId(5), RecordId(3), RecordId(4)],
            labels: vec![0, 1, 1],
            classes: 2,
            logits: vec![z, 0.0, 0.0, 0.0, z, 0.0],
            last_layer_inputs: None,
        };
        let scores = LossThreshold.score(&View::new(&target, Seed::root(0)).unwrap()).unwrap();
        let expected = [(5, -0.287_682_072), (3, -std::f64::consts::LN_2), (4, -1.386_294_361)];
        assert_eq!(scores.judged.len(), 3);
        for ((record, score), (id, value)) in scores.judged.iter().zip(expected) {
            assert_eq!(record.0, id, "candidate order is kept");
            assert!((score - value).abs() < 1e-6, "{score} {value}");
        }
    }
}
