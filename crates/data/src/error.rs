//! What can be wrong with data, said with file, row and field.
use std::path::{Path, PathBuf};

/// Why one field of a file was refused. Never quotes the field: it may be someone's record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldProblem {
    /// Nothing between the separators, or a null.
    #[error("is empty")]
    Empty,
    /// A missing value that nobody said how to take.
    #[error("is missing, and no rule says what a missing value counts as")]
    Missing,
    /// A bit was needed.
    #[error("is neither 0 nor 1")]
    NotABit,
    /// A number was needed.
    #[error("is not a number")]
    NotANumber,
    /// Text, in a column nobody described.
    #[error(
        "is text, the rows before it hold numbers; correct it or declare the column a category"
    )]
    TextAmongNumbers,
    /// A number, in a column nobody described.
    #[error(
        "is a number, the rows before it hold text; correct those or declare the column a category"
    )]
    NumberAmongText,
    /// NaN or an infinity.
    #[error("is not finite")]
    NotFinite,
    /// A quantity below 0.
    #[error("is below 0, which no such quantity is")]
    Negative,
    /// Beyond the public bounds of its column.
    #[error(
        "is outside the public bounds {low} to {high} of its column; widen them or set `outside = \"clamp\"`"
    )]
    OutsideBounds {
        /// Lower bound, as written.
        low: String,
        /// Upper bound, as written.
        high: String,
    },
    /// Not among the levels the user named.
    #[error("is none of the {levels} levels named for its column")]
    UnknownLevel {
        /// How many were named.
        levels: usize,
    },
    /// Bytes that are not UTF-8.
    #[error("is not UTF-8 text")]
    NotUtf8,
    /// A label that is not a whole number from 0 to 4294967295.
    #[error("is not a class number (a whole number from 0 to 4294967295)")]
    NotAClassNumber,
    /// A one-hot label without exactly one 1.
    #[error("is not one-hot: needs exactly one 1 and otherwise 0")]
    NotOneHot,
    /// A packed row whose padding is not zero.
    #[error("and those after it are padding and must be 0: the rows hold {width} bits")]
    PaddingBit {
        /// Bits per row.
        width: usize,
    },
    /// A whole number was needed.
    #[error("is not a whole number of at most 18 digits")]
    NotAWholeNumber,
    /// A node that no graph has.
    #[error("is none of the {nodes} nodes, which are numbered from 1")]
    NoNode {
        /// Nodes of all graphs.
        nodes: u64,
    },
    /// A class number beyond what the format has.
    #[error("is not below {classes}, the number of classes of this form")]
    NotBelow {
        /// Classes of the form.
        classes: u32,
    },
    /// A pixel darker than 0 or brighter than full brightness.
    #[error(
        "is not a number from 0 to {highest}; `highest` says which number stands for full brightness"
    )]
    Brightness {
        /// What counts as full brightness, as written.
        highest: String,
    },
    /// A nested or binary Parquet value.
    #[error("is neither a number, a boolean nor text")]
    NotATableValue,
}

impl FieldProblem {
    /// Why a field is no number where the rows before it made the column one of numbers.
    pub(crate) fn among_numbers(self) -> Self {
        if self == Self::NotANumber { Self::TextAmongNumbers } else { self }
    }
}

/// Why an image was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageProblem {
    /// No decoder takes it.
    #[error("is not a readable PNG, JPEG or PNM image: {reason}")]
    Undecodable {
        /// What the decoder said.
        reason: String,
    },
    /// A file of another kind among the images.
    #[error("is no image by its name; needs .png, .jpg, .jpeg, .pgm, .ppm or .pnm")]
    Extension,
    /// Not `CLASS/IMAGE`, all classes side by side.
    #[error("needs to lie in a class folder beside the other class folders")]
    Place,
    /// The name of a class or an image.
    #[error("has a name that is not UTF-8")]
    Name,
    /// More bytes than any image needs.
    #[error("holds more than {limit} bytes")]
    FileSize {
        /// Most bytes read.
        limit: u64,
    },
    /// No pixel at all.
    #[error("has {} x {} pixels, needs at least one", size[0], size[1])]
    NoPixel {
        /// Height and width.
        size: [u32; 2],
    },
    /// More pixels than are held.
    #[error("has {} x {} pixels, needs at most {limit}", size[0], size[1])]
    TooLarge {
        /// Height and width.
        size: [u32; 2],
        /// Most pixels.
        limit: u64,
    },
    /// Another shape than the first image's.
    #[error(
        "is {} x {} x {} (channels, height, width), needs {} x {} x {} as the first; set `crop`, `resize` or `colour`",
        shape[0], shape[1], shape[2], needs[0], needs[1], needs[2]
    )]
    Shape {
        /// Its channels, height and width.
        shape: [usize; 3],
        /// Those of the first.
        needs: [usize; 3],
    },
    /// The part to be cut out goes beyond the image.
    #[error("has {} x {} pixels, `crop` reaches to {} x {}", size[0], size[1], needs[0], needs[1])]
    Crop {
        /// Height and width.
        size: [u32; 2],
        /// Last row and column of the part, from 1.
        needs: [u64; 2],
    },
    /// Colours that do not fit bytes of grey or of red, green and blue.
    #[error("has colours {have}, needs 8-bit grey or RGB; set `colour` to convert")]
    Colour {
        /// The decoder's name of them.
        have: String,
    },
}

