//! Statistical checks: fixed seeds, false-failure probability at most 1e-9 per check for a fresh seed.
#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(
    clippy::suboptimal_flops,
    clippy::float_cmp,
    reason = "checks written as in the books; one-hot values are exact"
)]
use dosimeter_data::{BitMatrix, Column, ColumnKind, Dataset, Inputs, RecordId, Seed};
use dosimeter_model::{Activation, Rows};
use dosimeter_privacy::{
    Epsilon, Event, Generator, NoiseMultiplier, NoiseRng, NoiseSource, Sampler,
};
use dosimeter_testing::{FALSE_FAILURE, hoeffding_margin};
use dosimeter_train::{
    Architecture, Arm, Batch, Optimizer, Recipe, Speed, Training, Unwatched, fit, local,
};

/// One step with noise less the same step without it is the noise, so its size is seen as the optimizer uses it.
///
/// The sum of squares of `n` standard Gaussians leaves `n -+ (2 sqrt(n x) + 2 x)` with probability at most
/// `2 e^-x` (Laurent and Massart 2000, Lemma 1). With n = 89,956 and `x = ln(2 / 1e-9)` that is 3.1 %: a noise
/// standard deviation off by 3.2 % or more fails almost surely, and so does a clipping norm, a normaliser or a noise
/// multiplier off by as much. The exact sampler's noise is wider by 1/4096 by design.
#[test]
fn the_noise_of_a_step_is_noise_multiplier_times_clipping_norm_over_batch_size() {
    let (width, records) = (600, 64);
    let words: Vec<u64> =
        (0..records * 10_u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40).collect();
    let bits = BitMatrix { rows: records as usize, width, words };
    let labels = (0..records as u32).map(|r| r % 100).collect();
    let dataset = Dataset::from_bits("fixed", bits, labels, 100).unwrap();
    let ids: Vec<RecordId> = (0..records as u32).map(RecordId).collect();
    let (clipping_norm, multiplier, batch_size, rate) = (0.3, 1.7, 16, 0.25);
    for (generator, sampler) in [
        (Generator::ReplayableFast, Sampler::Float),
        (Generator::ReplayableChaCha, Sampler::Float),
        (Generator::ReplayableChaCha, Sampler::Exact),
    ] {
        let after = |arm| {
            let recipe = Recipe {
                architecture: Architecture::Mlp { hidden: vec![128], activation: Activation::Tanh },
                optimizer: Optimizer::sgd(rate),
                batch_size,
                epochs: 1,
                l2: 0.1,
                early_stopping: None,
                averaging: None,
                arm,
            };
            let training = Training {
                recipe: &recipe,
                dataset: &dataset,
                records: &ids,
                nominal_size: batch_size, // so that there is one step; the sampling rate is 1
                validation: &[],
                seed: Seed::root(11),
                noise: NoiseSource { generator, sampler },
                speed: Speed::default(),
            };
            fit(&training, &Unwatched).unwrap()
        };
        let clipped = after(Arm::ClipOnly { clipping_norm });
        let noise_multiplier = NoiseMultiplier::new(multiplier).unwrap();
        let noisy = after(Arm::Dp { clipping_norm, noise_multiplier });
        assert_eq!((clipped.steps, noisy.steps), (1, 1));
        let unit = rate * multiplier * clipping_norm / batch_size as f64;
        let (mut sum, mut squares) = (0.0, 0.0);
        let (a, b) = (noisy.graph.parameters(), clipped.graph.parameters());
        for (a, b) in a.iter().zip(b) {
            let x = (f64::from(*a) - f64::from(*b)) / unit;
            sum += x;
            squares += x * x;
        }
        let n = a.len() as f64;
        let x = (2.0 / FALSE_FAILURE).ln();
        let margin = 2.0 * (x / n).sqrt() + 2.0 * x / n + 2.0 / 4096.0;
        assert!((squares / n - 1.0).abs() < margin, "{generator:?} {sampler:?}: {}", squares / n);
        // A mean of n standard Gaussians is above sqrt(2 x / n) in size with probability at most 2 e^-x.
        assert!((sum / n).abs() < (2.0 * x / n).sqrt() * 1.001, "{}", sum / n);
    }
}

fn table(records: usize) -> Dataset {
    let column = |name: &str, kind, first_input| Column { name: name.into(), kind, first_input };
    let levels = vec!["a".into(), "b".into(), "c".into()];
    let real = ColumnKind::Real { low: -5.0, high: 5.0 };
    let columns = vec![
        column("bit", ColumnKind::Bit, 0),
        column("category", ColumnKind::Category(levels), 1),
        column("number", real, 4),
        column("another bit", ColumnKind::Bit, 5),
    ];
    let values = [1.0, 0.0, 1.0, 0.0, 0.5, 0.0].repeat(records);
    let inputs = Inputs::Reals { width: 6, values };
    let labels = (0..records as u32).map(|r| r % 2).collect();
    Dataset::from_parts("table", columns, inputs, labels, vec!["no".into(), "yes".into()]).unwrap()
}

