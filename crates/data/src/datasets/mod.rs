//! Loaders and generators, one file each.
//!
//! A new one is its file in this folder, its `mod` line and its variant of [`DatasetSpec`], and its line in [`DATASETS`].
use crate::graphs::{self, GraphFiles, GraphSpec, GraphText, NodeFeatures};
use crate::{Column, Dataset, Error, Inputs, Seed};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

mod bits;
mod cifar;
mod classes;
pub(crate) mod csv_chunks;
pub(crate) mod csv_file;
mod idx;
mod image_folder;
mod npy;
mod npz_images;
mod npz_table;
#[cfg(feature = "parquet")]
pub(crate) mod parquet_file;
mod pixels;
mod skewed_purchases;
pub(crate) mod source;
pub(crate) mod table;

pub use cifar::{CifarForm, CifarImages};
pub use idx::IdxImages;
pub use image_folder::{Colour, ImageFolder};
pub use npz_images::{Channels, NpzImages};
pub use skewed_purchases::SkewedPurchases;
pub use table::{ColumnSpec, CsvTable, NpzTable, Outside, Table};

/// Which data set, as written in a study file: `kind = "..."` and that kind's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DatasetSpec {
    /// Generated: purchases whose test records follow another law than the training records.
    SkewedPurchases(SkewedPurchases),
    /// The Purchase benchmark in either public form.
    Purchase(BinaryFile),
    /// The Texas hospital benchmark in either public form.
    Texas(BinaryFile),
    /// The Location (Foursquare check-ins) benchmark: archive, extracted text or NPZ.
    Location(BinaryFile),
    /// An NPZ with bits packed along the rows by `numpy.packbits`.
    PackedBits(PackedBits),
    /// A table in CSV.
    Csv(CsvTable),
    /// A table in Parquet.
    Parquet(Table),
    /// Arrays in NPZ.
    Npz(NpzTable),
    /// Images in IDX, the form of MNIST.
    Idx(IdxImages),
    /// Images in the binary form of CIFAR.
    Cifar(CifarImages),
    /// Images in NPZ.
    NpzImages(NpzImages),
    /// A folder of images per class.
    ImageFolder(ImageFolder),
    /// Graphs in the text form of the TUDataset collection.
    Tudataset(GraphFiles),
    /// Graphs in the text form of DGCNN.
    Dgcnn(GraphText),
}

/// A benchmark file of bits with one class per record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BinaryFile {
    /// The file (or for Texas also the folder with `feats` and `labels`); `.gz`, `.tgz`, `.tar` and `.npz` are recognised by content.
    pub path: PathBuf,
    /// Keep the records of this many most frequent classes only.
    #[serde(default)]
    pub classes: Option<usize>,
}
/// An NPZ with packed bits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedBits {
    /// The NPZ file.
    pub path: PathBuf,
    /// Bits per record; the array holds `width / 8` bytes per record, rounded up, first bit highest.
    pub width: usize,
    /// Name of the array of packed bits.
    #[serde(default = "x")]
    pub inputs: String,
    /// Name of the array of class numbers (or one-hot rows).
    #[serde(default = "y")]
    pub labels: String,
    /// Keep the records of this many most frequent classes only.
    #[serde(default)]
    pub classes: Option<usize>,
}
fn x() -> String {
    "x".into()
}
fn y() -> String {
    "y".into()
}

/// One kind of data set, for lists and reference pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatasetKind {
    /// As in `kind = "..."`.
    pub name: &'static str,
    /// One sentence.
    pub describe: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// A minimal `[data]` table of a study file.
    pub example: &'static str,
}

