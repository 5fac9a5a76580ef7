//! Tables whose target is a number: rows for regression, in the units of the file, within public bounds.
//!
//! Whoever fits with differential privacy scales by [`Layout`], which comes from what the user says or from constants of this crate,
//! never from the data. A loader is its file in this folder, its variant of [`RegressionSpec`] and its line in [`REGRESSION_TABLES`].
use crate::datasets::DatasetKind;
use crate::{Error, RecordId, Seed};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

mod bounded_file;
mod bounds;
mod csv_blocks;
mod decimal;
mod encoder;
mod iwpc;
#[cfg(feature = "parquet")]
mod parquet_blocks;
mod rows;
pub mod warfarin;

pub use bounded_file::{BoundedFile, Reading};
pub use bounds::{ColumnBounds, Missing, TableBounds, TargetBounds};
pub use iwpc::{Iwpc, IwpcTarget, Patients};
pub use rows::RowBlock;

/// One feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its name; of a level of a category, the category's name and the level's.
    pub name: String,
    /// Public lower bound.
    pub lower: f64,
    /// Public upper bound, above `lower`.
    pub upper: f64,
    /// Place in [`Layout::groups`] of the attribute it belongs to; `None`: a number of its own.
    pub group: Option<usize>,
}

/// An attribute with few public values, and the columns that hold it: all of them move together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Name of the attribute.
    pub name: String,
    /// Its columns.
    pub columns: Range<usize>,
    /// Its values, at least two.
    pub levels: Vec<Level>,
}
/// One value of an attribute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// As people call it.
    pub name: String,
    /// What the attribute's columns hold, one number each.
    pub values: Vec<f64>,
}
impl Group {
    /// The level that a row of features has; `None` if its numbers are those of no level, or the row is too short.
    #[must_use]
    pub fn level_of(&self, features: &[f64]) -> Option<usize> {
        let have = features.get(self.columns.clone())?;
        self.levels.iter().position(|level| level.values == have)
    }
    /// Gives a row of features another level, in all columns of the attribute; `false`, and no change, if there is no such level
    /// or the row is too short.
    #[must_use]
    pub fn set(&self, features: &mut [f64], level: usize) -> bool {
        let (Some(level), Some(columns)) =
            (self.levels.get(level), features.get_mut(self.columns.clone()))
        else {
            return false;
        };
        columns.copy_from_slice(&level.values);
        true
    }
    /// A category of which the first level is all zeros and each other has a column with a 1, from column `first` on.
    fn one_hot(name: &str, first: usize, levels: &[String]) -> Self {
        let width = levels.len() - 1;
        let values =
            |level: usize| (1..=width).map(|i| if i == level { 1.0 } else { 0.0 }).collect();
        let levels = levels.iter().enumerate();
        let levels = levels.map(|(i, l)| Level { name: l.clone(), values: values(i) }).collect();
        Self { name: name.to_owned(), columns: first..first + width, levels }
    }
}

/// The number to be predicted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Its name, with its unit where it is known.
    pub name: String,
    /// Public lower bound.
    pub lower: f64,
    /// Public upper bound, above `lower`.
    pub upper: f64,
}

/// What the numbers of each row are, known without looking at them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// The features in their order.
    pub columns: Vec<Column>,
    /// Attributes with few values; an inversion attack guesses among the levels of one.
    pub groups: Vec<Group>,
    /// What is predicted.
    pub target: Target,
}
impl Layout {
    /// Features of a row.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.columns.len()
    }
    /// The attribute called `name`.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|g| g.name == name)
    }
}

/// What was done to the rows of a file. These are counts of private records: to publish them costs privacy that no fit accounts for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Rows with a record in them.
    pub rows: u64,
    /// Rows left out by the published rules of a data set, by the first rule that left them out.
    pub left_out: BTreeMap<String, u64>,
    /// Numbers moved to the nearer bound, by field.
    pub clipped: BTreeMap<String, u64>,
    /// Missing values that a public rule filled in, by field.
    pub imputed: BTreeMap<String, u64>,
}
fn count(counts: &mut BTreeMap<String, u64>, field: &str) {
    match counts.get_mut(field) {
        Some(count) => *count += 1,
        None => {
            counts.insert(field.to_owned(), 1);
        }
    }
}

