//! A report built in code: plausible, deterministic, and marked as invented.
//!
//! ROC curves follow `tpr = fpr^theta`, whose area is `1 / (1 + theta)`: every number of a curve agrees with its AUC.
use dosimeter_privacy::{Epsilon, Relation, Unit};
use dosimeter_study::report::*;

const REPEATS: u32 = 5;
const MEMBERS: u32 = 1_000;
const FPRS: [f64; 3] = [1e-4, 1e-2, 1e-1];

/// The three attacks: name, access, how much of the leak it sees.
const ATTACKS: [(&str, AccessLevel, f64); 3] = [
    ("loss-threshold", AccessLevel::BlackBox, 0.85),
    ("shadow-model", AccessLevel::BlackBox, 0.93),
    ("white-box", AccessLevel::WhiteBox, 1.0),
];

struct Plan {
    setting: &'static str,
    kind: ArmKind,
    knob: Option<f64>,
    epsilon: Option<f64>,
    train: f64,
    test: f64,
    /// AUC of the strongest attack.
    auc: f64,
    lower: f64,
}
const fn plan(
    setting: &'static str,
    kind: ArmKind,
    knob: Option<f64>,
    epsilon: Option<f64>,
    [train, test, auc, lower]: [f64; 4],
) -> Plan {
    Plan { setting, kind, knob, epsilon, train, test, auc, lower }
}
const PLANS: [Plan; 12] = [
    plan("no DP", ArmKind::NoDp, None, None, [0.998, 0.842, 0.861, 2.31]),
    plan("clipping only", ArmKind::ClipOnly, None, None, [0.951, 0.826, 0.742, 1.22]),
    plan("central z=0.5", ArmKind::Central, Some(0.5), Some(87.8), [0.894, 0.801, 0.621, 0.44]),
    plan("central z=2", ArmKind::Central, Some(2.0), Some(4.54), [0.781, 0.752, 0.536, 0.08]),
    plan("central z=4", ArmKind::Central, Some(4.0), Some(2.04), [0.683, 0.668, 0.511, 0.0]),
    plan("central z=6", ArmKind::Central, Some(6.0), Some(1.32), [0.561, 0.553, 0.503, 0.0]),
    plan("central z=16", ArmKind::Central, Some(16.0), Some(0.48), [0.214, 0.209, 0.498, 0.0]),
    plan("local eps=3", ArmKind::Local, Some(3.0), Some(1800.0), [0.982, 0.838, 0.773, 1.41]),
    plan("local eps=2", ArmKind::Local, Some(2.0), Some(1200.0), [0.961, 0.829, 0.692, 0.83]),
    plan("local eps=1", ArmKind::Local, Some(1.0), Some(600.0), [0.907, 0.781, 0.588, 0.29]),
    plan("local eps=0.5", ArmKind::Local, Some(0.5), Some(300.0), [0.743, 0.612, 0.531, 0.05]),
    plan("local eps=0.1", ArmKind::Local, Some(0.1), Some(60.0), [0.251, 0.118, 0.501, 0.0]),
];

/// A small repeatable wobble in `[-1, 1]`, so that repeats differ.
fn wobble(a: usize, b: u32, c: usize) -> f64 {
    (12.9898 * a as f64 + 78.233 * f64::from(b) + 37.719 * c as f64).sin()
}
fn interval(value: f64, half: f64, method: &str) -> Option<Interval> {
    let (low, high) = ((value - half).max(0.0), (value + half).min(1.0));
    Some(Interval { low, high, confidence: 0.95, method: method.into() })
}
fn estimate(value: f64, half: f64, method: &str) -> Estimate {
    Estimate { value, interval: interval(value, half, method) }
}
fn theta(auc: f64) -> f64 {
    1.0 / auc - 1.0
}
fn knots(auc: f64) -> Vec<Knot> {
    let mut knots = vec![Knot { fpr: 0.0, tpr: 0.0 }];
    for i in 0..=60 {
        let fpr = 10f64.powf(-3.0 + f64::from(i) / 20.0).min(1.0);
        knots.push(Knot { fpr, tpr: fpr.powf(theta(auc)) });
    }
    knots
}
fn tpr_at(auc: f64, n: u32) -> Vec<TprAt> {
    let rate = |fpr: f64| {
        let below_resolution = fpr < 1.0 / f64::from(n);
        let tpr = if below_resolution { 0.0 } else { fpr.powf(theta(auc)) };
        let half = 2.0 * (tpr.max(1e-3) * (1.0 - tpr) / f64::from(n)).sqrt();
        TprAt { fpr, tpr: estimate(tpr, half, "Clopper-Pearson"), below_resolution }
    };
    FPRS.into_iter().map(rate).collect()
}

