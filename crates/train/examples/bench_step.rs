//! One optimizer step on one thread, for `bench/run.py`; prints JSON lines.
//!
//! A step is forward, cross-entropy and backward, for the private steps also per-record norms, clipping, the clipped
//! sum and noise, then Adam; the batch of 128 records is fixed. Variants: `plain-adam`; `dp-adam` with the fast
//! generator and float sampler; `dp-adam chacha` with ChaCha20 and float sampler; `dp-adam exact` with ChaCha20 and the
//! exact sampler; `clipped sum`, `noise fast` and `products` (the matrix products of a dense step) are parts of a step. The last line is the matrix product's peak.
//!
//! `bench_step [--case small|large|all] [--input dense|binary|all] [--variants NAME,..] [--seconds S]`
#![expect(clippy::print_stdout, reason = "a bench program talks")]
use cpu_time::ThreadTime;
use dosimeter_data::Seed;
use dosimeter_model::kernels::{self, Matrix, Write};
use dosimeter_model::{
    Activation, Examples, Graph, Layer, Linear, Loss, Rows, Targets, Workspace, zoo,
};
use dosimeter_privacy::mechanisms::Gaussian;
use dosimeter_privacy::{
    Bounded, BoundedInParts, Generator, Ledger, NoiseMultiplier, NoiseRng, NoiseSource, Released,
    Sampler, Unit,
};
use dosimeter_train::Optimizer;
use dosimeter_train::optimizer::{PlainOptimizer, PrivateOptimizer};
use rand_core::Rng;
use std::error::Error;
use std::time::Instant;

const BATCH: usize = 128;
const CLIPPING_NORM: f64 = 1.0;

struct Case {
    name: &'static str,
    inputs: usize,
    hidden: &'static [usize],
    activation: Activation,
    density: f64,
}
const CASES: [Case; 2] = [
    Case { name: "small", inputs: 600, hidden: &[128], activation: Activation::Tanh, density: 0.2 },
    Case {
        name: "large",
        inputs: 6169,
        hidden: &[512, 128],
        activation: Activation::Relu,
        density: 0.1,
    },
];
const CLASSES: usize = 100;

/// What is timed.
const VARIANTS: [&str; 7] = [
    "plain-adam",
    "dp-adam",
    "dp-adam chacha",
    "dp-adam exact",
    "clipped sum",
    "noise fast",
    "products",
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str, default: &str| {
        let at = arguments.iter().position(|a| a == name);
        at.and_then(|i| arguments.get(i + 1)).map_or(default, String::as_str).to_owned()
    };
    let (case, input) = (option("--case", "all"), option("--input", "all"));
    let seconds: f64 = option("--seconds", "1").parse()?;
    let variants = option("--variants", "");
    for c in CASES.iter().filter(|c| case == "all" || case == c.name) {
        for kind in ["dense", "binary"].iter().filter(|k| input == "all" || input == **k) {
            for variant in VARIANTS {
                if variants.is_empty() || variants.split(',').any(|v| v == variant) {
                    measure(c, kind, variant, seconds)?;
                }
            }
        }
    }
    peak();
    Ok(())
}

struct Step {
    graph: Graph,
    workspace: Workspace,
    sum: Vec<f32>,
    part: Vec<f32>,
    plain: PlainOptimizer,
    private: PrivateOptimizer,
    ledger: Ledger,
    mechanism: Gaussian,
    noise: NoiseRng,
    scratch: Vec<f32>,
    results: Vec<f32>,
}
impl Step {
    fn run(&mut self, variant: &str, examples: &Examples<'_>) -> Result<(), Box<dyn Error>> {
        let (workspace, sum) = (&mut self.workspace, &mut self.sum);
        match variant {
            "plain-adam" => {
                let parts = self.graph.gradient_in_parts(
                    examples,
                    None,
                    workspace,
                    sum,
                    Write::Overwrite,
                )?;
                self.plain.step_in_parts(&mut self.graph, parts, &mut self.part, BATCH as f64);
                return Ok(());
            }
            "products" => {
                self.products();
                return Ok(());
            }
            "noise fast" => {
                let bounded = Bounded::from_clipped_sum(std::mem::take(sum), CLIPPING_NORM)?;
                let released = self.ledger.release(&self.mechanism, bounded, &mut self.noise)?;
                self.sum = released.into_inner();
                return Ok(());
            }
            _ => {}
        }
        let norm = Some(CLIPPING_NORM);
        let mut parts =
            self.graph.gradient_in_parts(examples, norm, workspace, sum, Write::Overwrite)?;
        let longest = parts.longest();
        if variant == "clipped sum" {
            self.part.resize(longest, 0.0);
            while parts.next_part(&mut self.part) > 0 {}
            return Ok(());
        }
        let mut next = |out: &mut [f32]| parts.next_part(out);
        let bounded =
            BoundedInParts::from_clipped_sum(CLIPPING_NORM, longest, &mut next, &mut self.part)?;
        let mut update = self.private.begin(&mut self.graph, BATCH as f64);
        let each = |start, part: Released<&[f32]>| update.part(start, part);
        Ok(self.ledger.release_in_parts(&self.mechanism, bounded, &mut self.noise, each)?)
    }

