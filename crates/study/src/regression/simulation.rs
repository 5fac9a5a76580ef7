//! From models of a dose to relative risks.
use super::SimulationPlan;
use crate::Error;
use dosimeter_audit::clinical::{Arm, Patient, Trial};
use dosimeter_data::Seed;
use dosimeter_data::regression::warfarin;
use dosimeter_data::regression::{Iwpc, IwpcTarget};
use dosimeter_train::regression::LinearModel;

/// Most milligrams a day of the reference arm: five times what any patient of the IWPC took.
const MOST_MG: f64 = 100.0;

/// The first setting out of its range, and its range.
pub(super) fn check(patients: usize, fixed_mg: f64) -> Result<(), (&'static str, String)> {
    if patients < 2 {
        return Err(("patients", format!("needed at least 2, got {patients}")));
    }
    if !(0.0..=MOST_MG).contains(&fixed_mg) {
        return Err(("fixed_mg", format!("needed 0 to {MOST_MG} mg a day, got {fixed_mg:?}")));
    }
    Ok(())
}

/// The patients of a table, row by row.
#[derive(Debug)]
pub(crate) struct Patients {
    kept: Vec<warfarin::Patient>,
    target: IwpcTarget,
}
impl Patients {
    pub(crate) fn load(iwpc: &Iwpc) -> Result<Self, Error> {
        Ok(Self { kept: iwpc.patients()?.kept, target: iwpc.target })
    }
    /// Relative risks of death, bleeding and stroke under the doses of each model, against the fixed dose, for the first patients of `rows`.
    pub(crate) fn risks(
        &self,
        plan: &SimulationPlan,
        rows: &[usize],
        models: &[Option<LinearModel>],
        seed: Seed,
    ) -> Result<Vec<Option<[f64; 3]>>, Error> {
        let who: Vec<&warfarin::Patient> =
            rows.iter().take(plan.patients).filter_map(|row| self.kept.get(*row)).collect();
        let patients: Vec<Patient> = who.iter().map(|p| Patient::from(*p)).collect();
        let arms: Vec<Arm> = models
            .iter()
            .flatten()
            .map(|model| {
                Arm::from_fn("model", &who, |patient| {
                    let answer = model.predict(1, &patient.features());
                    daily_mg(self.target, answer.unwrap_or_default())
                })
            })
            .collect();
        let fixed = Arm::fixed("fixed", patients.len(), plan.fixed_mg);
        let report = Trial::default()
            .simulate(&patients, &fixed, &arms, seed)
            .map_err(|source| Error::Audit { setting: "the simulated trial".into(), source })?;
        let mut risks = report.arms.iter().skip(1).map(|arm| {
            let risk = &arm.relative_risk;
            [risk.mortality.value, risk.haemorrhage.value, risk.stroke.value]
        });
        Ok(models.iter().map(|m| m.as_ref().and_then(|_| risks.next())).collect())
    }
}

/// Milligrams a day that a prediction stands for; a dose below 0 is none.
pub(crate) fn daily_mg(target: IwpcTarget, prediction: f64) -> f64 {
    let daily = match target {
        IwpcTarget::SquareRootWeeklyMg => warfarin::daily_mg(prediction.max(0.0)),
        IwpcTarget::WeeklyMg => prediction / 7.0,
        IwpcTarget::DailyMg => prediction,
    };
    daily.max(0.0)
}
