//! Patients on warfarin: the features of the IWPC, and the dose models the IWPC published.
use super::{Column, Group, Layout, Level, Target};
use serde::{Deserialize, Serialize};

/// Race as the IWPC's models know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Race {
    /// White: the reference.
    White,
    /// Asian.
    Asian,
    /// Black or African American.
    Black,
}

/// Genotype of CYP2C9, the enzyme that clears warfarin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Cyp2c9 {
    /// Two fast alleles: the reference.
    #[serde(rename = "*1/*1")]
    Star1Star1,
    /// Slower.
    #[serde(rename = "*1/*2")]
    Star1Star2,
    /// Slower.
    #[serde(rename = "*1/*3")]
    Star1Star3,
    /// Slower.
    #[serde(rename = "*2/*2")]
    Star2Star2,
    /// Slower.
    #[serde(rename = "*2/*3")]
    Star2Star3,
    /// Slowest.
    #[serde(rename = "*3/*3")]
    Star3Star3,
}
impl Cyp2c9 {
    /// All of them, the reference first.
    pub const ALL: [Self; 6] = [
        Self::Star1Star1,
        Self::Star1Star2,
        Self::Star1Star3,
        Self::Star2Star2,
        Self::Star2Star3,
        Self::Star3Star3,
    ];
    /// As written by geneticists.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Star1Star1 => "*1/*1",
            Self::Star1Star2 => "*1/*2",
            Self::Star1Star3 => "*1/*3",
            Self::Star2Star2 => "*2/*2",
            Self::Star2Star3 => "*2/*3",
            Self::Star3Star3 => "*3/*3",
        }
    }
}

/// Genotype of VKORC1 at -1639 (rs9923231): how sensitive a patient is to warfarin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Vkorc1 {
    /// Least sensitive: the reference.
    #[serde(rename = "G/G")]
    Gg,
    /// Between.
    #[serde(rename = "A/G")]
    Ag,
    /// Most sensitive.
    #[serde(rename = "A/A")]
    Aa,
}
impl Vkorc1 {
    /// All of them, the reference first.
    pub const ALL: [Self; 3] = [Self::Gg, Self::Ag, Self::Aa];
    /// As written by geneticists.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gg => "G/G",
            Self::Ag => "A/G",
            Self::Aa => "A/A",
        }
    }
}

/// One patient of the IWPC with all that the models ask for. Who it is, is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Patient {
    /// Tens of the age: 6 for 60 to 69; 9 for 90 and more.
    pub age_decade: u8,
    /// Centimetres.
    pub height_cm: f64,
    /// Kilograms.
    pub weight_kg: f64,
    /// Whether amiodarone is taken; unknown counts as not.
    pub amiodarone: bool,
    /// Whether carbamazepine, phenytoin or rifampin is taken; unknown counts as not.
    pub enzyme_inducer: bool,
    /// Race.
    pub race: Race,
    /// Genotype of CYP2C9.
    pub cyp2c9: Cyp2c9,
    /// Genotype of VKORC1, measured or by the published rules.
    pub vkorc1: Vkorc1,
    /// Milligrams a week that kept this patient's INR in range.
    pub weekly_dose_mg: f64,
}

/// Features of a patient.
pub const FEATURES: usize = 14;

impl Patient {
    /// The features in the order of [`layout`], in their units, not yet moved into their bounds.
    #[must_use]
    pub fn features(&self) -> [f64; FEATURES] {
        let is = |x: bool| f64::from(u8::from(x));
        [
            f64::from(self.age_decade),
            self.height_cm,
            self.weight_kg,
            is(self.amiodarone),
            is(self.enzyme_inducer),
            is(self.race == Race::Asian),
            is(self.race == Race::Black),
            is(self.cyp2c9 == Cyp2c9::Star1Star2),
            is(self.cyp2c9 == Cyp2c9::Star1Star3),
            is(self.cyp2c9 == Cyp2c9::Star2Star2),
            is(self.cyp2c9 == Cyp2c9::Star2Star3),
            is(self.cyp2c9 == Cyp2c9::Star3Star3),
            is(self.vkorc1 == Vkorc1::Ag),
            is(self.vkorc1 == Vkorc1::Aa),
        ]
    }
}

/// Public bounds of the height, centimetres: what adults measure, chosen without looking at the data.
pub const HEIGHT_CM: [f64; 2] = [120.0, 210.0];
/// Public bounds of the weight, kilograms, chosen likewise.
pub const WEIGHT_KG: [f64; 2] = [30.0, 180.0];
/// Public bounds of the dose, milligrams a week: none to 18.6 mg a day, beyond what labels recommend.
pub const WEEKLY_DOSE_MG: [f64; 2] = [0.0, 130.0];

/// The 14 features with their public bounds and attributes; the target is left to the caller.
#[must_use]
pub fn layout(target: Target) -> Layout {
    let names = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
    let flag = |name: &str, at: usize| Group::one_hot(name, at, &names(&["no", "yes"]));
    let decades = (0..=9).map(|decade: u8| {
        let (from, to) = (10 * decade, 10 * decade + 9);
        let name = if decade == 9 { "90 and more".to_owned() } else { format!("{from} to {to}") };
        Level { name, values: vec![f64::from(decade)] }
    });
    let groups = vec![
        Group { name: "age".to_owned(), columns: 0..1, levels: decades.collect() },
        flag("amiodarone", 3),
        flag("enzyme inducer", 4),
        Group::one_hot("race", 5, &names(&["White", "Asian", "Black"])),
        Group::one_hot("CYP2C9", 7, &names(&Cyp2c9::ALL.map(Cyp2c9::name))),
        Group::one_hot("VKORC1", 12, &names(&Vkorc1::ALL.map(Vkorc1::name))),
    ];
    let number = |name: &str, [lower, upper]: [f64; 2]| Column {
        name: name.to_owned(),
        lower,
        upper,
        group: None,
    };
    let mut columns = vec![
        number("age decade", [0.0, 9.0]),
        number("height cm", HEIGHT_CM),
        number("weight kg", WEIGHT_KG),
        number("amiodarone", [0.0, 1.0]),
        number("enzyme inducer", [0.0, 1.0]),
    ];
    for group in &groups[3..] {
        for level in &group.levels[1..] {
            columns.push(number(&format!("{} {}", group.name, level.name), [0.0, 1.0]));
        }
    }
    for (i, group) in groups.iter().enumerate() {
        columns[group.columns.clone()].iter_mut().for_each(|c| c.group = Some(i));
    }
    Layout { columns, groups, target }
}

