//! One draw: a split, and every mechanism at every epsilon on it.
use super::simulation::Patients;
use super::{ORACLE, RegressionStudy};
use crate::Error;
use dosimeter_attack::inversion::{Accuracy, Discriminant, ErrorModel, Inversion, Marginal};
use dosimeter_attack::squared_error;
use dosimeter_data::{RegressionTable, Seed};
use dosimeter_privacy::accountants::Pld;
use dosimeter_privacy::{Accountant, Delta, Epsilon, NoiseRng, Relation};
use dosimeter_train::regression::{
    Bounds, Budget, Claim, Input, LinearModel, Regression, Rows, Statistics, oracle, regression,
};
use serde::{Deserialize, Serialize};

/// A mechanism at an epsilon on a share of the rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CellPlan {
    pub(crate) mechanism: String,
    /// `None`: a mechanism without any.
    pub(crate) epsilon: Option<f64>,
    pub(crate) share: f64,
}

/// Every cell of a study, the whole data first.
pub(crate) fn cells(study: &RegressionStudy) -> Vec<CellPlan> {
    let mut cells = Vec::new();
    let mut add = |name: &str, epsilons: &[f64], share: f64| {
        let private = regression(name).is_none_or(|m| m.claim() != Claim::NotPrivate);
        let epsilons: Vec<Option<f64>> =
            if private { epsilons.iter().copied().map(Some).collect() } else { vec![None] };
        for epsilon in epsilons {
            cells.push(CellPlan { mechanism: name.to_owned(), epsilon, share });
        }
    };
    for name in study.names() {
        add(name, &study.fit.epsilons, 1.0);
    }
    if let Some(shares) = &study.shares {
        for name in study.names() {
            shares.shares.iter().for_each(|s| add(name, &[shares.epsilon], *s));
        }
    }
    // A share of 1 at an epsilon of the list is there already.
    let mut kept: Vec<CellPlan> = Vec::new();
    cells.into_iter().for_each(|c| {
        if !kept.contains(&c) {
            kept.push(c)
        }
    });
    kept
}

/// What one fit gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CellDraw {
    /// Mean squared error on the judged rows, in the target's units squared.
    pub(crate) error: f64,
    /// Proved loss; `None` where nothing is.
    pub(crate) epsilon_upper: Option<f64>,
    /// AUC of membership by the squared error.
    pub(crate) auc: f64,
    pub(crate) inversion: Option<Guesses>,
}
/// Shares of rows guessed right.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Guesses {
    pub(crate) held_out: f64,
    pub(crate) fitted: f64,
    /// With responses dealt out anew.
    pub(crate) null: f64,
}
/// Guesses without a model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct BaselineDraw {
    pub(crate) prior: f64,
    pub(crate) without_model: f64,
    pub(crate) ideal: f64,
}
/// Everything of one split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Draw {
    /// In the order of [`cells`]; `None` where the mechanism released nothing.
    pub(crate) cells: Vec<Option<CellDraw>>,
    pub(crate) baselines: Option<BaselineDraw>,
    /// Mean squared error of the judged rows around the mean of the fitted ones.
    pub(crate) variance: f64,
    /// Relative risks of death, bleeding and stroke, one per cell of the whole data.
    pub(crate) risks: Vec<Option<[f64; 3]>>,
}

struct Parts {
    fitted: RegressionTable,
    attacker: RegressionTable,
    judged: RegressionTable,
    judged_rows: Vec<usize>,
}

/// Splits by positions alone.
fn split(study: &RegressionStudy, table: &RegressionTable, seed: Seed) -> Result<Parts, Error> {
    let mut order: Vec<usize> = (0..table.len()).collect();
    dosimeter_data::seed::shuffle(&mut order, &mut seed.child("split").rng());
    let fitted = fitted_rows(study, table.len());
    let attacker = (table.len() - fitted) / 2;
    let (first, rest) = order.split_at(fitted);
    let (second, judged_rows) = rest.split_at(attacker);
    Ok(Parts {
        fitted: table.of_rows(first)?,
        attacker: table.of_rows(second)?,
        judged: table.of_rows(judged_rows)?,
        judged_rows: judged_rows.to_vec(),
    })
}

/// Rows that are fitted.
pub(crate) fn fitted_rows(study: &RegressionStudy, rows: usize) -> usize {
    (rows as f64 * study.fit.fitted) as usize
}
pub(crate) fn delta(study: &RegressionStudy, rows: usize) -> f64 {
    study.fit.delta.unwrap_or_else(|| 0.01 / fitted_rows(study, rows).max(1) as f64)
}

pub(crate) fn answer(model: &LinearModel) -> impl Fn(&[f64]) -> f64 + Sync + '_ {
    // Rows of a table lie within their bounds, so nothing is moved.
    move |x| {
        model.coefficients.iter().zip(x).fold(model.intercept, |sum, (c, x)| c.mul_add(*x, sum))
    }
}

pub(crate) fn mean_squared(table: &RegressionTable, model: &dyn Fn(&[f64]) -> f64) -> f64 {
    let sum: f64 = table.rows().map(|(x, y)| (model(x) - y).powi(2)).sum();
    sum / table.len() as f64
}

