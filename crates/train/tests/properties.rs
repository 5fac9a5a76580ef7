//! What training promises: same seed same bits, the steps taken are the steps accounted for, every arm does what it says.
#![expect(clippy::unwrap_used, reason = "tests")]
use dosimeter_data::{BitMatrix, Dataset, Inputs, RecordId, Seed};
use dosimeter_model::kernels::Write;
use dosimeter_model::{Activation, Examples, Loss, Targets, Workspace, zoo};
use dosimeter_privacy::{
    Event, Generator, Ledger, NoiseMultiplier, NoiseRng, NoiseSource, Sampler, SamplingRate, Unit,
};
use dosimeter_train::{
    Architecture, Arm, Batch, EarlyStopping, Error, Optimizer, Progress, Recipe, Speed, Training,
    Unwatched, Watch, evaluate, fit, plain,
};
use rand_core::Rng;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};

const FAST: NoiseSource =
    NoiseSource { generator: Generator::ReplayableFast, sampler: Sampler::Float };

/// Class `c` of `classes` owns a block of bits that are 1 with probability 0.8, all others with 0.2.
fn bits(records: usize, width: usize, classes: usize, seed: u64) -> Dataset {
    let mut rng = Seed::root(seed).rng();
    let per_row = width.div_ceil(64);
    let mut words = vec![0_u64; records * per_row];
    let labels: Vec<u32> = (0..records).map(|r| (r % classes) as u32).collect();
    for r in 0..records {
        for j in 0..width {
            let own = j * classes / width == labels[r] as usize;
            let on = f64::from(rng.next_u32()) / 4_294_967_296.0 < if own { 0.8 } else { 0.2 };
            words[r * per_row + j / 64] |= u64::from(on) << (j % 64);
        }
    }
    Dataset::from_bits("blocks", BitMatrix { rows: records, width, words }, labels, classes)
        .unwrap()
}
fn ids(range: std::ops::Range<u32>) -> Vec<RecordId> {
    range.map(RecordId).collect()
}
fn recipe(arm: Arm) -> Recipe {
    Recipe {
        architecture: Architecture::Mlp { hidden: vec![16], activation: Activation::Tanh },
        optimizer: Optimizer::adam(0.01),
        batch_size: 32,
        epochs: 4,
        l2: 0.0,
        early_stopping: None,
        averaging: None,
        arm,
    }
}
fn dp(clipping_norm: f64, noise_multiplier: f64) -> Arm {
    Arm::Dp { clipping_norm, noise_multiplier: NoiseMultiplier::new(noise_multiplier).unwrap() }
}
fn training<'a>(
    recipe: &'a Recipe,
    dataset: &'a Dataset,
    records: &'a [RecordId],
    validation: &'a [RecordId],
) -> Training<'a> {
    Training {
        recipe,
        dataset,
        records,
        nominal_size: records.len(),
        validation,
        seed: Seed::root(1),
        noise: FAST,
        speed: Speed::default(),
    }
}
/// How often the ledger's one event happened.
fn count(ledger: &Ledger) -> u64 {
    assert_eq!(ledger.events().len(), 1);
    match &ledger.events()[0] {
        Event::Repeated { count, .. } => *count,
        _ => 1,
    }
}

/// Class 1 is bright below, class 0 above.
fn halves(records: usize, side: usize) -> Dataset {
    let mut rng = Seed::root(3).rng();
    let labels: Vec<u32> = (0..records).map(|r| (r % 2) as u32).collect();
    let mut values = Vec::new();
    for label in &labels {
        for row in 0..side {
            let bright = (2 * row >= side) == (*label == 1);
            let base = if bright { 150 } else { 50 };
            values.extend((0..side).map(|_| base + (rng.next_u32() % 50) as u8));
        }
    }
    let inputs = Inputs::Bytes { width: side * side, highest: 255, values };
    let names = vec!["above".into(), "below".into()];
    Dataset::from_images("halves", [1, side, side], inputs, labels, names).unwrap()
}

