//! Tables in Parquet, whole and broken.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::needless_pass_by_value,
    reason = "support functions of tests fail loudly and are called with literals"
)]
use dosimeter_data::datasets::{DatasetSpec, load};
use dosimeter_data::{Error, Inputs, Seed};
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::path::Path;
use std::sync::Arc;

const SCHEMA: &str = "message people {
    required boolean smoker; optional double age; required binary town (UTF8); required int64 income;
}";

/// Four rows; row 3 has no age when `missing`.
fn write(path: &Path, compression: Compression, ages: [Option<f64>; 4]) {
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
    let file = std::fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let levels: Vec<i16> = ages.iter().map(|a| i16::from(a.is_some())).collect();
    let ages: Vec<f64> = ages.iter().flatten().copied().collect();
    let towns = ["Ulm", "Bonn", "Ulm", "Bonn"].map(ByteArray::from);
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<BoolType>().write_batch(&[true, false, true, true], None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<DoubleType>().write_batch(&ages, Some(&levels), None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&towns, None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&[2, 10, 2, 10], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
}
fn spec(path: &Path, more: serde_json::Value) -> DatasetSpec {
    let mut spec = serde_json::json!({ "kind": "parquet", "path": path, "label": "income" });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(spec).unwrap()
}
fn bounded() -> serde_json::Value {
    serde_json::json!({ "columns": { "age": { "kind": "real", "low": 0, "high": 80 } } })
}
const AGES: [Option<f64>; 4] = [Some(20.0), Some(40.0), Some(60.0), Some(80.0)];

#[test]
fn a_table_reads_the_same_under_every_compression() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("people.parquet");
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::ZSTD(Default::default()),
    ] {
        write(&path, compression, AGES);
        let data = load(&spec(&path, bounded()), Seed::root(0)).unwrap();
        let values = vec![
            1.0, 0.25, 0.0, 1.0, //
            0.0, 0.5, 1.0, 0.0, //
            1.0, 0.75, 0.0, 1.0, //
            1.0, 1.0, 1.0, 0.0,
        ];
        assert_eq!(data.inputs, Inputs::Reals { width: 4, values });
        // Classes that are numbers are ordered as numbers.
        assert_eq!(data.class_names, ["2", "10"]);
        assert_eq!(data.labels, [0, 1, 0, 1]);
    }
}
#[test]
fn ignored_columns_are_not_read_and_the_rest_keep_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("people.parquet");
    write(&path, Compression::SNAPPY, [Some(1.0), None, None, None]);
    let data = load(&spec(&path, serde_json::json!({ "ignore": ["age"] })), Seed::root(0)).unwrap();
    let names: Vec<&str> = data.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["smoker", "town"]);
}
#[test]
fn missing_and_infinite_values_are_named_by_row_and_field() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("people.parquet");
    for (age, expected) in
        [(None, "is empty"), (Some(f64::NAN), "is not finite"), (Some(81.0), "is outside")]
    {
        write(&path, Compression::SNAPPY, [Some(1.0), Some(2.0), age, Some(4.0)]);
        let error = load(&spec(&path, bounded()), Seed::root(0)).unwrap_err().to_string();
        assert!(error.contains("row 3, field `age`") && error.contains(expected), "{error}");
    }
    let error = load(&spec(&path, serde_json::json!({})), Seed::root(0)).unwrap_err();
    assert!(error.to_string().contains("`age`") || matches!(error, Error::Field { .. }), "{error}");
}
#[test]
fn a_cut_or_garbled_file_is_an_error_and_never_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("people.parquet");
    write(&path, Compression::UNCOMPRESSED, AGES);
    let whole = std::fs::read(&path).unwrap();
    let cut = folder.path().join("cut.parquet");
    for keep in 0..whole.len() {
        std::fs::write(&cut, &whole[..keep]).unwrap();
        let error = load(&spec(&cut, bounded()), Seed::root(0)).unwrap_err();
        assert!(matches!(error, Error::Damaged { format: "Parquet", .. }), "{keep}: {error}");
    }
    for at in 0..whole.len() {
        for flip in [0x01, 0x80] {
            let mut garbled = whole.clone();
            garbled[at] ^= flip;
            std::fs::write(&cut, &garbled).unwrap();
            // Some bytes are values or unused: any result will do, a panic will not.
            let _ = load(&spec(&cut, bounded()), Seed::root(0));
        }
    }
}
#[test]
fn a_codec_that_is_not_read_is_named_with_those_that_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("people.parquet");
    write(&path, Compression::UNCOMPRESSED, AGES);
    // In the footer: the end of the path `income`, then field 4 (codec 0), then field 5 (4 values).
    let whole = std::fs::read(&path).unwrap();
    let place = b"income\x15\x00\x16\x08";
    let at = whole.windows(place.len()).position(|bytes| bytes == place).unwrap() + 7;
    for (codec, name) in [(5_u8, "lz4"), (4, "brotli"), (7, "lz4_raw")] {
        let mut changed = whole.clone();
        changed[at] = 2 * codec;
        std::fs::write(&path, changed).unwrap();
        let error = load(&spec(&path, bounded()), Seed::root(0)).unwrap_err().to_string();
        let expected = format!("compressed by {name}; needs no compression, snappy, gzip or zstd");
        assert!(error.ends_with(&expected), "{error}");
    }
}

const BOUNDS: &str = "
[columns.age]
lower = 0
upper = 70
missing = 35.5
[columns.smoker]
lower = 0
upper = 1
[columns.town]
categories = [\"Bonn\", \"Ulm\"]
[target]
name = \"income\"
lower = 0
upper = 10
";

#[test]
fn rows_for_regression_are_the_same_in_parquet_and_csv() {
    use dosimeter_data::regression::BoundedFile;
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    write(&place("a.parquet"), Compression::SNAPPY, [Some(20.0), Some(40.0), None, Some(80.0)]);
    let csv = "smoker,age,town,income\n1,20,Ulm,2\n0,40,Bonn,10\n1,,Ulm,2\n1,80,Bonn,10\n";
    std::fs::write(place("a.csv"), csv).unwrap();
    std::fs::write(place("bounds.toml"), BOUNDS).unwrap();
    let file = |name| BoundedFile { path: place(name), bounds: place("bounds.toml") };
    let (parquet, csv) = (file("a.parquet").load().unwrap(), file("a.csv").load().unwrap());
    assert_eq!(parquet.fingerprint(), csv.fingerprint());
    assert_eq!(parquet.counts, csv.counts);
    assert_eq!(parquet.features()[6..9], [1.0, 35.5, 1.0]);
    assert_eq!(file("a.parquet").layout(true).unwrap(), parquet.layout);
    // Without a rule the null is refused by row and field, and a caller's own error comes through.
    std::fs::write(place("bounds.toml"), BOUNDS.replace("missing = 35.5\n", "")).unwrap();
    let said = file("a.parquet").load().unwrap_err().to_string();
    assert!(said.contains("row 3, field `age` is missing"), "{said}");
    let mut seen = 0;
    let stopped = file("a.parquet").each_row(|row, _, _| {
        seen = row;
        if row < 2 { Ok(()) } else { Err(Error::TooManyRecords { file: place("x"), limit: 1 }) }
    });
    assert!(matches!(stopped, Err(Error::TooManyRecords { .. })) && seen == 2, "{stopped:?}");
}
