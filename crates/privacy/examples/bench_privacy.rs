//! Times of accounting, calibration and noise as one JSON object: CPU seconds of one thread, best of several rounds.
#![allow(clippy::print_stdout, reason = "a program")]
use cpu_time::ThreadTime;
use dosimeter_privacy::{
    Accountant, Delta, Epsilon, Error, Generator, NoiseMultiplier, NoiseRng, NoiseSource, Relation,
    Sampler, SamplingRate,
    accountants::Pld,
    calibrate::{self, Budget},
    noise::{exact, float},
};

fn best(rounds: u32, mut work: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let mut least = f64::INFINITY;
    for _ in 0..rounds {
        let start = ThreadTime::now();
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
        let seconds = best(9, || {
            epsilon = Pld.epsilon_upper(&ledger, Relation::AddRemove, delta)?.get();
            Ok(())
        })?;
        lines.push(format!("\"pld rate={rate} noise={noise} steps={steps}\": {{\"seconds\": {seconds}, \"epsilon\": {epsilon}}}"));
    }
    for (target, rate, steps) in [(3.0, 0.01, 10_000), (1.0, 0.001, 1_000_000), (8.0, 0.05, 1000)] {
        let budget =
            Budget { epsilon: Epsilon::new(target)?, delta, relation: Relation::AddRemove };
        let rate = SamplingRate::new(rate)?;
        let mut noise = NoiseMultiplier::new(1.0)?;
        let seconds = best(3, || {
            noise = calibrate::noise_multiplier(&Pld, budget, rate, steps)?;
            Ok(())
        })?;
        lines.push(format!(
            "\"noise for epsilon={target} rate={} steps={steps}\": {{\"seconds\": {seconds}, \"noise\": {}}}",
            rate.get(),
            noise.get()
        ));
        let mut most = 0;
        let seconds = best(3, || {
            most = calibrate::steps(&Pld, budget, rate, noise)?;
            Ok(())
        })?;
        lines.push(format!(
            "\"steps for epsilon={target} rate={} noise={}\": {{\"seconds\": {seconds}, \"steps\": {most}}}",
            rate.get(),
            noise.get()
        ));
    }
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
    println!("{{\n  {}\n}}", lines.join(",\n  "));
    Ok(())
}