    /// The matrix products of a dense step alone: forward and weight gradient of every linear layer, input gradient
    /// of all but the first.
    fn products(&mut self) {
        let mut offset = 0;
        for (i, layer) in self.graph.layers().iter().enumerate() {
            let Layer::Linear(Linear { inputs, outputs }) = *layer else { continue };
            let weights = &self.graph.parameters()[offset..offset + inputs * outputs];
            let weights = Matrix::new(weights, inputs, outputs);
            let x = &self.scratch[..BATCH * inputs];
            let (y, rest) = self.results.split_at_mut(BATCH * outputs);
            kernels::matmul(Matrix::new(x, BATCH, inputs), weights, y, Write::Overwrite);
            if i > 0 {
                let (g, y) = (&mut rest[..BATCH * inputs], Matrix::new(y, BATCH, outputs));
                kernels::matmul(y, weights.transposed(), g, Write::Overwrite);
            }
            let sum = &mut self.sum[offset..offset + inputs * outputs];
            let (x, y) =
                (Matrix::new(x, BATCH, inputs).transposed(), Matrix::new(y, BATCH, outputs));
            kernels::matmul(x, y, sum, Write::Overwrite);
            offset += inputs * outputs + outputs;
        }
    }
}

fn measure(case: &Case, input: &str, variant: &str, seconds: f64) -> Result<(), Box<dyn Error>> {
    let seed = Seed::root(1);
    let mut rng = seed.child("inputs").rng();
    let words_per_row = case.inputs.div_ceil(64);
    let (mut values, mut words) = (Vec::new(), vec![0_u64; BATCH * words_per_row]);
    for row in 0..BATCH {
        for j in 0..case.inputs {
            let u = f64::from(rng.next_u32()) / f64::from(u32::MAX);
            values.push(2.0_f64.mul_add(u, -1.0) as f32);
            words[row * words_per_row + j / 64] |= u64::from(u < case.density) << (j % 64);
        }
    }
    let rows = match input {
        "dense" => Rows::Dense { width: case.inputs, values: &values },
        _ => Rows::Bits { width: case.inputs, words: &words },
    };
    let labels: Vec<u32> = (0..BATCH).map(|i| (i * 7 % CLASSES) as u32).collect();
    let examples = Examples { rows, targets: Targets::Classes(&labels), loss: Loss::CrossEntropy };
    let mut weights = seed.child("weights").rng();
    let graph = zoo::mlp(case.inputs, case.hidden, CLASSES, case.activation, &mut weights)?;
    let source = match variant {
        "dp-adam chacha" => {
            NoiseSource { generator: Generator::ReplayableChaCha, sampler: Sampler::Float }
        }
        "dp-adam exact" => {
            NoiseSource { generator: Generator::ReplayableChaCha, sampler: Sampler::Exact }
        }
        _ => NoiseSource { generator: Generator::ReplayableFast, sampler: Sampler::Float },
    };
    let adam = Optimizer::adam(1e-3);
    let mut step = Step {
        workspace: Workspace::new(),
        sum: vec![0.0; graph.parameters().len()],
        part: Vec::new(),
        plain: PlainOptimizer::new(adam, 0.0, &graph),
        private: PrivateOptimizer::new(adam, 0.0, &graph),
        ledger: Ledger::new(Unit::Record),
        mechanism: Gaussian { noise_multiplier: NoiseMultiplier::new(1.0)? },
        noise: NoiseRng::with_source(source, seed.child("noise").bytes())?,
        scratch: vec![0.01; BATCH * case.inputs],
        results: vec![0.0; BATCH * 2 * case.inputs],
        graph,
    };
    let warm_up = Instant::now();
    for _ in 0..3 {
        step.run(variant, &examples)?;
    }
    while warm_up.elapsed().as_secs_f64() < 0.1 * seconds {
        step.run(variant, &examples)?;
    }
    let (mut wall, mut cpu) = (Vec::new(), Vec::new());
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < seconds || wall.len() < 8 {
        let (from, cpu_from) = (Instant::now(), ThreadTime::now());
        step.run(variant, &examples)?;
        cpu.push(cpu_from.elapsed().as_secs_f64() * 1e3);
        wall.push(from.elapsed().as_secs_f64() * 1e3);
    }
    wall.sort_by(f64::total_cmp);
    cpu.sort_by(f64::total_cmp);
    let at = |times: &[f64], share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "{{\"kind\":\"step\",\"case\":\"{}\",\"input\":\"{input}\",\"peer\":\"dosimeter\",\"variant\":\"{variant}\",\
         \"median_ms\":{:.4},\"min_ms\":{:.4},\"p90_ms\":{:.4},\"cpu_median_ms\":{:.4},\"cpu_min_ms\":{:.4},\"n\":{},\
         \"kernel\":\"{}\"}}",
        case.name,
        at(&wall, 0.5),
        wall[0],
        at(&wall, 0.9),
        at(&cpu, 0.5),
        cpu[0],
        wall.len(),
        kernels::kernel_name(),
    );
    Ok(())
}

/// The fastest product of two 512 by 512 matrices seen in 60 tries.
fn peak() {
    let n = 512;
    let (a, mut c) = (vec![1.0_f32; n * n], vec![0.0; n * n]);
    let mut best = f64::INFINITY;
    for _ in 0..60 {
        let from = ThreadTime::now();
        kernels::matmul(Matrix::new(&a, n, n), Matrix::new(&a, n, n), &mut c, Write::Overwrite);
        best = best.min(from.elapsed().as_secs_f64());
    }
    let gflops = 2.0 * (n * n * n) as f64 / best / 1e9;
    println!(
        "{{\"kind\":\"gemm\",\"gemm_gflops\":{gflops:.1},\"kernel\":\"{}\"}}",
        kernels::kernel_name()
    );
}