/// Why a graph was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphProblem {
    /// A graph of nothing.
    #[error("has no node, needs at least one")]
    NoNode,
    /// A node lists fewer neighbours than it declares.
    #[error("a node declares {degree} neighbours and lists {have}")]
    Degree {
        /// Declared.
        degree: u64,
        /// Listed.
        have: u64,
    },
    /// A neighbour that the graph does not have.
    #[error("a node has a neighbour beyond the {nodes} nodes of its graph")]
    Neighbour {
        /// Nodes of the graph.
        nodes: u64,
    },
    /// An edge in the list of one of its ends only.
    #[error(
        "node {node} lists node {neighbour} (from 0) but not the other way round: edges need both"
    )]
    OneSided {
        /// The node that lists the other, from 0.
        node: u64,
        /// The other, from 0.
        neighbour: u32,
    },
    /// An edge from one graph to another.
    #[error("is joined to graph {other}")]
    BetweenGraphs {
        /// The other graph, from 1.
        other: u64,
    },
    /// Nodes out of the order of their graphs, or a graph left out.
    #[error("needs its nodes after those of graph {last}, without a graph between")]
    Order {
        /// The graph of the node before, from 1; 0 if there is none.
        last: u64,
    },
    /// A node with another number of attributes than the first.
    #[error("a node has {have} attributes, needs {needs} like the nodes before it")]
    Attributes {
        /// Of the nodes before.
        needs: usize,
        /// Of this one.
        have: usize,
    },
}

