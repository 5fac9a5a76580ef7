//! Files of every form, whole and broken. The test writes each file it reads.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::needless_pass_by_value,
    reason = "support functions of tests fail loudly and are called with literals"
)]
use dosimeter_data::datasets::{
    BinaryFile, ColumnSpec, CsvTable, DatasetSpec, NpzTable, Outside, PackedBits, load,
};
use dosimeter_data::{ColumnKind, Dataset, Error, Inputs, RecordId, Seed};
use std::io::Write;
use std::path::{Path, PathBuf};

struct Folder(tempfile::TempDir);
impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
    fn npz(&self, name: &str, arrays: &[(&str, Vec<u8>)]) -> PathBuf {
        let path = self.0.path().join(name);
        let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        for (name, bytes) in arrays {
            let options = zip::write::SimpleFileOptions::default();
            zip.start_file(format!("{name}.npy"), options).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap();
        path
    }
}
/// An NPY array of version 1 with `data` behind the header.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    npy_ordered(descr, "False", shape, data)
}
fn npy_ordered(descr: &str, column_major: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': {column_major}, 'shape': ({shape}), }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    bytes
}
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, *bytes).unwrap();
    }
    builder.into_inner().unwrap()
}
fn binary(path: &Path) -> BinaryFile {
    BinaryFile { path: path.to_owned(), classes: None }
}
fn read(spec: DatasetSpec) -> Result<Dataset, Error> {
    load(&spec, Seed::root(0))
}
fn csv(path: &Path, label: &str) -> CsvTable {
    let spec = serde_json::json!({ "path": path, "label": label });
    serde_json::from_value(spec).unwrap()
}
/// The file's name is a temporary one: drop all up to its last folder.
fn said(error: &Error) -> String {
    let text = error.to_string();
    text.rsplit_once('/').map_or(text.clone(), |(_, rest)| rest.to_owned())
}
fn bits(data: &Dataset) -> Vec<Vec<u8>> {
    let Inputs::Bits(bits) = &data.inputs else { panic!("bits") };
    let bit = |row: usize, i: usize| (bits.row(row)[i / 64] >> (i % 64) & 1) as u8;
    (0..bits.rows).map(|row| (0..bits.width).map(|i| bit(row, i)).collect()).collect()
}

// ---- benchmarks of bits

