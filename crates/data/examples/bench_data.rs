//! Times loading and splitting at the sizes of the benchmarks: `cargo run --release -p dosimeter-data --example bench_data`.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that prints what it measured"
)]
use dosimeter_data::datasets::{BinaryFile, CsvTable, DatasetSpec, SkewedPurchases, load};
use dosimeter_data::regression::BoundedFile;
use dosimeter_data::{Error, Inputs, Seed, Split, SplitSpec};
use std::fmt::Write;
use std::io::Write as _;
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
    for rows in [100_000, 1_000_000] {
        let file = regression_rows(folder.path(), rows);
        // What fits need: sums, so that memory is that of one row (see VmHWM below, the peak so far).
        timed(&format!("sums over {rows} x 14 regression rows, peak {}", peak()), &mut || {
            let (mut sums, mut targets) = ([[0.0; 14]; 14], 0.0);
            let counts = file.each_row(|_, x, y| {
                for (sums, a) in sums.iter_mut().zip(x) {
                    sums.iter_mut().zip(x).for_each(|(sum, b)| *sum += a * b);
                }
                targets += y;
                Ok::<_, Error>(())
            });
            assert_eq!(counts.unwrap().rows, rows);
        });
        println!("peak then {}", peak());
    }
}

/// A CSV of 13 numbers and one of two categories, and its bounds.
fn regression_rows(folder: &std::path::Path, rows: u64) -> BoundedFile {
    let file =
        BoundedFile { path: folder.join("rows.csv"), bounds: folder.join("rows.bounds.toml") };
    let columns: String =
        (1..14).map(|i| format!("[columns.x{i}]\nlower = 0\nupper = 1\n")).collect();
    let bounds = format!(
        "{columns}[columns.town]\ncategories = [\"Ulm\", \"Bonn\"]\n[target]\nname = \"y\"\nlower = 0\nupper = 1\n"
    );
    std::fs::write(&file.bounds, bounds).unwrap();
    let mut csv = std::io::BufWriter::new(std::fs::File::create(&file.path).unwrap());
    let names: String = (1..14).map(|i| format!("x{i},")).collect();
    writeln!(csv, "id,{names}town,y").unwrap();
    for row in 0..rows {
        write!(csv, "{row},").unwrap();
        for i in 1..14 {
            write!(csv, "0.{:06},", (row * 7_919 + i * 104_729) % 1_000_000).unwrap();
        }
        writeln!(csv, "{},0.5", if row % 3 == 0 { "Ulm" } else { "Bonn" }).unwrap();
    }
    file
}
/// The most memory this process has had, where the system tells.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "unknown".to_owned(), |line| line.trim().to_owned())
}
