//! Times of accounting, calibration and noise as one JSON object: wall seconds of one thread on a quiet machine, best of several rounds.
#![allow(clippy::print_stdout, reason = "a program")]
use dosimeter_privacy::{
    Accountant, Delta, Epsilon, Error, Generator, NoiseMultiplier, NoiseRng, NoiseSource, Relation,
    Sampler, SamplingRate,
    accountants::Pld,
    calibrate::{self, Budget},
    noise::{exact, float},
};
use std::time::Instant;

fn best(rounds: u32, mut work: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let mut least = f64::INFINITY;
    for _ in 0..rounds {
        let start = Instant::now();
        work()?;
        least = least.min(start.elapsed().as_secs_f64());
    }
    Ok(least)
}

fn main() -> Result<(), Error> {
    let mut lines = Vec::new();
    let delta = Delta::new(1e-5)?;
    for (rate, noise, steps) in [(0.01, 1.0, 10_000), (0.001, 1.0, 1_000_000), (0.004, 1.1, 10_000)]
    {
        let ledger =
            calibrate::planned(SamplingRate::new(rate)?, NoiseMultiplier::new(noise)?, steps);
        let mut epsilon = 0.0;
        let seconds = best(5, || {
            epsilon = Pld.epsilon_upper(&ledger, Relation::AddRemove, delta)?.get();
            Ok(())
        })?;
        lines.push(format!("\"pld rate={rate} noise={noise} steps={steps}\": {{\"seconds\": {seconds}, \"epsilon\": {epsilon}}}"));
    }
    let budget = Budget { epsilon: Epsilon::new(3.0)?, delta, relation: Relation::AddRemove };
    let rate = SamplingRate::new(0.01)?;
    let seconds = best(3, || calibrate::noise_multiplier(&Pld, budget, rate, 10_000).map(drop))?;
    lines.push(format!("\"calibrate noise\": {{\"seconds\": {seconds}}}"));
    let seconds =
        best(3, || calibrate::steps(&Pld, budget, rate, NoiseMultiplier::new(1.0)?).map(drop))?;
    lines.push(format!("\"calibrate steps\": {{\"seconds\": {seconds}}}"));
    for (name, generator) in
        [("chacha", Generator::ReplayableChaCha), ("fast", Generator::ReplayableFast)]
    {
        let source = NoiseSource { generator, sampler: Sampler::Float };
        let mut rng = NoiseRng::with_source(source, [1; 32])?;
        let mut values = vec![0.0_f32; 1 << 20];
        let count = values.len() as f64;
        let seconds = best(5, || {
            float::add_gaussian(&mut values, 1.0, &mut rng);
            Ok(())
        })?;
        lines.push(format!(
            "\"gaussian float {name}\": {{\"samples_per_second\": {}}}",
            count / seconds
        ));
        let seconds = best(5, || exact::add_gaussian(&mut values, 1.0, 1.0, &mut rng))?;
        lines.push(format!(
            "\"gaussian exact {name}\": {{\"samples_per_second\": {}}}",
            count / seconds
        ));
        let seconds = best(5, || exact::add_laplace(&mut values[..1024], 1.0, 1.0, &mut rng))?;
        lines.push(format!(
            "\"laplace exact {name}\": {{\"samples_per_second\": {}}}",
            1024.0 / seconds
        ));
    }
    println!("{{{}}}", lines.join(", "));
    Ok(())
}
