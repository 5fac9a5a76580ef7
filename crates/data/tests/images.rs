//! Images of every form, whole and broken. The test writes each file it reads.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::needless_pass_by_value,
    reason = "support functions of tests fail loudly and are called with literals"
)]
use dosimeter_data::datasets::{
    Channels, CifarForm, CifarImages, Colour, DatasetSpec, IdxImages, ImageFolder, NpzImages, load,
};
use dosimeter_data::{ColumnKind, Dataset, Error, ImageProblem, Inputs, Seed};
use image::{DynamicImage, GrayImage, ImageFormat, RgbImage};
use proptest::prelude::*;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

struct Folder(tempfile::TempDir);
impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
    fn zip(&self, name: &str, entries: &[(&str, Vec<u8>)]) -> PathBuf {
        let path = self.path(name);
        let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        for (name, bytes) in entries {
            let options = zip::write::SimpleFileOptions::default();
            if name.ends_with('/') {
                zip.add_directory(*name, options).unwrap();
                continue;
            }
            zip.start_file(*name, options).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap();
        path
    }
}
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
fn read(spec: DatasetSpec) -> Result<Dataset, Error> {
    load(&spec, Seed::root(0))
}
fn bytes(data: &Dataset) -> &[u8] {
    let Inputs::Bytes { values, .. } = &data.inputs else { panic!("bytes") };
    values
}
/// The file's name is a temporary one: drop all up to its last folder.
fn said(error: &Error, folder: &Folder) -> String {
    error.to_string().replace(&format!("{}/", folder.0.path().display()), "")
}

// ---- IDX

fn idx(start: [u8; 4], sizes: &[u32], elements: &[u8]) -> Vec<u8> {
    let mut file = start.to_vec();
    sizes.iter().for_each(|size| file.extend_from_slice(&size.to_be_bytes()));
    file.extend_from_slice(elements);
    file
}
fn idx_images(sizes: [u32; 3], elements: &[u8]) -> Vec<u8> {
    idx([0, 0, 8, 3], &sizes, elements)
}
fn idx_labels(labels: &[u8]) -> Vec<u8> {
    idx([0, 0, 8, 1], &[labels.len() as u32], labels)
}
fn read_idx(path: &Path) -> Result<Dataset, Error> {
    read(DatasetSpec::Idx(IdxImages { path: path.to_owned(), labels: None, classes: None }))
}

