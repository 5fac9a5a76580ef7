//! What models answer, and what an attacker sees of it.
use crate::{Error, ModelFacts};
use dosimeter_data::{RecordId, Seed};
use std::collections::BTreeMap;

/// The answers of one model to a list of records.
///
/// A model trained on locally randomized records is queried on the **original** records of the same ids, target and
/// shadows alike (the attacker asks about a real person, not about noise).
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSignals {
    /// The records asked about, each once.
    pub records: Vec<RecordId>,
    /// Their true classes.
    pub labels: Vec<u32>,
    /// Number of classes, at least 2.
    pub classes: usize,
    /// Row-major `[records, classes]`: the answers before the softmax. Finite.
    pub logits: Vec<f32>,
    /// Width `h` and row-major `[records, h]` inputs of the last layer, without the constant of the bias; with white-box access only.
    pub last_layer_inputs: Option<(usize, Vec<f32>)>,
}
impl ModelSignals {
    /// Number of records.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.records.len()
    }
    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
    /// Logits of row `row`.
    #[must_use]
    pub fn logits_of(&self, row: usize) -> &[f32] {
        &self.logits[row * self.classes..(row + 1) * self.classes]
    }
    /// `z_y - ln(sum over j != y of exp(z_j))` of row `row`: the log-odds `ln(p_y / (1 - p_y))` of the true class.
    ///
    /// From the logits and in f64, so it keeps telling apart what a probability rounds to 1: 119.31 for logits
    /// `(120, 0, 0)` and 799.31 for `(800, 0, 0)`.
    ///
    /// # Source
    /// Carlini et al., *Membership Inference Attacks From First Principles*, S&P 2022, section IV-C ("stable" form).
    #[must_use]
    pub fn log_odds(&self, row: usize) -> f64 {
        let label = self.labels[row] as usize;
        log_odds(self.logits_of(row), label)
    }
    /// Cross-entropy `-ln p_y` of row `row` in nats, at least 0; accurate for probabilities near 0 and near 1.
    #[must_use]
    pub fn loss(&self, row: usize) -> f64 {
        softplus(-self.log_odds(row))
    }
    /// Softmax of row `row`, written to `out` (`classes` numbers).
    pub fn probabilities_into(&self, row: usize, out: &mut [f32]) {
        out.copy_from_slice(self.logits_of(row));
        dosimeter_model::kernels::softmax_rows(out, self.classes, |_, _, _| ());
    }
    /// Checks shapes, label range, finiteness and uniqueness of records.
    ///
    /// # Errors
    /// Naming the first list or record that is wrong.
    pub fn check(&self) -> Result<(), Error> {
        let n = self.records.len();
        let lengths = [
            ("the list of labels", n, self.labels.len()),
            ("the matrix of logits", n * self.classes, self.logits.len()),
            (
                "the matrix of last-layer inputs",
                self.last_layer_inputs.as_ref().map_or(0, |(width, _)| n * width),
                self.last_layer_inputs.as_ref().map_or(0, |(_, values)| values.len()),
            ),
        ];
        for (what, needed, have) in lengths {
            if needed != have {
                return Err(Error::WrongLength { what, needed, have });
            }
        }
        if self.classes < 2 {
            return Err(Error::WrongLength {
                what: "the list of classes",
                needed: 2,
                have: self.classes,
            });
        }
        for (&record, &label) in self.records.iter().zip(&self.labels) {
            if label as usize >= self.classes {
                return Err(Error::LabelOutOfRange { record, label, classes: self.classes });
            }
        }
        finite(&self.records, self.classes, &self.logits, "a logit")?;
        if let Some((width, values)) = &self.last_layer_inputs {
            finite(&self.records, *width, values, "an input of the last layer")?;
        }
        let mut sorted = self.records.clone();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Error::DuplicateRecord { record: pair[0] }),
            None => Ok(()),
        }
    }
}

/// `ln(p_y / (1 - p_y))` from logits; see [`ModelSignals::log_odds`].
pub(crate) fn log_odds(logits: &[f32], label: usize) -> f64 {
    let others =
        || logits.iter().enumerate().filter(|(j, _)| *j != label).map(|(_, &z)| f64::from(z));
    let top = others().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = others().map(|z| (z - top).exp()).sum();
    f64::from(logits[label]) - (top + sum.ln())
}

