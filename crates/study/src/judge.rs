//! Joins one repeat of one arm: what is proved, what every attack measured, and how the two compare.
use crate::Error;
use crate::plan::{Group, Law};
use crate::report::{
    AccessLevel, AttackResult, BlindBaseline, CandidateLaw, EpsilonLower, EpsilonUpper, Estimate,
    Histogram, Interval, Judgement, Knot, LowerSide, Mimicry, NullCheck, Repeat, TprAt, UpperSide,
    Verdict,
};
use crate::report::{Rounding, thousandths_down, thousandths_up, told};
use crate::run::{Inputs, Records, TrainedFacts};
use crate::study::{Defence, MembershipRule, Study};
use dosimeter_attack::{Access, ModelFacts, ModelSignals, Scores, mimicry};
use dosimeter_audit::verdict::{self, Reason};
use dosimeter_audit::{BOUNDS, Claim, Conditions, Draw, Evidence, Roc, blind, interval, null};
use dosimeter_data::{Dataset, Membership, RecordId};
use dosimeter_privacy::{ACCOUNTANTS, Delta, Epsilon, Ledger, Relation, Unit};
use dosimeter_train::local::Pixelization;
use std::collections::BTreeMap;

/// Shuffles of the null self-check: enough that a bound wrong one time in five is caught.
const SHUFFLES: u32 = 60;
/// ROC corners per scale (linear and logarithmic).
const CORNERS: u32 = 80;
const BINS: usize = 20;

/// Delta at which epsilons are compared, first, and the stricter one always reported beside it.
pub(crate) fn deltas(study: &Study) -> Result<[Delta; 2], Error> {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 records")]
    let one_over_n = 1.0 / study.split.train as f64;
    let chosen = study.audit.delta.unwrap_or(one_over_n);
    Ok([Delta::new(chosen)?, Delta::new(chosen.min(one_over_n) / 10.0)?])
}

/// Everything that is proved about a ledger; the first is the headline.
pub(crate) fn proved(
    defence: Defence,
    ledger: &Ledger,
    deltas: [Delta; 2],
) -> Result<Vec<EpsilonUpper>, Error> {
    let [chosen, strict] = deltas;
    let zero = Delta::new(0.0)?;
    let (relation, asked): (Relation, &[(&str, Relation, Delta)]) = match defence {
        Defence::NoDp | Defence::ClipOnly { .. } => (Relation::AddRemove, &[]),
        Defence::Central { .. } => (
            Relation::AddRemove,
            &[
                ("pld", Relation::AddRemove, chosen),
                ("pld", Relation::AddRemove, strict),
                ("pld", Relation::ReplaceOne, chosen),
                ("rdp", Relation::AddRemove, chosen),
            ],
        ),
        // The sum over features or cells needs no delta; composition with one is tighter.
        Defence::Local { .. }
        | Defence::Pixelization { .. }
        | Defence::EdgeRandomizedResponse { .. } => (
            Relation::Local,
            &[
                ("basic", Relation::Local, zero),
                ("pld", Relation::Local, chosen),
                ("pld", Relation::Local, strict),
            ],
        ),
    };
    let upper = |accountant: &str, relation, delta: Delta, value, caveats: &[&str]| EpsilonUpper {
        side: UpperSide::Upper,
        value,
        delta: delta.get(),
        relation,
        unit: ledger.unit(),
        accountant: accountant.to_owned(),
        caveats: caveats.iter().map(|c| (*c).to_owned()).collect(),
    };
    if asked.is_empty() {
        return Ok(vec![upper("none", relation, chosen, Epsilon::UNBOUNDED, &[])]);
    }
    let local: &[&str] = match defence {
        Defence::EdgeRandomizedResponse { .. } => {
            &["number of nodes, tags and class are public: only edges are protected"]
        }
        _ => &["the label is public: only the feature vector is protected"],
    };
    let mut found = Vec::new();
    for &(name, relation, delta) in asked {
        let Some(accountant) = ACCOUNTANTS.iter().find(|a| a.name() == name) else { continue };
        let caveats = if relation == Relation::Local { local } else { &[] };
        match accountant.epsilon_upper(ledger, relation, delta) {
            Ok(epsilon) => found.push(upper(name, relation, delta, epsilon, caveats)),
            // The headline must exist; a further one that an accountant has no theorem for is left out.
            Err(unsupported) if found.is_empty() => return Err(unsupported.into()),
            Err(_) => {}
        }
    }
    // Where another accountant proves less for the same promise, that is the promise: at very small delta `pld` proves nothing.
    if let Some(first) = found.first() {
        let same = |u: &EpsilonUpper| {
            u.relation == first.relation && u.delta.total_cmp(&first.delta).is_eq()
        };
        let best = (0..found.len())
            .filter(|i| same(&found[*i]))
            .min_by(|a, b| found[*a].value.get().total_cmp(&found[*b].value.get()));
        found[..=best.unwrap_or(0)].rotate_right(1);
    }
    if let Some(pixelization) = defence.pixelization()? {
        found.push(between_few_pixels(&pixelization)?);
    }
    if let Some(edges) = defence.edges()? {
        found.push(EpsilonUpper {
            caveats: vec![
                "number of nodes, tags and class are public: only edges are protected".to_owned(),
                "only between graphs that differ in one edge; any two graphs of so many nodes may be told apart as the \
                 epsilon of the feature vector says, which is that of the largest graph"
                    .to_owned(),
            ],
            ..by_basic(&edges.for_an_edge())?
        });
    }
    Ok(found)
}