/// Draw number `index` of a study.
pub(crate) fn draw(
    study: &RegressionStudy,
    table: &RegressionTable,
    patients: Option<&Patients>,
    index: u32,
) -> Result<Draw, Error> {
    let seed = Seed::root(study.seed).child("regression draw").index(u64::from(index));
    let parts = split(study, table, seed)?;
    let mut bounds = Bounds::of(&table.layout)?;
    bounds.radius = study.fit.radius;
    let delta = Delta::new(delta(study, table.len()))?;
    let confidence = study.fit.confidence;
    let gene = match &study.inversion {
        None => None,
        Some(plan) => {
            let group = table.layout.group(&plan.attribute);
            let group =
                group.ok_or_else(|| Error::Setting(no_attribute(table, &plan.attribute)))?;
            Some(Marginal::of_group(group, &parts.attacker).map_err(inversion)?)
        }
    };
    let judged_statistics = Rows::of(&parts.judged, &bounds)?.statistics();
    let mut shares: Vec<(f64, Rows, Statistics)> = Vec::new();
    let (mut out, mut models) = (Vec::new(), Vec::new());
    for cell in cells(study) {
        if !shares.iter().any(|s| s.0.total_cmp(&cell.share).is_eq()) {
            let count = ((parts.fitted.len() as f64 * cell.share) as usize).max(1);
            let rows: Vec<usize> = (0..count.min(parts.fitted.len())).collect();
            let rows = Rows::of(&parts.fitted.of_rows(&rows)?, &bounds)?;
            let statistics = rows.statistics();
            shares.push((cell.share, rows, statistics));
        }
        let (_, rows, statistics) = shares
            .iter()
            .find(|s| s.0.total_cmp(&cell.share).is_eq())
            .ok_or(Error::ArtifactShape)?;
        // Noise by label: the same whatever other mechanisms the study has.
        let epsilon = cell.epsilon.unwrap_or(1.0);
        let label = format!("{} {epsilon:?} {:?}", cell.mechanism, cell.share);
        let mut rng = NoiseRng::experiment(seed.child("noise").child(&label).bytes());
        let chosen;
        let (mechanism, private): (&dyn Regression, bool) = if cell.mechanism == ORACLE {
            chosen = oracle(statistics, &judged_statistics, epsilon)?;
            (&chosen, false)
        } else {
            (regression(&cell.mechanism).ok_or(Error::ArtifactShape)?, true)
        };
        let input = Input::new(&bounds, statistics, Some(rows));
        let budget = Budget { epsilon: Epsilon::new(epsilon)?, delta };
        let fit = match mechanism.fit(&input, budget, &mut rng) {
            Ok(fit) => fit,
            Err(
                dosimeter_train::regression::Error::NoAgreement { .. }
                | dosimeter_train::regression::Error::TooFewRows { .. },
            ) => {
                out.push(None);
                models.push(None);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let upper = Pld.epsilon_upper(&fit.ledger, Relation::ReplaceOne, delta)?;
        let names = table.layout.columns.iter().map(|c| c.name.clone()).collect();
        let model = fit.model(names, table.layout.target.name.clone(), bounds.clone());
        let answer = answer(&model);
        let error = mean_squared(&parts.judged, &answer);
        let guesses = match &gene {
            None => None,
            Some(gene) => {
                // The residual on rows of the attacker's: nothing is taken from the fitted ones outside of the budget.
                let deviation = mean_squared(&parts.attacker, &answer).sqrt().max(1e-9);
                let errors = ErrorModel::Gaussian { deviation };
                let attack = Inversion::new(gene.clone(), Vec::new(), errors).map_err(inversion)?;
                let share = |a: Accuracy| a.share.value;
                let accuracy = |t| attack.accuracy(t, &answer, confidence).map(share);
                let as_many: Vec<usize> = (0..parts.judged.len().min(parts.fitted.len())).collect();
                let null = attack.null(&parts.judged, &answer, confidence, seed);
                Some(Guesses {
                    held_out: accuracy(&parts.judged).map_err(inversion)?,
                    fitted: accuracy(&parts.fitted.of_rows(&as_many)?).map_err(inversion)?,
                    null: null.map(share).map_err(inversion)?,
                })
            }
        };
        let roc =
            squared_error::membership(&parts.fitted, &parts.judged, &answer).map_err(inversion)?;
        let epsilon_upper = (private && !upper.is_unbounded()).then(|| upper.get());
        out.push(Some(CellDraw { error, epsilon_upper, auc: roc.auc(), inversion: guesses }));
        models.push((cell.share >= 1.0).then(|| model.clone()));
    }
    let baselines = match &gene {
        None => None,
        Some(gene) => {
            let fit = |with| Discriminant::fit(&parts.attacker, gene, &[], with).map_err(inversion);
            let (without, ideal) = (fit(false)?, fit(true)?);
            let of = |guess: &(dyn Fn(&[f64], f64) -> Option<usize> + Sync)| {
                let accuracy = Accuracy::of(&parts.judged, gene, confidence, guess);
                accuracy.map(|a| a.share.value).map_err(inversion)
            };
            Some(BaselineDraw {
                prior: of(&|_, _| Some(gene.mode()))?,
                without_model: of(&|x, y| without.guess(x, y))?,
                ideal: of(&|x, y| ideal.guess(x, y))?,
            })
        }
    };
    let mean = parts.fitted.targets().iter().sum::<f64>() / parts.fitted.len() as f64;
    let risks = match (patients, &study.simulation) {
        (Some(patients), Some(plan)) => patients.risks(plan, &parts.judged_rows, &models, seed)?,
        _ => Vec::new(),
    };
    Ok(Draw { cells: out, baselines, variance: mean_squared(&parts.judged, &|_| mean), risks })
}

fn inversion(source: dosimeter_attack::Error) -> Error {
    Error::Attack { attack: "inversion".into(), setting: "a linear model".into(), source }
}
pub(crate) fn no_attribute(table: &RegressionTable, name: &str) -> String {
    let known: Vec<&str> = table.layout.groups.iter().map(|g| g.name.as_str()).collect();
    format!("there is no attribute `{name}`; there are: {}", known.join(", "))
}