fn unit_of(kind: ArmKind) -> (Relation, Unit) {
    match kind {
        ArmKind::Local => (Relation::Local, Unit::FeatureVector),
        _ => (Relation::AddRemove, Unit::Record),
    }
}
fn upper(plan: &Plan) -> Vec<EpsilonUpper> {
    let (relation, unit) = unit_of(plan.kind);
    let bound = |delta: f64, value: Option<f64>, accountant: &str, caveats: &[&str]| EpsilonUpper {
        side: UpperSide::Upper,
        value: value.map_or(Epsilon::UNBOUNDED, |x| Epsilon::new(x).unwrap()),
        delta,
        relation,
        unit,
        accountant: accountant.into(),
        caveats: caveats.iter().map(|s| (*s).to_owned()).collect(),
    };
    match (plan.kind, plan.epsilon) {
        (ArmKind::Central, Some(e)) => {
            let mut replaced = bound(1e-5, Some(e * 1.9), "pld", &[]);
            replaced.relation = Relation::ReplaceOne;
            vec![
                bound(1e-5, Some(e), "pld", &[]),
                bound(1e-6, Some(e * 1.14), "pld", &[]),
                replaced,
            ]
        }
        (ArmKind::Local, Some(e)) => vec![bound(0.0, Some(e), "basic", &["the label is public"])],
        _ => vec![bound(0.0, None, "none", &[])],
    }
}
fn lower(value: f64, caveats: &[&str]) -> EpsilonLower {
    EpsilonLower {
        side: LowerSide::Lower,
        value: Epsilon::new(value).unwrap(),
        delta: 1e-5,
        relation: Relation::AddRemove,
        unit: Unit::Record,
        bound: "one-run".into(),
        confidence: 0.95,
        caveats: caveats.iter().map(|s| (*s).to_owned()).collect(),
    }
}
fn with_caveat(value: f64) -> EpsilonLower {
    let mut bound = lower(value * 1.5, &["assumes independent records"]);
    bound.bound = "clopper-pearson".into();
    bound
}
fn judge(plan: &Plan, measured: f64) -> Judgement {
    let (verdict, reason) = match plan.epsilon {
        None => (Verdict::Inconclusive, "nothing is proved to compare with".to_owned()),
        Some(_) if plan.kind == ArmKind::Local => (
            Verdict::Inconclusive,
            "the guarantee is for local, the measurement for add-remove: a local randomizer hides a record's values, not that there is a record".to_owned(),
        ),
        Some(e) if e > 6.5 => (
            Verdict::Inconclusive,
            format!("even a perfect attack on so few records could not have shown more than 6.50, and {e} is proved"),
        ),
        Some(e) => (Verdict::Consistent, format!("measured {measured:.2} does not exceed proved {e}")),
    };
    Judgement { verdict, reason }
}

fn seen(auc: f64, share: f64) -> f64 {
    (auc - 0.5).mul_add(share, 0.5)
}
fn phi(plan: &Plan, auc: f64, share: f64) -> Vec<Phi> {
    let original = &PLANS[0];
    let auc_original = seen(original.auc, share);
    let value = if matches!(plan.kind, ArmKind::NoDp) {
        PhiValue::Undefined { reason: "nothing was changed".into() }
    } else {
        let won = (auc_original - auc).max(0.0) / (auc_original - 0.5);
        let lost = (original.test - plan.test).max(0.0) / (original.test - 0.05);
        let value = (won / lost).min(2.0);
        PhiValue::Defined {
            value,
            no_interval: None,
            interval: Some(Interval {
                low: value - 0.06,
                high: (value + 0.06).min(2.0),
                confidence: 0.95,
                method: "bootstrap over repeats".into(),
            }),
        }
    };
    let patent = match value.clone() {
        PhiValue::Defined { .. } => {
            let why = "needs 3 repeats to resample, got 2".to_owned();
            PhiValue::Defined { value: 0.9, interval: None, no_interval: Some(why) }
        }
        other => other,
    };
    vec![
        Phi { definition: PhiDefinition::Paper, value },
        Phi { definition: PhiDefinition::Patent, value: patent },
    ]
}

