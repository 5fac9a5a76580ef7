//! Draws put together: means with intervals.
use super::RegressionStudy;
use super::draw::{CellDraw, CellPlan, Draw, Guesses, delta, fitted_rows};
use crate::Error;
use dosimeter_audit::interval::across_repeats;
use dosimeter_data::RegressionTable;
use dosimeter_data::regression::Counts;
use dosimeter_train::regression::{Claim, regression};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// A mean over draws, each a split and noise of its own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Mean.
    pub mean: f64,
    /// Lower limit of the mean, by Student's t.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
    /// Median of the draws, which a few wild ones do not move.
    pub median: f64,
}
impl Measured {
    fn of(values: &[f64], confidence: f64) -> Result<Option<Self>, Error> {
        if values.len() < 2 {
            return Ok(None);
        }
        let across = across_repeats(values, confidence)
            .map_err(|source| Error::Audit { setting: "a regression".into(), source })?;
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        let (low, high) = across.interval.map_or((across.mean, across.mean), |i| (i.low, i.high));
        Ok(Some(Self { mean: across.mean, low, high, median }))
    }
}

/// Relative risks against the fixed dose.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Risks {
    /// Of death by bleeding or stroke.
    pub mortality: Measured,
    /// Of a major bleeding.
    pub haemorrhage: Measured,
    /// Of a stroke.
    pub stroke: Measured,
}

/// A mechanism at an epsilon on a share of the rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Name.
    pub mechanism: String,
    /// What it promises.
    pub claim: Claim,
    /// Loss asked for; `None`: no protection is meant.
    pub epsilon: Option<f64>,
    /// Proved loss (pld, ReplaceOne, unit record, at the report's delta), the largest of the draws; `None`: nothing is proved.
    pub epsilon_upper: Option<f64>,
    /// Share of the rows that may be fitted.
    pub share: f64,
    /// Draws in which the mechanism released a model.
    pub released: usize,
    /// Mean squared error on judged rows, target units squared; `None` for fewer than two models.
    pub error: Option<Measured>,
    /// Share of judged rows whose attribute is guessed right from the model.
    pub inversion: Option<Measured>,
    /// The same among as many fitted rows.
    pub inversion_fitted: Option<Measured>,
    /// The same with responses dealt out anew among judged rows.
    pub inversion_null: Option<Measured>,
    /// AUC of membership by the squared error.
    pub membership_auc: Option<Measured>,
    /// Relative risks.
    pub risks: Option<Risks>,
}

/// Guesses of the attribute without the model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Baselines {
    /// The most frequent value.
    pub prior: Measured,
    /// From the other attributes.
    pub without_model: Measured,
    /// From the other attributes and the true response.
    pub ideal: Measured,
}

/// What a study of regression found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegressionReport {
    /// Of this form.
    pub format_version: u32,
    /// The study.
    pub name: String,
    /// What it is about.
    pub description: Option<String>,
    /// The table.
    pub table: String,
    /// What is predicted.
    pub target: String,
    /// Rows.
    pub rows: usize,
    /// Features of a row.
    pub features: usize,
    /// Rows that are fitted in a draw.
    pub fitted: usize,
    /// Rows that are judged in a draw; as many are the attacker's.
    pub judged: usize,
    /// What was done to the rows of the file.
    pub counts: Counts,
    /// Failure probability of every proved loss.
    pub delta: f64,
    /// Of all intervals.
    pub confidence: f64,
    /// Splits, each with noise of its own.
    pub draws: u32,
    /// The attribute that is guessed.
    pub attribute: Option<String>,
    /// The reference arm's dose.
    pub fixed_mg: Option<f64>,
    /// Mean squared error of the mean of the fitted targets: what a model must beat.
    pub variance: Measured,
    /// Guesses without a model.
    pub baselines: Option<Baselines>,
    /// In the order of the study.
    pub cells: Vec<Cell>,
}