#[test]
fn a_convolutional_network_is_given_the_shape_of_the_images_and_a_table_has_none() {
    let dataset = halves(300, 12);
    let (all, held_out) = (ids(0..200), ids(200..300));
    for arm in [Arm::NoDp, dp(1.0, 0.05)] {
        let recipe = Recipe { architecture: Architecture::Lenet, ..recipe(arm) };
        let trained = fit(&training(&recipe, &dataset, &all, &held_out), &Unwatched).unwrap();
        assert_eq!(trained.graph.shape(dosimeter_model::Value::INPUT), [1, 12, 12]);
        assert!(trained.validation.unwrap().accuracy() > 0.9, "{arm:?}: {:?}", trained.validation);
    }
    let recipe = Recipe { architecture: Architecture::Lenet, ..recipe(Arm::NoDp) };
    let table = bits(200, 144, 2, 1);
    let refused = fit(&training(&recipe, &table, &all, &[]), &Unwatched);
    assert!(matches!(refused, Err(Error::Model(_))), "{refused:?}");
}

#[test]
fn undefended_training_learns_the_blocks_and_private_training_nearly_so() {
    let dataset = bits(1200, 60, 4, 1);
    let (records, test) = (ids(0..800), ids(800..1200));
    let mut plain = recipe(Arm::NoDp);
    plain.epochs = 30;
    let trained = fit(&training(&plain, &dataset, &records, &test), &Unwatched).unwrap();
    assert!(trained.train.accuracy() > 0.99, "{:?}", trained.train);
    assert!(trained.validation.unwrap().accuracy() > 0.95, "{:?}", trained.validation);
    let private = Recipe { epochs: 30, ..recipe(dp(1.0, 1.0)) };
    let trained = fit(&training(&private, &dataset, &records, &test), &Unwatched).unwrap();
    assert!(trained.validation.unwrap().accuracy() > 0.9, "{:?}", trained.validation);
    assert!(trained.history.iter().any(|e| e.clipped > 0.0));
}

#[test]
fn the_same_seed_gives_the_same_bits_on_any_threads_and_with_any_micro_batch() {
    let dataset = bits(1500, 70, 5, 2);
    let records = ids(0..1500);
    for arm in [Arm::NoDp, Arm::ClipOnly { clipping_norm: 0.5 }, dp(0.5, 1.0)] {
        let recipe = Recipe { batch_size: 600, epochs: 2, ..recipe(arm) };
        let train = |micro_batch, threads| {
            let speed = Speed { micro_batch, threads: NonZero::new(threads).unwrap() };
            let trained =
                fit(&Training { speed, ..training(&recipe, &dataset, &records, &[]) }, &Unwatched)
                    .unwrap();
            (trained.graph.to_bytes().unwrap(), trained.history)
        };
        let alone = train(1024, 1);
        assert_eq!(train(1, 1), alone);
        assert_eq!(train(300, 1), alone);
        // Batches of about 600 are three blocks of records.
        for threads in [2, 3, 7] {
            assert_eq!(train(1024, threads), alone);
            assert_eq!(train(300, threads), alone);
        }
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..3).map(|_| scope.spawn(|| train(512, 1))).collect();
            for worker in workers {
                assert_eq!(worker.join().unwrap(), alone);
            }
        });
        let seed = Seed::root(2);
        let other = Training { seed, ..training(&recipe, &dataset, &records, &[]) };
        assert_ne!(fit(&other, &Unwatched).unwrap().graph.to_bytes().unwrap(), alone.0);
    }
}

