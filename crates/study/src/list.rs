//! What there is to choose from, out of the registries.
use dosimeter_attack::{ATTACKS, Access};
use dosimeter_audit::BOUNDS;
use dosimeter_data::datasets::DATASETS;
use dosimeter_privacy::ACCOUNTANTS;
use dosimeter_privacy::mechanisms::MECHANISMS;
use serde::Serialize;

/// One line of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// As written in study files, reports and commands.
    pub name: &'static str,
    /// What it is.
    pub what: String,
    /// Where it comes from.
    pub source: String,
    /// What it needs or how it is used.
    pub detail: String,
}

/// Attacks.
#[must_use]
pub fn attacks() -> Vec<Entry> {
    let entries = ATTACKS.iter().map(|attack| {
        let needs = attack.needs();
        let mut detail = vec![match needs.access {
            Access::BlackBox => "black-box".to_owned(),
            Access::WhiteBox => "white-box".to_owned(),
        }];
        if needs.shadows > 0 {
            detail.push(format!("at least {} shadow models", needs.shadows));
        }
        if needs.known_membership {
            detail.push("half of the membership known".to_owned());
        }
        Entry {
            name: attack.name(),
            what: attack.title().to_owned(),
            source: attack.source().to_owned(),
            detail: detail.join(", "),
        }
    });
    entries.collect()
}

/// Kinds of data set.
#[must_use]
pub fn datasets() -> Vec<Entry> {
    let entries = DATASETS.iter().map(|kind| Entry {
        name: kind.name,
        what: kind.describe.to_owned(),
        source: kind.source.to_owned(),
        detail: kind.example.to_owned(),
    });
    entries.collect()
}

/// Accountants.
#[must_use]
pub fn accountants() -> Vec<Entry> {
    let entries = ACCOUNTANTS.iter().map(|accountant| Entry {
        name: accountant.name(),
        what: accountant_words(accountant.name()).0.to_owned(),
        source: accountant_words(accountant.name()).1.to_owned(),
        detail: if accountant.is_bound() { "a bound" } else { "an approximation, not a bound" }
            .to_owned(),
    });
    entries.collect()
}

fn accountant_words(name: &str) -> (&'static str, &'static str) {
    match name {
        "pld" => (
            "privacy loss distribution, rounded up on a grid and composed by convolution: the default, tight",
            "Doroshenko et al., Connect the Dots, PETS 2022; Koskela et al., AISTATS 2020",
        ),
        "rdp" => (
            "Renyi differential privacy over a grid of orders: a bound a little above pld, and a cross-check of it",
            "Mironov, CSF 2017; Mironov, Talwar & Zhang, arXiv:1908.10530",
        ),
        "gdp" => (
            "central limit of many small steps; can lie below the true epsilon",
            "Bu, Dong, Long & Su, HDSR 2020",
        ),
        "basic" => (
            "sum of the epsilons: for local randomizers, whose record epsilon is the sum over features",
            "Dwork et al., TCC 2006",
        ),
        _ => ("", ""),
    }
}

/// Mechanisms.
#[must_use]
pub fn mechanisms() -> Vec<Entry> {
    let entries = MECHANISMS.iter().map(|mechanism| Entry {
        name: mechanism.name,
        what: mechanism.summary.to_owned(),
        source: mechanism.source.to_owned(),
        detail: String::new(),
    });
    entries.collect()
}

/// Lower bounds of epsilon.
#[must_use]
pub fn bounds() -> Vec<Entry> {
    let entries = BOUNDS.iter().map(|bound| Entry {
        name: bound.name(),
        what: bound.describe().to_owned(),
        source: String::new(),
        detail: String::new(),
    });
    entries.collect()
}