fn histogram(plan: &Plan) -> Histogram {
    let shape = |accuracy: f64, total: f64| -> Vec<u64> {
        let weight = |i: u32| {
            let x = (f64::from(i) + 0.5) / 20.0;
            accuracy * (6.0 * accuracy * (x - 1.0)).exp() + (1.0 - accuracy) * (-5.0 * x).exp()
        };
        let sum: f64 = (0..20).map(weight).sum();
        (0..20).map(|i| (total * weight(i) / sum).round() as u64).collect()
    };
    Histogram {
        candidate_law: CandidateLaw::SameLaw,
        signal: "of the true label".into(),
        members: shape(plan.train, f64::from(MEMBERS)),
        non_members: shape(plan.test, f64::from(MEMBERS)),
    }
}

fn repeat(a: usize, plan: &Plan, repeat: u32) -> Repeat {
    let attack = |(i, &(name, _, share)): (usize, &(&str, AccessLevel, f64))| {
        let auc = 0.006f64.mul_add(wobble(a, repeat, i), seen(plan.auc, share));
        let n = if name == "white-box" { MEMBERS / 2 } else { MEMBERS };
        let measured = (plan.lower * share + 0.05 * wobble(a, repeat, i)).max(0.0);
        let measured = if plan.lower > 0.0 { (measured * 1e3).round() / 1e3 } else { 0.0 };
        AttackResult {
            attack: name.into(),
            candidate_law: CandidateLaw::SameLaw,
            members: n,
            non_members: n,
            not_assessable: 2 * (MEMBERS - n),
            auc: estimate(auc, 0.022, "DeLong"),
            average_precision: auc - 0.01,
            tpr_at: tpr_at(auc, n),
            roc: knots(auc),
            epsilon_lower: vec![lower(measured, &[])],
            verdict: judge(plan, measured),
            null_check: Some(NullCheck {
                shuffles: 200,
                above_zero: 7 + u32::from(i == 1),
                allowed: 21,
                mean_auc: 0.5001,
                passed: true,
            }),
        }
    };
    Repeat {
        repeat,
        seed: format!(
            "{:016x}",
            0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(1 + a as u64 * 31 + u64::from(repeat))
        ),
        members: MEMBERS,
        steps: 1_250,
        epsilon_upper: upper(plan),
        train_accuracy: (0.004f64.mul_add(wobble(a, repeat, 7), plan.train)).min(1.0),
        test_accuracy: 0.006f64.mul_add(wobble(a, repeat, 9), plan.test),
        attacks: ATTACKS.iter().enumerate().map(attack).collect(),
        blind: vec![BlindBaseline {
            candidate_law: CandidateLaw::SameLaw,
            auc: estimate(0.004f64.mul_add(wobble(a, repeat, 3), 0.5), 0.025, "DeLong"),
            separable: false,
        }],
        mimicry: Some(Mimicry {
            shadows: 10,
            test_accuracy_gap: 0.003 * wobble(a, repeat, 5),
            problems: vec![],
        }),
        confidence: if repeat == 0 { vec![histogram(plan)] } else { vec![] },
    }
}

fn arm(a: usize, plan: &Plan) -> Arm {
    let over = "bootstrap over repeats";
    let summary = |&(name, access, share): &(&str, AccessLevel, f64)| {
        let auc = seen(plan.auc, share);
        let measured = (plan.lower * share * 1e3).round() / 1e3;
        AttackSummary {
            attack: name.into(),
            access,
            candidate_law: CandidateLaw::SameLaw,
            auc: estimate(auc, 0.013, over),
            average_precision: estimate(auc - 0.01, 0.014, over),
            tpr_at: tpr_at(auc, MEMBERS * REPEATS),
            epsilon_lower: vec![lower(measured, &[]), with_caveat(measured)],
            verdict: judge(plan, measured),
            phi: phi(plan, auc, share),
        }
    };
    let local = plan.kind == ArmKind::Local;
    Arm {
        setting: plan.setting.into(),
        kind: plan.kind,
        noise_multiplier: if local { None } else { plan.knob },
        clipping_norm: matches!(plan.kind, ArmKind::Central | ArmKind::ClipOnly).then_some(1.0),
        epsilon_per_feature: if local { plan.knob } else { None },
        epsilon_upper: upper(plan),
        epsilon_claimed: (plan.setting == "central z=2").then(|| EpsilonUpper {
            value: Epsilon::new(5.0).unwrap(),
            accountant: "claim in the study file".into(),
            ..upper(plan)[0].clone()
        }),
        train_accuracy: estimate(plan.train, 0.003, over),
        test_accuracy: estimate(plan.test, 0.008, over),
        attacks: ATTACKS.iter().map(summary).collect(),
        repeats: (0..REPEATS).map(|r| repeat(a, plan, r)).collect(),
    }
}

