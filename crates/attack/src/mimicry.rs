//! Do the shadow models mimic the target? An attack trained on shadows that do not says nothing about the target.
use crate::Shadow;
use serde::Serialize;

/// How a model was made and how well it does.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ModelFacts {
    /// Training-set size that sampling rate and noise were chosen for; public.
    pub nominal_size: usize,
    /// Records actually trained on.
    pub train_size: usize,
    /// Digest of everything that fixes the training but seed and records: architecture, optimizer, privacy settings, local randomizer.
    pub recipe_digest: String,
    /// Accuracy on its own training records, in `[0, 1]`.
    pub train_accuracy: f64,
    /// Accuracy on records it was not trained on, in `[0, 1]`.
    pub test_accuracy: f64,
}

/// What may differ before it is called a problem.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tolerance {
    /// Largest difference between the target's accuracy and the shadows' mean beyond what the spread of the shadows explains.
    pub accuracy: f64,
    /// Standard deviations, both of the shadows' accuracy and of a fair-coin training-set size.
    pub deviations: f64,
}
impl Default for Tolerance {
    /// 0.03 and 3: shadow models two to three points off have spoilt published attacks.
    fn default() -> Self {
        Self { accuracy: 0.03, deviations: 3.0 }
    }
}

/// One difference between shadows and target.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "problem", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Problem {
    /// Made by another recipe: refused.
    Recipe {
        /// Position among the shadows.
        shadow: usize,
        /// Digest of the target's recipe.
        target: String,
        /// Digest of the shadow's recipe.
        have: String,
    },
    /// Made for another nominal size: refused.
    NominalSize {
        /// Position among the shadows.
        shadow: usize,
        /// Of the target.
        target: usize,
        /// Of the shadow.
        have: usize,
    },
    /// Trained on clearly more or fewer records than coins explain: refused.
    TrainSize {
        /// Position among the shadows.
        shadow: usize,
        /// Of the target.
        target: usize,
        /// Of the shadow.
        have: usize,
    },
    /// Does clearly better or worse than the target on its own training records: flagged.
    TrainAccuracy {
        /// Of the target.
        target: f64,
        /// Mean over the shadows.
        mean: f64,
        /// Difference that would still have passed.
        allowed: f64,
    },
    /// Does clearly better or worse than the target on records not trained on: flagged.
    TestAccuracy {
        /// Of the target.
        target: f64,
        /// Mean over the shadows.
        mean: f64,
        /// Difference that would still have passed.
        allowed: f64,
    },
}
impl Problem {
    /// Whether an attack with these shadows must not be run at all.
    #[must_use]
    pub const fn refuses(&self) -> bool {
        matches!(self, Self::Recipe { .. } | Self::NominalSize { .. } | Self::TrainSize { .. })
    }
}
impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Recipe { shadow, target, have } => {
                write!(f, "shadow {shadow} was made by recipe {have}, the target by {target}")
            }
            Self::NominalSize { shadow, target, have } => {
                write!(
                    f,
                    "shadow {shadow} was made for {have} training records, the target for {target}"
                )
            }
            Self::TrainSize { shadow, target, have } => {
                write!(f, "shadow {shadow} was trained on {have} records, the target on {target}")
            }
            Self::TrainAccuracy { target, mean, allowed } => write!(
                f,
                "training accuracy of the target is {target:.3}, of the shadows {mean:.3} on average; {allowed:.3} apart would pass"
            ),
            Self::TestAccuracy { target, mean, allowed } => write!(
                f,
                "test accuracy of the target is {target:.3}, of the shadows {mean:.3} on average; {allowed:.3} apart would pass"
            ),
        }
    }
}

/// What the check found.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Mimicry {
    /// Every difference, shadows in order.
    pub problems: Vec<Problem>,
}
impl Mimicry {
    /// Whether the shadows must not be used.
    #[must_use]
    pub fn refused(&self) -> bool {
        self.problems.iter().any(Problem::refuses)
    }
}

/// Compares the shadows with the target under the default [`Tolerance`].
#[must_use]
pub fn check(target: &ModelFacts, shadows: &[Shadow]) -> Mimicry {
    check_with(target, shadows, Tolerance::default())
}