/// The whole arm once more by hand: the same draws, the same sum, divided by the expected batch size.
#[test]
fn clipping_only_divides_poisson_batches_by_the_expected_size() {
    let dataset = bits(200, 30, 3, 3);
    let records = ids(20..180);
    let mut recipe = recipe(Arm::ClipOnly { clipping_norm: 0.3 });
    recipe.optimizer = Optimizer::sgd(0.5);
    recipe.epochs = 1;
    let nominal_size = 150; // not the 160 there are: public and private size differ
    let task = Training { nominal_size, ..training(&recipe, &dataset, &records, &[]) };
    let trained = fit(&task, &Unwatched).unwrap();
    assert_eq!(trained.steps, 5); // 150 / 32 rounded up
    assert_eq!(trained.ledger.events(), [Event::NonPrivate]);

    let mut weights = task.seed.child("initial weights").rng();
    let mut graph = zoo::mlp(30, &[16], 3, Activation::Tanh, &mut weights).unwrap();
    let bytes = task.seed.child("batches and noise").bytes();
    let mut rng = NoiseRng::with_source(FAST, bytes).unwrap();
    let mut ledger = Ledger::new(Unit::Record);
    let mut sizes = vec![];
    for _ in 0..5 {
        let drawn = ledger.sampled(SamplingRate::new(32.0 / 150.0).unwrap(), 160, &mut rng);
        sizes.push(drawn.indices().len());
        let mut batch = Batch::default();
        batch.gather(&dataset, drawn.indices().iter().map(|i| records[*i as usize])).unwrap();
        let examples = Examples {
            rows: batch.rows().unwrap(),
            targets: Targets::Classes(batch.labels()),
            loss: Loss::CrossEntropy,
        };
        let mut sum = vec![0.0; graph.parameters().len()];
        let mut workspace = Workspace::new();
        graph
            .clipped_gradient_sum(&examples, 0.3, &mut workspace, &mut sum, Write::Overwrite)
            .unwrap();
        for (p, s) in graph.parameters_mut().iter_mut().zip(&sum) {
            *p -= 0.5 * s / 32.0;
        }
    }
    assert!(sizes.iter().any(|s| *s != 32), "the draws hit the expected size every time");
    for (a, b) in trained.graph.parameters().iter().zip(graph.parameters()) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
}

#[test]
fn an_empty_batch_is_a_noise_only_step_that_is_paid_for() {
    let dataset = bits(10, 8, 2, 4);
    let records = ids(3..4);
    let mut recipe = recipe(dp(1.0, 1.0));
    (recipe.batch_size, recipe.epochs) = (1, 1);
    let task = Training { nominal_size: 400, ..training(&recipe, &dataset, &records, &[]) };
    let trained = fit(&task, &Unwatched).unwrap();
    assert_eq!((trained.steps, count(&trained.ledger)), (400, 400));
    // Each of 400 batches holds the record with probability 1/400: 380 empty ones or fewer would be a 1e-9 event.
    assert!(trained.history[0].empty_batches > 380);
    assert_eq!(trained.ledger.noise(), [FAST]);
}

#[test]
fn early_stopping_accounts_for_the_steps_taken_and_restores_the_best_epoch() {
    let dataset = bits(400, 40, 4, 5);
    let (records, validation) = (ids(0..100), ids(100..400));
    for restore_best in [false, true] {
        let mut recipe = recipe(dp(1.0, 0.7));
        recipe.epochs = 200;
        recipe.optimizer = Optimizer::adam(0.05);
        recipe.early_stopping =
            Some(EarlyStopping { patience: 3, least_improvement: 0.0, restore_best });
        let trained = fit(&training(&recipe, &dataset, &records, &validation), &Unwatched).unwrap();
        let epochs = trained.history.len();
        assert!(trained.stopped_early && epochs < 200, "{epochs} epochs");
        assert_eq!(trained.steps, 4 * epochs as u64);
        assert_eq!(count(&trained.ledger), trained.steps, "epsilon is of the steps taken");
        let losses: Vec<f64> = trained.history.iter().map(|e| e.validation.unwrap().loss).collect();
        let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
        assert!((losses[epochs - 4] - least).abs() < 1e-12, "it stops 3 epochs after the best");
        let best = trained.validation.unwrap().loss;
        if restore_best {
            assert!((best - least).abs() < 1e-12 && trained.epoch == epochs - 3);
        } else {
            assert!(best > least && trained.epoch == epochs);
        }
        let again = evaluate(&trained.graph, &dataset, &validation).unwrap();
        assert_eq!(Some(again), trained.validation);
    }
}

