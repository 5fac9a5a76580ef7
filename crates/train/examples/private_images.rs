//! DP-SGD on images from first to last: load, calibrate, train, judge. Prints JSON lines: one per epoch, one at the end.
//!
//! `cargo run --release -p dosimeter-train --example private_images -- mnist train-images-idx3-ubyte.gz t10k-images-idx3-ubyte.gz`
//!
//! `... -- cifar10 TRAIN TEST [EPSILON [EPOCHS [SEED]]]`, each a folder of images per class, or a zip of it.
//!
//! Networks, batch sizes, clipping norm and the rate for MNIST are those of Tramer and Boneh (arXiv:2011.11660). For CIFAR-10, pooling, rate
//! and averaging were chosen in trainings of a few epochs by the accuracy on a tenth of the training images, which epsilon does not count, as is
//! usual; nothing was chosen by looking at the test images.
#![expect(clippy::print_stdout, reason = "an example talks")]
use dosimeter_data::datasets::{Colour, IdxImages, ImageFolder};
use dosimeter_data::{Dataset, DatasetSpec, Inputs, RecordId, Seed, datasets};
use dosimeter_model::{Activation, Pool};
use dosimeter_privacy::calibrate::{self, Budget};
use dosimeter_privacy::{
    Delta, Epsilon, Generator, NoiseSource, Relation, Sampler, SamplingRate, accountants,
};
use dosimeter_train::{
    Architecture, Arm, Optimizer, Progress, Recipe, Speed, Training, Watch, evaluate, fit,
};
use serde_json::json;
use std::error::Error;
use std::thread::available_parallelism;
use std::time::Instant;

const DELTA: f64 = 1e-5;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, train, test, rest @ ..] = arguments.as_slice() else {
        return Err("needed: mnist or cifar10, training images, test images".into());
    };
    let cifar = match name.as_str() {
        "mnist" => false,
        "cifar10" => true,
        other => return Err(format!("needed mnist or cifar10, got {other}").into()),
    };
    let number = |i: usize, default: f64| rest.get(i).map_or(Ok(default), |text| text.parse());
    let epsilon = Epsilon::new(number(0, if cifar { 7.5 } else { 3.0 })?)?;
    let epochs = number(1, if cifar { 60.0 } else { 12.0 })? as usize;
    let seed = Seed::root(number(2, 1.0)? as u64);

    let images = |path: &str| -> Result<Dataset, Box<dyn Error>> {
        let spec = if cifar {
            let whole = (None, None, None);
            let (crop, resize, classes) = whole;
            let folder =
                ImageFolder { path: path.into(), colour: Colour::Rgb, crop, resize, classes };
            DatasetSpec::ImageFolder(folder)
        } else {
            DatasetSpec::Idx(IdxImages { path: path.into(), labels: None, classes: None })
        };
        Ok(scaled(datasets::load(&spec, seed)?, if cifar { 4.0 } else { 2.0 }))
    };
    let (train, test) = (images(train)?, images(test)?);
    if train.class_names != test.class_names {
        return Err("training and test images have other classes".into());
    }
    let activation = Activation::Tanh;
    let architecture = if cifar {
        Architecture::Cnn { activation, pool: Pool::Max }
    } else {
        Architecture::SmallCnn { activation }
    };

    // The number of records is public here; with it go the sampling rate and the number of steps.
    let batch_size = if cifar { 1024 } else { 512 };
    let steps = (train.len().div_ceil(batch_size) * epochs) as u64;
    let sampling_rate = SamplingRate::new(batch_size as f64 / train.len() as f64)?;
    let accountant = accountants::accountant("pld").ok_or("no pld accountant")?;
    let budget = Budget { epsilon, delta: Delta::new(DELTA)?, relation: Relation::AddRemove };
    let noise_multiplier = calibrate::noise_multiplier(accountant, budget, sampling_rate, steps)?;
    let learning_rate = if cifar { 2.0 } else { 0.5 };
    let recipe = Recipe {
        architecture,
        optimizer: Optimizer::Sgd { learning_rate, momentum: 0.9 },
        batch_size,
        epochs,
        l2: 0.0,
        early_stopping: None,
        averaging: cifar.then_some(0.99),
        arm: Arm::Dp { clipping_norm: 0.1, noise_multiplier },
    };
    let all = |set: &Dataset| (0..set.len() as u32).map(RecordId).collect::<Vec<_>>();
    let training = Training {
        recipe: &recipe,
        dataset: &train,
        records: &all(&train),
        nominal_size: train.len(),
        validation: &[],
        seed,
        // The same seed gives the same noise: for a model that is given away take `Generator::OperatingSystem` and `Sampler::Exact`.
        noise: NoiseSource { generator: Generator::ReplayableChaCha, sampler: Sampler::Float },
        speed: Speed { threads: available_parallelism()?, ..Speed::default() },
    };
    let began = Instant::now();
    let trained = fit(&training, &Line { began })?;
    let spent = accountant.epsilon_upper(&trained.ledger, budget.relation, budget.delta)?;
    let judged = evaluate(&trained.graph, &test, &all(&test))?;
    let result = json!({
        "dataset": name, "train_records": train.len(), "steps": trained.steps, "seconds": began.elapsed().as_secs_f64(),
        "test_correct": judged.correct, "test_records": judged.records, "test_accuracy": judged.accuracy(),
        "train_accuracy": trained.train.accuracy(), "epsilon_upper": spent, "delta": DELTA, "relation": budget.relation,
        "unit": trained.ledger.unit(), "accountant": "pld", "noise_multiplier": noise_multiplier, "recipe": recipe,
        "clipped": trained.history.iter().map(|epoch| epoch.clipped).collect::<Vec<_>>(),
        "train_loss": trained.history.iter().map(|epoch| epoch.train_loss).collect::<Vec<_>>(),
    });
    println!("{result}");
    Ok(())
}

/// Numbers in `[-range / 2, range / 2]` instead of `[0, 1]`: a mean far from 0 takes most of the first layer's gradient.
fn scaled(mut images: Dataset, range: f32) -> Dataset {
    let width = images.width();
    let mut values = Vec::with_capacity(images.len() * width);
    for row in 0..images.len() {
        images.inputs.append_row(row, &mut values);
    }
    values.iter_mut().for_each(|value| *value = (*value - 0.5) * range);
    images.inputs = Inputs::Reals { width, values };
    images
}

struct Line {
    began: Instant,
}
impl Watch for Line {
    fn progress(&self, progress: &Progress) {
        let seconds = self.began.elapsed().as_secs_f64();
        let Progress { epochs, steps, planned_steps, .. } = *progress;
        println!(
            "{}",
            json!({ "epoch": epochs, "steps": steps, "of": planned_steps, "seconds": seconds })
        );
    }
}
