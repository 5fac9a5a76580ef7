//! Warfarin doses of the International Warfarin Pharmacogenetics Consortium, by its published rules.
use super::warfarin::{self, Cyp2c9, HEIGHT_CM, Patient, Race, Vkorc1, WEEKLY_DOSE_MG, WEIGHT_KG};
use super::{Counts, RegressionTable, Target, count};
use crate::datasets::csv_chunks::{Chunk, Chunks};
use crate::datasets::table::Value;
use crate::datasets::{csv_file, source};
use crate::{Error, FieldProblem};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// The table of the IWPC as PharmGKB published it: a CSV of 5,700 patients with 63 named columns.
///
/// A patient is left out without a dose, a height, a weight, an age, a known race, one of the six CYP2C9 genotypes of the models or
/// a VKORC1 genotype. VKORC1 at -1639 is filled in from its neighbours by the rules of the IWPC's appendix (S4), which look at one
/// patient alone: unless the race is Black or unknown, from 2255; else from 1173; else, unless Black or unknown, from 1542. Amiodarone
/// and enzyme inducers that are not known are taken as not used. Numbers are moved into public bounds ([`warfarin::layout`]).
///
/// # Source
/// NEJM 360, 2009, 753-764, and its supplementary appendix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Iwpc {
    /// The CSV, also gzipped.
    pub path: PathBuf,
    /// What is predicted.
    #[serde(default)]
    pub target: IwpcTarget,
}
/// What is predicted of a patient.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IwpcTarget {
    /// Square root of the milligrams a week, what the IWPC's models predict.
    #[default]
    SquareRootWeeklyMg,
    /// Milligrams a week.
    WeeklyMg,
    /// Milligrams a day.
    DailyMg,
}
impl IwpcTarget {
    /// The one called `name` as in a study file.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "square-root-weekly-mg" => Some(Self::SquareRootWeeklyMg),
            "weekly-mg" => Some(Self::WeeklyMg),
            "daily-mg" => Some(Self::DailyMg),
            _ => None,
        }
    }
    fn of_weekly(self, mg: f64) -> f64 {
        match self {
            Self::SquareRootWeeklyMg => mg.sqrt(),
            Self::WeeklyMg => mg,
            Self::DailyMg => mg / 7.0,
        }
    }
    /// Name and public bounds.
    #[must_use]
    pub fn target(self) -> Target {
        let name = match self {
            Self::SquareRootWeeklyMg => "square root of weekly warfarin dose in mg",
            Self::WeeklyMg => "weekly warfarin dose in mg",
            Self::DailyMg => "daily warfarin dose in mg",
        };
        let [lower, upper] = WEEKLY_DOSE_MG.map(|mg| self.of_weekly(mg));
        Target { name: name.to_owned(), lower, upper }
    }
}

/// The patients that the rules keep, in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Patients {
    /// As the file has them, not moved into bounds.
    pub kept: Vec<Patient>,
    /// Rows, and why others were left out; nothing is clipped yet.
    pub counts: Counts,
}

impl Iwpc {
    /// The patients with their doses in the units of the file: for reference models and simulated trials.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::NoSuchColumn`], [`Error::FieldCount`], [`Error::Field`] naming row (the line of the file on which it
    /// begins) and field of a number that is none, below 0 or not finite and of a word that the published file does not use; [`Error::NoRecords`] if no patient is kept.
    pub fn patients(&self) -> Result<Patients, Error> {
        let file = self.path.as_path();
        let patients = source::with_text(file, None, |text| read(file, text))?;
        if patients.kept.is_empty() {
            return Err(Error::NoRecords { file: file.to_owned() });
        }
        Ok(patients)
    }
    /// What a patient that is kept may lack, and what it counts as.
    pub(super) fn missing_rules() -> BTreeMap<String, String> {
        let inferred = "the genotype at 2255, 1173 or 1542, by the IWPC's appendix S4";
        [("amiodarone", "no"), ("enzyme inducer", "no"), ("VKORC1", inferred)]
            .map(|(name, rule)| (name.to_owned(), rule.to_owned()))
            .into()
    }
    /// The features of each patient and the target, within public bounds.
    ///
    /// # Errors
    /// As [`Self::patients`].
    pub fn load(&self) -> Result<RegressionTable, Error> {
        let Patients { kept, counts } = self.patients()?;
        let [lower, upper] = WEEKLY_DOSE_MG;
        let targets =
            kept.iter().map(|p| self.target.of_weekly(p.weekly_dose_mg.clamp(lower, upper)));
        let targets = targets.collect();
        let features = kept.iter().flat_map(Patient::features).collect();
        let layout = warfarin::layout(self.target.target());
        let mut table = RegressionTable::new("iwpc", layout, features, targets)?;
        let outside = |bounds: [f64; 2], value: fn(&Patient) -> f64| {
            kept.iter().filter(|p| !(bounds[0]..=bounds[1]).contains(&value(p))).count() as u64
        };
        let clipped = [
            ("height cm", outside(HEIGHT_CM, |p| p.height_cm)),
            ("weight kg", outside(WEIGHT_KG, |p| p.weight_kg)),
            (table.layout.target.name.as_str(), outside(WEEKLY_DOSE_MG, |p| p.weekly_dose_mg)),
        ];
        let clipped = clipped.into_iter().filter(|(_, n)| *n > 0);
        let clipped = clipped.map(|(name, n)| (name.to_owned(), n)).collect();
        table.counts = Counts { clipped, ..counts };
        Ok(table)
    }
}

