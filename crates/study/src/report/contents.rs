//! The contents of a report: plain data, no behaviour beyond construction.
use dosimeter_privacy::{Epsilon, Relation, Unit};
use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};

/// Version of the report format. Grows when a field changes meaning or goes; new optional fields keep it.
pub const FORMAT_VERSION: u32 = 1;

/// Everything a study found. Same study file, same seed, same kernel: same bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Dosimeter report")]
pub struct Report {
    /// [`FORMAT_VERSION`] of the writer.
    pub format_version: u32,
    /// Where the numbers come from.
    pub origin: Origin,
    /// The study.
    pub study: StudyFacts,
    /// The data set.
    pub dataset: DatasetFacts,
    /// One per privacy setting, in the order of the study file.
    pub arms: Vec<Arm>,
    /// Settings of the study file that have no result, in its order: a training of each ran away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
    /// Records that stand out, per arm and attack.
    pub risk: Vec<RiskTable>,
    /// What randomized images give away, per arm of pixelization; empty unless the study asks for pictures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reconstructions: Vec<Reconstruction>,
    /// The limits and claims of the study file, judged.
    pub checks: Vec<Check>,
    /// What a reader must know before using a number.
    pub notes: Vec<Note>,
    /// Where every number comes from.
    pub provenance: Provenance,
}

/// Where the numbers of a report come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A run of a study.
    Run,
    /// Invented numbers, for tests and pictures of the page. The page says so in its first line.
    Fixture,
}

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyFacts {
    /// Name in the study file.
    pub name: String,
    /// One or two sentences of the author.
    pub description: Option<String>,
    /// How membership was drawn, and what that allows.
    pub membership: MembershipLaw,
    /// Trained targets per arm.
    pub repeats: u32,
}

/// How the members of a training set were drawn among the candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MembershipLaw {
    /// One independent fair coin per candidate: what the one-run bound assumes.
    FairCoins,
    /// Exactly half of the candidates: the one-run bound does not hold.
    FixedHalf,
}

/// The data set and how it was divided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DatasetFacts {
    /// Name of the data set.
    pub name: String,
    /// Digest of the loaded records and labels.
    pub fingerprint: String,
    /// Records loaded.
    pub records: u64,
    /// Features per record.
    pub width: u32,
    /// Classes of the label.
    pub classes: u32,
    /// Accuracy of always answering the most frequent class, in `[0, 1]`.
    pub majority_rate: f64,
    /// Nominal training-set size `n`.
    pub train: u32,
    /// Records judged by the attacks: candidates of membership.
    pub candidates: u32,
    /// Records that give test accuracy.
    pub test: u32,
    /// Records the shadow models draw from.
    pub shadow_pool: u64,
}

/// What kind of protection an arm has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ArmKind {
    /// None.
    NoDp,
    /// Per-record clipping without noise: no guarantee, shows what clipping alone costs.
    ClipOnly,
    /// Noise in training (DP-SGD, DP-Adam).
    Central,
    /// Noise on each record before training.
    Local,
}
impl ArmKind {
    /// As people say it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::NoDp => "no DP",
            Self::ClipOnly => "clipping only",
            Self::Central => "central DP",
            Self::Local => "local DP",
        }
    }
}

/// A privacy setting without a result: one of its trainings ran away. The repeats that did not are no figure for the setting,
/// since that they ended well is what chose them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Missing {
    /// Label, unique in the report.
    pub setting: String,
    /// Kind of protection.
    pub kind: ArmKind,
    /// As in [`Arm`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<f64>,
    /// As in [`Arm`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clipping_norm: Option<f64>,
    /// As in [`Arm`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon_per_feature: Option<f64>,
    /// The first training in the order of the plan that ran away, in words: `train, central z=2, repeat 0`.
    pub task: String,
    /// The epoch after which its parameters were no longer finite, from 1; `None` if only its answers were not.
    pub epoch: Option<u32>,
    /// Why, and what may help.
    pub reason: String,
}

