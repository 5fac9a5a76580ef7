//! Real files of the reference material, where it lies beside the project; skipped with a line otherwise.
#![allow(clippy::unwrap_used, clippy::panic, reason = "support functions of tests fail loudly")]
use dosimeter_data::datasets::{
    BinaryFile, CifarForm, CifarImages, Colour, ColumnSpec, CsvTable, DatasetSpec, IdxImages,
    ImageFolder, NpzImages, PackedBits, load,
};
use dosimeter_data::graphs::{self, GraphSet, GraphSpec, GraphText};
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

fn bytes(data: &Dataset) -> &[u8] {
    let Inputs::Bytes { values, .. } = &data.inputs else { panic!("bytes") };
    values
}
/// Counts as published by LeCun, Cortes and Burges; the first training image is the 5 that everyone knows.
#[test]
fn mnist_is_complete() {
    let idx = |path| IdxImages { path, labels: None, classes: None };
    let read = |path| load(&DatasetSpec::Idx(idx(path)), Seed::root(0)).unwrap();
    let Some(path) = shared("data/mnist/train-images-idx3-ubyte.gz") else { return };
    let train = read(path);
    assert_eq!((train.len(), train.shape()), (60_000, Some([1, 28, 28])));
    let counts = [5_923, 6_742, 5_958, 6_131, 5_842, 5_421, 5_918, 6_265, 5_851, 5_949];
    assert_eq!(train.class_counts(), counts);
    assert_eq!(train.labels[..5], [5, 0, 4, 1, 9]);
    let sum: u64 = bytes(&train).iter().map(|&b| u64::from(b)).sum();
    // The mean that everybody normalizes by: 0.1307.
    let mean = sum as f64 / (60_000.0 * 784.0 * 255.0);
    assert!((mean - 0.1307).abs() < 5e-5, "{mean}");
    let Some(path) = shared("data/mnist/t10k-images-idx3-ubyte.gz") else { return };
    let test = read(path);
    assert_eq!(test.class_counts(), [980, 1_135, 1_032, 1_010, 982, 892, 958, 1_028, 974, 1_009]);
}
#[test]
fn cifar_10_reads_from_records_and_from_a_zip_of_class_folders() {
    let Some(path) = shared("data/cifar10/cifar10_test_2000.bin") else { return };
    let spec = CifarImages { path, form: CifarForm::Ten, files: vec![], classes: None };
    let records = load(&DatasetSpec::Cifar(spec), Seed::root(0)).unwrap();
    assert_eq!((records.len(), records.shape(), records.classes), (2_000, Some([3, 32, 32]), 10));
    let Some(path) = shared("data/cifar10/cifar10_test_10k_jpg.zip") else { return };
    let spec = ImageFolder { path, colour: Colour::AsIs, crop: None, resize: None, classes: None };
    let folder = load(&DatasetSpec::ImageFolder(spec), Seed::root(0)).unwrap();
    assert_eq!((folder.len(), folder.shape()), (10_000, Some([3, 32, 32])));
    assert_eq!(folder.class_counts(), [1_000; 10]);
    assert_eq!(
        (folder.class_names[0].as_str(), folder.class_names[9].as_str()),
        ("airplane", "truck")
    );
    // The records were decoded from these very JPEGs by another decoder: each is near one of its class.
    let of = |data: &Dataset, i: usize| bytes(data)[i * 3072..(i + 1) * 3072].to_vec();
    for record in 0..20 {
        let wanted = of(&records, record);
        let nearest = (0..folder.len())
            .filter(|&i| folder.labels[i] == records.labels[record])
            .map(|i| of(&folder, i).iter().zip(&wanted).map(|(a, b)| a.abs_diff(*b)).max().unwrap())
            .min();
        assert!(nearest.is_some_and(|n| n <= 6), "record {record}: nearest differs by {nearest:?}");
    }
}
#[test]
fn digits_orl_and_lfw_have_their_shapes_and_classes() {
    let read = |path, highest| {
        let (inputs, labels) = ("x".into(), "y".into());
        let spec = NpzImages { path, inputs, labels, channels: None, highest, classes: None };
        load(&DatasetSpec::NpzImages(spec), Seed::root(0)).unwrap()
    };
    if let Some(path) = shared("data/digits/digits.npz") {
        let digits = read(path, Some(16.0));
        assert_eq!((digits.len(), digits.shape()), (1_797, Some([1, 8, 8])));
        assert_eq!(digits.class_counts(), [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
        // The first row of the first digit, as scikit-learn shows it.
        assert_eq!(bytes(&digits)[..8], [0, 0, 5, 13, 9, 1, 0, 0]);
        assert_eq!(bytes(&digits).iter().max(), Some(&16));
    }
    if let Some(path) = shared("data/orl-faces/orl_faces.npz") {
        let faces = read(path, None);
        assert_eq!((faces.len(), faces.shape()), (400, Some([1, 112, 92])));
        assert_eq!(faces.class_counts(), [10; 40]);
    }
    if let Some(path) = shared("data/lfw/lfw_people_min20_gray62x47.npz") {
        let faces = read(path, None);
        assert_eq!((faces.len(), faces.shape(), faces.classes), (3_023, Some([1, 62, 47]), 62));
        assert!(faces.class_counts().iter().all(|&n| n >= 20));
    }
}

fn dgcnn(path: PathBuf) -> GraphSet {
    graphs::load(&GraphSpec::Dgcnn(GraphText::new(path))).unwrap()
}
/// Counts as published for the TUDataset collection, and edges as an independent count of the text gives them.
#[test]
fn graph_sets_have_their_published_sizes() {
    for (name, classes, nodes, edges, tags) in [
        ("MUTAG", &[63, 125][..], 3_371, 3_721, 7),
        ("PROTEINS", &[663, 450], 43_471, 81_044, 3),
        ("IMDBBINARY", &[500, 500], 19_773, 96_531, 1),
        ("COLLAB", &[2_600, 775, 1_625], 372_474, 12_286_079, 1),
    ] {
        let Some(path) = shared(&format!("data/tudataset/{name}.zip")) else { continue };
        let set = dgcnn(path);
        assert_eq!(set.class_counts(), classes, "{name}");
        assert_eq!(
            (set.nodes(), set.edges(), set.tag_names().len()),
            (nodes, edges, tags),
            "{name}"
        );
        // Authors who published with themselves: the only entries in these four that are no edge.
        let loops = if name == "COLLAB" { 2_837 } else { 0 };
        assert_eq!((set.dropped().self_loops, set.dropped().repeated), (loops, 0), "{name}");
    }
}