fn risk(plan: &Plan) -> RiskTable {
    let exposed = (plan.auc - 0.5) * 2.0;
    let flagged = |k: u32| (1_900.0 * exposed.max(0.01).powi(k as i32) * (1.0 - exposed)) as u64;
    RiskTable {
        setting: plan.setting.into(),
        attack: "white-box".into(),
        flag_fpr: 0.01,
        flagged_times: (0..=REPEATS).map(flagged).collect(),
        records: (0..10)
            .map(|i| RecordRisk {
                record: 137 + 911 * i,
                label: (7 * i + 3) % 20,
                member_in: 3 + i % 3,
                flagged_in: (3 + i % 3).min(5 - i / 3),
                non_member_in: 2 - i % 3,
                wrongly_flagged_in: u32::from(i == 7),
                mean_rank: 0.9995 - 0.004 * f64::from(i),
            })
            .collect(),
    }
}

/// The whole fixture.
pub(crate) fn report() -> Report {
    let note = |severity, setting: Option<&str>, text: &str| Note {
        severity,
        setting: setting.map(Into::into),
        text: text.into(),
    };
    Report {
        format_version: FORMAT_VERSION,
        origin: Origin::Fixture,
        study: StudyFacts {
            name: "fixture".into(),
            description: Some(
                "Invented numbers with the shape of a Skewed Purchases study.".into(),
            ),
            membership: MembershipLaw::FairCoins,
            repeats: REPEATS,
        },
        dataset: DatasetFacts {
            name: "skewed-purchases".into(),
            fingerprint: "blake3:5f1c0a9de2b84b6c".repeat(2),
            records: 20_000,
            width: 600,
            classes: 20,
            majority_rate: 0.05,
            train: MEMBERS,
            candidates: 2 * MEMBERS,
            test: 2_000,
            shadow_pool: 16_000,
        },
        arms: PLANS.iter().enumerate().map(|(a, p)| arm(a, p)).collect(),
        missing: Vec::new(),
        risk: [&PLANS[0], &PLANS[2], &PLANS[7]].into_iter().map(risk).collect(),
        reconstructions: Vec::new(),
        checks: vec![
            Check {
                kind: CheckKind::Claim,
                statement: "epsilon at most 5 at delta 1e-5".into(),
                setting: Some("central z=2".into()),
                outcome: Outcome::Held,
                reason: "proved 4.54 and measured 0.08 are at most 5".into(),
            },
            Check {
                kind: CheckKind::Limit,
                statement: "TPR at FPR 0.01 at most 0.05".into(),
                setting: Some("local eps=3".into()),
                outcome: Outcome::Violated,
                reason: "white-box: 0.259, interval 0.247 to 0.271".into(),
            },
        ],
        notes: vec![
            note(
                Severity::Caution,
                None,
                "Test records follow another law than training records (skew). Attack candidates come from the training law.",
            ),
            note(
                Severity::Info,
                Some("local eps=3"),
                "The proved epsilon is about the features of one record; the measurement is about presence of a record.",
            ),
        ],
        provenance: Provenance {
            version: "0.1.0".into(),
            study_digest: "b3:0f3d7c51".into(),
            seed: "000000000000002a".into(),
            command: "dosimeter run studies/fixture.toml --out runs/fixture".into(),
            kernel: "avx512".into(),
            platform: "linux x86_64".into(),
            noise: PLANS
                .iter()
                .filter(|p| p.epsilon.is_some())
                .map(|p| NoiseFacts {
                    setting: p.setting.into(),
                    mechanism: if p.kind == ArmKind::Local {
                        "randomized response"
                    } else {
                        "gaussian"
                    }
                    .into(),
                    generator: "replayable".into(),
                    sampler: "fast float".into(),
                })
                .collect(),
            recipes: PLANS
                .iter()
                .map(|p| Recipe {
                    setting: p.setting.into(),
                    text: "600-128-20 tanh, Adam 0.001, batch 128, 160 epochs".into(),
                    digest: "b3:77aa10c2".into(),
                })
                .collect(),
            artifacts: (0..4)
                .map(|i| Artifact {
                    task: format!("train target, no DP, repeat {i}"),
                    id: format!("b3:00ab{i:04x}"),
                    digest: format!("b3:91cd{i:04x}"),
                })
                .collect(),
        },
    }
}

/// Wall times to go with it.
pub(crate) fn timings() -> Timings {
    let stage =
        |name: &str, tasks, reused, seconds| Stage { name: name.into(), tasks, reused, seconds };
    Timings {
        wall_seconds: 96.4,
        threads: 2,
        stages: vec![
            stage("train target", 60, 0, 31.2),
            stage("train shadow", 120, 12, 118.0),
            stage("attack", 180, 0, 38.5),
        ],
    }
}
