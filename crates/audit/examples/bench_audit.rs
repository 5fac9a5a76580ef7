//! Times of an audit by number of scores, as JSON: `cargo run --release -p dosimeter-audit --example bench_audit`.
//!
//! Each figure is the median of several rounds in milliseconds, one thread. `join_roc_auc` takes scores to a sorted curve, its area and
//! DeLong's interval; each bound is timed on the sorted curve; `all` is everything once, from plain arrays to both corrected bounds.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::suboptimal_flops,
    reason = "a bench prints and may stop at the first surprise"
)]
use dosimeter_audit::{BOUNDS, Conditions, Evidence, Roc};
use dosimeter_data::Seed;
use dosimeter_privacy::Delta;
use rand_core::Rng;
use std::hint::black_box;
use std::time::Instant;

fn uniform(rng: &mut impl Rng) -> f64 {
    f64::from(rng.next_u32()) / f64::from(u32::MAX)
}

fn median_ms(rounds: usize, mut work: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[rounds / 2]
}

fn main() {
    let conditions = Conditions::new(Delta::new(1e-5).unwrap());
    let mut lines = Vec::new();
    let mut previous: Option<f64> = None;
    for count in [10_000_u32, 100_000, 1_000_000] {
        let rounds = if count > 100_000 { 5 } else { 15 };
        let mut rng = Seed::root(1).index(u64::from(count)).rng();
        let member: Vec<bool> = (0..count).map(|_| rng.next_u32() & 1 == 1).collect();
        // A leak of about one standard deviation: sums of uniforms.
        let scores: Vec<f64> = member
            .iter()
            .map(|m| (0..6).map(|_| uniform(&mut rng)).sum::<f64>() + 0.7 * f64::from(u8::from(*m)))
            .collect();
        let sorted = || Roc::of(&Evidence::from_arrays(&scores, &member).unwrap()).unwrap();
        let roc = sorted();
        let join = median_ms(rounds, || {
            let roc = sorted();
            black_box((roc.auc(), roc.auc_interval(0.95).unwrap()));
        });
        let mut fields = vec![
            format!("\"scores\": {count}"),
            format!("\"auc\": {:.5}", roc.auc()),
            format!("\"join_roc_auc_ms\": {join:.3}"),
        ];
        for bound in BOUNDS {
            let ms = median_ms(rounds, || {
                black_box(bound.epsilon_lower(&roc, &conditions).unwrap());
            });
            let value = bound.epsilon_lower(&roc, &conditions).unwrap().value;
            fields.push(format!(
                "\"{}\": {{\"ms\": {ms:.3}, \"epsilon_lower\": {value:.5}}}",
                bound.name()
            ));
        }
        let all = median_ms(rounds, || {
            let roc = sorted();
            black_box((roc.auc_interval(0.95).unwrap(), roc.tpr_at(0.001, 0.95).unwrap()));
            for bound in BOUNDS {
                black_box(bound.epsilon_lower(&roc, &conditions).unwrap());
            }
        });
        fields.push(format!("\"all_ms\": {all:.3}"));
        if let Some(before) = previous {
            fields.push(format!("\"growth\": {:.2}", all / before));
        }
        previous = Some(all);
        lines.push(format!("  {{{}}}", fields.join(", ")));
    }
    println!("[\n{}\n]", lines.join(",\n"));
}