/// A published model of the square root of the weekly dose in milligrams: a constant and a coefficient per feature, in the units of
/// [`Patient::features`]. Its terms for an unknown genotype and a missing race are left out, since such patients are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DoseModel {
    /// Name, for people.
    pub name: &'static str,
    /// Prediction where all features are 0.
    pub intercept: f64,
    /// In the order of [`layout`].
    pub coefficients: [f64; FEATURES],
}
impl DoseModel {
    /// The IWPC's pharmacogenetic model.
    ///
    /// # Source
    /// International Warfarin Pharmacogenetics Consortium, *Estimation of the Warfarin Dose with Clinical and Pharmacogenetic Data*,
    /// NEJM 360, 2009, supplementary appendix S1e.
    pub const PHARMACOGENETIC: Self = Self {
        name: "IWPC pharmacogenetic",
        intercept: 5.6044,
        coefficients: [
            -0.2614, 0.0087, 0.0128, -0.5503, 1.1816, -0.1092, -0.2760, -0.5211, -0.9357, -1.0616,
            -1.9206, -2.3312, -0.8677, -1.6974,
        ],
    };
    /// The IWPC's clinical model, without genotypes. Same source.
    pub const CLINICAL: Self = Self {
        name: "IWPC clinical",
        intercept: 4.0376,
        coefficients: [
            -0.2546, 0.0118, 0.0134, -0.5695, 1.2799, -0.6752, 0.4060, 0.0, 0.0, 0.0, 0.0, 0.0,
            0.0, 0.0,
        ],
    };
    /// Square root of the predicted weekly dose in milligrams.
    #[must_use]
    pub fn predict(&self, features: &[f64; FEATURES]) -> f64 {
        let terms = self.coefficients.iter().zip(features);
        self.intercept + terms.map(|(c, x)| c * x).sum::<f64>()
    }
}

/// Milligrams a day of a predicted square root of milligrams a week; a negative one, which only a poor model predicts, means none.
#[must_use]
pub const fn daily_mg(square_root_weekly_mg: f64) -> f64 {
    // NaN stays NaN, for whoever takes doses to refuse.
    if square_root_weekly_mg < 0.0 {
        0.0
    } else {
        square_root_weekly_mg * square_root_weekly_mg / 7.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patient() -> Patient {
        Patient {
            age_decade: 6,
            height_cm: 170.0,
            weight_kg: 80.0,
            amiodarone: true,
            enzyme_inducer: false,
            race: Race::Asian,
            cyp2c9: Cyp2c9::Star1Star3,
            vkorc1: Vkorc1::Aa,
            weekly_dose_mg: 21.0,
        }
    }

    #[test]
    fn a_dose_by_hand() {
        // 5.6044 - 6*0.2614 + 170*0.0087 + 80*0.0128 - 0.5503 - 0.1092 - 0.9357 - 1.6974 = 3.2464
        let root = DoseModel::PHARMACOGENETIC.predict(&patient().features());
        assert!((root - 3.2464).abs() < 1e-12, "{root}");
        assert!((daily_mg(root) - 10.539_112_96 / 7.0).abs() < 1e-9);
        // 4.0376 - 6*0.2546 + 170*0.0118 + 80*0.0134 - 0.5695 - 0.6752 = 4.3433
        let root = DoseModel::CLINICAL.predict(&patient().features());
        assert!((root - 4.3433).abs() < 1e-12, "{root}");
        assert!(daily_mg(-3.0) == 0.0 && daily_mg(f64::NAN).is_nan());
    }
    #[test]
    fn every_attribute_finds_its_level_in_the_features() {
        let layout = layout(Target { name: "dose".into(), lower: 0.0, upper: 130.0 });
        assert_eq!(layout.width(), FEATURES);
        let features = patient().features();
        let levels = layout.groups.iter().map(|group| {
            let level = group.level_of(&features).unwrap();
            (group.name.as_str(), group.levels[level].name.as_str())
        });
        let expected = [
            ("age", "60 to 69"),
            ("amiodarone", "yes"),
            ("enzyme inducer", "no"),
            ("race", "Asian"),
            ("CYP2C9", "*1/*3"),
            ("VKORC1", "A/A"),
        ];
        assert_eq!(levels.collect::<Vec<_>>(), expected);
        for (i, group) in layout.groups.iter().enumerate() {
            assert!(layout.columns[group.columns.clone()].iter().all(|c| c.group == Some(i)));
        }
        assert_eq!(layout.columns[10].name, "CYP2C9 *2/*3");
    }
    #[test]
    fn genotypes_are_written_as_they_are_named() {
        for genotype in Cyp2c9::ALL {
            let written = serde_json::to_string(&genotype).unwrap();
            assert_eq!(written, format!("\"{}\"", genotype.name()));
        }
        for genotype in Vkorc1::ALL {
            let written = serde_json::to_string(&genotype).unwrap();
            assert_eq!(written, format!("\"{}\"", genotype.name()));
        }
    }
}