/// Columns that are read, in the order of the constants below.
const COLUMNS: [&str; 14] = [
    "Therapeutic Dose of Warfarin",
    "Height (cm)",
    "Weight (kg)",
    "Age",
    "Race",
    "CYP2C9 consensus",
    "VKORC1 -1639 consensus",
    "VKORC1 2255 consensus",
    "VKORC1 1173 consensus",
    "VKORC1 1542 consensus",
    "Amiodarone (Cordarone)",
    "Carbamazepine (Tegretol)",
    "Phenytoin (Dilantin)",
    "Rifampin or Rifampicin",
];
const DOSE: usize = 0;
const HEIGHT: usize = 1;
const WEIGHT: usize = 2;
const AGE: usize = 3;
const RACE: usize = 4;
const CYP2C9: usize = 5;
const AT_1639: usize = 6;
const AT_2255: usize = 7;
const AT_1173: usize = 8;
const AT_1542: usize = 9;
const AMIODARONE: usize = 10;
const INDUCERS: [usize; 3] = [11, 12, 13];

fn read(file: &Path, text: &mut dyn BufRead) -> Result<Patients, Error> {
    let (mut chunks, mut chunk) = (Chunks::new(file, b',', text), Chunk::default());
    let mut columns: Option<(Vec<String>, [usize; COLUMNS.len()])> = None;
    let mut patients = Patients { kept: Vec::new(), counts: Counts::default() };
    while chunks.next(&mut chunk)? {
        chunk.records(file, b',', |row, record| {
            let Some((names, places)) = &columns else {
                let names = csv_file::header(file, row, record)?;
                let places = places(file, &names)?;
                columns = Some((names, places));
                return Ok(());
            };
            if record.len() != names.len() {
                let (needs, have) = (names.len(), record.len());
                return Err(Error::FieldCount { file: file.to_owned(), row, needs, have });
            }
            // The published file ends in a row of nothing.
            if record.iter().all(|field| field.trim_ascii().is_empty()) {
                return Ok(());
            }
            patients.counts.rows += 1;
            let row = Row { file, row, fields: places.map(|i| record[i].trim_ascii()) };
            match row.patient(&mut patients.counts)? {
                Ok(patient) => patients.kept.push(patient),
                Err(reason) => count(&mut patients.counts.left_out, reason),
            }
            Ok(())
        })?;
    }
    match columns {
        Some(_) => Ok(patients),
        None => Err(Error::NoRecords { file: file.to_owned() }),
    }
}
/// Where in the file the columns are.
fn places(file: &Path, names: &[String]) -> Result<[usize; COLUMNS.len()], Error> {
    let mut places = [0; COLUMNS.len()];
    for (place, column) in places.iter_mut().zip(COLUMNS) {
        *place = names.iter().position(|n| n == column).ok_or_else(|| Error::NoSuchColumn {
            file: file.to_owned(),
            column: column.to_owned(),
            have: names.to_vec(),
        })?;
    }
    Ok(places)
}

