//! Local differential privacy: each record's features are randomized before anything else sees them.
mod edges;
mod pixelization;

pub use edges::{EdgeRandomizedResponse, ExpectedEdges};
pub use pixelization::{NoisyMean, Pixelization};

use crate::Error;
use dosimeter_data::{Column, ColumnKind, Dataset, Inputs};
use dosimeter_privacy::mechanisms::{BinaryRandomizedResponse, Laplace, RandomizedResponse};
use dosimeter_privacy::{BoundedL1, Epsilon, Event, LaplaceScale, Ledger, NoiseRng, Unit};

/// Randomizes every record's features on its own: bits by binary randomized response, categories by k-ary
/// randomized response on their one-hot group, numbers in `[0, 1]` by Laplace noise, cut off at 0 and 1 afterwards. Of an image
/// each number (pixel and channel) is a feature.
///
/// # Guarantee
/// The ledger is that of **one** record (every record's is the same): its feature vector is the unit, the relation
/// is Local, and its epsilon is the sum over its features, `features * epsilon_per_feature`: one per column, of an image one per
/// number. Labels are **not** randomized: they count as public.
///
/// # Errors
/// [`Error::NoRecords`] for an empty data set; [`Error::Column`] for a column that does not fit its inputs or a
/// one-hot group without exactly one level; [`Error::Privacy`] if noise of that size cannot be drawn (an epsilon of 0
/// on numbers).
///
/// # Source
/// Warner, *Randomized Response*, JASA 1965; Duchi, Jordan and Wainwright, *Local Privacy and Statistical Minimax
/// Rates*, FOCS 2013 (arXiv:1302.3203).
pub fn randomize(
    dataset: &Dataset,
    epsilon_per_feature: Epsilon,
    rng: &mut NoiseRng,
) -> Result<(Dataset, Ledger), Error> {
    let plan = Plan::new(dataset, epsilon_per_feature)?;
    let mut randomized = dataset.clone();
    randomized.name = format!("{}, randomized locally", dataset.name);
    if let Inputs::Bytes { width, .. } = dataset.inputs {
        // Noise falls between the bytes.
        let mut values = Vec::with_capacity(dataset.len() * width);
        (0..dataset.len()).for_each(|row| dataset.inputs.append_row(row, &mut values));
        randomized.inputs = Inputs::Reals { width, values };
    }
    let mut first = None;
    for record in 0..dataset.len() {
        let mut ledger = Ledger::new(Unit::FeatureVector);
        match &mut randomized.inputs {
            Inputs::Bits(bits) => {
                let words = bits.words_per_row();
                let row = &mut bits.words[record * words..(record + 1) * words];
                plan.randomize_record(&mut BitRow(row), &mut ledger, rng)?;
            }
            Inputs::Reals { width, values } => {
                let row = &mut values[record * *width..(record + 1) * *width];
                plan.randomize_record(&mut NumberRow(row), &mut ledger, rng)?;
            }
            _ => return Err(Error::Column { column: String::new(), what: "unknown inputs" }),
        }
        first.get_or_insert(ledger);
    }
    first.map(|ledger| (randomized, ledger)).ok_or(Error::NoRecords)
}

/// Encoded inputs of one record.
trait Row {
    fn get(&self, input: usize) -> f32;
    fn set(&mut self, input: usize, value: f32);
}
struct BitRow<'a>(&'a mut [u64]);
impl Row for BitRow<'_> {
    fn get(&self, input: usize) -> f32 {
        f32::from(u8::from((self.0[input / 64] >> (input % 64)) & 1 == 1))
    }
    fn set(&mut self, input: usize, value: f32) {
        let bit = 1 << (input % 64);
        if value > 0.5 {
            self.0[input / 64] |= bit;
        } else {
            self.0[input / 64] &= !bit;
        }
    }
}
struct NumberRow<'a>(&'a mut [f32]);
impl Row for NumberRow<'_> {
    fn get(&self, input: usize) -> f32 {
        self.0[input]
    }
    fn set(&mut self, input: usize, value: f32) {
        self.0[input] = value;
    }
}