/// One privacy setting and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Label, unique in the report, for example `central z=2`.
    pub setting: String,
    /// Kind of protection.
    pub kind: ArmKind,
    /// Noise standard deviation over clipping norm (central).
    pub noise_multiplier: Option<f64>,
    /// L2 bound of a record's gradient (central and clipping only).
    pub clipping_norm: Option<f64>,
    /// Setting of the local randomizer, nats per feature (local). A setting, not a guarantee: that is `epsilon_upper`.
    pub epsilon_per_feature: Option<f64>,
    /// What is proved: the largest over the repeats, one per `delta`, relation and accountant. The first one is the headline.
    /// Never empty: an arm without noise says `unbounded`.
    pub epsilon_upper: Vec<EpsilonUpper>,
    /// What the study file claims for this arm, if it does; `accountant` says who claims it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon_claimed: Option<EpsilonUpper>,
    /// Accuracy on the training records.
    pub train_accuracy: Estimate,
    /// Accuracy on test records.
    pub test_accuracy: Estimate,
    /// Over all repeats, one per attack and candidate law.
    pub attacks: Vec<AttackSummary>,
    /// Each trained target.
    pub repeats: Vec<Repeat>,
}

/// Which side of the true privacy loss a number bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UpperSide {
    /// Proved: the true loss is at most this.
    #[default]
    Upper,
}
/// Which side of the true privacy loss a number bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LowerSide {
    /// Measured: with the stated confidence the true loss is at least this.
    #[default]
    Lower,
}

/// A proved bound on the privacy loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EpsilonUpper {
    /// Always `upper`.
    pub side: UpperSide,
    /// Nats, at least 0, or `"unbounded"`.
    #[schemars(schema_with = "epsilon_schema")]
    pub value: Epsilon,
    /// Failure probability of the guarantee.
    pub delta: f64,
    /// Which neighbouring data sets.
    #[schemars(schema_with = "relation_schema")]
    pub relation: Relation,
    /// What one unit of privacy is.
    #[schemars(schema_with = "unit_schema")]
    pub unit: Unit,
    /// Which accountant computed it; `none` for an arm without a guarantee.
    pub accountant: String,
    /// What must hold for the number to be true, or what it leaves out.
    pub caveats: Vec<String>,
}

/// A measured bound on the privacy loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EpsilonLower {
    /// Always `lower`.
    pub side: LowerSide,
    /// Nats, at least 0.
    #[schemars(schema_with = "epsilon_schema")]
    pub value: Epsilon,
    /// `delta` at which the bound was computed.
    pub delta: f64,
    /// Relation that the experiment tests.
    #[schemars(schema_with = "relation_schema")]
    pub relation: Relation,
    /// What one unit of privacy is in the experiment.
    #[schemars(schema_with = "unit_schema")]
    pub unit: Unit,
    /// Name of the statistical bound.
    pub bound: String,
    /// Confidence in `(0, 1)`: over runs, the true loss is at least `value` with this probability.
    pub confidence: f64,
    /// Assumptions of the bound that this run does not guarantee; empty if all hold by construction.
    pub caveats: Vec<String>,
}

/// A number with its interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Its interval; `None` when there is nothing to compute one from (one repeat).
    pub interval: Option<Interval>,
}
impl Estimate {
    /// A number without an interval.
    #[must_use]
    pub const fn point(value: f64) -> Self {
        Self { value, interval: None }
    }
}

/// An interval and what it covers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Coverage in `(0, 1)`.
    pub confidence: f64,
    /// How it was computed, for example `bootstrap over repeats`.
    pub method: String,
}

/// Law of the candidates that were not members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CandidateLaw {
    /// Members and non-members come from one law: what an audit needs.
    SameLaw,
    /// Non-members come from the test law (the paper's variant on a skewed data set): the attack may see the law and not the model.
    TestLaw,
}