#[test]
fn idx_reads_the_same_plain_and_gzipped() {
    let folder = Folder::new();
    let images = idx_images([3, 2, 1], &[0, 255, 51, 102, 204, 1]);
    let labels = idx_labels(&[1, 0, 1]);
    let plain = folder.write("t-images-idx3-ubyte", &images);
    folder.write("t-labels-idx1-ubyte", &labels);
    let zipped = folder.write("t-images-idx3-ubyte.gz", gzip(&images));
    folder.write("t-labels-idx1-ubyte.gz", gzip(&labels));
    let (plain, zipped) = (read_idx(&plain).unwrap(), read_idx(&zipped).unwrap());
    assert_eq!(plain.fingerprint(), zipped.fingerprint());
    assert_eq!(plain.shape(), Some([1, 2, 1]));
    assert_eq!((plain.len(), plain.width(), plain.classes), (3, 2, 2));
    assert_eq!(plain.labels, [1, 0, 1]);
    assert_eq!(bytes(&plain), [0, 255, 51, 102, 204, 1]);
    let mut row = vec![9.0];
    plain.inputs.append_row(1, &mut row);
    assert_eq!(row, [9.0, 0.2, 0.4]);
    assert_eq!(plain.columns.len(), 1, "one column for all pixels");
    assert_eq!(plain.column_runs()[0].to_string(), "pixels: image, 1 x 2 x 1");
}
#[test]
fn the_file_of_labels_may_have_any_name_and_else_must_follow_from_that_of_the_images() {
    let folder = Folder::new();
    let path = folder.write("digits", idx_images([2, 1, 1], &[1, 2]));
    folder.write("classes/of-digits", idx_labels(&[0, 1]));
    let labels = Some(PathBuf::from("classes/of-digits"));
    let spec = IdxImages { path: path.clone(), labels, classes: None };
    assert_eq!(read(DatasetSpec::Idx(spec)).unwrap().labels, [0, 1]);
    let error = read_idx(&path).unwrap_err();
    assert!(matches!(&error, Error::Setting { setting, .. } if setting == "labels"), "{error}");
}
#[test]
fn broken_idx_files_say_where_and_what_was_needed() {
    let folder = Folder::new();
    let huge = u32::MAX;
    let table: &[(Vec<u8>, Vec<u8>, &str)] = &[
        (
            vec![],
            idx_labels(&[0, 1]),
            "images: begins with nothing, needs 00000803 (unsigned bytes, 3 sizes)",
        ),
        (
            vec![0, 0],
            idx_labels(&[0, 1]),
            "images: begins with 0000, needs 00000803 (unsigned bytes, 3 sizes)",
        ),
        (
            idx([0, 0, 0x0d, 3], &[1, 1, 1], &[0; 4]),
            idx_labels(&[0, 1]),
            "images: begins with 00000d03, needs 00000803 (unsigned bytes, 3 sizes)",
        ),
        (
            idx([0, 0, 8, 3], &[2, 1], &[]),
            idx_labels(&[0, 1]),
            "images, record 0: ends after 12 bytes, needs 16",
        ),
        (
            idx_images([2, 1, 2], &[1, 2, 3]),
            idx_labels(&[0, 1]),
            "images, record 2: ends after 1 bytes, needs 2",
        ),
        (
            idx_images([huge, 1, 1], &[1, 2]),
            idx_labels(&[0, 1]),
            "images, record 3: ends after 0 bytes, needs 1",
        ),
        // Refused by what it declares, before anything is unpacked.
        (
            idx_images([huge, 2, 2], &[1, 2]),
            idx_labels(&[0, 1]),
            "images: 4294967295 records x 4 inputs are over the limit of 4294967296 inputs in all",
        ),
        (
            idx_images([2, 0, 5], &[]),
            idx_labels(&[0, 1]),
            "images: images of [0, 5], needs sides of at least 1 and at most 16777216 numbers in all",
        ),
        (
            idx_images([huge, huge, huge], &[1]),
            idx_labels(&[0, 1]),
            "images: images of [4294967295, 4294967295], needs sides of at least 1 and at most 16777216 numbers in all",
        ),
        (
            idx_images([1, 1, 2], &[1, 2, 3]),
            idx_labels(&[0]),
            "images: not a readable IDX file: goes on after the 1 records that its header declares",
        ),
        (idx_images([0, 2, 2], &[]), idx_labels(&[]), "labels: no records"),
        (idx_images([1, 1, 1], &[7]), idx_labels(&[0, 1]), "images: 1 records but 2 labels"),
        (
            idx_images([2, 1, 1], &[7, 8]),
            idx([0, 0, 8, 1], &[2], &[1]),
            "labels, record 2: ends after 0 bytes, needs 1",
        ),
        (
            idx_images([2, 1, 1], &[7, 8]),
            idx_images([2, 1, 1], &[7, 8]),
            "labels: begins with 00000803, needs 00000801 (unsigned bytes, 1 size)",
        ),
        (
            idx_images([2, 1, 1], &[7, 8]),
            idx_labels(&[3, 3]),
            "labels: 1 classes, needs at least 2",
        ),
        (
            idx_images([2, 1, 1], &[7, 8]),
            idx_labels(&[3, 5]),
            "labels: class 4 has no record; keep the most frequent classes with `classes = N`",
        ),
    ];
    for (images, labels, expected) in table {
        let path = folder.write("images", images);
        folder.write("labels", labels);
        assert_eq!(said(&read_idx(&path).unwrap_err(), &folder), *expected);
    }
}
#[test]
fn a_gzip_bomb_stops_at_the_declared_size() {
    let folder = Folder::new();
    // 64 MiB of zeros in 64 kB, where the header speaks of two pixels.
    let mut bomb = idx_images([2, 1, 1], &[]);
    bomb.resize(64 << 20, 0);
    let path = folder.write("images", gzip(&bomb));
    folder.write("labels", idx_labels(&[0, 1]));
    let error = read_idx(&path).unwrap_err();
    assert!(matches!(error, Error::Damaged { format: "IDX", .. }), "{error}");
}

// ---- CIFAR