/// The sum over the events of a local ledger.
fn by_basic(ledger: &Ledger) -> Result<EpsilonUpper, Error> {
    let basic = ACCOUNTANTS.iter().find(|a| a.name() == "basic").ok_or(Error::ArtifactShape)?;
    let delta = Delta::new(0.0)?;
    Ok(EpsilonUpper {
        side: UpperSide::Upper,
        value: basic.epsilon_upper(ledger, Relation::Local, delta)?,
        delta: delta.get(),
        relation: Relation::Local,
        unit: ledger.unit(),
        accountant: basic.name().to_owned(),
        caveats: Vec::new(),
    })
}

/// What pixelization proves for images that differ in few pixels; never the headline, which is for whole images.
fn between_few_pixels(pixelization: &Pixelization) -> Result<EpsilonUpper, Error> {
    let ledger = pixelization
        .between_neighbours()
        .map_err(|source| Error::Train { task: "pixelization".to_owned(), source })?;
    Ok(EpsilonUpper {
        caveats: vec![
            "the label is public: only the image is protected".to_owned(),
            format!(
                "only between images that differ in at most {} pixels; any two images may be told apart as the epsilon of \
                 the feature vector says",
                pixelization.neighbouring_pixels
            ),
        ],
        ..by_basic(&ledger)?
    })
}

/// The claim that measurements are compared with: the headline, at the delta of the measurement.
pub(crate) fn claim(proved: &[EpsilonUpper], chosen: Delta) -> Result<Claim, Error> {
    let at_delta = proved.iter().find(|u| u.delta.total_cmp(&chosen.get()).is_eq());
    let Some(upper) = at_delta.or(proved.first()) else {
        return Ok(Claim {
            epsilon: Epsilon::UNBOUNDED,
            delta: chosen,
            relation: Relation::AddRemove,
            unit: Unit::Record,
        });
    };
    Ok(Claim {
        epsilon: upper.value,
        delta: Delta::new(upper.delta)?,
        relation: upper.relation,
        unit: upper.unit,
    })
}

/// What is known of how the evidence came about.
pub(crate) fn conditions(study: &Study, law: Law, confidence: f64, delta: Delta) -> Conditions {
    Conditions {
        confidence,
        delta,
        relation: Relation::AddRemove,
        unit: Unit::Record,
        draw: match (law, study.membership) {
            (Law::Test, _) => Draw::Unknown,
            (Law::Same, MembershipRule::Coins) => Draw::FairCoins,
            (Law::Same, MembershipRule::FixedHalf) => Draw::FixedSize,
        },
    }
}

