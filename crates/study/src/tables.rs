//! Data sets in and out without a run: generate, inspect, randomize.
use crate::study::refused;
use crate::{Error, file};
use dosimeter_data::datasets::{DatasetSpec, SkewedPurchases};
use dosimeter_data::{ColumnKind, Dataset, Inputs, Seed, datasets};
use dosimeter_privacy::{Accountant, Delta, Epsilon, Ledger, NoiseRng, Relation, Unit};
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// What a data set holds, without a record of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Facts {
    /// Name of the data set.
    pub name: String,
    /// Digest of schema, inputs and labels.
    pub fingerprint: String,
    /// Records.
    pub records: usize,
    /// Columns.
    pub columns: usize,
    /// Network inputs per record.
    pub width: usize,
    /// Classes.
    pub classes: usize,
    /// Records of the rarest and of the most frequent class.
    pub class_sizes: (usize, usize),
    /// Share of inputs that are 1, for bits.
    pub ones: Option<f64>,
    /// Records whose law differs from the others', if the data set has such.
    pub test_law_records: Option<usize>,
}

/// Loads the data of a study file. Only its seed and its `dataset` table are looked at.
///
/// # Errors
/// Every problem of these, or what is wrong with the data.
pub fn load(study_file: &Path) -> Result<Dataset, Error> {
    let text = file::text_of(study_file)?;
    let (spec, seed) = file::dataset_in(study_file, &text)?;
    datasets::load(&spec, Seed::root(seed).child("dataset"))
        .map_err(|error| refused(study_file, &text, error))
}

/// Generates Skewed Purchases.
///
/// # Errors
/// If a setting is out of range.
pub fn generate(
    classes: usize,
    train_records: u32,
    test_records: u32,
    seed: u64,
) -> Result<Dataset, Error> {
    let settings =
        SkewedPurchases { classes, train_records, test_records, ..SkewedPurchases::default() };
    let seed = Seed::root(seed).child("dataset");
    Ok(datasets::load(&DatasetSpec::SkewedPurchases(settings), seed)?)
}

/// What a data set holds.
#[must_use]
pub fn facts(dataset: &Dataset) -> Facts {
    let mut sizes = vec![0_usize; dataset.classes];
    for label in &dataset.labels {
        sizes[*label as usize] += 1;
    }
    #[expect(clippy::cast_precision_loss, reason = "a share of records")]
    let ones = match &dataset.inputs {
        Inputs::Bits(bits) => {
            let set: u64 = bits.words.iter().map(|w| u64::from(w.count_ones())).sum();
            Some(set as f64 / (bits.rows * bits.width).max(1) as f64)
        }
        _ => None,
    };
    Facts {
        name: dataset.name.clone(),
        fingerprint: dataset.fingerprint(),
        records: dataset.len(),
        columns: dataset.columns.len(),
        width: dataset.width(),
        classes: dataset.classes,
        class_sizes: (
            sizes.iter().copied().min().unwrap_or(0),
            sizes.iter().copied().max().unwrap_or(0),
        ),
        ones,
        test_law_records: dataset.test_law.as_ref().map(|law| law.len()),
    }
}

/// What randomizing a data set spends.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spent {
    /// Loss of one feature, nats.
    pub epsilon_per_feature: Epsilon,
    /// Loss of one record's feature vector: the sum over its features.
    pub epsilon_upper: Epsilon,
    /// Failure probability: none.
    pub delta: Delta,
    /// Any two feature vectors.
    pub relation: Relation,
    /// The label is public.
    pub unit: Unit,
    /// Who computed it.
    pub accountant: &'static str,
    /// Noise from the operating system, or from a seed.
    pub replayable: bool,
}

/// Randomizes every record. Without a seed the noise comes from the operating system.
///
/// # Errors
/// If the epsilon is out of range or a column cannot be randomized.
pub fn randomize(
    dataset: &Dataset,
    epsilon_per_feature: Epsilon,
    seed: Option<u64>,
) -> Result<(Dataset, Spent), Error> {
    let mut rng = match seed {
        Some(seed) => NoiseRng::replayable(Seed::root(seed).child("randomize").bytes()),
        None => NoiseRng::secure()?,
    };
    let (randomized, ledger) =
        dosimeter_train::local::randomize(dataset, epsilon_per_feature, &mut rng)
            .map_err(|source| Error::Train { task: "randomizing".to_owned(), source })?;
    let spent = spent(&ledger, epsilon_per_feature, seed.is_some())?;
    Ok((randomized, spent))
}

fn spent(ledger: &Ledger, epsilon_per_feature: Epsilon, replayable: bool) -> Result<Spent, Error> {
    let delta = Delta::new(0.0)?;
    let basic: &dyn Accountant = crate::account::accountant("basic").ok_or(Error::ArtifactShape)?;
    Ok(Spent {
        epsilon_per_feature,
        epsilon_upper: basic.epsilon_upper(ledger, Relation::Local, delta)?,
        delta,
        relation: Relation::Local,
        unit: ledger.unit(),
        accountant: basic.name(),
        replayable,
    })
}

/// Writes a data set as CSV: the label under its name `label`, then one column per column; numbers back on their public scale,
/// classes and categories as their file called them.
///
/// # Errors
/// What the writer says.
pub fn write_csv(dataset: &Dataset, label: &str, out: &mut dyn Write) -> std::io::Result<()> {
    let quoted = |name: &str| {
        if name.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", name.replace('"', "\"\""))
        } else {
            name.to_owned()
        }
    };
    let mut line = quoted(label);
    for column in &dataset.columns {
        line.push(',');
        line.push_str(&quoted(&column.name));
    }
    writeln!(out, "{line}")?;
    let input = |record: usize, at: usize| match &dataset.inputs {
        Inputs::Bits(bits) => f32::from((bits.row(record)[at / 64] >> (at % 64) & 1) as u8),
        Inputs::Reals { width, values } => values[record * width + at],
        _ => 0.0,
    };
    for (record, label) in dataset.labels.iter().enumerate() {
        line.clear();
        line.push_str(&quoted(&dataset.class_names[*label as usize]));
        for column in &dataset.columns {
            line.push(',');
            let first = column.first_input;
            match &column.kind {
                ColumnKind::Bit => line.push(if input(record, first) > 0.5 { '1' } else { '0' }),
                ColumnKind::Category(levels) => {
                    let set = (0..levels.len()).find(|l| input(record, first + l) > 0.5);
                    if let Some(level) = set.and_then(|l| levels.get(l)) {
                        line.push_str(&quoted(level));
                    }
                }
                ColumnKind::Real { low, high } => {
                    let value = f64::from(input(record, first)).mul_add(high - low, *low);
                    line.push_str(&value.to_string());
                }
                _ => {}
            }
        }
        writeln!(out, "{line}")?;
    }
    Ok(())
}
