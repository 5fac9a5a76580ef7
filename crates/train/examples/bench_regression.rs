//! `bench/run.py --areas regression`: sums of rows in memory, and 1,000 draws of every mechanism. Prints JSON lines.
#![expect(clippy::print_stdout, reason = "a bench talks")]
use dosimeter_data::Seed;
use dosimeter_privacy::{Delta, Epsilon, NoiseRng};
use dosimeter_train::regression::{
    Bounds, Budget, Input, Interval, Missing, REGRESSIONS, Rows, Statistics,
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

    // Scaling, checking and summing rows that lie in memory.
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let started = Instant::now();
        let mut statistics = Statistics::new(bounds.dimension());
        let mut scaled = vec![0.0; bounds.dimension()];
        for (i, row) in numbers.chunks_exact(15).enumerate() {
            let number = i as u64 + 1;
            let y =
                bounds.scale(number, &row[..14], row[14], &mut scaled, &mut statistics.clipped)?;
            statistics.add(&scaled, y);
        }
        best = best.min(started.elapsed().as_secs_f64());
        std::hint::black_box(statistics);
    }
    println!(
        "{}",
        json!({ "kind": "sums", "rows": rows, "seconds": best, "gigabytes_per_second": rows as f64 * 120.0 / best / 1e9 })
    );

    let mut table = Rows::new(&bounds)?;
    for row in numbers.chunks_exact(15).take(3_213) {
        table.push(&bounds, &row[..14], row[14])?;
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