#[test]
fn averaged_weights_are_the_average_over_the_updates_and_cost_what_the_updates_cost() {
    let dataset = bits(64, 20, 2, 9);
    let (records, held_out) = (ids(0..48), ids(48..64));
    for (arm, decay) in [(Arm::NoDp, 0.3), (dp(1.0, 0.5), 0.3), (dp(1.0, 0.5), 0.0_f64)] {
        // One update per epoch, so that shorter trainings give the weights behind each update.
        let last = |epochs| Recipe { batch_size: 48, epochs, ..recipe(arm) };
        let fitted = |recipe: &Recipe| {
            fit(&training(recipe, &dataset, &records, &held_out), &Unwatched).unwrap()
        };
        let weights: Vec<Vec<f32>> =
            (1..=6).map(|epochs| fitted(&last(epochs)).graph.parameters().to_vec()).collect();
        let mut first = Seed::root(1).child("initial weights").rng();
        let start = last(1).architecture.build(&dataset, 2, &mut first).unwrap();
        let mut expected: Vec<f64> = start.parameters().iter().map(|w| f64::from(*w)).collect();
        for (t, weights) in (1..).zip(&weights) {
            let t = f64::from(t);
            let kept = decay.min((1.0 + t) / (10.0 + t));
            for (average, weight) in expected.iter_mut().zip(weights) {
                *average = kept * *average + (1.0 - kept) * f64::from(*weight);
            }
        }
        let averaged = fitted(&Recipe { averaging: Some(decay), ..last(6) });
        for (got, expected) in averaged.graph.parameters().iter().zip(&expected) {
            assert!((f64::from(*got) - expected).abs() < 1e-6, "{arm:?}: {got}, not {expected}");
        }
        let without = fitted(&last(6));
        assert_eq!(averaged.ledger.events(), without.ledger.events());
        let judged = evaluate(&averaged.graph, &dataset, &held_out).unwrap();
        assert_eq!(averaged.validation, Some(judged));
        assert_eq!(averaged.history[5].validation, Some(judged), "each epoch judges the average");
        assert_eq!(averaged.graph == without.graph, decay == 0.0);
    }
}

#[test]
fn a_stop_request_ends_training_at_the_next_step() {
    struct After(AtomicU64);
    impl Watch for After {
        fn progress(&self, progress: &Progress) {
            assert_eq!(progress.planned_steps, 16);
            assert_eq!(progress.steps, 4 * progress.epochs as u64);
        }
        fn stop_requested(&self) -> bool {
            self.0.fetch_add(1, Ordering::Relaxed) == 6
        }
    }
    let dataset = bits(128, 20, 2, 6);
    let (records, recipe) = (ids(0..128), recipe(Arm::NoDp));
    let stopped = fit(&training(&recipe, &dataset, &records, &[]), &After(AtomicU64::new(0)));
    assert_eq!(stopped.unwrap_err(), Error::Stopped { steps: 6 });
}

#[test]
fn what_cannot_be_trained_is_refused_before_training() {
    let dataset = bits(50, 20, 2, 7);
    let (good, records) = (recipe(dp(1.0, 1.0)), ids(0..50));
    let fails = |recipe: &Recipe, records: &[RecordId], nominal_size| {
        let task = Training { nominal_size, ..training(recipe, &dataset, records, &[]) };
        fit(&task, &Unwatched).unwrap_err()
    };
    let bad_numbers = [
        Recipe { batch_size: 0, ..good.clone() },
        Recipe { epochs: 0, ..good.clone() },
        Recipe { l2: f64::NAN, ..good.clone() },
        Recipe { l2: -1.0, ..good.clone() },
        Recipe { averaging: Some(1.0), ..good.clone() },
        Recipe { averaging: Some(f64::NAN), ..good.clone() },
        Recipe { optimizer: Optimizer::adam(f64::INFINITY), ..good.clone() },
        Recipe { optimizer: Optimizer::sgd(0.0), ..good.clone() },
        Recipe { optimizer: Optimizer::Sgd { learning_rate: 0.1, momentum: 1.0 }, ..good.clone() },
        Recipe { arm: dp(0.0, 1.0), ..good.clone() },
        Recipe { arm: Arm::ClipOnly { clipping_norm: f64::NAN }, ..good.clone() },
        Recipe {
            architecture: Architecture::Mlp { hidden: vec![4, 0], activation: Activation::Relu },
            ..good
        },
    ];
    for bad in &bad_numbers {
        assert!(matches!(fails(bad, &records, 50), Error::Recipe { .. }), "{bad:?}");
    }
    assert!(matches!(fails(&good, &records, 31), Error::Recipe { .. }), "batch above nominal size");
    assert_eq!(fails(&good, &[], 50), Error::NoRecords);
    let twice = [RecordId(4), RecordId(1), RecordId(4)];
    assert_eq!(fails(&good, &twice, 50), Error::Repeated { record: RecordId(4) });
    let unknown = Error::UnknownRecord { record: RecordId(50), records: 50 };
    assert_eq!(fails(&good, &[RecordId(50)], 50), unknown);
    let early = EarlyStopping { patience: 2, least_improvement: 0.0, restore_best: false };
    let early = Recipe { early_stopping: Some(early), ..good };
    assert_eq!(fails(&early, &records, 50), Error::NoValidation);
}

