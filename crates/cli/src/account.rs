//! `dosimeter account`.
use crate::output::{Failure, millionths_up, print, print_json};
use dosimeter_study::account::{
    self, Answer, Delta, Epsilon, NoiseMultiplier, Question, Relation, SamplingRate,
};
use dosimeter_study::report::plain;
use std::process::ExitCode;

/// Privacy accounting without a run.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Account {
    /// Epsilon of a training with Poisson-sampled Gaussian steps
    Epsilon(OfSteps),
    /// Least noise multiplier for a budget
    Noise(OfNoise),
    /// Most steps for a budget
    Steps(OfBudget),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Common {
    /// Poisson inclusion probability: expected batch size over records
    #[arg(long, value_name = "Q", value_parser = sampling_rate, allow_negative_numbers = true)]
    sampling_rate: SamplingRate,
    /// Failure probability
    #[arg(long, value_name = "DELTA", value_parser = delta, allow_negative_numbers = true)]
    delta: Delta,
    /// Neighbouring data sets
    #[arg(long, value_enum, default_value_t = RelationName::AddRemove)]
    relation: RelationName,
    /// Who computes it; gdp is an approximation, not a bound
    #[arg(long, value_enum, default_value_t = AccountantName::Pld)]
    accountant: AccountantName,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}
#[derive(Debug, clap::Args)]
pub(crate) struct OfSteps {
    /// Noise standard deviation over clipping norm
    #[arg(long, value_name = "Z", value_parser = noise_multiplier, allow_negative_numbers = true)]
    noise_multiplier: NoiseMultiplier,
    /// Steps
    #[arg(long, value_name = "T", value_parser = any_steps, allow_negative_numbers = true)]
    steps: u64,
    #[command(flatten)]
    common: Common,
}
#[derive(Debug, clap::Args)]
pub(crate) struct OfNoise {
    /// Largest allowed epsilon, nats
    #[arg(long, value_name = "EPSILON", value_parser = epsilon, allow_negative_numbers = true)]
    epsilon: Epsilon,
    /// Steps
    #[arg(long, value_name = "T", value_parser = some_steps, allow_negative_numbers = true)]
    steps: u64,
    #[command(flatten)]
    common: Common,
}
#[derive(Debug, clap::Args)]
pub(crate) struct OfBudget {
    /// Largest allowed epsilon, nats
    #[arg(long, value_name = "EPSILON", value_parser = epsilon, allow_negative_numbers = true)]
    epsilon: Epsilon,
    /// Noise standard deviation over clipping norm
    #[arg(long, value_name = "Z", value_parser = noise_multiplier, allow_negative_numbers = true)]
    noise_multiplier: NoiseMultiplier,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum RelationName {
    AddRemove,
    ReplaceOne,
}
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum AccountantName {
    Pld,
    Rdp,
    Gdp,
}

impl Account {
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        let (answer, common) = match self {
            Self::Epsilon(a) => {
                (account::epsilon(a.common.question()?, a.noise_multiplier, a.steps)?, &a.common)
            }
            Self::Noise(a) => {
                (account::noise(a.common.question()?, a.epsilon, a.steps)?, &a.common)
            }
            Self::Steps(a) => {
                (account::steps(a.common.question()?, a.epsilon, a.noise_multiplier)?, &a.common)
            }
        };
        if common.json {
            print_json(&answer)?;
        } else {
            print(&sentence(&answer))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
impl Common {
    fn question(&self) -> Result<Question, Failure> {
        let name = match self.accountant {
            AccountantName::Pld => "pld",
            AccountantName::Rdp => "rdp",
            AccountantName::Gdp => "gdp",
        };
        let accountant = account::accountant(name).ok_or_else(|| Failure::Argument {
            what: format!("this build has no accountant called {name}"),
            hint: "see `dosimeter list accountants`".to_owned(),
        })?;
        Ok(Question {
            sampling_rate: self.sampling_rate,
            delta: self.delta,
            relation: match self.relation {
                RelationName::AddRemove => Relation::AddRemove,
                RelationName::ReplaceOne => Relation::ReplaceOne,
            },
            accountant,
        })
    }
}

fn sentence(answer: &Answer) -> String {
    let epsilon = millionths_up(answer.epsilon_upper);
    let relation = match answer.relation {
        Relation::AddRemove => "add-remove",
        Relation::ReplaceOne => "replace-one",
        Relation::Local => "local",
    };
    let mut text = format!(
        "epsilon_upper     {epsilon}\ndelta             {:e}\nrelation          {relation}\naccountant        {}\n\
         noise multiplier  {}\nsampling rate     {}\nsteps             {}\n",
        answer.delta.get(),
        answer.accountant,
        plain(answer.noise_multiplier.get()),
        plain(answer.sampling_rate.get()),
        answer.steps,
    );
    if !answer.is_bound {
        text.push_str("an approximation, not a bound: the true epsilon may be larger\n");
    }
    text
}

fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("needs a number, got `{text}`"))
}
fn whole(text: &str, least: u64) -> Result<u64, String> {
    const MOST: u64 = 1_000_000_000_000;
    text.parse()
        .ok()
        .filter(|n| (least..=MOST).contains(n))
        .ok_or_else(|| format!("needs a whole number from {least} to {MOST}, got `{text}`"))
}
fn any_steps(text: &str) -> Result<u64, String> {
    whole(text, 0)
}
fn some_steps(text: &str) -> Result<u64, String> {
    whole(text, 1)
}
fn sampling_rate(text: &str) -> Result<SamplingRate, String> {
    SamplingRate::new(number(text)?).map_err(|e| e.to_string())
}
fn delta(text: &str) -> Result<Delta, String> {
    Delta::new(number(text)?).map_err(|e| e.to_string())
}
fn epsilon(text: &str) -> Result<Epsilon, String> {
    Epsilon::new(number(text)?).map_err(|e| e.to_string())
}
fn noise_multiplier(text: &str) -> Result<NoiseMultiplier, String> {
    NoiseMultiplier::new(number(text)?).map_err(|e| e.to_string())
}