/// One attack against all repeats of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttackSummary {
    /// Registry name.
    pub attack: String,
    /// What the attacker sees.
    pub access: AccessLevel,
    /// Where the non-members come from.
    pub candidate_law: CandidateLaw,
    /// Area under the ROC curve; 0.5 is guessing.
    pub auc: Estimate,
    /// Average precision; half is guessing when half of the candidates are members.
    pub average_precision: Estimate,
    /// True-positive rate at chosen false-positive rates, all repeats together.
    pub tpr_at: Vec<TprAt>,
    /// The best of this attack over the repeats, corrected for that choice. Empty if no bound holds for this design.
    pub epsilon_lower: Vec<EpsilonLower>,
    /// Measured against proved.
    pub verdict: Judgement,
    /// What was won over what was lost, by name of the definition.
    pub phi: Vec<Phi>,
}

/// What the attacker sees of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AccessLevel {
    /// Outputs.
    BlackBox,
    /// Outputs and parameters.
    WhiteBox,
}

/// True-positive rate at one false-positive rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TprAt {
    /// Allowed false-positive rate.
    pub fpr: f64,
    /// Share of the members found.
    pub tpr: Estimate,
    /// There are too few non-members for this rate: no threshold has it, whatever the attack.
    pub below_resolution: bool,
}

/// Measured against proved.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A violation was within reach of the measurement and none was found. A stronger attack might find one.
    Consistent,
    /// Nothing follows: nothing is proved, no bound holds, relations differ, or there are too few records.
    Inconclusive,
    /// The measured bound is above the proved one, at its confidence: claim, code or assumption is wrong.
    Violated,
}
impl Verdict {
    /// The word on the page.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Consistent => "consistent",
            Self::Inconclusive => "inconclusive",
            Self::Violated => "violated",
        }
    }
}

/// A verdict and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// One sentence with the numbers compared, and the relation where claim and measurement differ in it.
    pub reason: String,
}

/// The relative privacy-accuracy trade-off by one definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Phi {
    /// Which definition.
    pub definition: PhiDefinition,
    /// The number, or why there is none.
    pub value: PhiValue,
}

/// Which ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PhiDefinition {
    /// Relative fall of the attack's AUC over relative fall of test accuracy, bounded to `[0, 2]`.
    Paper,
    /// The 2019 patent's ratio: remaining accuracy over remaining attack precision.
    Patent,
}

/// A trade-off, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case", deny_unknown_fields)]
pub enum PhiValue {
    /// A number.
    Defined {
        /// The ratio.
        value: f64,
        /// Its interval over repeats.
        interval: Option<Interval>,
        /// Why it has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        no_interval: Option<String>,
    },
    /// The definition yields a number, yet nothing was won: accuracy did not fall and neither did the attack.
    Degenerate {
        /// What the definition says literally.
        value: f64,
        /// Why it means nothing.
        reason: String,
    },
    /// No number.
    Undefined {
        /// Why.
        reason: String,
    },
}

/// One trained target and its audit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// Position, from 0.
    pub repeat: u32,
    /// Seed of the target, hexadecimal (a 64-bit integer does not fit every JSON reader).
    pub seed: String,
    /// Records trained on.
    pub members: u32,
    /// Optimizer steps actually taken.
    pub steps: u64,
    /// What is proved for this target.
    pub epsilon_upper: Vec<EpsilonUpper>,
    /// Accuracy on the training records, in `[0, 1]`.
    pub train_accuracy: f64,
    /// Accuracy on test records, in `[0, 1]`.
    pub test_accuracy: f64,
    /// Each attack.
    pub attacks: Vec<AttackResult>,
    /// Can members be told from non-members without the model? One per candidate law.
    pub blind: Vec<BlindBaseline>,
    /// Do the shadows mimic the target? `None` if no attack used shadows.
    pub mimicry: Option<Mimicry>,
    /// Softmax confidence of members and non-members; may be left out for all but the first repeat.
    pub confidence: Vec<Histogram>,
}

/// One attack against one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttackResult {
    /// Registry name.
    pub attack: String,
    /// Where the non-members come from.
    pub candidate_law: CandidateLaw,
    /// Members judged.
    pub members: u32,
    /// Non-members judged.
    pub non_members: u32,
    /// Candidates that the attack could not judge (for example those it trained on).
    pub not_assessable: u32,
    /// Area under the ROC curve.
    pub auc: Estimate,
    /// Average precision.
    pub average_precision: f64,
    /// True-positive rate at chosen false-positive rates.
    pub tpr_at: Vec<TprAt>,
    /// Corners of the ROC curve from (0, 0) to (1, 1), thinned to what a page can show.
    pub roc: Vec<Knot>,
    /// Measured bounds.
    pub epsilon_lower: Vec<EpsilonLower>,
    /// Measured against proved.
    pub verdict: Judgement,
    /// What the same statistics say when membership is shuffled.
    pub null_check: Option<NullCheck>,
}