/// Rows in memory. Record `i` is row `i` for ever; nothing that identifies a person is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct RegressionTable {
    /// Where it came from, for people.
    pub name: String,
    /// What the numbers are.
    pub layout: Layout,
    /// What was done to the rows of the file.
    pub counts: Counts,
    /// Row after row, finite and within their bounds.
    features: Vec<f64>,
    /// One per row, finite and within its bounds.
    targets: Vec<f64>,
}
impl RegressionTable {
    /// From `features` `[rows, layout.width()]`, row after row, and `targets` `[rows]`, in the units of the table. Numbers outside
    /// their bounds are moved to the nearer one and counted.
    ///
    /// # Errors
    /// [`Error::Inconsistent`] if the lengths do not fit together, [`Error::NotFinite`] naming record and input (the target is the
    /// input behind the features), [`Error::Setting`] for bounds without room between them.
    pub fn new(
        name: &str,
        layout: Layout,
        mut features: Vec<f64>,
        mut targets: Vec<f64>,
    ) -> Result<Self, Error> {
        let (rows, width) = (targets.len(), layout.width());
        if rows.checked_mul(width) != Some(features.len()) {
            let (needs, have) = (rows.saturating_mul(width) as u64, features.len() as u64);
            return Err(Error::Inconsistent { what: "features of a table", needs, have });
        }
        if rows > u32::MAX as usize {
            let (needs, have) = (u64::from(u32::MAX), rows as u64);
            return Err(Error::Inconsistent { what: "rows of a table", needs, have });
        }
        for column in &layout.columns {
            bounds::with_room(&format!("columns.{}", column.name), column.lower, column.upper)?;
        }
        let (lower, upper) = (layout.target.lower, layout.target.upper);
        bounds::with_room("target", lower, upper)?;
        let mut counts = Counts { rows: rows as u64, ..Counts::default() };
        for (row, target) in targets.iter_mut().enumerate() {
            let record = RecordId(row as u32);
            for (input, column) in layout.columns.iter().enumerate() {
                let value = &mut features[row * width + input];
                if !value.is_finite() {
                    return Err(Error::NotFinite { record, input });
                }
                if !(column.lower..=column.upper).contains(value) {
                    count(&mut counts.clipped, &column.name);
                    *value = value.clamp(column.lower, column.upper);
                }
            }
            if !target.is_finite() {
                return Err(Error::NotFinite { record, input: width });
            }
            if !(lower..=upper).contains(target) {
                count(&mut counts.clipped, &layout.target.name);
                *target = target.clamp(lower, upper);
            }
        }
        Ok(Self { name: name.to_owned(), layout, counts, features, targets })
    }
    /// Number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.targets.len()
    }
    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }
    /// All features, row after row: `[rows, layout.width()]`.
    #[must_use]
    pub fn features(&self) -> &[f64] {
        &self.features
    }
    /// All targets, `[rows]`.
    #[must_use]
    pub fn targets(&self) -> &[f64] {
        &self.targets
    }
    /// Features and target of a row; `None` if there is no such row.
    #[must_use]
    pub fn row(&self, row: usize) -> Option<(&[f64], f64)> {
        let (target, width) = (*self.targets.get(row)?, self.layout.width());
        Some((&self.features[row * width..][..width], target))
    }
    /// Features and target of each row.
    #[must_use]
    pub fn rows(&self) -> impl ExactSizeIterator<Item = (&[f64], f64)> {
        let width = self.layout.width();
        let row = move |(i, &target)| (&self.features[i * width..][..width], target);
        self.targets.iter().enumerate().map(row)
    }
    /// These rows, in this order, as a table of its own. Counts stay those of the file.
    ///
    /// # Errors
    /// [`Error::Inconsistent`] for a row that there is not.
    pub fn of_rows(&self, rows: &[usize]) -> Result<Self, Error> {
        let (mut features, mut targets) = (Vec::new(), Vec::new());
        for &row in rows {
            let (needs, have) = (self.len() as u64, row as u64);
            let found = self.row(row);
            let what = "row of a table, numbered from 0 below its length";
            let (x, y) = found.ok_or(Error::Inconsistent { what, needs, have })?;
            features.extend_from_slice(x);
            targets.push(y);
        }
        let (name, layout, counts) = (self.name.clone(), self.layout.clone(), self.counts.clone());
        Ok(Self { name, layout, counts, features, targets })
    }
    /// `first` rows drawn without replacement and the others, each in the order of the table. Depends on the number of rows and the
    /// seed alone.
    ///
    /// # Errors
    /// [`Error::TooFewRecords`] if there are fewer rows.
    pub fn split(&self, first: usize, seed: Seed) -> Result<(Self, Self), Error> {
        if first > self.len() {
            return Err(Error::TooFewRecords {
                role: "the first part of a table",
                needs: first.to_string(),
                of: "the table",
                have: self.len(),
            });
        }
        let mut order: Vec<usize> = (0..self.len()).collect();
        crate::seed::shuffle(&mut order, &mut seed.child("regression split").rng());
        let (one, other) = order.split_at_mut(first);
        one.sort_unstable();
        other.sort_unstable();
        Ok((self.of_rows(one)?, self.of_rows(other)?))
    }
    /// Hash of the layout and every number, hexadecimal: equal for equal tables, whatever file they came from.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut hasher =
            blake3::Hasher::new_derive_key("dosimeter 2026 regression table, version 1");
        let text = |h: &mut blake3::Hasher, s: &str| {
            h.update(&(s.len() as u64).to_le_bytes()).update(s.as_bytes());
        };
        let numbers = |h: &mut blake3::Hasher, numbers: &[f64]| {
            h.update(&(numbers.len() as u64).to_le_bytes());
            numbers.iter().for_each(|x| {
                h.update(&x.to_le_bytes());
            });
        };
        let Layout { columns, groups, target } = &self.layout;
        hasher.update(&(columns.len() as u64).to_le_bytes());
        for column in columns {
            text(&mut hasher, &column.name);
            numbers(&mut hasher, &[column.lower, column.upper]);
        }
        hasher.update(&(groups.len() as u64).to_le_bytes());
        for group in groups {
            text(&mut hasher, &group.name);
            hasher.update(&(group.columns.start as u64).to_le_bytes());
            hasher.update(&(group.levels.len() as u64).to_le_bytes());
            for level in &group.levels {
                text(&mut hasher, &level.name);
                numbers(&mut hasher, &level.values);
            }
        }
        text(&mut hasher, &target.name);
        numbers(&mut hasher, &[target.lower, target.upper]);
        numbers(&mut hasher, &self.features);
        numbers(&mut hasher, &self.targets);
        hasher.finalize().to_hex().to_string()
    }
}

