//! One optimizer step, for `bench/run.py`; prints JSON lines. CPU times are those of the calling thread.
//!
//! A step is forward, cross-entropy and backward, for the private steps also per-record norms, clipping, the clipped
//! sum and noise, then Adam; the batch is fixed. Variants: `forward` (no gradient); `plain-adam`; `dp-adam` with the fast
//! generator and float sampler; `dp-adam chacha` with ChaCha20 and float sampler; `dp-adam exact` with ChaCha20 and the
//! exact sampler; `clipped sum`, `noise fast` and `products` (the matrix products of a dense step) are parts of a step. The last line is the matrix product's peak.
//!
//! `bench_step [--case small|large|cnn|vgg16|mobilenet|cnn-max|cnn-stride|cnn-groups|cnn-norm|cnn-5x5|all] [--input dense|binary|all] [--variants NAME,..] [--seconds S] [--threads N]`
#![expect(clippy::print_stdout, reason = "a bench program talks")]
use cpu_time::ThreadTime;
use dosimeter_data::Seed;
use dosimeter_model::kernels::{self, Matrix, Write};
use dosimeter_model::{
    Activation, Affine, Convolution, Examples, Graph, Layer, Linear, Loss, Normalization, Pool,
    Pooling, Reshape, Rows, Targets, Window, Workspace, zoo,
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
use std::num::NonZero;
use std::time::Instant;

const CLIPPING_NORM: f64 = 1.0;

type Build = fn(&mut dyn Rng) -> Result<Graph, dosimeter_model::Error>;

struct Case {
    name: &'static str,
    /// Numbers per record.
    inputs: usize,
    batch: usize,
    classes: usize,
    build: Build,
    /// Share of ones in binary inputs; `None`: dense inputs only.
    density: Option<f64>,
}
/// A network of six convolutions on images of 32 x 32 x 3.
const fn six_of(name: &'static str, build: Build) -> Case {
    Case { name, inputs: 3 * 32 * 32, batch: 64, classes: 10, build, density: None }
}
const CASES: [Case; 10] = [
    Case {
        name: "small",
        inputs: 600,
        batch: 128,
        classes: 100,
        build: |rng| zoo::mlp(600, &[128], 100, Activation::Tanh, rng),
        density: Some(0.2),
    },
    Case {
        name: "large",
        inputs: 6169,
        batch: 128,
        classes: 100,
        build: |rng| zoo::mlp(6169, &[512, 128], 100, Activation::Relu, rng),
        density: Some(0.1),
    },
    six_of("cnn", |rng| zoo::cnn(&[3, 32, 32], 10, Activation::Tanh, Pool::Average, rng)),
    Case {
        name: "vgg16",
        inputs: 3 * 32 * 32,
        batch: 16,
        classes: 10,
        build: |rng| zoo::vgg16(&[3, 32, 32], &[], 10, rng),
        density: None,
    },
    Case {
        name: "mobilenet",
        inputs: 3 * 128 * 128,
        batch: 4,
        classes: 100,
        build: |rng| zoo::mobilenet_v1(&[3, 128, 128], 100, rng),
        density: None,
    },
    six_of("cnn-max", |rng| zoo::cnn(&[3, 32, 32], 10, Activation::Tanh, Pool::Max, rng)),
    six_of("cnn-stride", |rng| six_convolutions("stride", rng)),
    six_of("cnn-groups", |rng| six_convolutions("groups", rng)),
    six_of("cnn-norm", |rng| six_convolutions("norm", rng)),
    six_of("cnn-5x5", |rng| six_convolutions("5x5", rng)),
];

/// The network of case `cnn` with one thing changed: steps of 2 in place of pooling; four groups in all
/// convolutions but the first; group normalization behind each; windows of 5 x 5.
fn six_convolutions(change: &str, rng: &mut dyn Rng) -> Result<Graph, dosimeter_model::Error> {
    let mut layers = Vec::new();
    let mut channels = 3;
    for outputs in [32, 64, 128] {
        for second in [false, true] {
            let same = Window::same(if change == "5x5" { 5 } else { 3 });
            let stride = if change == "stride" && second { [2; 2] } else { [1; 2] };
            let groups = if change == "groups" && channels > 3 { 4 } else { 1 };
            let window = Window { stride, ..same };
            layers.push(Layer::Convolution(Convolution {
                channels,
                outputs,
                groups,
                window,
                bias: true,
            }));
            if change == "norm" {
                layers.push(Layer::Normalization(Normalization {
                    channels: outputs,
                    groups: 8,
                    affine: Affine::Channel,
                    stabilizer: 1e-5,
                }));
            }
            layers.push(Layer::Activation(Activation::Tanh));
            channels = outputs;
        }
        if change != "stride" {
            let window = Window::tiles(2);
            layers.push(Layer::Pooling(Pooling { pool: Pool::Average, window }));
        }
    }
    let width = 128 * 4 * 4;
    layers.push(Layer::Reshape(Reshape { shape: vec![width] }));
    layers.push(Layer::Linear(Linear { inputs: width, outputs: 128 }));
    layers.push(Layer::Activation(Activation::Tanh));
    layers.push(Layer::Linear(Linear { inputs: 128, outputs: 10 }));
    let mut graph = Graph::chain(&[3, 32, 32], layers)?;
    zoo::initialise(&mut graph, rng);
    Ok(graph)
}

/// What is timed.
const VARIANTS: [&str; 8] = [
    "forward",
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
    let threads: NonZero<usize> = option("--threads", "1").parse()?;
    let variants = option("--variants", "");
    for c in CASES.iter().filter(|c| case == "all" || case == c.name) {
        for kind in ["dense", "binary"].iter().filter(|k| input == "all" || input == **k) {
            for variant in VARIANTS {
                let dense_only = c.density.is_none();
                if dense_only && (*kind == "binary" || variant == "products") {
                    continue;
                }
                if variants.is_empty() || variants.split(',').any(|v| v == variant) {
                    measure(c, kind, variant, seconds, threads)?;
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
        let batch = examples.rows.len() as f64;
        match variant {
            "forward" => {
                self.graph.forward(&examples.rows, workspace)?;
                return Ok(());
            }
            "plain-adam" => {
                let parts = self.graph.gradient_in_parts(
                    examples,
                    None,
                    workspace,
                    sum,
                    Write::Overwrite,
                )?;
                self.plain.step_in_parts(&mut self.graph, parts, &mut self.part, batch);
                return Ok(());
            }
            "products" => {
                self.products(examples.rows.len());
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
        let mut update = self.private.begin(&mut self.graph, batch);
        let each = |start, part: Released<&[f32]>| update.part(start, part);
        Ok(self.ledger.release_in_parts(&self.mechanism, bounded, &mut self.noise, each)?)
    }

    /// The matrix products of a dense step alone: forward and weight gradient of every linear layer, input gradient
    /// of all but the first.
    fn products(&mut self, batch: usize) {
        let mut offset = 0;
        for (i, node) in self.graph.nodes().iter().enumerate() {
            let Layer::Linear(Linear { inputs, outputs }) = node.layer else { continue };
            let weights = &self.graph.parameters()[offset..offset + inputs * outputs];
            let weights = Matrix::new(weights, inputs, outputs);
            let x = &self.scratch[..batch * inputs];
            let (y, rest) = self.results.split_at_mut(batch * outputs);
            kernels::matmul(Matrix::new(x, batch, inputs), weights, y, Write::Overwrite);
            if i > 0 {
                let (g, y) = (&mut rest[..batch * inputs], Matrix::new(y, batch, outputs));
                kernels::matmul(y, weights.transposed(), g, Write::Overwrite);
            }
            let sum = &mut self.sum[offset..offset + inputs * outputs];
            let (x, y) =
                (Matrix::new(x, batch, inputs).transposed(), Matrix::new(y, batch, outputs));
            kernels::matmul(x, y, sum, Write::Overwrite);
            offset += inputs * outputs + outputs;
        }
    }
}

fn measure(
    case: &Case,
    input: &str,
    variant: &str,
    seconds: f64,
    threads: NonZero<usize>,
) -> Result<(), Box<dyn Error>> {
    let seed = Seed::root(1);
    let mut rng = seed.child("inputs").rng();
    let words_per_row = case.inputs.div_ceil(64);
    let (mut values, mut words) = (Vec::new(), vec![0_u64; case.batch * words_per_row]);
    for row in 0..case.batch {
        for j in 0..case.inputs {
            let u = f64::from(rng.next_u32()) / f64::from(u32::MAX);
            values.push(2.0_f64.mul_add(u, -1.0) as f32);
            words[row * words_per_row + j / 64] |=
                u64::from(u < case.density.unwrap_or(0.0)) << (j % 64);
        }
    }
    let rows = match input {
        "dense" => Rows::Dense { width: case.inputs, values: &values },
        _ => Rows::Bits { width: case.inputs, words: &words },
    };
    let labels: Vec<u32> = (0..case.batch).map(|i| (i * 7 % case.classes) as u32).collect();
    let examples = Examples { rows, targets: Targets::Classes(&labels), loss: Loss::CrossEntropy };
    let mut weights = seed.child("weights").rng();
    let graph = (case.build)(&mut weights)?;
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
        workspace: Workspace::with_threads(threads),
        sum: vec![0.0; graph.parameters().len()],
        part: Vec::new(),
        plain: PlainOptimizer::new(adam, 0.0, &graph),
        private: PrivateOptimizer::new(adam, 0.0, &graph),
        ledger: Ledger::new(Unit::Record),
        mechanism: Gaussian { noise_multiplier: NoiseMultiplier::new(1.0)? },
        noise: NoiseRng::with_source(source, seed.child("noise").bytes())?,
        scratch: vec![0.01; case.batch * case.inputs],
        results: vec![0.0; case.batch * 2 * case.inputs],
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