/// The scores of an attack on the records that are judged, with the truth beside them.
pub(crate) fn evidence(
    scores: &Scores,
    truth: &Membership,
) -> Result<Evidence, dosimeter_audit::Error> {
    let truth: BTreeMap<RecordId, bool> =
        truth.candidates.iter().copied().zip(truth.member.iter().copied()).collect();
    let judged = |record: &RecordId| truth.contains_key(record);
    let mut scores = scores.clone();
    scores.judged.retain(|(record, _)| judged(record));
    scores.not_assessable.retain(judged);
    Evidence::join(&scores, |record| truth.get(&record).copied())
}

/// Judges one repeat of one arm.
pub(crate) fn repeat(
    study: &Study,
    dataset: &Dataset,
    group: &Group,
    records: &Records,
    trained: &TrainedFacts,
    inputs: &Inputs,
    scores: &[(Scores, Vec<String>)],
) -> Result<Repeat, Error> {
    let arm = &study.arms[group.arm];
    let failed = |source| Error::Audit { setting: arm.setting.clone(), source };
    let deltas = deltas(study)?;
    let epsilon_upper = proved(arm.defence, &trained.ledger, deltas)?;
    let claim = claim(&epsilon_upper, deltas[0])?;
    let confidence = study.audit.confidence;
    let seed = records.target_seed(arm).child("judge");

    let mut attacks = Vec::new();
    let mut blind_baselines = Vec::new();
    let mut histograms = Vec::new();
    let laws: &[Law] = if inputs.test.is_some() { &[Law::Same, Law::Test] } else { &[Law::Same] };
    for &law in laws {
        let (signals, truth) = (inputs.signals(records, &[law])?, records.truth(law));
        let blind = blind::baseline(
            dataset,
            &truth.candidates,
            &truth.member,
            confidence,
            records.seed.child("blind"),
        )
        .map_err(failed)?;
        blind_baselines.push(BlindBaseline {
            candidate_law: candidate_law(law),
            auc: estimate(&blind.auc, "DeLong"),
            separable: blind.told_apart,
        });
        if group.repeat == 0 {
            histograms.extend(confidence_histograms(&signals, &truth, candidate_law(law)));
        }
        let conditions = conditions(study, law, confidence, deltas[0]);
        for (position, attack, _) in group.judged().filter(|(.., of)| *of == law) {
            let (scores, _) = &scores[position];
            let evidence = evidence(scores, &truth).map_err(failed)?;
            let roc = Roc::of(&evidence).map_err(failed)?;
            let measured = BOUNDS
                .iter()
                .map(|bound| bound.epsilon_lower(&roc, &conditions))
                .collect::<Result<Vec<_>, _>>()
                .map_err(failed)?;
            let null_check = null_check(&roc, &conditions, seed.child(attack)).map_err(failed)?;
            attacks.push(AttackResult {
                attack: attack.to_owned(),
                candidate_law: candidate_law(law),
                members: small(roc.members()),
                non_members: small(roc.non_members()),
                not_assessable: small(roc.not_assessable()),
                auc: estimate(&roc.auc_interval(confidence).map_err(failed)?, "DeLong, log-odds"),
                average_precision: roc.average_precision(),
                tpr_at: tpr_at(study, &roc).map_err(failed)?,
                roc: roc.curve(CORNERS).into_iter().map(|(fpr, tpr)| Knot { fpr, tpr }).collect(),
                verdict: judgement(&claim, &measured),
                epsilon_lower: measured.iter().map(lower).collect::<Result<_, _>>()?,
                null_check: Some(null_check),
            });
        }
    }
    let facts = ModelFacts {
        nominal_size: trained.facts.nominal_size,
        train_size: trained.facts.train_size,
        recipe_digest: trained.facts.recipe_digest.clone(),
        train_accuracy: trained.facts.train_accuracy,
        // Shadows are tested on the train law; so must the target be when compared with them.
        test_accuracy: trained.test_accuracy_of_train_law.unwrap_or(trained.facts.test_accuracy),
    };
    Ok(Repeat {
        repeat: group.repeat,
        seed: hex(&records.target_seed(arm).bytes()[..8]),
        members: small(trained.facts.train_size as u64),
        steps: trained.steps,
        epsilon_upper,
        train_accuracy: trained.facts.train_accuracy,
        test_accuracy: trained.facts.test_accuracy,
        attacks,
        blind: blind_baselines,
        mimicry: mimicry_of(&facts, inputs),
        confidence: histograms,
    })
}