/// Every kind of data set, in the order of [`DatasetSpec`].
pub const DATASETS: &[DatasetKind] = &[
    DatasetKind {
        name: "skewed-purchases",
        describe: "generated: 600 bits, balanced classes, test records of another law than training records",
        source: "Bernau et al., arXiv:1912.11328",
        example: "kind = \"skewed-purchases\"\nclasses = 100\n",
    },
    DatasetKind {
        name: "purchase",
        describe: "600 bits, up to 100 classes: `dataset_purchase` (CSV, no header, label first) or `purchase100.npz` \
                   (`features`, one-hot `labels`)",
        source: "Shokri et al., S&P 2017, from the Acquire Valued Shoppers challenge",
        example: "kind = \"purchase\"\npath = \"dataset_purchase\"\n",
    },
    DatasetKind {
        name: "texas",
        describe: "hospital stays as about 6,170 bits, classes are procedures: a folder or archive with `feats` and `labels`, \
                   or `texas100.npz`",
        source: "Shokri et al., S&P 2017, from the Texas Hospital Discharge files",
        example: "kind = \"texas\"\npath = \"texas100.npz\"\nclasses = 100\n",
    },
    DatasetKind {
        name: "location",
        describe: "446 bits, 30 classes of Bangkok check-ins: the archive, its text with the label first, or an NPZ with `x` and `y`",
        source: "Shokri et al., S&P 2017, from the Foursquare check-ins of Yang et al.",
        example: "kind = \"location\"\npath = \"dataset_location.tgz\"\n",
    },
    DatasetKind {
        name: "packed-bits",
        describe: "an NPZ with rows packed by `numpy.packbits(axis=1)` and class numbers",
        source: "a file of your own",
        example: "kind = \"packed-bits\"\npath = \"retail.npz\"\nwidth = 600\n",
    },
    DatasetKind {
        name: "csv",
        describe: "a table of bits, categories and bounded numbers in CSV, also gzipped",
        source: "a file of your own",
        example: "kind = \"csv\"\npath = \"people.csv\"\nlabel = \"income\"\n\
                  columns.age = { kind = \"real\", low = 0, high = 100 }\n",
    },
    DatasetKind {
        name: "parquet",
        describe: "the same in Parquet",
        source: "a file of your own",
        example: "kind = \"parquet\"\npath = \"people.parquet\"\nlabel = \"income\"\n",
    },
    DatasetKind {
        name: "npz",
        describe: "arrays in NPZ: inputs by records and columns, labels as class numbers or one-hot",
        source: "a file of your own",
        example: "kind = \"npz\"\npath = \"people.npz\"\ninputs = \"x\"\nlabels = \"y\"\n",
    },
    DatasetKind {
        name: "idx",
        describe: "grey images in IDX, plain or gzipped, and their labels: MNIST and its kin (`labels` names that file where it is not named like the images)",
        source: "LeCun, Cortes and Burges, The MNIST database of handwritten digits",
        example: "kind = \"idx\"\npath = \"train-images-idx3-ubyte.gz\"\n",
    },
    DatasetKind {
        name: "cifar",
        describe: "colour images of 32 x 32 in the binary form of CIFAR-10 or CIFAR-100: a file, or a folder or archive \
                   of `files`, the training files unless said; `form` is \"cifar-10\", \"cifar-100-fine\" or \"cifar-100-coarse\"",
        source: "Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
        example: "kind = \"cifar\"\npath = \"cifar-10-binary.tar.gz\"\n",
    },
    DatasetKind {
        name: "npz-images",
        describe: "images in NPZ, `[records, height, width]` or with `channels` \"last\" or \"first\"; `highest` is the number for full brightness; labels \
                   as class numbers or one-hot",
        source: "a file of your own",
        example: "kind = \"npz-images\"\npath = \"digits.npz\"\nhighest = 16\n",
    },
    DatasetKind {
        name: "image-folder",
        describe: "PNG, JPEG, PGM or PPM images in one folder per class, or a zip of that; on request converted (`colour`), cut (`crop`, top, left, \
                   height and width) and scaled (`resize`, height and width)",
        source: "a folder of your own",
        example: "kind = \"image-folder\"\npath = \"faces\"\ncolour = \"grey\"\nresize = [32, 32]\n",
    },
];