/// A record whose pixels all differ from those of another `start`.
fn cifar(labels: &[u8], start: u8) -> Vec<u8> {
    let pixels = (0..3072_u32).map(|i| (i % 251) as u8 ^ start);
    labels.iter().copied().chain(pixels).collect()
}
fn read_cifar(path: &Path, form: CifarForm, files: &[&str]) -> Result<Dataset, Error> {
    let files = files.iter().map(|f| (*f).to_owned()).collect();
    read(DatasetSpec::Cifar(CifarImages { path: path.to_owned(), form, files, classes: None }))
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

#[test]
fn cifar_reads_the_same_from_a_file_a_folder_and_an_archive_in_any_order() {
    let folder = Folder::new();
    let batch = |i: u8| [cifar(&[i], i), cifar(&[i + 5], 100 + i)].concat();
    let batches: Vec<Vec<u8>> = (0..5).map(batch).collect();
    let one = folder.write("all.bin", batches.concat());
    for (i, batch) in batches.iter().enumerate() {
        folder.write(&format!("batches/data_batch_{}.bin", i + 1), batch);
    }
    let mut members: Vec<(String, &[u8])> = batches
        .iter()
        .enumerate()
        .map(|(i, b)| (format!("cifar/data_batch_{}.bin", i + 1), b.as_slice()))
        .collect();
    members.reverse();
    members.insert(2, ("cifar/batches.meta.txt".to_owned(), b"airplane\n"));
    let members: Vec<(&str, &[u8])> = members.iter().map(|(n, b)| (n.as_str(), *b)).collect();
    let archive = folder.write("cifar.tar.gz", gzip(&tar(&members)));
    let one = read_cifar(&one, CifarForm::Ten, &[]).unwrap();
    for path in [folder.path("batches"), archive.clone()] {
        let data = read_cifar(&path, CifarForm::Ten, &[]).unwrap();
        assert_eq!(data.fingerprint(), one.fingerprint(), "{}", path.display());
    }
    assert_eq!(one.labels, [0, 5, 1, 6, 2, 7, 3, 8, 4, 9]);
    assert_eq!((one.shape(), one.len()), (Some([3, 32, 32]), 10));
    assert_eq!(bytes(&one)[3072..6144], cifar(&[5], 100)[1..]);
    let asked = ["data_batch_2.bin", "data_batch_1.bin"];
    let error = read_cifar(&archive, CifarForm::Ten, &asked).unwrap_err();
    assert!(matches!(error, Error::ClassWithoutRecord { class: 2, .. }), "{error}");
    let error = read_cifar(&archive, CifarForm::Ten, &["test_batch.bin"]).unwrap_err();
    assert!(
        said(&error, &folder)
            .contains("no `test_batch.bin` in it; it holds cifar/data_batch_5.bin")
    );
    let error = read_cifar(&folder.path("all.bin"), CifarForm::Ten, &["x"]).unwrap_err();
    assert!(matches!(error, Error::Setting { .. }), "{error}");
    let error = read_cifar(&archive, CifarForm::Ten, &["a", "a"]).unwrap_err();
    assert!(error.to_string().contains("a list with `a` twice"), "{error}");
}
#[test]
fn cifar_100_has_a_coarse_and_a_fine_label() {
    let folder = Folder::new();
    let path = folder.write("train.bin", [cifar(&[1, 0], 3), cifar(&[0, 1], 4)].concat());
    assert_eq!(read_cifar(&path, CifarForm::HundredFine, &[]).unwrap().labels, [0, 1]);
    assert_eq!(read_cifar(&path, CifarForm::HundredCoarse, &[]).unwrap().labels, [1, 0]);
    let data = read_cifar(folder.0.path(), CifarForm::HundredFine, &[]).unwrap();
    assert_eq!(bytes(&data)[..3072], cifar(&[], 3));
}
#[test]
fn broken_cifar_files_name_the_record() {
    let folder = Folder::new();
    let two = [cifar(&[0], 1), cifar(&[1], 2)].concat();
    let cut = folder.write("cut.bin", &two[..4000]);
    let error = read_cifar(&cut, CifarForm::Ten, &[]).unwrap_err();
    assert_eq!(said(&error, &folder), "cut.bin, record 2: ends after 927 bytes, needs 3073");
    let label = folder.write("label.bin", [cifar(&[0], 1), cifar(&[10], 2)].concat());
    let error = read_cifar(&label, CifarForm::Ten, &[]).unwrap_err();
    assert_eq!(
        said(&error, &folder),
        "label.bin, row 2, field `label` is not below 10, the number of classes of this form"
    );
    let half = folder.write("half.bin", &cifar(&[0, 1], 2)[..1]);
    let error = read_cifar(&half, CifarForm::HundredFine, &[]).unwrap_err();
    assert_eq!(said(&error, &folder), "half.bin, record 1: ends after 1 bytes, needs 3074");
    let empty = folder.write("empty.bin", []);
    assert!(matches!(read_cifar(&empty, CifarForm::Ten, &[]), Err(Error::NoRecords { .. })));
    let archive = tar(&[("a/data_batch_1.bin", &two), ("b/data_batch_1.bin", &two)]);
    let twice = folder.write("twice.tar", archive);
    let error = read_cifar(&twice, CifarForm::Ten, &["data_batch_1.bin"]).unwrap_err();
    assert!(error.to_string().contains("two of its files are named"), "{error}");
    let gone = read_cifar(&folder.path("nothing"), CifarForm::Ten, &[]);
    assert!(matches!(gone, Err(Error::Read { .. })));
}

// ---- NPZ

fn npy(descr: &str, column_major: &str, shape: &str, data: &[u8]) -> Vec<u8> {
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
fn npz_images(path: PathBuf) -> NpzImages {
    let (inputs, labels) = ("x".into(), "y".into());
    NpzImages { path, inputs, labels, channels: None, highest: None, classes: None }
}
fn read_npz(
    folder: &Folder,
    images: Vec<u8>,
    change: impl FnOnce(&mut NpzImages),
) -> Result<Dataset, Error> {
    let path =
        folder.zip("i.npz", &[("x.npy", images), ("y.npy", npy("|u1", "False", "2,", &[0, 1]))]);
    let mut spec = npz_images(path);
    change(&mut spec);
    read(DatasetSpec::NpzImages(spec))
}

#[test]
fn npz_images_have_their_channels_nowhere_last_or_first() {
    let folder = Folder::new();
    let grey = npy("|u1", "False", "2, 1, 2", &[0, 1, 2, 4]);
    let data = read_npz(&folder, grey.clone(), |s| s.highest = Some(4.0)).unwrap();
    assert_eq!(data.shape(), Some([1, 1, 2]));
    assert_eq!(data.inputs, Inputs::Bytes { width: 2, highest: 4, values: vec![0, 1, 2, 4] });
    let last = npy("|u1", "False", "2, 2, 1, 3", &(0..12).collect::<Vec<u8>>());
    let first = npy("|u1", "False", "2, 3, 2, 1", &[0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]);
    let last = read_npz(&folder, last, |_| {}).unwrap();
    assert_eq!(last.shape(), Some([3, 2, 1]));
    assert_eq!(bytes(&last), [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]);
    let first = read_npz(&folder, first, |s| s.channels = Some(Channels::First)).unwrap();
    assert_eq!(first.fingerprint(), last.fingerprint());
    let both = npy("|u1", "False", "2, 1, 2, 1", &[1, 2, 3, 4]);
    let error = read_npz(&folder, both.clone(), |_| {}).unwrap_err();
    assert!(error.to_string().contains("needs `channels` set to \"first\" or \"last\""), "{error}");
    let told = read_npz(&folder, both, |s| s.channels = Some(Channels::Last)).unwrap();
    assert_eq!((told.shape(), bytes(&told)), (Some([1, 1, 2]), [1, 2, 3, 4].as_slice()));
    let error = read_npz(&folder, grey, |s| s.channels = Some(Channels::First)).unwrap_err();
    assert!(matches!(error, Error::ArrayShape { .. }), "{error}");
}
#[test]
fn npz_images_of_other_numbers_are_divided_by_their_highest() {
    let folder = Folder::new();
    let reals =
        |values: [f32; 4]| npy("<f4", "False", "2, 2, 1", &values.map(f32::to_le_bytes).concat());
    let data = read_npz(&folder, reals([0.0, 0.5, 1.0, 0.25]), |_| {}).unwrap();
    assert_eq!(data.inputs, Inputs::Reals { width: 2, values: vec![0.0, 0.5, 1.0, 0.25] });
    let data = read_npz(&folder, reals([0.0, 5.0, 10.0, 2.5]), |s| s.highest = Some(10.0)).unwrap();
    assert_eq!(data.inputs, Inputs::Reals { width: 2, values: vec![0.0, 0.5, 1.0, 0.25] });
    for (value, expected) in [
        (f32::NAN, "i.npz, row 2, field `pixel 1` is not finite"),
        (f32::INFINITY, "i.npz, row 2, field `pixel 1` is not finite"),
        (
            2.0,
            "i.npz, row 2, field `pixel 1` is not a number from 0 to 1; `highest` says which number stands for full brightness",
        ),
        (
            -0.5,
            "i.npz, row 2, field `pixel 1` is not a number from 0 to 1; `highest` says which number stands for full brightness",
        ),
    ] {
        let error = read_npz(&folder, reals([0.0, 0.5, 1.0, value]), |_| {}).unwrap_err();
        assert_eq!(said(&error, &folder), expected);
    }
    let dark = npy("|u1", "False", "2, 1, 1", &[3, 17]);
    let error = read_npz(&folder, dark.clone(), |s| s.highest = Some(16.0)).unwrap_err();
    assert!(
        said(&error, &folder)
            .starts_with("i.npz, row 2, field `pixel 0` is not a number from 0 to 16;")
    );
    for highest in [0.0, -1.0, 2.5, 256.0, f64::NAN, f64::INFINITY] {
        let error = read_npz(&folder, dark.clone(), |s| s.highest = Some(highest)).unwrap_err();
        assert!(
            matches!(&error, Error::Setting { setting, .. } if setting == "highest"),
            "{error}"
        );
    }
}
#[test]
fn broken_npz_images_are_refused_with_what_was_needed() {
    let folder = Folder::new();
    for (images, expected) in [
        (npy("|u1", "False", "2, 2", &[0; 4]), "shape [2, 2], needs [records, height, width], "),
        (npy("|u1", "False", "2, 0, 2", &[]), "images of [1, 0, 2], needs sides of at least 1"),
        (npy("|u1", "False", "0, 1, 2", &[]), "shape [0, 1, 2], needs 1 to 4294967295 records"),
        (npy("|u1", "False", "2, 99999, 99999", &[]), "images of [1, 99999, 99999], needs sides"),
        (
            npy("|u1", "False", "2, 18446744073709551615, 2", &[]),
            "images of [1, 18446744073709551615, 2], needs sides",
        ),
        (npy("|u1", "False", "4000000000, 2, 2", &[0; 8]), "holds 8"),
        (npy("|u1", "False", "2, 1, 2", &[0; 5]), "goes on after the 4 bytes"),
        (npy("|u1", "True", "2, 1, 2", &[0; 4]), "needs row-major elements"),
        (npy("<U5", "False", "2, 1, 2", &[0; 80]), "element type `<U5`"),
    ] {
        let error = read_npz(&folder, images, |_| {}).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}\nneeds {expected}");
    }
    let three = npy("|u1", "False", "3, 1, 1", &[0; 3]);
    let error = read_npz(&folder, three, |_| {}).unwrap_err();
    assert!(matches!(error, Error::LabelCount { inputs: 3, labels: 2, .. }), "{error}");
}

// ---- folders

fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}
fn grey(width: u32, pixels: &[u8]) -> DynamicImage {
    let height = pixels.len() as u32 / width;
    GrayImage::from_raw(width, height, pixels.to_vec()).unwrap().into()
}
fn png(width: u32, pixels: &[u8]) -> Vec<u8> {
    encoded(&grey(width, pixels), ImageFormat::Png)
}
fn folder_of(path: PathBuf) -> ImageFolder {
    ImageFolder { path, colour: Colour::AsIs, crop: None, resize: None, classes: None }
}
fn read_folder(path: &Path) -> Result<Dataset, Error> {
    read(DatasetSpec::ImageFolder(folder_of(path.to_owned())))
}