/// Why data could not be loaded or divided.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be opened or read (includes truncated compression).
    #[error("{}: {source}", file.display())]
    Read {
        /// Which file.
        file: PathBuf,
        /// What the system or the decompressor said.
        source: std::io::Error,
    },
    /// A folder, pipe or device, where a file is needed.
    #[error("{}: needs a file, got {have}", file.display())]
    NotAFile {
        /// Its path.
        file: PathBuf,
        /// What it is, as people call it.
        have: &'static str,
    },
    /// A container (zip, Parquet, CSV) is damaged.
    #[error("{}: not a readable {format} file: {reason}", file.display())]
    Damaged {
        /// Which file.
        file: PathBuf,
        /// What it should have been.
        format: &'static str,
        /// What its reader said.
        reason: String,
    },
    /// The file does not begin as its format does.
    #[error("{}: begins with {have}, needs {needs}", file.display())]
    Start {
        /// Which file.
        file: PathBuf,
        /// What the format begins with.
        needs: &'static str,
        /// The first bytes, hexadecimal.
        have: String,
    },
    /// A record, or the header, ends before it should.
    #[error("{}, record {record}: ends after {have} bytes, needs {needs}", file.display())]
    RecordTruncated {
        /// Which file.
        file: PathBuf,
        /// Record, counted from 1; 0 is the header.
        record: u64,
        /// Bytes of a record.
        needs: u64,
        /// Bytes present of this one.
        have: u64,
    },
    /// Sizes of images that are 0 or beyond the limit.
    #[error("{}: images of {shape:?}, needs sides of at least 1 and at most {limit} numbers in all", file.display())]
    ImageShape {
        /// Which file.
        file: PathBuf,
        /// Sides, as the file orders them.
        shape: Vec<u64>,
        /// Most numbers of one image.
        limit: u64,
    },
    /// One image cannot be used.
    #[error("{}, image `{image}` {problem}", file.display())]
    Image {
        /// The folder or archive.
        file: PathBuf,
        /// Its place in it.
        image: String,
        /// What is wrong with it.
        problem: ImageProblem,
    },
    /// One graph cannot be used.
    #[error("{}{}, graph {graph}: {problem}", file.display(), in_row(*row))]
    Graph {
        /// Which file.
        file: PathBuf,
        /// Row in the file, counted from 1; 0 where no one row is to blame.
        row: u64,
        /// Graph, counted from 1.
        graph: u64,
        /// What is wrong with it.
        problem: GraphProblem,
    },
    /// The file ends before all graphs that it declares.
    #[error("{}: ends before {have} of graph {graph}, declares {needs} graphs", file.display())]
    GraphTruncated {
        /// Which file.
        file: PathBuf,
        /// The graph that is not whole, counted from 1.
        graph: u64,
        /// Declared graphs.
        needs: u64,
        /// What it lacks.
        have: &'static str,
    },
    /// A file of nodes has another number of rows than there are nodes.
    #[error("{}: {have} rows, needs {needs}, one per node", file.display())]
    NodeCount {
        /// Which file.
        file: PathBuf,
        /// Nodes.
        needs: u64,
        /// Rows; one more than the nodes where reading stopped.
        have: u64,
    },
    /// A class folder without an image.
    #[error("{}: class folder `{class}` holds no image", file.display())]
    EmptyClassFolder {
        /// The folder or archive.
        file: PathBuf,
        /// Name of the class folder.
        class: String,
    },
    /// A row has another number of fields than the first.
    #[error("{}, row {row}: {have} fields, needs {needs} like the rows before it", file.display())]
    FieldCount {
        /// Which file.
        file: PathBuf,
        /// Row in the file, counted from 1 (a header is row 1).
        row: u64,
        /// Fields of the earlier rows.
        needs: usize,
        /// Fields of this row.
        have: usize,
    },
    /// One field cannot be used.
    #[error("{}, row {row}, field `{field}` {problem}", file.display())]
    Field {
        /// Which file.
        file: PathBuf,
        /// Row in the file, counted from 1 (a header is row 1).
        row: u64,
        /// Column name.
        field: String,
        /// What is wrong with it.
        problem: FieldProblem,
    },
    /// A quoted field that swallows what follows it, or does not end with its quote.
    #[error("{}, row {row}: the quoted field that begins here {problem}", file.display())]
    Quotes {
        /// Which file.
        file: PathBuf,
        /// Row in the file where the field begins, counted from 1 (a header is row 1).
        row: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A line longer than any table has.
    #[error("{}, row {row}: longer than {limit} bytes", file.display())]
    LongLine {
        /// Which file.
        file: PathBuf,
        /// Row in the file, counted from 1.
        row: u64,
        /// Longest line read.
        limit: usize,
    },
    /// A settings file longer than any is.
    #[error("{}: longer than {limit} bytes, needs a settings file", file.display())]
    LongSettings {
        /// Which file.
        file: PathBuf,
        /// Most bytes read.
        limit: u64,
    },
    /// No records at all.
    #[error("{}: no records", file.display())]
    NoRecords {
        /// Which file.
        file: PathBuf,
    },
    /// More records than a [`RecordId`](crate::RecordId) can number.
    #[error("{}: more than {limit} records", file.display())]
    TooManyRecords {
        /// Which file.
        file: PathBuf,
        /// Most records read.
        limit: u64,
    },
    /// A table of a label alone.
    #[error("{}: needs at least one column besides the label, all others are ignored or absent", file.display())]
    NoInputs {
        /// Which file.
        file: PathBuf,
    },
    /// The archive lacks an array or member.
    #[error("{}: no `{name}` in it; it holds {}", file.display(), have.join(", "))]
    Missing {
        /// Which file.
        file: PathBuf,
        /// What was looked for.
        name: String,
        /// What is there.
        have: Vec<String>,
    },
    /// An array has an unusable shape.
    #[error("{}, array `{array}`: shape {shape:?}, needs {needs}", file.display())]
    ArrayShape {
        /// Which file.
        file: PathBuf,
        /// Which array.
        array: String,
        /// What was needed.
        needs: String,
        /// What was there.
        shape: Vec<u64>,
    },
    /// An array has an unusable element type.
    #[error("{}, array `{array}`: element type `{have}`, needs {needs}", file.display())]
    ArrayType {
        /// Which file.
        file: PathBuf,
        /// Which array.
        array: String,
        /// What was needed.
        needs: &'static str,
        /// NumPy's name of the type.
        have: String,
    },
    /// An array's header cannot be parsed.
    #[error("{}, array `{array}`: damaged NPY header: {problem}", file.display())]
    ArrayHeader {
        /// Which file.
        file: PathBuf,
        /// Which array.
        array: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// An array ends before its declared size.
    #[error("{}, array `{array}`: declares {needs} bytes of elements, holds {have}", file.display())]
    ArrayTruncated {
        /// Which file.
        file: PathBuf,
        /// Which array.
        array: String,
        /// Declared bytes.
        needs: u64,
        /// Bytes present.
        have: u64,
    },
    /// Two lists that go together differ in length.
    #[error("{}: {inputs} records but {labels} labels", file.display())]
    LabelCount {
        /// Which file.
        file: PathBuf,
        /// Records found.
        inputs: u64,
        /// Labels found.
        labels: u64,
    },
    /// No such column.
    #[error("{}: no column `{column}`; the columns are {}", file.display(), listed(have))]
    NoSuchColumn {
        /// Which file.
        file: PathBuf,
        /// Name in the study file.
        column: String,
        /// Names in the data file.
        have: Vec<String>,
    },
    /// Two columns of one name.
    #[error("{}: two columns are named `{column}`", file.display())]
    DuplicateColumn {
        /// Which file.
        file: PathBuf,
        /// The name.
        column: String,
    },
    /// Numeric columns whose public bounds nobody stated.
    #[error(
        "{}: columns {} hold numbers: state public bounds (kind = \"real\", low, high) or kind = \"category\"; \
         bounds taken from the data would leak it", file.display(), listed(columns)
    )]
    NeedsBounds {
        /// Which file.
        file: PathBuf,
        /// The columns.
        columns: Vec<String>,
    },
    /// A category with more levels than can be one-hot encoded.
    #[error("{}: column `{column}` has more than {limit} distinct values; ignore it or declare it real", file.display())]
    TooManyLevels {
        /// Which file.
        file: PathBuf,
        /// The column.
        column: String,
        /// Most levels allowed.
        limit: usize,
    },
    /// The encoded table would not fit the stated limit.
    #[error("{}: {records} records x {width} inputs are over the limit of {limit} inputs in all", file.display())]
    TooLarge {
        /// Which file.
        file: PathBuf,
        /// Records.
        records: u64,
        /// Inputs per record.
        width: u64,
        /// Most inputs.
        limit: u64,
    },
    /// A class in the middle of the numbering that no record has.
    #[error("{}: class {class} has no record; keep the most frequent classes with `classes = N`", file.display())]
    ClassWithoutRecord {
        /// Where the labels come from.
        file: PathBuf,
        /// Its number in the file.
        class: u64,
    },
    /// More classes asked for than there are, or fewer than two there.
    #[error("{}: {have} classes, needs at least {needs}", file.display())]
    TooFewClasses {
        /// Where the labels come from.
        file: PathBuf,
        /// Needed.
        needs: usize,
        /// There.
        have: usize,
    },
    /// A setting outside its range.
    #[error("`{setting}` is {have}, needs {needs}")]
    Setting {
        /// Its name in the `dataset` or `split` table of the study file, dotted: `columns.age.low`.
        setting: String,
        /// Its range.
        needs: String,
        /// Its value.
        have: String,
    },
    /// Records and labels handed over in memory do not fit together.
    #[error("{what}: {have}, needs {needs}")]
    Inconsistent {
        /// Which part.
        what: &'static str,
        /// What was needed.
        needs: u64,
        /// What was there.
        have: u64,
    },
    /// An input handed over in memory is NaN or infinite.
    #[error("record {}, input {input} is not finite", record.0)]
    NotFinite {
        /// Which record.
        record: crate::RecordId,
        /// Which input, from 0.
        input: usize,
    },
    /// The data set cannot fill the roles asked of it.
    #[error("{role}: needs {needs} records of {of}, there are {have}")]
    TooFewRecords {
        /// Which role.
        role: &'static str,
        /// The sum in words, such as `2 x 1000 candidates + 500 test`.
        needs: String,
        /// Which part of the data.
        of: &'static str,
        /// How many there are.
        have: usize,
    },
    /// A Parquet file under a compression that is not read.
    #[error("{}: compressed by {have}; needs no compression, snappy, gzip or zstd", file.display())]
    Codec {
        /// Which file.
        file: PathBuf,
        /// Parquet's name of its compression.
        have: String,
    },
    /// This build cannot read the format.
    #[error("this build reads no {format} (built without the `{format}` feature)")]
    NotBuiltIn {
        /// The format, also the feature's name.
        format: &'static str,
    },
}

impl Error {
    pub(crate) fn read(file: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Read { file: file.to_owned(), source }
    }
}

fn in_row(row: u64) -> String {
    if row == 0 { String::new() } else { format!(", row {row}") }
}
/// Up to eight names, and how many more.
pub(crate) fn listed(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(8).map(|n| format!("`{n}`")).collect();
    let more = names.len().saturating_sub(8);
    let shown = shown.join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}