#[test]
fn purchase_reads_the_same_from_text_gzip_archive_and_npz() {
    let folder = Folder::new();
    let text = b"2,1,0,1\n1,0,0,1\r\n2,1,1,0\n";
    let features = [1, 0, 1, 0, 0, 1, 1, 1, 0];
    let files = [
        folder.write("dataset_purchase", text),
        folder.write("dataset_purchase.gz", gzip(text)),
        folder.write("dataset_purchase.tgz", gzip(&tar(&[("dataset_purchase", text)]))),
        folder.npz(
            "purchase.npz",
            &[
                ("features", npy("|u1", "3, 3", &features)),
                ("labels", npy("|u1", "3, 2", &[0, 1, 1, 0, 0, 1])),
            ],
        ),
    ];
    for file in files {
        let data = read(DatasetSpec::Purchase(binary(&file))).unwrap();
        assert_eq!(bits(&data), [[1, 0, 1], [0, 0, 1], [1, 1, 0]], "{}", file.display());
        assert_eq!(data.labels, [1, 0, 1]);
        assert_eq!(data.columns[2].name, "bit 2");
    }
}
#[test]
fn rows_wider_than_a_word_keep_their_bits_in_place() {
    let folder = Folder::new();
    let row = |ones: &[usize]| {
        let bits: Vec<&str> = (0..130).map(|i| if ones.contains(&i) { "1" } else { "0" }).collect();
        bits.join(",")
    };
    let (first, second) = (row(&[0, 63, 64, 127, 128, 129]), row(&[1]));
    // The second row has spaces and so takes the slow path; both must agree on where bits go.
    let second = second.replace(',', ", ");
    let file = folder.write("d", format!("0,{first}\n1,{second}\n"));
    let data = read(DatasetSpec::Location(binary(&file))).unwrap();
    let Inputs::Bits(bits) = &data.inputs else { panic!("bits") };
    assert_eq!(bits.row(0), [1 | 1 << 63, 1 | 1 << 63, 0b11]);
    assert_eq!(bits.row(1), [0b10, 0, 0]);
}
#[test]
fn texas_reads_feats_and_labels_from_folder_archive_and_npz() {
    let folder = Folder::new();
    let (feats, labels) = (b"1,0\n0,1\n1,1\n", b"3\n2\n3\n");
    folder.write("texas/100/feats", feats);
    folder.write("texas/100/labels", labels);
    let archive = gzip(&tar(&[("texas/100/feats", feats), ("texas/100/labels", labels)]));
    let numbers: Vec<u8> =
        [1.0_f32, 0.0, 0.0, 1.0, 1.0, 1.0].iter().flat_map(|n| n.to_le_bytes()).collect();
    let one_hot = [0, 1, 1, 0, 0, 1];
    let npz =
        [("features", npy("<f4", "3, 2", &numbers)), ("labels", npy("|u1", "3, 2", &one_hot))];
    for file in [
        folder.0.path().join("texas/100"),
        folder.write("dataset_texas.tgz", archive),
        folder.npz("texas100.npz", &npz),
    ] {
        let data = read(DatasetSpec::Texas(binary(&file))).unwrap();
        assert_eq!(bits(&data), [[1, 0], [0, 1], [1, 1]], "{}", file.display());
        assert_eq!(data.labels, [1, 0, 1]);
    }
    let only_feats = folder.write("half.tar", tar(&[("texas/100/feats", feats)]));
    let error = read(DatasetSpec::Texas(binary(&only_feats))).unwrap_err();
    assert!(matches!(&error, Error::Missing { name, .. } if name == "labels"), "{error}");
    folder.write("texas/100/labels", "3\n2\n");
    let error = read(DatasetSpec::Texas(binary(&folder.0.path().join("texas/100")))).unwrap_err();
    assert!(matches!(error, Error::LabelCount { inputs: 3, labels: 2, .. }), "{error}");
}
#[test]
fn the_most_frequent_classes_are_kept_renumbered_and_remember_names_and_rows() {
    let folder = Folder::new();
    // Class 5 has three records, 9 and 2 have two, 4 has one; of the tie the earlier class stays.
    let file = folder.write("d", "5,1\n9,0\n2,1\n5,0\n4,1\n9,1\n2,0\n5,1\n");
    let mut spec = binary(&file);
    spec.classes = Some(2);
    let data = read(DatasetSpec::Purchase(spec.clone())).unwrap();
    assert_eq!(data.class_names, ["2", "5"]);
    assert_eq!(data.labels, [1, 0, 1, 0, 1]);
    assert_eq!(bits(&data), [[1], [1], [0], [0], [1]]);
    assert_eq!(data.source_rows, Some(vec![1, 3, 4, 7, 8]));
    assert_eq!(data.source_row(RecordId(3)), Some(7));
    assert_eq!(data.source_row(RecordId(5)), None);
    spec.classes = Some(5);
    let error = read(DatasetSpec::Purchase(spec)).unwrap_err();
    assert!(matches!(error, Error::TooFewClasses { needs: 5, have: 4, .. }), "{error}");
}
#[test]
fn broken_lines_of_bits_are_named_by_row_and_field() {
    let folder = Folder::new();
    for (text, expected) in [
        ("1,0,1\n2,0\n", "d, row 2: 2 fields, needs 3 like the rows before it"),
        ("1,0,1\n2,0,1,1\n", "d, row 2: 4 fields, needs 3 like the rows before it"),
        ("1,0,1\n\n2,0,2\n", "d, row 3, field `bit 1` is neither 0 nor 1"),
        ("1,0,1\n2,NaN,1\n", "d, row 2, field `bit 0` is neither 0 nor 1"),
        ("1,0,1\n2,,1\n", "d, row 2, field `bit 0` is empty"),
        ("1,0,1\n2,0,\u{661}\n", "d, row 2, field `bit 1` is neither 0 nor 1"),
        (
            "1,0,1\n-2,0,1\n",
            "d, row 2, field `label` is not a class number (a whole number from 0 to 4294967295)",
        ),
        (
            "1,0,1\nx,0,1\n",
            "d, row 2, field `label` is not a class number (a whole number from 0 to 4294967295)",
        ),
        ("1\n", "d, row 1: 1 fields, needs 2 like the rows before it"),
        ("", "d: no records"),
        ("\n\n", "d: no records"),
        ("1,0\n1,1\n", "d: 1 classes, needs at least 2"),
        (
            "1,0\n3,1\n",
            "d: class 2 has no record; keep the most frequent classes with `classes = N`",
        ),
    ] {
        let file = folder.write("d", text);
        let error = read(DatasetSpec::Location(binary(&file))).unwrap_err();
        assert_eq!(said(&error), expected, "{text:?}");
    }
}
#[test]
fn a_refused_field_is_never_quoted() {
    let folder = Folder::new();
    let file = folder.write("d", "1,0,1\n2,secret,1\n");
    let error = read(DatasetSpec::Location(binary(&file))).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("secret"));
}
#[test]
fn truncated_gzip_is_an_error_naming_the_file() {
    let folder = Folder::new();
    let whole = gzip("1,0,1\n2,1,0\n".repeat(1_000).as_bytes());
    for keep in [3, 12, whole.len() / 2, whole.len() - 1] {
        let file = folder.write("d.gz", &whole[..keep]);
        let error = read(DatasetSpec::Purchase(binary(&file))).unwrap_err();
        assert!(matches!(error, Error::Read { .. }), "{keep}: {error}");
        assert!(error.to_string().contains("d.gz"), "{error}");
    }
}
#[test]
fn a_missing_file_and_a_folder_are_errors_naming_them() {
    let folder = Folder::new();
    let absent = folder.0.path().join("absent");
    for (path, expected) in [
        (absent.as_path(), "absent: No such file"),
        (folder.0.path(), "`path` is the folder /"),
        (Path::new(""), "`path` is empty, needs the name of a file"),
    ] {
        for spec in [DatasetSpec::Purchase(binary(path)), DatasetSpec::Csv(csv(path, "y"))] {
            let error = read(spec).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
    let error = read(DatasetSpec::Texas(binary(folder.0.path()))).unwrap_err();
    assert!(matches!(error, Error::Read { .. }), "{error}");
}
#[test]
fn packed_bits_come_first_bit_highest_and_their_padding_must_be_zero() {
    let folder = Folder::new();
    let labels = ("y", npy("|u1", "2,", &[0, 1]));
    let spec = |path, width| {
        let (inputs, labels) = ("x".into(), "y".into());
        DatasetSpec::PackedBits(PackedBits { path, width, inputs, labels, classes: None })
    };
    // 1010 0000 | 1100 0000 and 0000 0001 | 0100 0000.
    let packed = npy("|u1", "2, 2", &[0xA0, 0xC0, 0x01, 0x40]);
    let file = folder.npz("p.npz", &[("x", packed), labels.clone()]);
    let data = read(spec(file.clone(), 10)).unwrap();
    assert_eq!(bits(&data), [[1, 0, 1, 0, 0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 0, 0, 0, 1, 0, 1]]);
    let error = read(spec(file.clone(), 9)).unwrap_err();
    assert!(said(&error).contains("row 1, field `bit 9`"), "{error}");
    for width in [8, 17, 0] {
        assert!(read(spec(file.clone(), width)).is_err(), "{width}");
    }
}

// ---- NPZ

#[test]
fn every_number_type_and_both_orders_are_read() {
    let folder = Folder::new();
    let labels = ("y", npy("<i8", "2,", &[0_i64, 1].map(i64::to_le_bytes).concat()));
    let rows = [[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]];
    let flat: Vec<f64> = rows.concat();
    let turned: Vec<f64> = (0..3).flat_map(|c| rows.map(|r| r[c])).collect();
    let mut cases = Vec::new();
    macro_rules! case {
        ($t:ty, $little:expr, $big:expr) => {
            let le =
                |v: &[f64]| v.iter().flat_map(|&n| (n as $t).to_le_bytes()).collect::<Vec<u8>>();
            let be =
                |v: &[f64]| v.iter().flat_map(|&n| (n as $t).to_be_bytes()).collect::<Vec<u8>>();
            cases.push(npy($little, "2, 3", &le(&flat)));
            cases.push(npy($big, "2, 3", &be(&flat)));
            cases.push(npy_ordered($little, "True", "2, 3", &le(&turned)));
        };
    }
    case!(u8, "|u1", "|u1");
    case!(i8, "|i1", "|i1");
    case!(u16, "<u2", ">u2");
    case!(i16, "<i2", ">i2");
    case!(u32, "<u4", ">u4");
    case!(i32, "<i4", ">i4");
    case!(u64, "<u8", ">u8");
    case!(i64, "<i8", ">i8");
    case!(f32, "<f4", ">f4");
    case!(f64, "<f8", ">f8");
    case!(u8, "|b1", "|b1");
    for array in cases {
        let file = folder.npz("d.npz", &[("x", array.clone()), labels.clone()]);
        let data = read(DatasetSpec::Location(binary(&file))).unwrap();
        assert_eq!(bits(&data), [[1, 0, 1], [0, 0, 1]], "{}", String::from_utf8_lossy(&array));
    }
}
fn npz_table(path: &Path, more: serde_json::Value) -> DatasetSpec {
    let mut spec = serde_json::json!({ "path": path });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    DatasetSpec::Npz(serde_json::from_value::<NpzTable>(spec).unwrap())
}
#[test]
fn npz_numbers_are_scaled_by_their_public_bounds() {
    let folder = Folder::new();
    let numbers: Vec<u8> = [5.0_f32, 0.0, 10.0, 1.0].iter().flat_map(|n| n.to_le_bytes()).collect();
    let file = folder
        .npz("d.npz", &[("x", npy("<f4", "2, 2", &numbers)), ("y", npy("|u1", "2,", &[4, 5]))]);
    let bounds =
        serde_json::json!({ "columns": { "column 1": { "kind": "real", "low": 0, "high": 20 } } });
    let data = read(npz_table(&file, bounds)).unwrap();
    assert_eq!(data.inputs, Inputs::Reals { width: 2, values: vec![0.25, 0.0, 0.5, 1.0] });
    assert_eq!(data.class_names, ["4", "5"]);
    let error = read(npz_table(&file, serde_json::json!({}))).unwrap_err();
    assert!(
        matches!(&error, Error::NeedsBounds { columns, .. } if columns == &["column 1"]),
        "{error}"
    );
    let all =
        serde_json::json!({ "other_columns": { "kind": "category" }, "ignore": ["column 2"] });
    let data = read(npz_table(&file, all)).unwrap();
    assert_eq!(data.columns[0].kind, ColumnKind::Category(vec!["5".into(), "10".into()]));
}
#[test]
fn what_an_npz_declares_is_not_believed() {
    let folder = Folder::new();
    let x = || npy("|u1", "2, 2", &[0, 1, 1, 0]);
    let y = || npy("|u1", "2,", &[0, 1]);
    let nan = [f64::NAN, 0.0, 0.0, 1.0].map(f64::to_le_bytes).concat();
    let raw = |bytes: &[u8]| bytes.to_vec();
    let huge_header = [b"\x93NUMPY\x02\x00".as_slice(), &u32::MAX.to_le_bytes()].concat();
    for (x, y, expected) in [
        (
            npy("|u1", "4000000000, 900000", &[0, 1]),
            y(),
            "declares 3600000000000000 bytes of elements, holds 2",
        ),
        (npy("|u1", "18446744073709551615, 2", &[]), y(), "needs [records] or [records, columns]"),
        (npy("|u1", "99999999999999999999, 2", &[]), y(), "a dimension that is no number"),
        (npy("|u1", "2, 5000000000", &[]), y(), "needs [records] or [records, columns]"),
        (npy("|u1", "-2, 2", &[]), y(), "a dimension that is no number"),
        (npy("|u1", "0, 2", &[]), y(), "1 to 4294967295 records"),
        (npy("|u1", "2, 2, 1", &[0, 1, 1, 0]), y(), "shape [2, 2, 1]"),
        (npy("|O", "2, 2", &[]), y(), "element type `|O`"),
        (npy("<U3", "2, 2", &[]), y(), "element type `<U3`"),
        (raw(b"\x93NUMPY"), y(), "does not start like an NPY array"),
        (raw(b"\x93NUMPY\x09\x00\x00\x00"), y(), "version is not 1, 2 or 3"),
        (huge_header, y(), "a header over 65536 bytes"),
        (raw(b"\x93NUMPY\x01\x00\xff\x00{'descr"), y(), "ends within the header"),
        (npy("<f8", "2, 2", &nan), y(), "row 1, field `bit 0` is not finite"),
        (npy("|u1", "2, 2", &[0, 1, 2, 0]), y(), "row 2, field `bit 0` is neither 0 nor 1"),
        (x(), npy("|u1", "3,", &[0, 1, 0]), "2 records but 3 labels"),
        (x(), npy("|i1", "2,", &[0, 255]), "row 2, field `y` is not a class number"),
        (x(), npy("|u1", "2, 2", &[1, 0, 1, 1]), "row 2, field `y` is not one-hot"),
        (x(), npy("|u1", "2, 3", &[1, 0, 0, 0, 0, 1]), "class 1 has no record"),
        (x(), npy("|u1", "2,", &[3, 3]), "1 classes, needs at least 2"),
        (npy("|u1", "2, 2", &[0, 1, 1, 0, 1]), y(), "`x` goes on after the 4 bytes"),
    ] {
        let file = folder.npz("d.npz", &[("x", x), ("y", y)]);
        let error = read(DatasetSpec::Location(binary(&file))).unwrap_err();
        assert!(error.to_string().contains(expected), "wanted {expected:?}: {error}");
    }
    let file = folder.npz("d.npz", &[("data", x()), ("y", y())]);
    let error = read(DatasetSpec::Location(binary(&file))).unwrap_err();
    assert!(error.to_string().contains("no `x` in it; it holds data, y"), "{error}");
    let whole = std::fs::read(folder.npz("d.npz", &[("x", x()), ("y", y())])).unwrap();
    for keep in 4..whole.len() {
        let file = folder.write("cut.npz", &whole[..keep]);
        assert!(read(DatasetSpec::Location(binary(&file))).is_err(), "{keep} bytes");
    }
    // A flipped bit is noticed, unless it is in something like a time stamp and changes no record.
    let folder = Folder::new();
    let true_data = read(DatasetSpec::Location(binary(&folder.write("d.npz", &whole)))).unwrap();
    for position in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[position] ^= 1 << (position % 8);
        let file = folder.write("d.npz", flipped);
        if let Ok(data) = read(DatasetSpec::Location(binary(&file))) {
            assert_eq!(data.fingerprint(), true_data.fingerprint(), "byte {position}");
        }
    }
}

// ---- CSV

#[test]
fn a_mixed_table_is_encoded_bit_by_bit_level_by_level_and_scaled() {
    let folder = Folder::new();
    let file = folder.write(
        "people.csv",
        "\u{feff}age, smoker ,town,income\n20,0,\"Ulm, old\",low\n 60 ,1,Bonn,high\n40,1,Bonn,low\n",
    );
    let mut table = csv(&file, "income");
    let real = ColumnSpec::Real { low: 0.0, high: 80.0, outside: Outside::Refuse };
    table.columns.insert("age".into(), real);
    let data = read(DatasetSpec::Csv(table.clone())).unwrap();
    let values = vec![
        0.25, 0.0, 0.0, 1.0, //
        0.75, 1.0, 1.0, 0.0, //
        0.5, 1.0, 1.0, 0.0,
    ];
    assert_eq!(data.inputs, Inputs::Reals { width: 4, values });
    assert_eq!(data.class_names, ["high", "low"]);
    assert_eq!(data.labels, [1, 0, 1]);
    let kinds: Vec<_> = data.columns.iter().map(|c| (c.name.as_str(), c.first_input)).collect();
    assert_eq!(kinds, [("age", 0), ("smoker", 1), ("town", 2)]);
    assert_eq!(data.columns[2].kind, ColumnKind::Category(vec!["Bonn".into(), "Ulm, old".into()]));
    // Without the number, everything is bits: one-hot categories need no floats.
    table.columns.clear();
    table.ignore = vec!["age".into()];
    let data = read(DatasetSpec::Csv(table)).unwrap();
    assert_eq!(bits(&data), [[0, 0, 1], [1, 1, 0], [1, 1, 0]]);
}
#[test]
fn named_levels_keep_their_order_even_unused_and_refuse_others() {
    let folder = Folder::new();
    let file = folder.write("d.csv", "size,y\nS,a\nL,b\n");
    let mut table = csv(&file, "y");
    let levels = Some(["L", "M", "S"].map(str::to_owned).to_vec());
    table.columns.insert("size".into(), ColumnSpec::Category { levels });
    let data = read(DatasetSpec::Csv(table.clone())).unwrap();
    assert_eq!(bits(&data), [[0, 0, 1], [1, 0, 0]]);
    folder.write("d.csv", "size,y\nS,a\nXL,b\n");
    let error = read(DatasetSpec::Csv(table)).unwrap_err();
    assert_eq!(
        said(&error),
        "d.csv, row 3, field `size` is none of the 3 levels named for its column"
    );
}
#[test]
fn numbers_outside_their_bounds_are_refused_or_clamped_as_asked() {
    let folder = Folder::new();
    let file = folder.write("d.csv", "x,y\n-5,a\n15,b\n5,a\n");
    let mut table = csv(&file, "y");
    let real = |outside| ColumnSpec::Real { low: 0.0, high: 10.0, outside };
    table.columns.insert("x".into(), real(Outside::Clamp));
    let data = read(DatasetSpec::Csv(table.clone())).unwrap();
    assert_eq!(data.inputs, Inputs::Reals { width: 1, values: vec![0.0, 1.0, 0.5] });
    table.columns.insert("x".into(), real(Outside::Refuse));
    let error = read(DatasetSpec::Csv(table)).unwrap_err();
    assert!(
        said(&error).contains("row 2, field `x` is outside the public bounds 0 to 10"),
        "{error}"
    );
}
#[test]
fn broken_tables_are_named_by_row_and_field() {
    let folder = Folder::new();
    let real = "{\"kind\":\"real\",\"low\":0,\"high\":9}";
    let bit = "{\"kind\":\"bit\"}";
    for (text, spec, expected) in [
        ("x,y\n1,a\n2\n", real, "d.csv, row 3: 1 fields, needs 2 like the rows before it"),
        ("x,y\n1,a\n2,b,c\n", real, "d.csv, row 3: 3 fields, needs 2 like the rows before it"),
        ("x,y\n1,a\nNaN,b\n", real, "d.csv, row 3, field `x` is not finite"),
        ("x,y\n1,a\ninf,b\n", real, "d.csv, row 3, field `x` is not finite"),
        ("x,y\n1,a\n1e999,b\n", real, "d.csv, row 3, field `x` is not finite"),
        ("x,y\n1,a\n,b\n", real, "d.csv, row 3, field `x` is empty"),
        ("x,y\n1,a\nhello,b\n", real, "d.csv, row 3, field `x` is not a number"),
        ("x,y\n1,a\n2,b\n", bit, "d.csv, row 3, field `x` is neither 0 nor 1"),
        ("x,y\n1,a\n1,\n", real, "d.csv, row 3, field `y` is empty"),
        ("x,y\n1,a\n1,a\n", real, "d.csv: 1 classes, needs at least 2"),
        ("x,y\n", real, "d.csv: no records"),
        ("", real, "d.csv: no records"),
        ("x,x,y\n1,1,a\n", real, "d.csv: two columns are named `x`"),
        ("z,y\n1,a\n", real, "d.csv: no column `x`; the columns are `z`, `y`"),
        ("x,z\n1,a\n", real, "d.csv: no column `y`; the columns are `x`, `z`"),
    ] {
        let file = folder.write("d.csv", text);
        let mut table = csv(&file, "y");
        table.columns.insert("x".into(), serde_json::from_str(spec).unwrap());
        let error = read(DatasetSpec::Csv(table)).unwrap_err();
        assert_eq!(said(&error), expected, "{text:?}");
    }
    let file = folder.write("d.csv", b"x,y\n1,a\n\xff\xfe,b\n");
    let error = read(DatasetSpec::Csv(csv(&file, "y"))).unwrap_err();
    assert_eq!(said(&error), "d.csv, row 3, field `x` is not UTF-8 text");
}
#[test]
fn rows_are_those_of_the_file_even_behind_skipped_and_quoted_lines() {
    let folder = Folder::new();
    let file = folder.write("d.csv", "|a note\nx;y\n0;\"a\nb\"\n7;c\n");
    let mut table = csv(&file, "y");
    (table.skip_lines, table.delimiter) = (1, ';');
    table.columns.insert("x".into(), ColumnSpec::Bit {});
    let error = read(DatasetSpec::Csv(table)).unwrap_err();
    assert_eq!(said(&error), "d.csv, row 5, field `x` is neither 0 nor 1");
}
#[test]
fn a_quote_that_swallows_records_is_refused_where_its_field_begins() {
    let folder = Folder::new();
    let rows = |from: usize, to: usize, class: &str| -> String {
        (from..to).map(|i| format!("{},{class}\n", i % 2)).collect()
    };
    let (before, after) = (rows(2, 352, "A"), rows(353, 702, "B"));
    let quoted = after.replace("B", "\"B\"");
    for (text, row, problem) in [
        (format!("x,y\n{before}1,\"A\n{after}"), 352, "is not closed before the end of the file"),
        (format!("x,y\n{before}1,\"A\n{quoted}"), 352, "has text after its closing quote"),
        ("x,y\n1,A\n1,\"A\"x\n0,B\n".to_owned(), 3, "has text after its closing quote"),
        ("x,y\n1,A\n1,B\n0,\"".to_owned(), 4, "is not closed before the end of the file"),
        ("\u{feff}\"x,y\n1,A\n".to_owned(), 1, "is not closed before the end of the file"),
    ] {
        let file = folder.write("d.csv", text);
        let error = read(DatasetSpec::Csv(csv(&file, "y"))).unwrap_err();
        let expected = format!("d.csv, row {row}: the quoted field that begins here {problem}");
        assert_eq!(said(&error), expected);
    }
    // Doubled quotes, line ends and separators within quotes, spaces behind them, an end without a line end.
    let file =
        folder.write("d.csv", "x,y\r\n0,\"a \"\"b\"\"\"\r\n\"1\" ,\"c,\nd\"\n1,e\"f\n0,\"\"\"\"");
    let data = read(DatasetSpec::Csv(csv(&file, "y"))).unwrap();
    assert_eq!(data.class_names, ["\"", "a \"b\"", "c,\nd", "e\"f"]);
}
#[test]
fn a_number_column_with_too_many_values_asks_for_bounds_and_text_for_ignoring() {
    let folder = Folder::new();
    let rows = |prefix: &str| -> String {
        let rows = (0..10_002).map(|i| format!("{prefix}{i},{}\n", i % 2));
        std::iter::once("x,y\n".to_owned()).chain(rows).collect()
    };
    let file = folder.write("d.csv", rows(""));
    let error = read(DatasetSpec::Csv(csv(&file, "y"))).unwrap_err();
    assert!(matches!(error, Error::NeedsBounds { .. }), "{error}");
    let file = folder.write("d.csv", rows("name "));
    let error = read(DatasetSpec::Csv(csv(&file, "y"))).unwrap_err();
    assert!(matches!(error, Error::TooManyLevels { limit: 10_000, .. }), "{error}");
}
#[test]
fn one_typo_never_turns_a_column_into_something_else() {
    let folder = Folder::new();
    let text =
        "is text, the rows before it hold numbers; correct it or declare the column a category";
    let number =
        "is a number, the rows before it hold text; correct those or declare the column a category";
    let reals = |n: usize| (0..n).map(|i| format!("{i}.5,{}\n", i % 2)).collect::<String>();
    for (rows, row, problem) in [
        (format!("{}NA,0\n{}", reals(350), reals(349)), 352, text),
        // More values than a category may have.
        (format!("{}NA,0\n", reals(10_001)), 10_003, text),
        ("0,a\n1,b\nx,a\n".to_owned(), 4, text),
        ("0,a\n0,b\n0x1,a\n".to_owned(), 4, text),
        ("true,a\nfalse,b\n1,a\n".to_owned(), 4, number),
        ("NA,a\n0,b\n1,a\n".to_owned(), 3, number),
    ] {
        let file = folder.write("d.csv", format!("x,y\n{rows}"));
        let mut table = csv(&file, "y");
        let error = read(DatasetSpec::Csv(table.clone())).unwrap_err();
        assert_eq!(said(&error), format!("d.csv, row {row}, field `x` {problem}"));
        table.columns.insert("x".into(), ColumnSpec::Category { levels: None });
        let kind = read(DatasetSpec::Csv(table)).map(|data| data.columns[0].kind.clone());
        assert!(
            matches!(kind, Ok(ColumnKind::Category(_)) | Err(Error::TooManyLevels { .. })),
            "{kind:?}"
        );
    }
    // Labels are classes whatever they look like.
    let file = folder.write("d.csv", "x,y\n0,1\n1,b\n");
    assert_eq!(read(DatasetSpec::Csv(csv(&file, "y"))).unwrap().class_names, ["1", "b"]);
}
#[test]
fn neighbouring_columns_that_hold_the_same_are_told_together() {
    let folder = Folder::new();
    let rows: String = (0..9).map(|i| format!("0,1,{i},u{i},t{},1,{}\n", i % 2, i % 2)).collect();
    let file = folder.write("d.csv", format!("a,b,age,name,town,c,y\n{rows}"));
    let mut table = csv(&file, "y");
    let real = ColumnSpec::Real { low: 0.0, high: 1e300, outside: Outside::Refuse };
    table.columns.insert("age".into(), real);
    let data = read(DatasetSpec::Csv(table)).unwrap();
    let runs = data.column_runs();
    assert_eq!(
        runs.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "a .. b: bits",
            "age: real, 0 to 1e300",
            "name: category, 9 levels: `u0`, `u1`, `u2`, `u3`, `u4`, `u5`, `u6`, `u7` and 1 more",
            "town: category, 2 levels: `t0`, `t1`",
            "c: bit",
        ]
    );
    let json = serde_json::to_value(&runs).unwrap();
    let bits = serde_json::json!({ "first": "a", "last": "b", "columns": 2, "kind": "bit" });
    assert_eq!(json[0], bits);
    assert_eq!((&json[1]["low"], &json[1]["high"]), (&0.0.into(), &1e300.into()));
    assert_eq!(json[3]["levels"], serde_json::json!(["t0", "t1"]));
}
#[test]
fn a_table_of_a_label_alone_says_what_it_lacks() {
    let folder = Folder::new();
    let file = folder.write("d.csv", "y\na\nb\n");
    let error = read(DatasetSpec::Csv(csv(&file, "y"))).unwrap_err();
    assert!(matches!(error, Error::NoInputs { .. }), "{error}");
}
#[test]
fn settings_that_make_no_sense_are_refused() {
    type Change<'a> = (&'a dyn Fn(&mut CsvTable), &'a str);
    let folder = Folder::new();
    let file = folder.write("d.csv", "x,y\n1,a\n2,b\n");
    let real = |low, high| Some(ColumnSpec::Real { low, high, outside: Outside::Clamp });
    let changes: [Change<'_>; 8] = [
        (&|t| t.delimiter = '"', "one ASCII character"),
        (&|t| t.delimiter = 'ä', "one ASCII character"),
        (&|t| t.names = Some(vec!["x".into(), "y".into()]), "`header = false`"),
        (&|t| t.other_columns = real(1.0, 1.0), "finite and below a finite high"),
        (&|t| t.other_columns = real(f64::NAN, 1.0), "finite and below a finite high"),
        (
            &|t| t.other_columns = real(-1e308, 1e308),
            "is -1e308 with high 1e308, needs such that high - low is finite",
        ),
        (
            &|t| {
                let levels = Some(vec!["1".into(), "1".into()]);
                t.other_columns = Some(ColumnSpec::Category { levels });
            },
            "distinct names",
        ),
        (
            &|t| {
                t.ignore = vec!["x".into()];
                t.columns.insert("x".into(), ColumnSpec::Bit {});
            },
            "`ignore` is a list with `x`, needs names that `columns` does not describe",
        ),
    ];
    for (change, expected) in changes {
        let mut table = csv(&file, "y");
        change(&mut table);
        let error = read(DatasetSpec::Csv(table)).unwrap_err();
        assert!(matches!(error, Error::Setting { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}
#[test]
fn unknown_keys_and_kinds_are_refused_by_name() {
    for (text, expected) in [
        (r#"{"kind":"csv","path":"p","label":"y","colour":1}"#, "unknown field `colour`"),
        (r#"{"kind":"purchase","path":"p","n":1}"#, "unknown field `n`"),
        (r#"{"kind":"skewed-purchases","class":1}"#, "unknown field `class`"),
        (r#"{"kind":"csvs","path":"p"}"#, "unknown variant `csvs`"),
        (r#"{"kind":"csv","path":"p"}"#, "missing field `label`"),
        (
            r#"{"kind":"csv","path":"p","label":"y","columns":{"a":{"kind":"bit","low":1}}}"#,
            "unknown field `low`",
        ),
    ] {
        let error = serde_json::from_str::<DatasetSpec>(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
#[test]
fn a_spec_survives_writing_and_reading() {
    let mut table = csv(Path::new("p.csv"), "y");
    table.columns.insert("a".into(), ColumnSpec::Bit {});
    table
        .columns
        .insert("b".into(), ColumnSpec::Real { low: 0.0, high: 1.0, outside: Outside::Clamp });
    for spec in [
        DatasetSpec::Csv(table),
        DatasetSpec::SkewedPurchases(Default::default()),
        DatasetSpec::Texas(BinaryFile { path: "t".into(), classes: Some(100) }),
    ] {
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<DatasetSpec>(&text).unwrap(), spec, "{text}");
    }
}

// ---- the fixtures other crates' tests and the command line use

#[test]
fn the_fixtures_are_as_broken_as_their_names_say() {
    let fixture = |name: &str| dosimeter_testing::workspace().join("fixtures").join(name);
    let people = |name: &str| {
        let mut table = csv(&fixture(name), "income");
        let real = ColumnSpec::Real { low: 0.0, high: 100.0, outside: Outside::Refuse };
        table.columns.insert("age".into(), real);
        read(DatasetSpec::Csv(table))
    };
    assert_eq!(people("people.csv").unwrap().len(), 4);
    assert_eq!(people("three-records.csv").unwrap().len(), 3);
    for (name, expected) in [
        ("ragged.csv", "row 3: 3 fields, needs 4"),
        ("not-finite.csv", "row 3, field `age` is not finite"),
        ("one-class.csv", "1 classes, needs at least 2"),
    ] {
        let error = people(name).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(expected), "{error}");
    }
    for (name, expected) in [
        ("class-missing.txt", "class 2 has no record"),
        ("label-no-number.txt", "row 2, field `label` is not a class number"),
    ] {
        let error = read(DatasetSpec::Purchase(binary(&fixture(name)))).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(expected), "{error}");
    }
}

/// Rows are lines of the file, whatever lies between them.
#[test]
fn errors_name_the_line_of_the_file_behind_blank_lines_windows_ends_and_quoted_line_ends() {
    let folder = Folder::new();
    for (text, line) in [
        ("x,y\n1,a\nNaN,b\n", 3),
        ("x,y\r\n1,a\r\nNaN,b\r\n", 3),
        ("x,y\n\n1,a\n\n\nNaN,b\n", 6),
        ("x,y\r\n\r\n1,a\r\n\r\nNaN,b", 5),
        ("\n\nx,y\n1,a\nNaN,b", 5),
        ("x,y\n1,\"a\n\n\"\nNaN,b\n", 5),
        ("x,y\r\n1,\"a\r\n\"\r\nNaN,\"b\r\n\"\r\n", 4),
        ("\u{feff}x,y\r\n1,a\r\nNaN,b\r\n", 3),
        ("\u{feff}x,y\n1,a\n\nNaN,b\n", 4),
    ] {
        let path = folder.write("d.csv", text);
        let mut table = csv(&path, "y");
        let real = serde_json::json!({ "kind": "real", "low": 0.0, "high": 10.0 });
        table.columns.insert("x".to_owned(), serde_json::from_value(real).unwrap());
        let error = read(DatasetSpec::Csv(table)).unwrap_err();
        let expected = format!("d.csv, row {line}, field `x` is not finite");
        assert!(said(&error).ends_with(&expected), "{text:?}: {error}");
    }
    // Long enough that the text comes in pieces.
    let rows = 20_000;
    let text = format!("x,y\r\n{}NaN,b\r\n", "1,a\r\n\r\n".repeat(rows));
    let mut table = csv(&folder.write("d.csv", text), "y");
    let real = serde_json::json!({ "kind": "real", "low": 0.0, "high": 10.0 });
    table.columns.insert("x".to_owned(), serde_json::from_value(real).unwrap());
    let error = read(DatasetSpec::Csv(table)).unwrap_err();
    assert!(said(&error).contains(&format!("row {}, field `x`", 2 * rows + 2)), "{error}");
}

/// Opening a pipe nobody writes to would wait for ever: this test would hang.
#[cfg(unix)]
#[test]
#[expect(clippy::print_stderr, reason = "a skipped check must say so")]
fn a_pipe_a_device_and_a_folder_are_no_files() {
    let folder = Folder::new();
    let pipe = folder.0.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    let inner = folder.0.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let mut cases = vec![(inner, "a folder"), ("/dev/zero".into(), "a device")];
    if made.is_ok_and(|status| status.success()) {
        cases.push((pipe, "a pipe"));
    } else {
        eprintln!("skipped: no mkfifo here");
    }
    for (path, have) in cases {
        let expected = format!("{}: needs a file, got {have}", path.display());
        assert_eq!(dosimeter_data::file::open(&path).unwrap_err().to_string(), expected);
        let specs = [
            DatasetSpec::Csv(csv(&path, "y")),
            DatasetSpec::Purchase(binary(&path)),
            serde_json::from_value(serde_json::json!({ "kind": "npz", "path": path })).unwrap(),
        ];
        // A folder is told by the loaders in their own words.
        for spec in specs.into_iter().filter(|_| have != "a folder") {
            assert_eq!(read(spec).unwrap_err().to_string(), expected);
        }
        assert_eq!(dosimeter_data::settings::text(&path).unwrap_err().to_string(), expected);
    }
}