fn mimicry_of(target: &ModelFacts, inputs: &Inputs) -> Option<Mimicry> {
    if inputs.shadows.is_empty() {
        return None;
    }
    let checked = mimicry::check(target, &inputs.shadows);
    #[expect(clippy::cast_precision_loss, reason = "few shadows")]
    let mean = inputs.shadows.iter().map(|s| s.facts.test_accuracy).sum::<f64>()
        / inputs.shadows.len() as f64;
    Some(Mimicry {
        shadows: small(inputs.shadows.len() as u64),
        test_accuracy_gap: target.test_accuracy - mean,
        problems: checked.problems.iter().map(ToString::to_string).collect(),
    })
}

fn null_check(
    roc: &Roc,
    conditions: &Conditions,
    seed: dosimeter_data::Seed,
) -> Result<NullCheck, dosimeter_audit::Error> {
    let check = null::self_check(roc, &BOUNDS[..1], conditions, SHUFFLES, seed)?;
    let found = check.findings.first();
    let above_zero = found.map_or(0, |f| f.found);
    // The largest count that chance explains, by the same test as the audit's.
    let mut allowed = 0;
    for count in 0..=u64::from(SHUFFLES) {
        if interval::clopper_pearson(count, u64::from(SHUFFLES), 0.99)?.low
            <= 1.0 - conditions.confidence
        {
            allowed = count;
        }
    }
    let null = seed.child("null");
    let aucs = (0..SHUFFLES).map(|s| roc.shuffled(null.index(u64::from(s))).auc());
    Ok(NullCheck {
        shuffles: SHUFFLES,
        above_zero: small(above_zero),
        allowed: small(allowed),
        mean_auc: aucs.sum::<f64>() / f64::from(SHUFFLES),
        passed: above_zero <= allowed,
    })
}

pub(crate) fn tpr_at(study: &Study, roc: &Roc) -> Result<Vec<TprAt>, dosimeter_audit::Error> {
    let confidence = study.audit.confidence;
    let rates = study.audit.false_positive_rates.iter().map(|&fpr| {
        let rate = roc.tpr_at(fpr, confidence)?;
        Ok(TprAt {
            fpr,
            tpr: Estimate {
                value: rate.value,
                interval: Some(Interval {
                    low: rate.low,
                    high: rate.high,
                    confidence,
                    method: "Clopper-Pearson".to_owned(),
                }),
            },
            below_resolution: rate.below_resolution,
        })
    });
    rates.collect()
}

/// The verdict by the default bound; one with a caveat refutes nothing, so a bound without one goes first.
pub(crate) fn judgement(claim: &Claim, measured: &[dosimeter_audit::EpsilonLower]) -> Judgement {
    let valid = measured.iter().find(|m| m.caveat.is_none());
    let Some(measured) = valid.or(measured.first()) else {
        return Judgement {
            verdict: Verdict::Inconclusive,
            reason: "no bound holds for this design".to_owned(),
        };
    };
    let lower =
        format!("measured at least {} ({})", thousandths_down(measured.value), measured.bound);
    let claimed = thousandths_up(claim.epsilon.get());
    match verdict::compare(claim, measured) {
        verdict::Verdict::Consistent => Judgement {
            verdict: Verdict::Consistent,
            reason: format!(
                "{lower}, proved at most {claimed}; a perfect attack on these records would have shown {}",
                thousandths_down(measured.largest_possible)
            ),
        },
        verdict::Verdict::Violated { by } => Judgement {
            verdict: Verdict::Violated,
            // With the digits that show which of the two is larger.
            reason: format!(
                "measured at least {} ({}), {} above the {} claimed",
                told(measured.value, 3, Rounding::Down, |x| x > claim.epsilon.get()),
                measured.bound,
                told(by, 3, Rounding::Down, |x| x > 0.0),
                told(claim.epsilon.get(), 3, Rounding::Up, |x| x < measured.value)
            ),
        },
        verdict::Verdict::Inconclusive { reason } => Judgement {
            verdict: Verdict::Inconclusive,
            reason: format!("{lower}; {}", because(&reason)),
        },
    }
}