#[test]
fn classes_are_the_folders_sorted_and_records_their_files_sorted_on_disk_and_in_a_zip() {
    let folder = Folder::new();
    let colour = RgbImage::from_raw(2, 1, vec![1, 2, 3, 4, 5, 6]).unwrap();
    let images = [
        ("cat/b.PNG", encoded(&colour.into(), ImageFormat::Png)),
        ("ant/z.ppm", b"P6\n2 1\n255\n\x07\x08\x09\x0a\x0b\x0c".to_vec()),
        ("cat/a.ppm", b"P6\n# a comment\n2 1\n255\n\x0d\x0e\x0f\x10\x11\x12".to_vec()),
    ];
    for (name, bytes) in &images {
        folder.write(&format!("disk/{name}"), bytes);
    }
    folder.write("disk/README.txt", "beside the classes");
    folder.write("disk/.DS_Store", [0]);
    folder.write("disk/cat/.DS_Store", [0]);
    folder.write("disk/cat/Thumbs.db", [0]);
    let disk = read_folder(&folder.path("disk")).unwrap();
    assert_eq!(disk.class_names, ["ant", "cat"]);
    assert_eq!(disk.labels, [0, 1, 1]);
    assert_eq!(disk.shape(), Some([3, 1, 2]));
    // Red, green, blue of each.
    let expected = [7, 10, 8, 11, 9, 12, 13, 16, 14, 17, 15, 18, 1, 4, 2, 5, 3, 6];
    assert_eq!(bytes(&disk), expected);
    let mut entries: Vec<(String, Vec<u8>)> =
        images.iter().map(|(n, b)| (format!("set/train/{n}"), b.clone())).collect();
    entries.insert(0, ("set/train/notes.txt".into(), vec![1]));
    entries.insert(0, ("set/train/".into(), vec![]));
    entries.insert(1, ("set/train/cat/".into(), vec![]));
    entries.push(("__MACOSX/set/train/cat/._b.png".into(), vec![1]));
    let entries: Vec<(&str, Vec<u8>)> =
        entries.iter().map(|(n, b)| (n.as_str(), b.clone())).collect();
    let zip = read_folder(&folder.zip("set.zip", &entries)).unwrap();
    assert_eq!(zip.fingerprint(), disk.fingerprint());
    let plain: Vec<(&str, Vec<u8>)> = images.iter().map(|(n, b)| (*n, b.clone())).collect();
    let zip = read_folder(&folder.zip("plain.zip", &plain)).unwrap();
    assert_eq!(zip.fingerprint(), disk.fingerprint());
}
#[test]
fn jpeg_keeps_a_flat_image_flat() {
    let folder = Folder::new();
    for (name, level) in [("a/1.jpg", 40), ("b/1.jpeg", 200)] {
        folder.write(name, encoded(&grey(8, &[level; 64]), ImageFormat::Jpeg));
    }
    let data = read_folder(folder.0.path()).unwrap();
    assert_eq!((data.shape(), data.len()), (Some([1, 8, 8]), 2));
    for (byte, level) in bytes(&data).iter().zip([40; 64].iter().chain(&[200_u8; 64])) {
        assert!(byte.abs_diff(*level) <= 1, "{byte} of {level}");
    }
}
#[test]
fn images_are_cropped_scaled_and_converted_only_if_asked() {
    let folder = Folder::new();
    folder.write("a/1.png", png(4, &[9, 9, 9, 9, 9, 10, 30, 9, 9, 10, 30, 9]));
    folder.write("b/1.png", png(3, &[9, 9, 9, 9, 50, 70, 9, 50, 70]));
    let error = read_folder(folder.0.path()).unwrap_err();
    assert_eq!(
        error.to_string().rsplit_once(", image").unwrap().1,
        " `b/1.png` is 1 x 3 x 3 (channels, height, width), needs 1 x 3 x 4 as the first; set `crop`, `resize` or `colour`"
    );
    let mut spec = folder_of(folder.0.path().to_owned());
    spec.crop = Some([1, 1, 2, 2]);
    let data = read(DatasetSpec::ImageFolder(spec.clone())).unwrap();
    assert_eq!(bytes(&data), [10, 30, 10, 30, 50, 70, 50, 70]);
    spec.resize = Some([1, 1]);
    let data = read(DatasetSpec::ImageFolder(spec.clone())).unwrap();
    assert_eq!((data.shape(), bytes(&data)), (Some([1, 1, 1]), [20, 60].as_slice()));
    spec.colour = Colour::Rgb;
    let data = read(DatasetSpec::ImageFolder(spec.clone())).unwrap();
    assert_eq!(bytes(&data), [20, 20, 20, 60, 60, 60]);
    spec.crop = Some([1, 2, 2, 2]);
    let error = read(DatasetSpec::ImageFolder(spec.clone())).unwrap_err();
    let problem = ImageProblem::Crop { size: [3, 3], needs: [3, 4] };
    assert!(matches!(&error, Error::Image { problem: p, .. } if *p == problem), "{error}");
    for (crop, resize) in
        [(Some([0, 0, 0, 1]), None), (None, Some([0, 1])), (None, Some([u32::MAX, u32::MAX]))]
    {
        let spec = ImageFolder { crop, resize, ..spec.clone() };
        let error = read(DatasetSpec::ImageFolder(spec)).unwrap_err();
        assert!(matches!(error, Error::Setting { .. }), "{error}");
    }
}
#[test]
fn colours_are_alike_or_converted() {
    let folder = Folder::new();
    folder.write("a/1.png", png(1, &[90]));
    let clear = image::RgbaImage::from_raw(1, 1, vec![30, 60, 90, 128]).unwrap();
    folder.write("b/1.png", encoded(&clear.into(), ImageFormat::Png));
    let error = read_folder(folder.0.path()).unwrap_err();
    let colour = ImageProblem::Colour { have: "Rgba8".into() };
    assert!(matches!(&error, Error::Image { problem, .. } if *problem == colour), "{error}");
    let spec = ImageFolder { colour: Colour::Rgb, ..folder_of(folder.0.path().to_owned()) };
    let data = read(DatasetSpec::ImageFolder(spec)).unwrap();
    assert_eq!(bytes(&data), [90, 90, 90, 30, 60, 90]);
}