/// Which table, as written in a study file: `kind = "..."` and that kind's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RegressionSpec {
    /// Warfarin doses of the IWPC.
    Iwpc(Iwpc),
    /// A CSV or Parquet file and a file of its bounds.
    Bounded(BoundedFile),
}
impl RegressionSpec {
    /// The kind's name, as in a study file.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Iwpc(_) => "iwpc",
            Self::Bounded(_) => "bounded",
        }
    }
    /// The file of its rows.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Iwpc(iwpc) => &iwpc.path,
            Self::Bounded(file) => &file.path,
        }
    }
    /// The files it names; relative ones are relative to the current folder.
    #[must_use]
    pub fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        match self {
            Self::Iwpc(iwpc) => vec![&mut iwpc.path],
            Self::Bounded(file) => vec![&mut file.path, &mut file.bounds],
        }
    }
    /// What the numbers of each row are; of a file, its header is read and no row.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn layout(&self, needs_target: bool) -> Result<Layout, Error> {
        match self {
            Self::Iwpc(iwpc) => Ok(warfarin::layout(iwpc.target.target())),
            Self::Bounded(file) => file.layout(needs_target),
        }
    }
    /// As [`BoundedFile::each_block`]. The IWPC's patients, of which there are few, come in one block; the numbers of its rows count
    /// the patients that are kept, from 1.
    ///
    /// # Errors
    /// As [`BoundedFile::each_block`].
    pub fn each_block<E: From<Error>>(
        &self,
        reading: Reading,
        mut visit: impl FnMut(&RowBlock) -> Result<(), E>,
    ) -> Result<Counts, E> {
        match self {
            Self::Iwpc(iwpc) => {
                let table = iwpc.load()?;
                visit(&RowBlock::of(&table))?;
                Ok(table.counts)
            }
            Self::Bounded(file) => file.each_block(reading, visit),
        }
    }
    /// What a missing value of a column counts as, in words, for those of which it is not refused.
    ///
    /// # Errors
    /// What is wrong with the file of the bounds.
    pub fn missing_rules(&self) -> Result<BTreeMap<String, String>, Error> {
        match self {
            Self::Iwpc(_) => Ok(Iwpc::missing_rules()),
            Self::Bounded(file) => Ok(TableBounds::read(&file.bounds)?.missing_rules()),
        }
    }
    /// Reads the whole table.
    ///
    /// # Errors
    /// If a file cannot be read, has not the form its kind needs, or a setting is out of range; the error names file, row and field.
    pub fn load(&self) -> Result<RegressionTable, Error> {
        match self {
            Self::Iwpc(iwpc) => iwpc.load(),
            Self::Bounded(file) => file.load(),
        }
    }
}

