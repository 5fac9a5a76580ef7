//! Times loading and splitting at the sizes of the benchmarks: `cargo run --release -p dosimeter-data --example bench_data`.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that prints what it measured"
)]
use dosimeter_data::datasets::{BinaryFile, CsvTable, DatasetSpec, SkewedPurchases, load};
use dosimeter_data::{Inputs, Seed, Split, SplitSpec};
use std::fmt::Write;
use std::time::Instant;

fn main() {
    let timed = |what: &str, run: &mut dyn FnMut()| {
        let times = (0..3).map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        });
        println!("{what}: {:.3} s (best of 3)", times.fold(f64::INFINITY, f64::min));
    };
    let spec = SkewedPurchases::default();
    timed("generate 200,000 x 600 bits", &mut || drop(spec.generate(Seed::root(1)).unwrap()));
    let data = SkewedPurchases { train_records: 8_000, test_records: 2_000, ..spec }
        .generate(Seed::root(1))
        .unwrap();
    let Inputs::Bits(bits) = &data.inputs else { return };
    let (mut text, mut table) = (String::new(), String::new());
    for row in 0..8_000 {
        write!(text, "{}", data.labels[row]).unwrap();
        for i in 0..600 {
            write!(text, ",{}", bits.row(row)[i / 64] >> (i % 64) & 1).unwrap();
        }
        text.push('\n');
    }
    writeln!(table, "label{}", (0..600).map(|i| format!(",b{i}")).collect::<String>()).unwrap();
    table.push_str(&text);
    let folder = tempfile::tempdir().unwrap();
    let (plain, csv) = (folder.path().join("purchase"), folder.path().join("table.csv"));
    std::fs::write(&plain, text).unwrap();
    std::fs::write(&csv, table).unwrap();
    let plain = DatasetSpec::Purchase(BinaryFile { path: plain, classes: None });
    timed("purchase text 8,000 x 600", &mut || drop(load(&plain, Seed::root(0)).unwrap()));
    let csv = DatasetSpec::Csv(CsvTable {
        path: csv,
        label: "label".into(),
        header: true,
        names: None,
        delimiter: ',',
        skip_lines: 0,
        ignore: Vec::new(),
        columns: Default::default(),
        other_columns: None,
        classes: None,
    });
    timed("CSV table 8,000 x 600", &mut || drop(load(&csv, Seed::root(0)).unwrap()));
    timed("fingerprint 8,000 x 600", &mut || drop(data.fingerprint()));
    let roles = SplitSpec { train: 2_000, test: 2_000 };
    timed("split 8,000", &mut || drop(Split::draw(&data, roles, Seed::root(0)).unwrap()));
}