/// A PNG that declares this size and holds one byte of pixels.
fn declared(width: u32, height: u32) -> Vec<u8> {
    let crc = |bytes: &[u8]| {
        let step = |crc: u32, byte: &u8| {
            (0..8).fold(crc ^ u32::from(*byte), |c, _| (c >> 1) ^ (0xEDB8_8320 * (c & 1)))
        };
        !bytes.iter().fold(!0, step)
    };
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 0, 0, 0, 0]].concat();
    for (kind, data) in [(b"IHDR", header), (b"IDAT", vec![0x78, 1, 3, 0, 0, 0, 0, 1])] {
        png.extend_from_slice(&(data.len() as u32).to_be_bytes());
        let chunk = [&kind[..], &data].concat();
        png.extend_from_slice(&chunk);
        png.extend_from_slice(&crc(&chunk).to_be_bytes());
    }
    png
}

#[test]
fn broken_folders_name_the_image_and_what_was_needed() {
    let good = || png(1, &[7]);
    type Files = Vec<(&'static str, Vec<u8>)>;
    let table: Vec<(Files, &str)> = vec![
        (vec![("a/1.png", good()), ("b/", vec![])], "class folder `b` holds no image"),
        (vec![("a/1.png", good())], "1 classes, needs at least 2"),
        (
            vec![("1.png", good()), ("b/1.png", good())],
            "image `1.png` needs to lie in a class folder",
        ),
        (
            vec![("a/1.png", good()), ("b/c/1.png", good())],
            "needs to lie in a class folder beside the other class folders",
        ),
        (
            vec![("a/1.png", good()), ("b/1.gif", vec![1])],
            "image `b/1.gif` is no image by its name",
        ),
        (
            vec![("a/1.png", good()), ("b/1.png", vec![])],
            "image `b/1.png` is not a readable PNG, JPEG or PNM image",
        ),
        (
            vec![("a/1.png", good()), ("b/1.png", good()[..40].to_vec())],
            "image `b/1.png` is not a readable PNG, JPEG or PNM image",
        ),
        (
            vec![("a/1.png", good()), ("b/1.jpg", vec![0xff, 0xd8, 0xff, 0xe0, 0, 16])],
            "image `b/1.jpg` is not a readable PNG, JPEG or PNM image",
        ),
        (
            vec![("a/1.png", good()), ("b/1.png", declared(50_000, 50_000))],
            "image `b/1.png` has 50000 x 50000 pixels, needs at most 5592405",
        ),
        (
            vec![("a/1.png", good()), ("b/1.pgm", b"P5 60000 60000 255\n".to_vec())],
            "image `b/1.pgm` has 60000 x 60000 pixels, needs at most 5592405",
        ),
        (
            vec![("a/1.png", good()), ("b/1.jpg", half_a_jpeg())],
            "image `b/1.jpg` is not a readable PNG, JPEG or PNM image: the JPEG data end before the image does",
        ),
        (vec![("a/1.png", good()), ("b/1.png", declared(0, 5))], "image `b/1.png`"),
        (vec![("a/1.png", good()), ("b/1.pgm", b"P5 0 0 255\n".to_vec())], "image `b/1.pgm`"),
    ];
    for (files, expected) in table {
        let folder = Folder::new();
        let zip = folder.zip("set.zip", &files);
        let error = read_folder(&zip).unwrap_err().to_string();
        assert!(error.contains(expected), "zip: {error}\nneeds {expected}");
        for (name, bytes) in &files {
            if name.ends_with('/') {
                std::fs::create_dir_all(folder.path("disk").join(name)).unwrap();
            } else {
                folder.write(&format!("disk/{name}"), bytes);
            }
        }
        let error = read_folder(&folder.path("disk")).unwrap_err().to_string();
        assert!(error.contains(expected), "disk: {error}\nneeds {expected}");
    }
    let folder = Folder::new();
    std::fs::create_dir(folder.path("empty")).unwrap();
    assert!(matches!(read_folder(&folder.path("empty")), Err(Error::NoRecords { .. })));
    let other = folder.write("a.png", good());
    assert!(matches!(read_folder(&other), Err(Error::Setting { .. })));
}
/// The decoder would paint what is missing grey.
fn half_a_jpeg() -> Vec<u8> {
    let pixels: Vec<u8> = (0..4096_u32).map(|i| (i * i % 251) as u8).collect();
    let whole = encoded(&grey(64, &pixels), ImageFormat::Jpeg);
    whole[..whole.len() * 3 / 4].to_vec()
}
#[test]
fn entries_that_point_out_of_the_archive_are_refused() {
    let folder = Folder::new();
    for name in ["../b/1.png", "b/../../1.png", "/b/1.png"] {
        let zip = folder.zip("out.zip", &[("a/1.png", png(1, &[7])), (name, png(1, &[9]))]);
        let error = read_folder(&zip).unwrap_err().to_string();
        assert!(
            error.contains(&format!("image `{name}` needs to lie in a class folder")),
            "{error}"
        );
    }
}
#[test]
fn an_entry_beyond_the_limit_is_refused_while_it_is_read() {
    let folder = Folder::new();
    let bomb = vec![0; (64 << 20) + 1];
    let zip = folder.zip("bomb.zip", &[("a/1.png", bomb), ("b/1.png", png(1, &[7]))]);
    assert!(std::fs::metadata(&zip).unwrap().len() < 1 << 20);
    assert_eq!(
        said(&read_folder(&zip).unwrap_err(), &folder),
        "bomb.zip, image `a/1.png` holds more than 67108864 bytes"
    );
}
#[cfg(unix)]
#[test]
fn names_that_are_not_utf_8_are_refused() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    folder.write("a/1.png", png(1, &[7]));
    let name = std::ffi::OsStr::from_bytes(b"b\xff");
    std::fs::create_dir(folder.0.path().join(name)).unwrap();
    let error = read_folder(folder.0.path()).unwrap_err();
    assert!(matches!(&error, Error::Image { problem: ImageProblem::Name, .. }), "{error}");
    // The same length, so that the zip stays whole.
    let zip = folder.zip("n.zip", &[("a/1.png", png(1, &[7])), ("QQQ/1.png", png(1, &[7]))]);
    let mut bytes = std::fs::read(&zip).unwrap();
    for at in 0..bytes.len() - 3 {
        if &bytes[at..at + 3] == b"QQQ" {
            bytes[at..at + 3].copy_from_slice(b"Q\xffQ");
        }
    }
    let error = read_folder(&folder.write("m.zip", bytes)).unwrap_err();
    assert!(matches!(&error, Error::Image { problem: ImageProblem::Name, .. }), "{error}");
}