fn because(reason: &Reason) -> String {
    match reason {
        Reason::NothingClaimed => "nothing is proved to compare with".to_owned(),
        Reason::OtherRelation { claimed, measured } => format!(
            "the guarantee is for the {} relation, the measurement for {}: neither contradicts the other",
            relation_words(*claimed),
            relation_words(*measured)
        ),
        Reason::OtherUnit { .. } => {
            "the guarantee protects another unit than was measured".to_owned()
        }
        Reason::SmallerDelta { claimed, measured } => {
            format!("measured at delta {measured:e}, below the guarantee's {claimed:e}")
        }
        Reason::Caveat { caveat } => {
            format!("not a valid bound here: {caveat}")
        }
        Reason::BelowResolution { largest_possible, claimed } => format!(
            "even a perfect attack on these records would show {}, not more than the {} proved",
            thousandths_down(*largest_possible),
            thousandths_up(*claimed)
        ),
        _ => "the comparison decides nothing".to_owned(),
    }
}

const fn relation_words(relation: Relation) -> &'static str {
    match relation {
        Relation::AddRemove => "add-remove",
        Relation::ReplaceOne => "replace-one",
        Relation::Local => "local",
    }
}

pub(crate) fn lower(measured: &dosimeter_audit::EpsilonLower) -> Result<EpsilonLower, Error> {
    Ok(EpsilonLower {
        side: LowerSide::Lower,
        value: Epsilon::new(measured.value)?,
        delta: measured.delta.get(),
        relation: measured.relation,
        unit: measured.unit,
        bound: measured.bound.clone(),
        confidence: measured.confidence,
        caveats: measured.caveat.iter().cloned().collect(),
    })
}

/// Softmax confidence in the true label and in the answer given.
fn confidence_histograms(
    signals: &ModelSignals,
    truth: &Membership,
    law: CandidateLaw,
) -> [Histogram; 2] {
    let blank = |signal: &str| Histogram {
        candidate_law: law,
        signal: signal.to_owned(),
        members: vec![0; BINS],
        non_members: vec![0; BINS],
    };
    let mut found = [blank("of the true label"), blank("of the answer")];
    let mut probabilities = vec![0.0; signals.classes];
    for row in 0..signals.len() {
        signals.probabilities_into(row, &mut probabilities);
        let own = probabilities[signals.labels[row] as usize];
        let top = probabilities.iter().copied().fold(0.0, f32::max);
        for (histogram, p) in found.iter_mut().zip([own, top]) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "p is in [0, 1]"
            )]
            let bin = ((p * 20.0) as usize).min(BINS - 1);
            let side =
                if truth.member[row] { &mut histogram.members } else { &mut histogram.non_members };
            side[bin] += 1;
        }
    }
    found
}

pub(crate) fn estimate(found: &interval::Interval, method: &str) -> Estimate {
    Estimate {
        value: found.value,
        interval: Some(Interval {
            low: found.low,
            high: found.high,
            confidence: found.confidence,
            method: method.to_owned(),
        }),
    }
}
pub(crate) const fn candidate_law(law: Law) -> CandidateLaw {
    match law {
        Law::Same => CandidateLaw::SameLaw,
        Law::Test => CandidateLaw::TestLaw,
    }
}
pub(crate) const fn access_level(access: Access) -> AccessLevel {
    match access {
        Access::BlackBox => AccessLevel::BlackBox,
        Access::WhiteBox => AccessLevel::WhiteBox,
    }
}
/// Counts of records fit 32 bits, since ids do.
pub(crate) fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
