//! Forward passes of ONNX models on one thread, for `bench/run.py`; prints JSON lines.
//!
//! `bench_inference --write FOLDER` writes VGG-16 (32 and 224) there;
//! `bench_inference --model FILE --records N [--seconds S]` times N records together and gives their first outputs.
//! Number i of all inputs is ((i * 7919 + 13) mod 1009) / 504.5 - 1.
#![expect(clippy::print_stdout, reason = "a bench program talks")]
use cpu_time::ThreadTime;
use dosimeter_model::{Rows, Workspace, kernels, onnx, zoo};
use rand_core::SeedableRng;
use std::error::Error;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        let at = arguments.iter().position(|a| a == name)?;
        arguments.get(at + 1).map(String::as_str)
    };
    if let Some(folder) = option("--write") {
        let mut rng = rand_chacha::ChaCha8Rng::from_seed([1; 32]);
        let small = zoo::vgg16(&[3, 32, 32], &[], 10, &mut rng)?;
        std::fs::write(Path::new(folder).join("vgg16-32.onnx"), onnx::write(&small)?)?;
        let large = zoo::vgg16(&[3, 224, 224], &[4096, 4096], 1000, &mut rng)?;
        std::fs::write(Path::new(folder).join("vgg16-224.onnx"), onnx::write(&large)?)?;
        return Ok(());
    }
    let path = Path::new(option("--model").ok_or("--model FILE")?);
    let records: usize = option("--records").unwrap_or("1").parse()?;
    let seconds: f64 = option("--seconds").unwrap_or("1").parse()?;
    let graph = onnx::read(path, &onnx::Options::default())?.graph;
    let width = graph.inputs();
    let values: Vec<f32> =
        (0..records * width).map(|i| ((i * 7919 + 13) % 1009) as f32 / 504.5 - 1.0).collect();
    let rows = Rows::Dense { width, values: &values };
    let mut workspace = Workspace::new();
    for _ in 0..2 {
        graph.forward(&rows, &mut workspace)?;
    }
    let (mut times, start) = (Vec::new(), Instant::now());
    while start.elapsed().as_secs_f64() < seconds || times.len() < 5 {
        let from = ThreadTime::now();
        graph.forward(&rows, &mut workspace)?;
        times.push(from.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let outputs = graph.forward(&rows, &mut workspace)?;
    let largest = outputs.iter().fold(0.0_f32, |m, y| m.max(y.abs()));
    println!(
        "{{\"kind\":\"inference\",\"records\":{records},\"cpu_median_ms\":{:.4},\"cpu_min_ms\":{:.4},\"n\":{},\
         \"kernel\":\"{}\",\"largest\":{largest},\"outputs\":{:?}}}",
        times[times.len() / 2],
        times[0],
        times.len(),
        kernels::kernel_name(),
        &outputs[..outputs.len().min(10)],
    );
    Ok(())
}