/// One corner of a ROC curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Knot {
    /// False-positive rate.
    pub fpr: f64,
    /// True-positive rate.
    pub tpr: f64,
}

/// The audit on shuffled membership: must show nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NullCheck {
    /// Shuffles.
    pub shuffles: u32,
    /// Shuffles in which the bound was above 0.
    pub above_zero: u32,
    /// At most this many are expected, up to chance.
    pub allowed: u32,
    /// Mean AUC over the shuffles.
    pub mean_auc: f64,
    /// Whether `above_zero` is at most `allowed`.
    pub passed: bool,
}

/// How well inputs alone, without the model, tell members from non-members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlindBaseline {
    /// Where the non-members come from.
    pub candidate_law: CandidateLaw,
    /// AUC of a classifier that never saw the model.
    pub auc: Estimate,
    /// The interval lies above 0.5: what the attacks show is not (only) what the model gives away.
    pub separable: bool,
}

/// Whether the shadow models imitate the target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mimicry {
    /// Shadow models.
    pub shadows: u32,
    /// Target's test accuracy less the mean of the shadows.
    pub test_accuracy_gap: f64,
    /// What does not match, one sentence each; empty if all matches.
    pub problems: Vec<String>,
}

/// Softmax confidence of members and non-members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Histogram {
    /// Where the non-members come from.
    pub candidate_law: CandidateLaw,
    /// Which softmax value, for example `of the true label`.
    pub signal: String,
    /// Members per bin; the bins divide `[0, 1]` evenly.
    pub members: Vec<u64>,
    /// Non-members per bin.
    pub non_members: Vec<u64>,
}

/// Records that one attack finds, over the repeats of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RiskTable {
    /// Setting of the arm.
    pub setting: String,
    /// Registry name of the attack.
    pub attack: String,
    /// A record is flagged when its score passes the threshold of this false-positive rate.
    pub flag_fpr: f64,
    /// Entry `k` counts the records that were members in at least one repeat and were flagged in exactly `k` of the repeats in which they were.
    pub flagged_times: Vec<u64>,
    /// The records at most risk, worst first: only such as were flagged when they were members.
    pub records: Vec<RecordRisk>,
}

/// One record over the repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordRisk {
    /// Position of the record in the data set as loaded, from 0.
    pub record: u32,
    /// Its label.
    pub label: u32,
    /// Repeats in which it was a member and judged.
    pub member_in: u32,
    /// Of these, repeats in which it was flagged.
    pub flagged_in: u32,
    /// Repeats in which it was judged and not a member.
    pub non_member_in: u32,
    /// Of these, repeats in which it was flagged (wrongly).
    pub wrongly_flagged_in: u32,
    /// Mean share of non-members with a lower score, over the repeats in which it was a member.
    pub mean_rank: f64,
}

/// A limit or claim of the study file, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Limit or claim.
    pub kind: CheckKind,
    /// As in the study file, for example `tpr at fpr 0.01 at most 0.05`.
    pub statement: String,
    /// The arm, or `None` for all.
    pub setting: Option<String>,
    /// How it came out.
    pub outcome: Outcome,
    /// One sentence with the numbers.
    pub reason: String,
}

/// What kind of check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckKind {
    /// A bound on a measured figure that the author set.
    Limit,
    /// An epsilon that somebody claims.
    Claim,
}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It held in this run.
    Held,
    /// It did not: the command leaves with exit code 3.
    Violated,
    /// The data cannot decide it.
    Inconclusive,
}

/// Something a reader must know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// How much it matters.
    pub severity: Severity,
    /// The arm it is about, or `None` for all.
    pub setting: Option<String>,
    /// One or two sentences.
    pub text: String,
}

