//! What there is to choose from, out of the registries.
use dosimeter_attack::{ATTACKS, Access};
use dosimeter_audit::BOUNDS;
use dosimeter_data::datasets::DATASETS;
use dosimeter_data::graphs::GRAPHS;
use dosimeter_data::regression::REGRESSION_TABLES;
use dosimeter_privacy::ACCOUNTANTS;
use dosimeter_privacy::mechanisms::MECHANISMS;
use dosimeter_train::regression::REGRESSIONS;
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

/// Kinds of data set, those of graphs last.
#[must_use]
pub fn datasets() -> Vec<Entry> {
    let entries = DATASETS.iter().chain(GRAPHS).map(|kind| Entry {
        name: kind.name,
        what: kind.describe.to_owned(),
        source: kind.source.to_owned(),
        detail: kind.example.to_owned(),
    });
    entries.collect()
}

/// Kinds of table with a number to predict, for the `regression` table of a study.
#[must_use]
pub fn regression_tables() -> Vec<Entry> {
    let entries = REGRESSION_TABLES.iter().map(|kind| Entry {
        name: kind.name,
        what: format!("for regression: {}", kind.describe),
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
        what: accountant.what().to_owned(),
        source: accountant.source().to_owned(),
        detail: if accountant.is_bound() { "a bound" } else { "an approximation, not a bound" }
            .to_owned(),
    });
    entries.collect()
}

/// Mechanisms.
#[must_use]
pub fn mechanisms() -> Vec<Entry> {
    let entries = MECHANISMS.iter().map(|mechanism| Entry {
        name: mechanism.name,
        what: mechanism.summary.to_owned(),
        source: mechanism.source.to_owned(),
        detail: mechanism.input.to_owned(),
    });
    entries.collect()
}

/// Mechanisms of private linear regression.
#[must_use]
pub fn regressions() -> Vec<Entry> {
    let entries = REGRESSIONS.iter().map(|regression| Entry {
        name: regression.name(),
        what: regression.what().to_owned(),
        source: regression.source().to_owned(),
        detail: {
            let claim = regression.claim();
            format!("{}: {}; neighbours replace one record", claim.name(), claim.meaning())
        },
    });
    entries.collect()
}

/// Lower bounds of epsilon.
#[must_use]
pub fn bounds() -> Vec<Entry> {
    let entries = BOUNDS.iter().map(|bound| Entry {
        name: bound.name(),
        what: bound.what().to_owned(),
        source: bound.source().to_owned(),
        detail: bound.needs().to_owned(),
    });
    entries.collect()
}
