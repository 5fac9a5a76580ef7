//! Any bytes as a CSV table (also gzip, tar).
#![no_main]
use dosimeter_data::datasets::{ColumnSpec, CsvTable, DatasetSpec, load};
use dosimeter_data::{Dataset, Seed};
use std::io::Write;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(mut file) = tempfile::NamedTempFile::new() else { return };
    if file.write_all(bytes).is_err() || file.flush().is_err() {
        return;
    }
    let path = file.path().to_owned();
    let spec = DatasetSpec::Csv(CsvTable {
        path,
        label: "column 1".into(),
        header: false,
        names: None,
        delimiter: ',',
        skip_lines: 0,
        ignore: Vec::new(),
        columns: Default::default(),
        other_columns: bytes
            .len()
            .is_multiple_of(2)
            .then_some(ColumnSpec::Category { levels: None }),
        classes: None,
    });
    if let Ok(data) = load(&spec, Seed::root(0)) {
        holds(&data);
    }
});

/// Whatever was accepted is a data set.
fn holds(data: &Dataset) {
    assert!(!data.is_empty() && data.classes >= 2 && data.class_names.len() == data.classes);
    assert!(data.class_counts().iter().sum::<usize>() == data.len());
    assert_eq!(data.fingerprint().len(), 64);
}