/// `epsilon = 2`: a bit is kept with probability `e^2 / (1 + e^2) = 0.880797`, one of three categories with
/// `e^2 / (e^2 + 2) = 0.786986` (each other 0.106507), and 1/2 plus Laplace noise of scale 1/2 leaves `[0, 1]` with
/// probability `e^-1 = 0.367879`. Worked by hand. 40,000 draws see a probability off by 0.033.
#[test]
fn local_randomizers_keep_as_often_as_epsilon_says() {
    let n = 40_000;
    let dataset = table(n);
    let mut rng = NoiseRng::replayable([3; 32]);
    let (randomized, ledger) =
        local::randomize(&dataset, Epsilon::new(2.0).unwrap(), &mut rng).unwrap();
    assert_eq!(randomized.labels, dataset.labels, "labels are public");
    let Inputs::Reals { values, .. } = &randomized.inputs else { unreachable!() };
    let share = |holds: &dyn Fn(&[f32]) -> bool| {
        values.chunks(6).filter(|row| holds(row)).count() as f64 / n as f64
    };
    let margin = hoeffding_margin(n as u32);
    for (what, got, right) in [
        ("bit kept", share(&|r| r[0] > 0.5), 0.880_797),
        ("other bit kept", share(&|r| r[5] < 0.5), 0.880_797),
        ("category kept", share(&|r| r[2] > 0.5), 0.786_986),
        ("first other category", share(&|r| r[1] > 0.5), 0.106_507),
        ("number cut off below", share(&|r| r[4] <= 0.0), 0.183_940),
        ("number cut off above", share(&|r| r[4] >= 1.0), 0.183_940),
    ] {
        assert!((got - right).abs() < margin, "{what}: {got}, not {right}");
    }
    assert!(values.chunks(6).all(|r| r[1] + r[2] + r[3] == 1.0), "one level each");
    assert!(values.iter().all(|v| (0.0..=1.0).contains(v)));
    // The ledger is one record's: two bits, one category, one number (scale 2/epsilon of its half range).
    let counts: Vec<(u64, &Event)> = ledger
        .events()
        .iter()
        .map(|e| match e {
            Event::Repeated { event, count } => (*count, &**event),
            event => (1, event),
        })
        .collect();
    assert_eq!(counts.len(), 3);
    assert!(matches!(counts[0], (2, Event::RandomizedResponse { categories: 2, .. })));
    assert!(matches!(counts[1], (1, Event::RandomizedResponse { categories: 3, .. })));
    let (1, Event::Laplace { scale }) = counts[2] else { panic!("{counts:?}") };
    assert!((scale.get() - 1.0).abs() < 1e-12);
}

#[test]
fn bits_are_randomized_like_the_same_numbers_and_others_are_refused() {
    let words: Vec<u64> = (0..20_000_u64).flat_map(|r| [(r % 7) << 30, 1]).collect();
    let bits = BitMatrix { rows: 20_000, width: 70, words: words.clone() };
    let dataset = Dataset::from_bits("bits", bits, vec![0; 20_000], 1).unwrap();
    let mut rng = NoiseRng::experiment([4; 32]);
    let epsilon = Epsilon::new(3_f64.ln()).unwrap(); // kept with probability 3/4
    let (randomized, ledger) = local::randomize(&dataset, epsilon, &mut rng).unwrap();
    let Inputs::Bits(after) = &randomized.inputs else { unreachable!() };
    let flipped: u32 = after.words.iter().zip(&words).map(|(a, b)| (a ^ b).count_ones()).sum();
    let n = 20_000 * 70;
    assert!((f64::from(flipped) / f64::from(n) - 0.25).abs() < hoeffding_margin(n as u32));
    assert!(after.words.chunks(2).all(|row| row[1] >> 6 == 0), "padding stays 0");
    let Event::Repeated { count: 70, .. } = ledger.events()[0] else { panic!("{ledger:?}") };

    // A one-hot group with two levels on tells nothing that can be randomized.
    let mut broken = table(3);
    let Inputs::Reals { values, .. } = &mut broken.inputs else { unreachable!() };
    values[7] = 1.0;
    let error = local::randomize(&broken, epsilon, &mut rng).unwrap_err();
    assert!(error.to_string().contains("category"), "{error}");
}

/// Of an image each number is a feature: 12 releases of the numbers' Laplace, none of the bytes' steps kept, and the batches of
/// bytes are those of the numbers they stand for.
#[test]
fn images_of_bytes_are_trained_on_and_randomized_as_the_numbers_they_stand_for() {
    let bytes: Vec<u8> = (0..24).map(|i| i * 10).collect();
    let values: Vec<f32> = bytes.iter().map(|&b| f32::from(b) / 240.0).collect();
    let of = |inputs| {
        let names = vec!["a".into(), "b".into()];
        Dataset::from_images("images", [3, 2, 2], inputs, vec![0, 1], names).unwrap()
    };
    let reals = of(Inputs::Reals { width: 12, values: values.clone() });
    let bytes = of(Inputs::Bytes { width: 12, highest: 240, values: bytes });
    let mut batches = [Batch::default(), Batch::default()];
    for (batch, dataset) in batches.iter_mut().zip([&reals, &bytes]) {
        batch.gather(dataset, [RecordId(1), RecordId(0)]).unwrap();
    }
    assert_eq!(batches[0].rows(), batches[1].rows());
    let Rows::Dense { width: 12, values: gathered } = batches[1].rows().unwrap() else {
        panic!("dense")
    };
    assert_eq!(gathered, [&values[12..], &values[..12]].concat());
    let randomize = |dataset| {
        let epsilon = Epsilon::new(1.0).unwrap();
        local::randomize(dataset, epsilon, &mut NoiseRng::replayable([5; 32])).unwrap()
    };
    let ((from_reals, ledger), (from_bytes, _)) = (randomize(&reals), randomize(&bytes));
    assert_eq!(from_reals.inputs, from_bytes.inputs);
    assert_eq!(from_bytes.shape(), Some([3, 2, 2]));
    let Event::Repeated { count: 12, .. } = ledger.events()[0] else { panic!("{ledger:?}") };
}
