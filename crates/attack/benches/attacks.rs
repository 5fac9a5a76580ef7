//! Time of the two trained attacks on made-up signals of the sizes the studies use.
//!
//! `cargo bench -p dosimeter-attack --bench attacks [-- shadow|purchase|location]`
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program for people")]
use dosimeter_attack::membership::{ShadowModel, WhiteBox, WhiteBoxSettings};
use dosimeter_attack::{Attack, ModelFacts, ModelSignals, Shadow, View};
use dosimeter_data::{RecordId, Seed};
use rand_core::Rng;
use std::time::Instant;

/// Answers of a model that overfits: the true class leads by 0 to 8, more for members.
fn model(
    first: u32,
    rows: usize,
    classes: usize,
    hidden: usize,
    seed: Seed,
) -> (ModelSignals, Vec<bool>) {
    let mut rng = seed.rng();
    let mut unit = || f64::from(rng.next_u32()) / f64::from(u32::MAX);
    let (mut logits, mut last, mut member) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..rows {
        member.push(unit() < 0.5);
        let lead = 8.0 * if member[row] { unit().sqrt() } else { unit() };
        for class in 0..classes {
            let lead = if class == row % classes { lead } else { 0.0 };
            logits.push(2.0f64.mul_add(unit(), lead) as f32);
        }
        last.extend((0..hidden).map(|_| 2.0f64.mul_add(unit(), -1.0) as f32));
    }
    let records = (first..).take(rows).map(RecordId).collect();
    let labels = (0..rows).map(|r| (r % classes) as u32).collect();
    let last_layer_inputs = (hidden > 0).then_some((hidden, last));
    (ModelSignals { records, labels, classes, logits, last_layer_inputs }, member)
}

fn shadow() {
    let (target, _) = model(0, 16_000, 100, 0, Seed::root(1));
    let shadows: Vec<Shadow> = (1..=10_u32)
        .map(|s| {
            let (signals, member) =
                model(s * 16_000, 16_000, 100, 0, Seed::root(1).index(s.into()));
            Shadow { signals, member, facts: ModelFacts::default() }
        })
        .collect();
    let view = View::new(&target, Seed::root(2)).unwrap().with_shadows(&shadows).unwrap();
    let start = Instant::now();
    let outcome = ShadowModel::DEFAULT.run(&view).unwrap();
    let seconds = start.elapsed().as_secs_f64();
    let threads = rayon::current_num_threads();
    println!(
        "shadow_model: 100 classes, 10 shadows of 16,000 rows, 50 epochs, {threads} threads: {seconds:.2} s, {} judged",
        outcome.scores.judged.len()
    );
}

fn white_box(name: &str, classes: usize, known: usize, filters: usize) {
    let (target, member) = model(0, known + 100, classes, 128, Seed::root(3));
    let told: Vec<_> = (0..known).map(|i| (RecordId(i as u32), member[i])).collect();
    let view = View::new(&target, Seed::root(2)).unwrap().with_known(&told).unwrap();
    let time = |epochs| {
        let settings =
            WhiteBoxSettings { epochs, patience: 500, filters, ..WhiteBoxSettings::DEFAULT };
        let start = Instant::now();
        WhiteBox { settings }.run(&view).unwrap();
        start.elapsed().as_secs_f64()
    };
    let (one, three) = (time(1), time(3));
    let threads = rayon::current_num_threads();
    println!(
        "white_box: {name}, {known} known, {filters} filters, {threads} threads: {:.3} s an epoch (80 % trained on, 20 % validation)",
        (three - one) / 2.0
    );
}

fn main() {
    let wanted = std::env::args().nth(1).filter(|a| !a.starts_with("--"));
    let run = |name: &str| wanted.as_deref().is_none_or(|w| w == name);
    if run("shadow") {
        shadow();
    }
    if run("location") {
        white_box("h = 128, C = 30", 30, 1000, 1000);
        white_box("h = 128, C = 30", 30, 1000, 32);
    }
    if run("purchase") {
        white_box("h = 128, C = 100", 100, 8000, 1000);
        white_box("h = 128, C = 100", 100, 8000, 32);
    }
}