// ---- laws

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// What is written in any form is read back, and all forms of one content agree.
    #[test]
    fn what_was_written_is_read_back_in_every_form(
        height in 1..6_u32, width in 1..6_u32, labels in prop::collection::vec(0..3_u8, 3..12), seed: u64,
    ) {
        let mut labels = labels;
        labels[..3].copy_from_slice(&[0, 1, 2]);
        labels.sort_unstable();
        let size = (height * width) as usize;
        let mut state = seed;
        let pixels: Vec<u8> = (0..size * labels.len()).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        }).collect();
        let folder = Folder::new();
        let n = labels.len() as u32;
        let path = folder.write("images", gzip(&idx_images([n, height, width], &pixels)));
        folder.write("labels", idx_labels(&labels));
        let from_idx = read_idx(&path).unwrap();
        prop_assert_eq!(bytes(&from_idx), pixels.as_slice());
        prop_assert_eq!(from_idx.shape(), Some([1, height as usize, width as usize]));
        let shape = format!("{n}, {height}, {width}");
        let path = folder.zip("i.npz", &[
            ("x.npy", npy("|u1", "False", &shape, &pixels)),
            ("y.npy", npy("|u1", "False", &format!("{n},"), &labels)),
        ]);
        let from_npz = read(DatasetSpec::NpzImages(npz_images(path))).unwrap();
        prop_assert_eq!(from_npz.fingerprint(), from_idx.fingerprint());
        let mut entries = Vec::new();
        for (i, (label, pixels)) in labels.iter().zip(pixels.chunks(size)).enumerate() {
            let (bytes, extension) = if i % 2 == 0 {
                (png(width, pixels), "png")
            } else {
                ([format!("P5\n{width} {height}\n255\n").as_bytes(), pixels].concat(), "pgm")
            };
            entries.push((format!("{label}/{i:03}.{extension}"), bytes));
        }
        entries.reverse();
        let entries: Vec<(&str, Vec<u8>)> = entries.iter().map(|(n, b)| (n.as_str(), b.clone())).collect();
        let from_folder = read_folder(&folder.zip("set.zip", &entries)).unwrap();
        prop_assert_eq!(from_folder.fingerprint(), from_idx.fingerprint());
        let shape = [1, height as usize, width as usize];
        prop_assert_eq!(&from_folder.columns[0].kind, &ColumnKind::Image { shape });
    }

    /// Files cut short or changed anywhere are read or refused, and never end the program.
    #[test]
    fn damage_is_never_worse_than_an_error(at: prop::sample::Index, byte: u8, cut: bool, which in 0..4_u8) {
        let folder = Folder::new();
        let damage = |mut bytes: Vec<u8>| {
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] = byte }
            bytes
        };
        let texture: Vec<u8> = (0..64).map(|i| i * 3).collect();
        let result = match which {
            0 => {
                let path = folder.write("images", damage(idx_images([2, 2, 1], &[1, 2, 3, 4])));
                folder.write("labels", idx_labels(&[0, 1]));
                read_idx(&path)
            }
            1 => {
                let batch = [cifar(&[0], 1), cifar(&[1], 2)].concat();
                let archive = tar(&[("data_batch_1.bin", &batch)]);
                let path = folder.write("c.tar", damage(archive));
                read_cifar(&path, CifarForm::Ten, &["data_batch_1.bin"])
            }
            2 => {
                folder.write("a/1.png", damage(png(8, &texture)));
                folder.write("b/1.png", png(8, &texture));
                read_folder(folder.0.path())
            }
            _ => {
                folder.write("a/1.jpg", damage(encoded(&grey(8, &texture), ImageFormat::Jpeg)));
                folder.write("b/1.png", png(8, &texture));
                read_folder(folder.0.path())
            }
        };
        if let Ok(data) = result {
            prop_assert_eq!(data.len(), 2);
            prop_assert_eq!(data.classes, 2);
        }
    }
}
