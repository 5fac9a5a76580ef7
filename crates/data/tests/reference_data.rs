//! Real files of the reference material, where it lies beside the project; skipped with a line otherwise.
#![allow(clippy::unwrap_used, clippy::panic, reason = "support functions of tests fail loudly")]
use dosimeter_data::datasets::{BinaryFile, ColumnSpec, CsvTable, DatasetSpec, PackedBits, load};
use dosimeter_data::{ColumnKind, Dataset, Inputs, Seed};
use dosimeter_testing::shared;
use std::path::PathBuf;

fn location(path: PathBuf) -> Dataset {
    let spec = DatasetSpec::Location(BinaryFile { path, classes: None });
    load(&spec, Seed::root(0)).unwrap()
}
fn ones(data: &Dataset) -> u32 {
    let Inputs::Bits(bits) = &data.inputs else { panic!("bits") };
    bits.words.iter().map(|w| w.count_ones()).sum()
}

#[test]
fn location_is_the_same_from_archive_and_npz_but_for_its_class_names() {
    let Some(archive) = shared("data/location30/dataset_location.tgz") else { return };
    let Some(npz) = shared("data/location30/location30.npz") else { return };
    let (text, arrays) = (location(archive), location(npz));
    assert_eq!((text.len(), text.width(), text.classes), (5_010, 446, 30));
    assert_eq!(text.inputs, arrays.inputs);
    assert_eq!(text.labels, arrays.labels);
    assert_eq!((text.class_names[0].as_str(), arrays.class_names[0].as_str()), ("1", "0"));
    let mean = f64::from(ones(&text)) / 5_010.0;
    assert!((mean - 53.7).abs() < 0.05, "mean ones per row {mean}");
    let counts = text.class_counts();
    assert_eq!((counts.iter().min(), counts.iter().max()), (Some(&97), Some(&308)));
}

#[test]
fn retail_unpacks_to_600_bits_and_91_classes() {
    let Some(path) = shared("data/retail/retail_kmeans.npz") else { return };
    let spec = DatasetSpec::PackedBits(PackedBits {
        path,
        width: 600,
        inputs: "x".into(),
        labels: "y".into(),
        classes: None,
    });
    let data = load(&spec, Seed::root(0)).unwrap();
    assert_eq!((data.len(), data.width(), data.classes), (41_117, 600, 91));
    let counts = data.class_counts();
    assert_eq!((counts.iter().min(), counts.iter().max()), (Some(&101), Some(&2_607)));
    let Inputs::Bits(bits) = &data.inputs else { panic!("bits") };
    // Every basket kept has at least five of the 600 items.
    assert!((0..bits.rows).all(|i| bits.row(i).iter().map(|w| w.count_ones()).sum::<u32>() >= 5));
}

const ADULT: [&str; 15] = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
];
fn adult(path: PathBuf, skip_lines: u64) -> CsvTable {
    let real = |high| ColumnSpec::Real { low: 0.0, high, outside: Default::default() };
    CsvTable {
        path,
        label: "income".into(),
        header: false,
        names: Some(ADULT.map(str::to_owned).to_vec()),
        delimiter: ',',
        skip_lines,
        ignore: vec!["fnlwgt".into()],
        columns: [
            ("age", real(100.0)),
            ("education-num", real(16.0)),
            ("capital-gain", real(100_000.0)),
            ("capital-loss", real(5_000.0)),
            ("hours-per-week", real(100.0)),
        ]
        .map(|(name, spec)| (name.to_owned(), spec))
        .into(),
        other_columns: None,
        classes: None,
    }
}

#[test]
fn adult_loads_as_a_mixed_table() {
    let Some(path) = shared("data/uci-tabular/adult.data") else { return };
    let data = load(&DatasetSpec::Csv(adult(path, 0)), Seed::root(0)).unwrap();
    assert_eq!((data.len(), data.columns.len()), (32_561, 13));
    assert_eq!(data.class_names, ["<=50K", ">50K"]);
    assert_eq!(data.class_counts(), [24_720, 7_841]);
    let sex = data.columns.iter().find(|c| c.name == "sex").unwrap();
    assert_eq!(sex.kind, ColumnKind::Category(vec!["Female".into(), "Male".into()]));
    let Inputs::Reals { width, values } = &data.inputs else { panic!("reals") };
    // First record: age 39 of 100, male.
    assert!((values[0] - 0.39).abs() < 1e-6);
    assert_eq!(&values[sex.first_input..sex.first_input + 2], [0.0, 1.0]);
    assert!(values[*width..].iter().all(|v| (0.0..=1.0).contains(v)));
}

#[test]
fn the_odd_first_line_of_adult_test_can_be_skipped_and_is_refused_otherwise() {
    let Some(path) = shared("data/uci-tabular/adult.test") else { return };
    let data = load(&DatasetSpec::Csv(adult(path.clone(), 1)), Seed::root(0)).unwrap();
    assert_eq!(data.len(), 16_281);
    let error = load(&DatasetSpec::Csv(adult(path, 0)), Seed::root(0)).unwrap_err();
    assert!(error.to_string().contains("row 1: 1 fields, needs 15"), "{error}");
}

#[test]
fn numbers_without_public_bounds_are_asked_for_by_name() {
    let Some(path) = shared("data/uci-tabular/adult.data") else { return };
    let table = CsvTable { columns: Default::default(), ignore: vec![], ..adult(path, 0) };
    let error = load(&DatasetSpec::Csv(table), Seed::root(0)).unwrap_err().to_string();
    for column in ["age", "fnlwgt", "capital-gain"] {
        assert!(error.contains(&format!("`{column}`")), "{error}");
    }
    assert!(!error.contains("`sex`"), "{error}");
}