/// How much a note matters.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// A number means less than it seems to.
    Caution,
    /// A number must not be used.
    Invalid,
}

/// Where every number comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// Version of Dosimeter.
    pub version: String,
    /// Digest of the checked study.
    pub study_digest: String,
    /// Root seed, hexadecimal.
    pub seed: String,
    /// The command that makes this report again.
    pub command: String,
    /// Matrix kernel that ran; other kernels give other last digits.
    pub kernel: String,
    /// Operating system and processor architecture, for example `linux x86_64`.
    pub platform: String,
    /// Noise that was added, per arm.
    pub noise: Vec<NoiseFacts>,
    /// Training recipe per arm, as canonical text.
    pub recipes: Vec<Recipe>,
    /// Artifacts of the run, in the order of the plan.
    pub artifacts: Vec<Artifact>,
}

/// Which noise an arm used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoiseFacts {
    /// Setting of the arm.
    pub setting: String,
    /// Mechanism.
    pub mechanism: String,
    /// Source of randomness, for example `replayable` or `operating system`.
    pub generator: String,
    /// How samples are drawn, for example `fast float` or `exact integer`.
    pub sampler: String,
}

/// How an arm was trained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Setting of the arm.
    pub setting: String,
    /// One line: layers, optimizer, batch size, epochs.
    pub text: String,
    /// Digest of the canonical recipe.
    pub digest: String,
}

/// One artifact of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// The task that made it, in words.
    pub task: String,
    /// Content-addressed id of the task.
    pub id: String,
    /// Digest of what it wrote.
    pub digest: String,
}

/// Images of members as an arm of pixelization left them, and as an attacker brings them back. Errors are mean squared differences
/// from the image as it is, per number, where full brightness is 1; the mean over images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reconstruction {
    /// Label of the arm.
    pub setting: String,
    /// How images are brought back.
    pub method: String,
    /// Images that the attacker learned from: of the shadow pool, so no candidates.
    pub fitted_on: u32,
    /// Members of the first repeat whose images were brought back.
    pub images: u32,
    /// Error of the randomized images as they are.
    pub randomized_error: Estimate,
    /// Error of the images brought back.
    pub reconstructed_error: Estimate,
    /// Error of the attacker's mean image, the same for every member: what is known without the release.
    pub null_error: Estimate,
    /// `null_error` less `reconstructed_error`, image by image; above 0 the release gave something away.
    pub gain: Estimate,
    /// The attacker's mean image: a PNG in base64.
    pub mean_image: String,
    /// Some of the members.
    pub pictures: Vec<Picture>,
}

/// One record, shown: each a PNG in base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Picture {
    /// Position in the data set.
    pub record: u32,
    /// Its label.
    pub label: u32,
    /// As it is.
    pub original: String,
    /// As it was randomized.
    pub randomized: String,
    /// As the attacker brings it back.
    pub reconstructed: String,
}

/// Wall time of a run: not part of the report, so that reports of one study are the same bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timings {
    /// The run, seconds; of the last command if it was resumed.
    pub wall_seconds: f64,
    /// Threads.
    pub threads: u32,
    /// Per kind of task.
    pub stages: Vec<Stage>,
}

/// Time of one kind of task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Kind of task.
    pub name: String,
    /// Tasks done.
    pub tasks: u32,
    /// Tasks found done by an earlier command.
    pub reused: u32,
    /// Sum over the tasks, seconds.
    pub seconds: f64,
}

fn epsilon_schema(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [{ "type": "number", "minimum": 0 }, { "const": "unbounded" }],
        "description": "Nats, at least 0, or \"unbounded\"." })
}
fn relation_schema(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["add-remove", "replace-one", "local"] })
}
fn unit_schema(_: &mut schemars::SchemaGenerator) -> Schema {
    json_schema!({ "oneOf": [
        { "enum": ["record", "feature-vector", "edge"] },
        {
            "type": "object",
            "properties": { "pixels": { "type": "integer", "minimum": 1 } },
            "required": ["pixels"],
            "additionalProperties": false
        }
    ] })
}