impl DatasetSpec {
    /// The kind's name, as in the study file.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::SkewedPurchases(_) => "skewed-purchases",
            Self::Purchase(_) => "purchase",
            Self::Texas(_) => "texas",
            Self::Location(_) => "location",
            Self::PackedBits(_) => "packed-bits",
            Self::Csv(_) => "csv",
            Self::Parquet(_) => "parquet",
            Self::Npz(_) => "npz",
            Self::Idx(_) => "idx",
            Self::Cifar(_) => "cifar",
            Self::NpzImages(_) => "npz-images",
            Self::ImageFolder(_) => "image-folder",
            Self::Tudataset(_) => "tudataset",
            Self::Dgcnn(_) => "dgcnn",
        }
    }
    /// The file to read, if any; relative ones are relative to the current folder (a study resolves them against its own).
    #[must_use]
    pub const fn path(&self) -> Option<&PathBuf> {
        match self {
            Self::SkewedPurchases(_) => None,
            Self::Purchase(file) | Self::Texas(file) | Self::Location(file) => Some(&file.path),
            Self::PackedBits(file) => Some(&file.path),
            Self::Csv(file) => Some(&file.path),
            Self::Parquet(file) => Some(&file.path),
            Self::Npz(file) => Some(&file.path),
            Self::Idx(file) => Some(&file.path),
            Self::Cifar(file) => Some(&file.path),
            Self::NpzImages(file) => Some(&file.path),
            Self::ImageFolder(folder) => Some(&folder.path),
            Self::Tudataset(files) => Some(&files.path),
            Self::Dgcnn(text) => Some(&text.path),
        }
    }
    /// What the file calls the label column; `label` where no column is named so.
    #[must_use]
    pub fn label(&self) -> &str {
        match self {
            Self::Csv(table) => &table.label,
            Self::Parquet(table) => &table.label,
            _ => "label",
        }
    }
    /// The same as [`Self::path`], to change.
    #[must_use]
    pub const fn path_mut(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::SkewedPurchases(_) => None,
            Self::Purchase(file) | Self::Texas(file) | Self::Location(file) => Some(&mut file.path),
            Self::PackedBits(file) => Some(&mut file.path),
            Self::Csv(file) => Some(&mut file.path),
            Self::Parquet(file) => Some(&mut file.path),
            Self::Npz(file) => Some(&mut file.path),
            Self::Idx(file) => Some(&mut file.path),
            Self::Cifar(file) => Some(&mut file.path),
            Self::NpzImages(file) => Some(&mut file.path),
            Self::ImageFolder(folder) => Some(&mut folder.path),
            Self::Tudataset(files) => Some(&mut files.path),
            Self::Dgcnn(text) => Some(&mut text.path),
        }
    }
}

/// Loads or generates a data set; the seed matters to generators only.
///
/// # Errors
/// If a file cannot be read, does not have the form its kind needs, or a setting is out of range; the error names file, row and field.
pub fn load(spec: &DatasetSpec, seed: Seed) -> Result<Dataset, Error> {
    if let Some(path) = spec.path() {
        let takes_a_folder = matches!(
            spec,
            DatasetSpec::Texas(_)
                | DatasetSpec::Cifar(_)
                | DatasetSpec::ImageFolder(_)
                | DatasetSpec::Tudataset(_)
        );
        let have = match path {
            path if path.as_os_str().is_empty() => Some("empty".to_owned()),
            path if path.is_dir() && !takes_a_folder => {
                Some(format!("the folder {}", path.display()))
            }
            _ => None,
        };
        if let Some(have) = have {
            let needs = "the name of a file".to_owned();
            return Err(Error::Setting { setting: "path".to_owned(), needs, have });
        }
    }
    match spec {
        DatasetSpec::SkewedPurchases(settings) => settings.generate(seed),
        DatasetSpec::Purchase(file) => bits::purchase(file),
        DatasetSpec::Texas(file) => bits::texas(file),
        DatasetSpec::Location(file) => bits::location(file),
        DatasetSpec::PackedBits(file) => bits::packed(file),
        DatasetSpec::Csv(table) => csv_file::load(table),
        #[cfg(feature = "parquet")]
        DatasetSpec::Parquet(table) => parquet_file::load(table),
        #[cfg(not(feature = "parquet"))]
        DatasetSpec::Parquet(_) => Err(Error::NotBuiltIn { format: "parquet" }),
        DatasetSpec::Npz(table) => npz_table::load(table),
        DatasetSpec::Idx(images) => idx::load(images),
        DatasetSpec::Cifar(images) => cifar::load(images),
        DatasetSpec::NpzImages(images) => npz_images::load(images),
        DatasetSpec::ImageFolder(folder) => image_folder::load(folder),
        DatasetSpec::Tudataset(files) => {
            let features =
                NodeFeatures { feature: files.node_feature, most_degree: files.most_degree };
            Dataset::from_graphs(graphs::load(&GraphSpec::Tudataset(files.clone()))?, features)
        }
        DatasetSpec::Dgcnn(text) => {
            let features =
                NodeFeatures { feature: text.node_feature, most_degree: text.most_degree };
            Dataset::from_graphs(graphs::load(&GraphSpec::Dgcnn(text.clone()))?, features)
        }
    }
}

pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned())
}
/// A data set named after its file, of its most frequent classes if asked so.
fn named(
    path: &Path,
    columns: Vec<Column>,
    inputs: Inputs,
    classes: classes::Classes,
    most_frequent: Option<usize>,
) -> Result<Dataset, Error> {
    let name = file_name(path);
    let dataset = Dataset::from_parts(&name, columns, inputs, classes.labels, classes.names)?;
    match most_frequent {
        Some(classes) => dataset.most_frequent_classes(classes),
        None => Ok(dataset),
    }
}