/// Every kind of table with a number to predict, in the order of [`RegressionSpec`].
pub const REGRESSION_TABLES: &[DatasetKind] = &[
    DatasetKind {
        name: "iwpc",
        describe: "warfarin doses: 14 features of 4,017 patients (age, height, weight, medicines, race, genotypes of CYP2C9 and VKORC1) within \
                   public bounds; `target` is \"square-root-weekly-mg\", \"weekly-mg\" or \"daily-mg\"",
        source: "International Warfarin Pharmacogenetics Consortium, NEJM 2009, data of PharmGKB",
        example: "kind = \"iwpc\"\npath = \"warfarin.csv\"\n",
    },
    DatasetKind {
        name: "bounded",
        describe: "a table in CSV (also gzipped) or Parquet, and a TOML file with the public bounds of its columns and what is to be predicted",
        source: "a file of your own",
        example: "kind = \"bounded\"\npath = \"visits.csv\"\nbounds = \"visits.bounds.toml\"\n",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> RegressionTable {
        let towns = ["Ulm", "Bonn", "Kiel"].map(str::to_owned);
        let column =
            |name: &str, upper, group| Column { name: name.into(), lower: 0.0, upper, group };
        let layout = Layout {
            columns: vec![
                column("age", 90.0, None),
                column("town Bonn", 1.0, Some(0)),
                column("town Kiel", 1.0, Some(0)),
            ],
            groups: vec![Group::one_hot("town", 1, &towns)],
            target: Target { name: "cost".into(), lower: 0.0, upper: 10.0 },
        };
        let features = vec![10.0, 0.0, 0.0, 95.0, 1.0, 0.0, 30.0, 0.0, 1.0];
        RegressionTable::new("three", layout, features, vec![1.0, 2.0, 30.0]).unwrap()
    }

    #[test]
    fn levels_move_all_columns_of_their_attribute() {
        let table = table();
        let town = table.layout.group("town").unwrap();
        let levels: Vec<_> = table.rows().map(|(x, _)| town.level_of(x)).collect();
        assert_eq!(levels, [Some(0), Some(1), Some(2)]);
        let mut row = table.row(2).unwrap().0.to_vec();
        assert!(town.set(&mut row, 1));
        assert_eq!(row, [30.0, 1.0, 0.0]);
        assert!(!town.set(&mut row, 3) && !town.set(&mut row[..2], 0));
        assert_eq!(row, [30.0, 1.0, 0.0]);
        assert_eq!(town.level_of(&[30.0, 1.0, 1.0]), None);
    }
    #[test]
    fn numbers_outside_are_moved_and_counted() {
        let table = table();
        assert_eq!(table.row(1).unwrap(), ([90.0, 1.0, 0.0].as_slice(), 2.0));
        assert_eq!(table.targets(), [1.0, 2.0, 10.0]);
        let clipped: Vec<_> = table.counts.clipped.iter().map(|(k, &n)| (k.as_str(), n)).collect();
        assert_eq!(clipped, [("age", 1), ("cost", 1)]);
    }
    #[test]
    fn what_does_not_fit_is_refused() {
        let (layout, features) = (table().layout, vec![1.0, 0.0, 0.0]);
        let new = |x: &[f64], y: f64, layout: &Layout| {
            let table = RegressionTable::new("t", layout.clone(), x.to_vec(), vec![y]);
            table.unwrap_err().to_string()
        };
        assert_eq!(new(&features[..2], 1.0, &layout), "features of a table: 2, needs 3");
        assert_eq!(new(&[1.0, f64::NAN, 0.0], 1.0, &layout), "record 0, input 1 is not finite");
        assert_eq!(new(&features, f64::INFINITY, &layout), "record 0, input 3 is not finite");
        let mut narrow = layout;
        narrow.columns[0].upper = 0.0;
        let said = new(&features, 1.0, &narrow);
        assert!(said.starts_with("`columns.age.lower` is 0 with upper 0"), "{said}");
        assert!(table().of_rows(&[3]).is_err() && table().row(3).is_none());
    }
    #[test]
    fn a_split_keeps_every_row_once_and_depends_on_the_seed() {
        let (one, other) = table().split(2, Seed::root(1)).unwrap();
        let mut ages: Vec<f64> = one.rows().chain(other.rows()).map(|(x, _)| x[0]).collect();
        assert_eq!((one.len(), other.len()), (2, 1));
        ages.sort_by(f64::total_cmp);
        assert_eq!(ages, [10.0, 30.0, 90.0]);
        let last: Vec<f64> =
            (0..20).map(|s| table().split(2, Seed::root(s)).unwrap().1.targets()[0]).collect();
        assert!([1.0, 2.0, 10.0].iter().all(|y| last.contains(y)), "{last:?}");
        assert!(table().split(4, Seed::root(1)).is_err());
    }
    #[test]
    fn a_fingerprint_tells_every_change() {
        let first = table().fingerprint();
        assert_eq!(first, table().fingerprint());
        let mut changed = table();
        changed.targets[0] = 1.5;
        assert_ne!(first, changed.fingerprint());
        let mut changed = table();
        changed.layout.target.upper = 11.0;
        assert_ne!(first, changed.fingerprint());
        let mut changed = table();
        changed.layout.groups[0].levels[1].name.push('x');
        assert_ne!(first, changed.fingerprint());
    }
}