#[test]
fn a_training_that_blows_up_says_so() {
    let dataset = bits(64, 20, 2, 8);
    let records = ids(0..64);
    let mut recipe = recipe(Arm::NoDp);
    recipe.architecture = Architecture::Mlp { hidden: vec![8, 8, 8], activation: Activation::Relu };
    recipe.optimizer = Optimizer::sgd(1e30);
    let failed = fit(&training(&recipe, &dataset, &records, &[]), &Unwatched);
    assert!(matches!(failed.unwrap_err(), Error::Diverged { .. }));
}

#[test]
fn recipes_survive_json_and_unknown_keys_are_refused() {
    for arm in [Arm::NoDp, Arm::ClipOnly { clipping_norm: 0.5 }, dp(0.5, 1.25)] {
        let text = serde_json::to_string(&recipe(arm)).unwrap();
        assert_eq!(serde_json::from_str::<Recipe>(&text).unwrap(), recipe(arm));
        let wrong = text.replace("\"epochs\"", "\"epoch\"");
        assert!(serde_json::from_str::<Recipe>(&wrong).is_err());
    }
    let forged = serde_json::to_string(&recipe(dp(0.5, 1.25))).unwrap().replace("1.25", "0.0");
    assert!(serde_json::from_str::<Recipe>(&forged).is_err(), "no noise is not DP");
}

/// Two numbers of opposite sign or not: no linear rule does better than chance.
#[test]
fn a_small_classifier_learns_exclusive_or_and_keeps_its_best_epoch() {
    let mut rng = Seed::root(9).rng();
    let mut draw = |n: usize| {
        let features: Vec<f32> = (0..2 * n)
            .map(|_| (f64::from(rng.next_u32()) / 2_147_483_648.0 - 1.0) as f32)
            .collect();
        let labels: Vec<u32> =
            features.chunks(2).map(|x| u32::from((x[0] > 0.0) != (x[1] > 0.0))).collect();
        (features, labels)
    };
    let ((x, y), (vx, vy)) = (draw(600), draw(300));
    let examples = plain::Labelled { width: 2, features: &x, labels: &y };
    let held_out = plain::Labelled { width: 2, features: &vx, labels: &vy };
    let recipe = plain::ClassifierRecipe {
        hidden: &[32],
        activation: Activation::Relu,
        classes: 2,
        epochs: 60,
        batch_size: 32,
        learning_rate: 0.01,
        l2: 0.0,
    };
    let validation = Some(plain::Validation { examples: held_out, patience: 10 });
    let fit = || plain::fit_classifier(&recipe, examples, validation, Seed::root(3)).unwrap();
    let graph = fit();
    assert_eq!(graph.to_bytes().unwrap(), fit().to_bytes().unwrap());
    let dataset = Dataset::from_reals("xor", 2, vx.clone(), vy.clone(), 2).unwrap();
    let held = evaluate(&graph, &dataset, &ids(0..300)).unwrap();
    assert!(held.accuracy() > 0.93, "{held:?}");
    let short = plain::Labelled { width: 2, features: &x[1..], labels: &y };
    assert!(plain::fit_classifier(&recipe, short, None, Seed::root(3)).is_err());
}