struct Row<'a> {
    file: &'a Path,
    row: u64,
    fields: [&'a [u8]; COLUMNS.len()],
}
impl Row<'_> {
    /// `None`: not known.
    fn field(&self, column: usize) -> Option<&[u8]> {
        let field = self.fields[column];
        (!matches!(field, b"" | b"NA")).then_some(field)
    }
    fn refused(&self, column: usize, problem: FieldProblem) -> Error {
        let (file, field) = (self.file.to_owned(), COLUMNS[column].to_owned());
        Error::Field { file, row: self.row, field, problem }
    }
    /// A dose, a height or a weight, which nobody has below 0.
    fn quantity(&self, column: usize) -> Result<Option<f64>, Error> {
        let Some(field) = self.field(column) else { return Ok(None) };
        let number = Value::Text(field).number();
        let number = number.map_err(|problem| self.refused(column, problem))?;
        if number < 0.0 {
            return Err(self.refused(column, FieldProblem::Negative));
        }
        Ok(Some(number))
    }
    /// One of `levels`, or `None` if it is not known.
    fn word<T: Copy>(&self, column: usize, levels: &[(&str, T)]) -> Result<Option<T>, Error> {
        let Some(field) = self.field(column) else { return Ok(None) };
        let found = levels.iter().find(|(name, _)| name.as_bytes() == field);
        let unknown = || self.refused(column, FieldProblem::UnknownLevel { levels: levels.len() });
        found.map(|(_, value)| Some(*value)).ok_or_else(unknown)
    }
    /// What is not known counts as not used.
    fn is_used(&self, column: usize) -> Result<bool, Error> {
        Ok(self.word(column, &[("0", false), ("1", true)])?.unwrap_or(false))
    }
    /// The patient, or why it is left out.
    fn patient(&self, counts: &mut Counts) -> Result<Result<Patient, &'static str>, Error> {
        let Some(weekly_dose_mg) = self.quantity(DOSE)? else { return Ok(Err("no dose")) };
        let Some(height_cm) = self.quantity(HEIGHT)? else { return Ok(Err("no height")) };
        let Some(weight_kg) = self.quantity(WEIGHT)? else { return Ok(Err("no weight")) };
        let Some(age_decade) = self.word(AGE, &AGES)? else { return Ok(Err("no age")) };
        let Some(Some(race)) = self.word(RACE, &RACES)? else { return Ok(Err("race not known")) };
        let Some(cyp2c9) = self.cyp2c9()? else {
            return Ok(Err("CYP2C9 not known or of another type"));
        };
        let Some((vkorc1, is_measured)) = self.vkorc1(race)? else {
            return Ok(Err("VKORC1 neither measured nor to be inferred"));
        };
        let amiodarone = self.is_used(AMIODARONE)?;
        let mut enzyme_inducer = false;
        for column in INDUCERS {
            enzyme_inducer |= self.is_used(column)?;
        }
        if !is_measured {
            count(&mut counts.imputed, COLUMNS[AT_1639]);
        }
        Ok(Ok(Patient {
            age_decade,
            height_cm,
            weight_kg,
            amiodarone,
            enzyme_inducer,
            race,
            cyp2c9,
            vkorc1,
            weekly_dose_mg,
        }))
    }
    fn cyp2c9(&self) -> Result<Option<Cyp2c9>, Error> {
        let Some(field) = self.field(CYP2C9) else { return Ok(None) };
        let found = Cyp2c9::ALL.into_iter().find(|g| g.name().as_bytes() == field);
        // Rare alleles, `*1/*11`, are genotypes too, but none that the models know.
        if found.is_none() && !field.starts_with(b"*") {
            let levels = Cyp2c9::ALL.len();
            return Err(self.refused(CYP2C9, FieldProblem::UnknownLevel { levels }));
        }
        Ok(found)
    }
    /// The genotype, and whether it was measured.
    fn vkorc1(&self, race: Race) -> Result<Option<(Vkorc1, bool)>, Error> {
        use Vkorc1::{Aa, Ag, Gg};
        let measured = self.word(AT_1639, &[("G/G", Gg), ("A/G", Ag), ("A/A", Aa)])?;
        let at_2255 = self.word(AT_2255, &[("C/C", Gg), ("C/T", Ag), ("T/T", Aa)])?;
        let at_1173 = self.word(AT_1173, &[("C/C", Gg), ("C/T", Ag), ("T/T", Aa)])?;
        let at_1542 = self.word(AT_1542, &[("G/G", Gg), ("C/G", Ag), ("C/C", Aa)])?;
        let if_linked = |genotype: Option<Vkorc1>| genotype.filter(|_| race != Race::Black);
        let inferred = if_linked(at_2255).or(at_1173).or_else(|| if_linked(at_1542));
        let known = measured.map(|g| (g, true));
        Ok(known.or_else(|| inferred.map(|g| (g, false))))
    }
}
const AGES: [(&str, u8); 10] = [
    ("0 - 9", 0),
    ("10 - 19", 1),
    ("20 - 29", 2),
    ("30 - 39", 3),
    ("40 - 49", 4),
    ("50 - 59", 5),
    ("60 - 69", 6),
    ("70 - 79", 7),
    ("80 - 89", 8),
    ("90+", 9),
];
const RACES: [(&str, Option<Race>); 4] = [
    ("White", Some(Race::White)),
    ("Asian", Some(Race::Asian)),
    ("Black or African American", Some(Race::Black)),
    ("Unknown", None),
];