/// What is done to every record.
struct Plan<'a> {
    epsilon: Epsilon,
    /// Inputs of the bit columns.
    bits: Vec<usize>,
    /// One-hot groups, with first input and number of levels.
    categories: Vec<(&'a Column, usize, u32)>,
    /// Inputs of the number columns.
    numbers: Vec<usize>,
    laplace: Option<Laplace>,
}

/// What to do instead of randomizing the features of graphs.
const BY_EDGES: &str = "graphs are randomized by their edges: `edge_randomized_response`";
/// Numbers lie in `[0, 1]`; moved by this they are bounded by it.
const HALF_RANGE: f64 = 0.5;

impl<'a> Plan<'a> {
    fn new(dataset: &'a Dataset, epsilon: Epsilon) -> Result<Self, Error> {
        let width = dataset.width();
        let mut plan =
            Self { epsilon, bits: vec![], categories: vec![], numbers: vec![], laplace: None };
        for column in &dataset.columns {
            let wrong = |what| Err(Error::Column { column: column.name.clone(), what });
            let first = column.first_input;
            if first + column.kind.inputs() > width {
                return wrong("it has inputs beyond the data set's width");
            }
            match &column.kind {
                ColumnKind::Bit => plan.bits.push(first),
                // A column with one level tells nothing.
                ColumnKind::Category(levels) if levels.len() < 2 => {}
                ColumnKind::Category(levels) => {
                    plan.categories.push((column, first, levels.len() as u32));
                }
                ColumnKind::Real { .. } | ColumnKind::Image { .. }
                    if matches!(dataset.inputs, Inputs::Bits(_)) =>
                {
                    return wrong("a number cannot be held by bits");
                }
                ColumnKind::Real { .. } => plan.numbers.push(first),
                ColumnKind::Image { .. } => {
                    plan.numbers.extend(first..first + column.kind.inputs());
                }
                ColumnKind::Graph { .. } => {
                    return wrong(BY_EDGES);
                }
                _ => return wrong("it has no local randomizer"),
            }
        }
        if !plan.numbers.is_empty() && !epsilon.is_unbounded() {
            // Two records differ by up to the whole range, twice the bound: scale 2 / epsilon of the bound.
            let scale =
                LaplaceScale::new(2.0 / epsilon.get()).map_err(dosimeter_privacy::Error::from)?;
            plan.laplace = Some(Laplace { scale });
        }
        Ok(plan)
    }

    fn randomize_record(
        &self,
        row: &mut impl Row,
        ledger: &mut Ledger,
        rng: &mut NoiseRng,
    ) -> Result<(), Error> {
        let epsilon = self.epsilon;
        if !self.bits.is_empty() {
            let mut words = vec![0; self.bits.len().div_ceil(64)];
            for (i, input) in self.bits.iter().enumerate() {
                words[i / 64] |= u64::from(row.get(*input) > 0.5) << (i % 64);
            }
            let mechanism = BinaryRandomizedResponse { epsilon, bits: self.bits.len() };
            let words = ledger.release(&mechanism, words, rng)?.into_inner();
            for (i, input) in self.bits.iter().enumerate() {
                row.set(*input, ((words[i / 64] >> (i % 64)) & 1) as f32);
            }
        }
        for (column, first, levels) in &self.categories {
            let inputs = *first..*first + *levels as usize;
            let mut on = inputs.clone().filter(|i| row.get(*i) > 0.5);
            let (Some(level), None) = (on.next(), on.next()) else {
                let (column, what) = (column.name.clone(), "a record has not exactly one level");
                return Err(Error::Column { column, what });
            };
            drop(on);
            let mechanism = RandomizedResponse { epsilon, categories: *levels };
            let answer = (level - *first) as u32;
            let answer = *ledger.release(&mechanism, answer, rng)?.get() as usize;
            for i in inputs {
                row.set(i, f32::from(u8::from(i == *first + answer)));
            }
        }
        for input in &self.numbers {
            let Some(mechanism) = self.laplace else {
                ledger.record(Event::NonPrivate, 1);
                continue;
            };
            let centred = vec![row.get(*input) - HALF_RANGE as f32];
            let bounded = BoundedL1::clip(centred, HALF_RANGE)?;
            let noisy = ledger.release(&mechanism, bounded, rng)?.into_inner();
            row.set(*input, (noisy[0] + HALF_RANGE as f32).clamp(0.0, 1.0));
        }
        Ok(())
    }
}