impl RegressionReport {
    pub(super) fn of(
        study: &RegressionStudy,
        table: &RegressionTable,
        plans: &[CellPlan],
        draws: &[Draw],
    ) -> Result<Self, Error> {
        let confidence = study.fit.confidence;
        let mean = |values: Vec<f64>| Measured::of(&values, confidence);
        let must = |values: Vec<f64>| mean(values)?.ok_or(Error::ArtifactShape);
        let cells = plans.iter().enumerate().map(|(place, plan)| {
            let of: Vec<&CellDraw> =
                draws.iter().filter_map(|d| d.cells.get(place)?.as_ref()).collect();
            let each = |value: fn(&CellDraw) -> f64| mean(of.iter().map(|d| value(d)).collect());
            let guesses = |value: fn(&Guesses) -> f64| {
                mean(of.iter().filter_map(|d| d.inversion.as_ref().map(value)).collect())
            };
            let risk = |event: usize| {
                let all = draws.iter().filter_map(|d| d.risks.get(place)?.map(|r| r[event]));
                mean(all.collect())
            };
            let risks = match (risk(0)?, risk(1)?, risk(2)?) {
                (Some(mortality), Some(haemorrhage), Some(stroke)) => {
                    Some(Risks { mortality, haemorrhage, stroke })
                }
                _ => None,
            };
            let uppers: Option<Vec<f64>> = of.iter().map(|d| d.epsilon_upper).collect();
            let epsilon_upper = uppers.and_then(|u| u.into_iter().reduce(f64::max));
            Ok(Cell {
                mechanism: plan.mechanism.clone(),
                claim: claim_of(&plan.mechanism),
                epsilon: plan.epsilon,
                epsilon_upper,
                share: plan.share,
                released: of.len(),
                error: each(|d| d.error)?,
                inversion: guesses(|g| g.held_out)?,
                inversion_fitted: guesses(|g| g.fitted)?,
                inversion_null: guesses(|g| g.null)?,
                membership_auc: each(|d| d.auc)?,
                risks,
            })
        });
        let cells = cells.collect::<Result<Vec<_>, Error>>()?;
        let baselines = match &study.inversion {
            None => None,
            Some(_) => {
                let all = |value: fn(&super::draw::BaselineDraw) -> f64| {
                    must(draws.iter().filter_map(|d| d.baselines.as_ref().map(value)).collect())
                };
                let (prior, without_model) = (all(|b| b.prior)?, all(|b| b.without_model)?);
                Some(Baselines { prior, without_model, ideal: all(|b| b.ideal)? })
            }
        };
        let fitted = fitted_rows(study, table.len());
        let others = table.len() - fitted;
        Ok(Self {
            format_version: 1,
            name: study.name.clone(),
            description: study.description.clone(),
            table: table.name.clone(),
            target: table.layout.target.name.clone(),
            rows: table.len(),
            features: table.layout.width(),
            fitted,
            judged: others - others / 2,
            counts: table.counts.clone(),
            delta: delta(study, table.len()),
            confidence,
            draws: study.fit.draws,
            attribute: study.inversion.as_ref().map(|i| i.attribute.clone()),
            fixed_mg: study.simulation.as_ref().map(|s| s.fixed_mg),
            variance: must(draws.iter().map(|d| d.variance).collect())?,
            baselines,
            cells,
        })
    }
    /// One line per cell; columns that do not apply are empty.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut text =
            "mechanism,claim,epsilon,epsilon_upper,delta,relation,unit,accountant,share,released"
                .to_owned();
        let measures = [
            "error",
            "inversion",
            "inversion_fitted",
            "inversion_null",
            "membership_auc",
            "mortality",
            "haemorrhage",
            "stroke",
        ];
        for measure in measures {
            let _ = write!(text, ",{measure},{measure}_low,{measure}_high,{measure}_median");
        }
        text.push('\n');
        let number = |x: Option<f64>| x.map_or(String::new(), |x| x.to_string());
        for cell in &self.cells {
            let _ = write!(
                text,
                "{},{},{},{},{},replace-one,record,pld,{},{}",
                cell.mechanism,
                cell.claim.name(),
                number(cell.epsilon),
                number(cell.epsilon_upper),
                self.delta,
                cell.share,
                cell.released
            );
            let risks = cell.risks;
            for measured in [
                cell.error,
                cell.inversion,
                cell.inversion_fitted,
                cell.inversion_null,
                cell.membership_auc,
                risks.map(|r| r.mortality),
                risks.map(|r| r.haemorrhage),
                risks.map(|r| r.stroke),
            ] {
                for x in [
                    measured.map(|m| m.mean),
                    measured.map(|m| m.low),
                    measured.map(|m| m.high),
                    measured.map(|m| m.median),
                ] {
                    let _ = write!(text, ",{}", number(x));
                }
            }
            text.push('\n');
        }
        text
    }
}

/// What a mechanism promises.
pub(super) fn claim_of(mechanism: &str) -> Claim {
    // The oracle is in no registry.
    regression(mechanism).map_or(Claim::NotPrivate, |m| m.claim())
}