/// `ln(1 + exp(x))` without overflow, relatively accurate for very negative `x`.
pub(crate) fn softplus(x: f64) -> f64 {
    if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() }
}

fn finite(
    records: &[RecordId],
    width: usize,
    values: &[f32],
    what: &'static str,
) -> Result<(), Error> {
    match values.iter().position(|v| !v.is_finite()) {
        Some(at) => Err(Error::NotFinite { record: records[at / width], what }),
        None => Ok(()),
    }
}

/// One shadow model: its answers, who trained it, and how it was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Shadow {
    /// Its answers to its own members and non-members, none of which is a candidate of the target.
    pub signals: ModelSignals,
    /// Whether each record of `signals` was in its training set.
    pub member: Vec<bool>,
    /// What the mimicry check compares with the target.
    pub facts: ModelFacts,
}

/// What the attacker sees: every answer, every shadow's membership, and of the target's membership only what is `known`.
#[derive(Clone)]
pub struct View<'a> {
    target: &'a ModelSignals,
    shadows: &'a [Shadow],
    known: Vec<Option<bool>>,
    seed: Seed,
    stop: Option<&'a (dyn Fn() -> bool + Sync)>,
}
impl<'a> View<'a> {
    /// A view of the target's answers alone.
    ///
    /// # Errors
    /// When the signals are malformed or not finite; the error names the record.
    pub fn new(target: &'a ModelSignals, seed: Seed) -> Result<Self, Error> {
        target.check()?;
        Ok(Self { target, shadows: &[], known: vec![None; target.len()], seed, stop: None })
    }
    /// Adds shadow models.
    ///
    /// # Errors
    /// When a shadow is malformed, has other classes than the target, or was queried on a candidate of the target.
    pub fn with_shadows(mut self, shadows: &'a [Shadow]) -> Result<Self, Error> {
        let mut candidates = self.target.records.clone();
        candidates.sort_unstable();
        for (number, shadow) in shadows.iter().enumerate() {
            let signals = &shadow.signals;
            signals.check()?;
            if signals.classes != self.target.classes {
                return Err(Error::ClassesDiffer {
                    shadow: number,
                    needed: self.target.classes,
                    have: signals.classes,
                });
            }
            if shadow.member.len() != signals.len() {
                return Err(Error::WrongLength {
                    what: "a shadow's membership",
                    needed: signals.len(),
                    have: shadow.member.len(),
                });
            }
            if let Some(&record) =
                signals.records.iter().find(|r| candidates.binary_search(r).is_ok())
            {
                return Err(Error::SharedRecord { shadow: number, record });
            }
        }
        self.shadows = shadows;
        Ok(self)
    }
    /// Adds the part of the target's membership that the attacker is given; these records are not judged by attacks that use it.
    ///
    /// # Errors
    /// When a record was not queried or is given twice.
    pub fn with_known(mut self, known: &[(RecordId, bool)]) -> Result<Self, Error> {
        let row_of: BTreeMap<RecordId, usize> =
            self.target.records.iter().enumerate().map(|(row, &record)| (record, row)).collect();
        self.known.fill(None);
        for &(record, member) in known {
            let row = *row_of.get(&record).ok_or(Error::UnknownRecord { record })?;
            if self.known[row].replace(member).is_some() {
                return Err(Error::DuplicateRecord { record });
            }
        }
        Ok(self)
    }
    /// Asks `stop` between steps of long attacks; once it says yes they return [`Error::Stopped`].
    #[must_use]
    pub fn with_stop(mut self, stop: &'a (dyn Fn() -> bool + Sync)) -> Self {
        self.stop = Some(stop);
        self
    }
    /// The target's answers to the candidates.
    #[must_use]
    pub const fn target(&self) -> &'a ModelSignals {
        self.target
    }
    /// The shadow models.
    #[must_use]
    pub const fn shadows(&self) -> &'a [Shadow] {
        self.shadows
    }
    /// What is known about each row of the target: member, non-member, or nothing.
    #[must_use]
    pub fn known(&self) -> &[Option<bool>] {
        &self.known
    }
    /// The seed of the attack named `attack`.
    #[must_use]
    pub fn seed(&self, attack: &str) -> Seed {
        self.seed.child("attack").child(attack)
    }
    /// # Errors
    /// [`Error::Stopped`] once the caller wants to stop.
    pub(crate) fn go_on(&self) -> Result<(), Error> {
        if self.stop.is_some_and(|stop| stop()) { Err(Error::Stopped) } else { Ok(()) }
    }
}
impl std::fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View")
            .field("candidates", &self.target.len())
            .field("shadows", &self.shadows.len())
            .field("known", &self.known.iter().flatten().count())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(logits: &[f32], label: u32) -> ModelSignals {
        ModelSignals {
            records: vec![RecordId(7)],
            labels: vec![label],
            classes: logits.len(),
            logits: logits.to_vec(),
            last_layer_inputs: None,
        }
    }

    /// By hand: `z_y - ln 2` for two other logits of 0.
    #[test]
    fn log_odds_tell_logits_of_120_from_logits_of_800() {
        for (z, expected) in [(120.0_f32, 119.306_852_819_44), (800.0, 799.306_852_819_44)] {
            assert!((one(&[z, 0.0, 0.0], 0).log_odds(0) - expected).abs() < 1e-9);
        }
        let (near, far) = (one(&[120.0, 0.0, 0.0], 0).loss(0), one(&[130.0, 0.0, 0.0], 0).loss(0));
        assert!(near > far && far > 0.0, "{near} {far}");
    }

    /// By hand: `-ln 1e-30 = 30 ln 10 = 69.0776`; no clipping at 1e-8.
    #[test]
    fn loss_of_a_probability_of_1e_30_is_69_nats() {
        for (p, expected) in
            [(1e-8, 18.420_680_744), (1e-12, 27.631_021_116), (1e-30, 69.077_552_790)]
        {
            let z = f64::ln(p) as f32;
            // The other class holds the rest of the mass: its logit is ln(1 - p), 0 in f32.
            let loss = one(&[z, 0.0], 0).loss(0);
            assert!((loss - expected).abs() < 1e-5, "{p}: {loss}");
        }
    }

    #[test]
    fn a_logit_of_nan_is_refused_with_its_record() {
        let target = one(&[0.0, f32::NAN], 0);
        let error = View::new(&target, Seed::root(0)).unwrap_err();
        assert_eq!(error, Error::NotFinite { record: RecordId(7), what: "a logit" });
        assert_eq!(error.to_string(), "a logit of record 7 is not finite");
    }

    #[test]
    fn malformed_signals_are_refused() {
        let good = one(&[1.0, 0.0], 1);
        assert_eq!(good.check(), Ok(()));
        let label = ModelSignals { labels: vec![2], ..good.clone() };
        assert!(matches!(label.check(), Err(Error::LabelOutOfRange { label: 2, classes: 2, .. })));
        let short = ModelSignals { logits: vec![1.0], ..good.clone() };
        assert!(matches!(short.check(), Err(Error::WrongLength { needed: 2, have: 1, .. })));
        let single =
            ModelSignals { classes: 1, logits: vec![1.0], labels: vec![0], ..good.clone() };
        assert!(matches!(single.check(), Err(Error::WrongLength { .. })));
        let twice = ModelSignals {
            records: vec![RecordId(7); 2],
            labels: vec![0; 2],
            logits: vec![0.0; 4],
            ..good.clone()
        };
        assert_eq!(twice.check(), Err(Error::DuplicateRecord { record: RecordId(7) }));
        let wide = ModelSignals { last_layer_inputs: Some((3, vec![0.0; 2])), ..good };
        assert!(matches!(wide.check(), Err(Error::WrongLength { needed: 3, have: 2, .. })));
    }

    #[test]
    fn a_shadow_that_knows_a_candidate_is_refused() {
        let target = one(&[1.0, 0.0], 1);
        let shadow =
            Shadow { signals: target.clone(), member: vec![true], facts: ModelFacts::default() };
        let error = View::new(&target, Seed::root(0))
            .unwrap()
            .with_shadows(std::slice::from_ref(&shadow))
            .unwrap_err();
        assert_eq!(error, Error::SharedRecord { shadow: 0, record: RecordId(7) });
    }

    #[test]
    fn known_membership_of_a_stranger_is_refused() {
        let target = one(&[1.0, 0.0], 1);
        let view = View::new(&target, Seed::root(0)).unwrap();
        let error = view.with_known(&[(RecordId(8), true)]).unwrap_err();
        assert_eq!(error, Error::UnknownRecord { record: RecordId(8) });
    }
}
