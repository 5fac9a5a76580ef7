//! `bench/run.py --areas regression`: sums of rows in memory, and 1,000 draws of every mechanism. Prints JSON lines.
#![expect(clippy::print_stdout, reason = "a bench talks")]
use dosimeter_data::Seed;
use dosimeter_privacy::{Delta, Epsilon, NoiseRng};
use dosimeter_train::regression::{
    Bounds, Budget, Input, Interval, Missing, REGRESSIONS, Rows, Summation,
};
use rand_core::Rng;
use serde_json::json;
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let rows: usize = std::env::args().nth(1).map_or(Ok(1_000_000), |n| n.parse())?;
    let side = Interval::new(-1.0, 1.0)?;
    let (features, target) = (vec![side; 14], Interval::new(-2.0, 2.0)?);
    let bounds =
        Bounds { features, target, intercept: true, radius: None, missing: Missing::Refuse };
    let mut rng = Seed::root(1).rng();
    let mut uniform = || (f64::from(rng.next_u32()) / f64::from(u32::MAX)).mul_add(2.0, -1.0);
    let numbers: Vec<f64> = (0..rows * 15).map(|_| uniform()).collect();
    let (features, targets) = numbers.split_at(rows * 14);

    // Scaling, checking and summing rows that lie in memory; and reading them alone, which is as fast as anything can be.
    let (mut best, mut read) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..5 {
        let started = Instant::now();
        let mut summation = Summation::new(&bounds)?;
        summation.add(features, targets, |at| at as u64 + 1)?;
        best = best.min(started.elapsed().as_secs_f64());
        std::hint::black_box(summation.finish());
        let started = Instant::now();
        std::hint::black_box(pulp::Arch::new().dispatch(|| added(&numbers)));
        read = read.min(started.elapsed().as_secs_f64());
    }
    println!(
        "{}",
        json!({ "kind": "sums", "rows": rows, "seconds": best, "gigabytes_per_second": rows as f64 * 120.0 / best / 1e9, "memory_gigabytes_per_second": rows as f64 * 120.0 / read / 1e9 })
    );

    let mut table = Rows::new(&bounds)?;
    for (row, target) in features.chunks_exact(14).zip(targets).take(3_213) {
        table.push(row, *target)?;
    }
    let statistics = table.statistics();
    let input = Input::new(&bounds, &statistics, Some(&table));
    let budget = Budget { epsilon: Epsilon::new(1.0)?, delta: Delta::new(1e-5)? };
    for mechanism in REGRESSIONS {
        let mut noise = NoiseRng::experiment([1; 32]);
        let started = Instant::now();
        let released =
            (0..1_000).filter(|_| mechanism.fit(&input, budget, &mut noise).is_ok()).count();
        println!(
            "{}",
            json!({ "kind": "draws", "mechanism": mechanism.name(), "draws": 1_000, "released": released, "seconds": started.elapsed().as_secs_f64() })
        );
    }
    Ok(())
}

/// The sum of all numbers, in as many parts as it takes to wait for nothing but the memory.
#[inline(always)]
fn added(numbers: &[f64]) -> f64 {
    let mut sums = [0.0; 64];
    for chunk in numbers.as_chunks::<64>().0 {
        sums.iter_mut().zip(chunk).for_each(|(sum, x)| *sum += x);
    }
    sums.iter().sum()
}