/// Compares the shadows with the target.
///
/// Training-set sizes drawn by fair coins differ by chance: with nominal size `n` the size is Binomial(2n, 1/2), and the
/// difference of two has variance `n`; a difference beyond `deviations` such standard deviations (never below one
/// record) is a problem. A mean accuracy is a problem when it is further from the target's than `accuracy` plus
/// `deviations` standard errors of prediction `s * sqrt(1 + 1/S)`, `s` the sample deviation over the `S` shadows.
#[must_use]
pub fn check_with(target: &ModelFacts, shadows: &[Shadow], tolerance: Tolerance) -> Mimicry {
    let mut problems = Vec::new();
    for (number, shadow) in shadows.iter().enumerate() {
        let facts = &shadow.facts;
        if facts.recipe_digest != target.recipe_digest {
            problems.push(Problem::Recipe {
                shadow: number,
                target: target.recipe_digest.clone(),
                have: facts.recipe_digest.clone(),
            });
        }
        if facts.nominal_size != target.nominal_size {
            problems.push(Problem::NominalSize {
                shadow: number,
                target: target.nominal_size,
                have: facts.nominal_size,
            });
        }
        let allowed = (tolerance.deviations * (target.nominal_size as f64).sqrt()).max(1.0);
        if facts.train_size.abs_diff(target.train_size) as f64 > allowed {
            problems.push(Problem::TrainSize {
                shadow: number,
                target: target.train_size,
                have: facts.train_size,
            });
        }
    }
    let off = |accuracy: fn(&ModelFacts) -> f64| {
        let count = shadows.len() as f64;
        let values = || shadows.iter().map(|s| accuracy(&s.facts));
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|a| (a - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        let allowed = tolerance
            .deviations
            .mul_add((variance * (1.0 + count.recip())).sqrt(), tolerance.accuracy);
        let target = accuracy(target);
        // Written so that an accuracy of NaN is a problem too.
        let near = (target - mean).abs() <= allowed;
        (!shadows.is_empty() && !near).then_some((target, mean, allowed))
    };
    problems.extend(
        off(|f| f.train_accuracy).map(|(target, mean, allowed)| Problem::TrainAccuracy {
            target,
            mean,
            allowed,
        }),
    );
    problems.extend(
        off(|f| f.test_accuracy).map(|(target, mean, allowed)| Problem::TestAccuracy {
            target,
            mean,
            allowed,
        }),
    );
    Mimicry { problems }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelSignals;

    fn facts(
        train_size: usize,
        recipe: &str,
        train_accuracy: f64,
        test_accuracy: f64,
    ) -> ModelFacts {
        ModelFacts {
            nominal_size: 100,
            train_size,
            recipe_digest: recipe.into(),
            train_accuracy,
            test_accuracy,
        }
    }
    fn shadow(facts: ModelFacts) -> Shadow {
        let signals = ModelSignals {
            records: vec![],
            labels: vec![],
            classes: 2,
            logits: vec![],
            last_layer_inputs: None,
        };
        Shadow { signals, member: vec![], facts }
    }

    #[test]
    fn shadows_made_like_the_target_pass() {
        let shadows = [shadow(facts(96, "a", 0.98, 0.60)), shadow(facts(130, "a", 1.0, 0.62))];
        assert_eq!(check(&facts(100, "a", 0.99, 0.61), &shadows), Mimicry::default());
        assert_eq!(
            check(&facts(100, "a", 0.99, 0.61), &[]),
            Mimicry::default(),
            "no shadows, no claim"
        );
    }

    /// By hand: nominal size 100, so sizes may differ by 3 * sqrt(100) = 30.
    #[test]
    fn a_size_that_coins_do_not_explain_is_refused() {
        let target = facts(100, "a", 0.9, 0.6);
        assert!(check(&target, &[shadow(facts(130, "a", 0.9, 0.6))]).problems.is_empty());
        let found = check(&target, &[shadow(facts(131, "a", 0.9, 0.6))]);
        assert_eq!(found.problems, [Problem::TrainSize { shadow: 0, target: 100, have: 131 }]);
        assert!(found.refused());
        let half = ModelFacts { nominal_size: 50, ..facts(100, "a", 0.9, 0.6) };
        assert!(check(&target, &[shadow(half)]).refused());
    }

    #[test]
    fn another_recipe_is_refused_by_number() {
        let shadows = [shadow(facts(100, "a", 0.9, 0.6)), shadow(facts(100, "b", 0.9, 0.6))];
        let found = check(&facts(100, "a", 0.9, 0.6), &shadows);
        assert_eq!(
            found.problems,
            [Problem::Recipe { shadow: 1, target: "a".into(), have: "b".into() }]
        );
        assert!(found.refused());
    }

    /// By hand: shadows at 0.50 and 0.54 have mean 0.52 and variance 0.0008, so 3 * sqrt(0.0008 * 1.5) + 0.03 = 0.13392
    /// would pass; with equal shadows only 0.03 would.
    #[test]
    fn an_accuracy_gap_is_flagged_beyond_the_spread_of_the_shadows() {
        let spread = [shadow(facts(100, "a", 0.9, 0.50)), shadow(facts(100, "a", 0.9, 0.54))];
        assert!(check(&facts(100, "a", 0.9, 0.52 + 0.1339), &spread).problems.is_empty());
        let found = check(&facts(100, "a", 0.9, 0.52 + 0.1340), &spread);
        assert!(matches!(found.problems[..], [Problem::TestAccuracy { .. }]), "{found:?}");
        assert!(!found.refused(), "flagged, not refused");
        let equal = [shadow(facts(100, "a", 0.9, 0.5)), shadow(facts(100, "a", 0.9, 0.5))];
        assert!(matches!(
            check(&facts(100, "a", 0.86, 0.5), &equal).problems[..],
            [Problem::TrainAccuracy { .. }]
        ));
        let unknown = facts(100, "a", f64::NAN, 0.5);
        assert!(!check(&unknown, &equal).problems.is_empty(), "NaN does not pass");
    }
}
