//! A labelled data set in memory.
use crate::graphs::GraphRecords;
use crate::{Error, RecordId};
use serde::Serialize;
use std::ops::Range;

/// Rows of bits, each row padded to whole 64-bit words (bit `j` of a row is bit `j % 64` of word `j / 64`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitMatrix {
    /// Number of rows.
    pub rows: usize,
    /// Bits per row.
    pub width: usize,
    /// `rows * words_per_row` words; padding bits are 0.
    pub words: Vec<u64>,
}
impl BitMatrix {
    /// Words per row.
    #[must_use]
    pub const fn words_per_row(&self) -> usize {
        self.width.div_ceil(64)
    }
    /// Words of one row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[u64] {
        let w = self.words_per_row();
        &self.words[row * w..(row + 1) * w]
    }
}

/// Encoded network inputs, one row per record.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "there is one for a whole data set")]
pub enum Inputs {
    /// Every input is 0 or 1 (bits and one-hot categories).
    Bits(BitMatrix),
    /// Row-major `[records, width]`, finite.
    Reals {
        /// Numbers per row.
        width: usize,
        /// `records * width` finite numbers.
        values: Vec<f32>,
    },
    /// Row-major `[records, width]`; the input is `byte / highest`, in `[0, 1]`. A quarter of the memory of [`Self::Reals`], and
    /// nothing is lost: images come as bytes.
    Bytes {
        /// Bytes per row.
        width: usize,
        /// The byte that means 1, at least 1.
        highest: u8,
        /// `records * width` bytes, none above `highest`.
        values: Vec<u8>,
    },
    /// Graphs: a row is no fixed number of inputs.
    Graphs(GraphRecords),
}
impl Inputs {
    /// Inputs per row; of graphs the one-hot features of a node.
    #[must_use]
    pub const fn width(&self) -> usize {
        match self {
            Self::Bits(bits) => bits.width,
            Self::Reals { width, .. } | Self::Bytes { width, .. } => *width,
            Self::Graphs(graphs) => graphs.features(),
        }
    }
    /// Appends the `width` inputs of a row to `out`, as the network gets them; of a graph how many of its nodes have each
    /// feature, which says nothing about who is connected to whom.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn append_row(&self, row: usize, out: &mut Vec<f32>) {
        match self {
            Self::Bits(bits) => {
                let words = bits.row(row);
                out.extend(
                    (0..bits.width).map(|i| f32::from((words[i / 64] >> (i % 64) & 1) as u8)),
                );
            }
            Self::Reals { width, values } => {
                out.extend_from_slice(&values[row * width..(row + 1) * width]);
            }
            Self::Bytes { width, highest, values } => {
                let highest = f32::from(*highest);
                let row = &values[row * width..(row + 1) * width];
                out.extend(row.iter().map(|&byte| f32::from(byte) / highest));
            }
            Self::Graphs(graphs) => graphs.append_counts(row, out),
        }
    }
    /// These rows alone, in this order.
    fn of_rows(&self, rows: &[usize]) -> Self {
        match self {
            Self::Bits(bits) => Self::Bits(BitMatrix {
                rows: rows.len(),
                width: bits.width,
                words: rows.iter().flat_map(|&i| bits.row(i)).copied().collect(),
            }),
            Self::Reals { width, values } => {
                Self::Reals { width: *width, values: chosen(values, *width, rows) }
            }
            Self::Bytes { width, highest, values } => Self::Bytes {
                width: *width,
                highest: *highest,
                values: chosen(values, *width, rows),
            },
            Self::Graphs(graphs) => Self::Graphs(graphs.of_graphs(rows)),
        }
    }
}
fn chosen<T: Copy>(values: &[T], width: usize, rows: &[usize]) -> Vec<T> {
    rows.iter().flat_map(|&i| &values[i * width..(i + 1) * width]).copied().collect()
}

/// What a column holds.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ColumnKind {
    /// 0 or 1; one input.
    Bit,
    /// One of the named levels; one input per level (one-hot).
    Category(Vec<String>),
    /// A number within public bounds, scaled to `[0, 1]`; one input.
    Real {
        /// Public lower bound.
        low: f64,
        /// Public upper bound.
        high: f64,
    },
    /// An image of publicly known shape: one column for all its numbers in `[0, 1]`, channel after channel, row after row.
    Image {
        /// `[channels, height, width]`.
        shape: [usize; 3],
    },
    /// A graph, each of its nodes with one of so many one-hot features: one column.
    Graph {
        /// Of a node.
        features: usize,
    },
}
impl ColumnKind {
    /// Network inputs the column takes.
    #[must_use]
    pub fn inputs(&self) -> usize {
        match self {
            Self::Bit | Self::Real { .. } => 1,
            Self::Category(levels) => levels.len(),
            Self::Image { shape } => shape.iter().fold(1, |n, &side| n.saturating_mul(side)),
            Self::Graph { features } => *features,
        }
    }
}
/// A named column and where its inputs start.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Name as in the file, or `bit 17`.
    pub name: String,
    /// What it holds.
    pub kind: ColumnKind,
    /// First encoded input.
    pub first_input: usize,
}

/// Columns side by side that hold the same, for people and for JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnRun<'a> {
    /// Name of the first.
    pub first: &'a str,
    /// Name of the last.
    pub last: &'a str,
    /// How many.
    pub columns: usize,
    /// `bit`, `category`, `real`, `image` or `graph`.
    pub kind: &'static str,
    /// One-hot features of a node of a graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_features: Option<usize>,
    /// Channels, height and width of an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<[usize; 3]>,
    /// Levels of a category.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub levels: Option<&'a [String]>,
    /// Public lower bound of numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Public upper bound of numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}
impl<'a> ColumnRun<'a> {
    fn of(columns: &'a [Column]) -> Option<Self> {
        let (first, last) = (columns.first()?, columns.last()?);
        let mut run = Self {
            first: &first.name,
            last: &last.name,
            columns: columns.len(),
            kind: "bit",
            node_features: None,
            shape: None,
            levels: None,
            low: None,
            high: None,
        };
        match &first.kind {
            ColumnKind::Bit => {}
            ColumnKind::Category(levels) => {
                (run.kind, run.levels) = ("category", Some(levels.as_slice()));
            }
            ColumnKind::Real { low, high } => {
                (run.kind, run.low, run.high) = ("real", Some(*low), Some(*high));
            }
            ColumnKind::Image { shape } => (run.kind, run.shape) = ("image", Some(*shape)),
            ColumnKind::Graph { features } => {
                (run.kind, run.node_features) = ("graph", Some(*features));
            }
        }
        Some(run)
    }
}
/// `column 1 .. column 600: bits`, `age: real, 0 to 100`, `pixels: image, 3 x 32 x 32`, `ward: category, 12 levels:` and the
/// first eight.
impl std::fmt::Display for ColumnRun<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let many = self.columns > 1;
        f.write_str(self.first)?;
        if many {
            write!(f, " .. {}", self.last)?;
        }
        write!(f, ": {}", self.kind)?;
        if many && self.kind == "bit" {
            f.write_str("s")?;
        }
        if let Some([channels, height, width]) = self.shape {
            write!(f, ", {channels} x {height} x {width}")?;
        }
        if let Some(features) = self.node_features {
            write!(f, ", nodes of {features} features")?;
        }
        if let (Some(low), Some(high)) = (self.low, self.high) {
            write!(f, ", {} to {}", written(low), written(high))?;
        }
        if let Some(levels) = self.levels {
            write!(f, ", {} levels: {}", levels.len(), crate::error::listed(levels))?;
        }
        Ok(())
    }
}

/// A number as people write it, and never with hundreds of zeros.
pub(crate) fn written(x: f64) -> String {
    let text = format!("{x:?}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// A labelled data set. Record `i` is row `i`; `RecordId(i)` never changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// Where it came from, for people.
    pub name: String,
    /// Columns, in order of their inputs.
    pub columns: Vec<Column>,
    /// Encoded inputs.
    pub inputs: Inputs,
    /// Class of each record, below `classes`.
    pub labels: Vec<u32>,
    /// Number of classes.
    pub classes: usize,
    /// Each class as the file names it, `classes` names.
    pub class_names: Vec<String>,
    /// Row of each record in its file, from 1, where records were left out; otherwise record `i` is the file's `i`-th.
    pub source_rows: Option<Vec<u64>>,
    /// Records drawn from a second, test-only law (Skewed Purchases); all others follow the train law.
    pub test_law: Option<Range<u32>>,
}
impl Dataset {
    /// A data set of bits, one column per bit, classes named by their numbers.
    ///
    /// # Errors
    /// If there are not as many rows as labels, the words do not match rows and width, padding bits are set,
    /// or a label is not below `classes`.
    pub fn from_bits(
        name: &str,
        bits: BitMatrix,
        labels: Vec<u32>,
        classes: usize,
    ) -> Result<Self, Error> {
        let columns = (0..bits.width)
            .map(|i| Column { name: format!("bit {i}"), kind: ColumnKind::Bit, first_input: i })
            .collect();
        Self::from_parts(name, columns, Inputs::Bits(bits), labels, numbered(classes))
    }
    /// A data set of numbers already scaled to `[0, 1]`, one real column per input.
    ///
    /// # Errors
    /// If `values` is not `labels.len() * width` finite numbers or a label is not below `classes`.
    pub fn from_reals(
        name: &str,
        width: usize,
        values: Vec<f32>,
        labels: Vec<u32>,
        classes: usize,
    ) -> Result<Self, Error> {
        let columns = (0..width)
            .map(|i| Column {
                name: format!("input {i}"),
                kind: ColumnKind::Real { low: 0.0, high: 1.0 },
                first_input: i,
            })
            .collect();
        Self::from_parts(name, columns, Inputs::Reals { width, values }, labels, numbered(classes))
    }
    /// A data set of images of one public shape `[channels, height, width]`, in one column `pixels`.
    ///
    /// # Errors
    /// As [`Self::from_parts`].
    pub fn from_images(
        name: &str,
        shape: [usize; 3],
        inputs: Inputs,
        labels: Vec<u32>,
        class_names: Vec<String>,
    ) -> Result<Self, Error> {
        let kind = ColumnKind::Image { shape };
        let column = Column { name: "pixels".to_owned(), kind, first_input: 0 };
        Self::from_parts(name, vec![column], inputs, labels, class_names)
    }
    /// A data set from all its parts, checked.
    ///
    /// # Errors
    /// As [`Self::from_bits`] and [`Self::from_reals`], and if the columns do not cover the inputs in order.
    pub fn from_parts(
        name: &str,
        columns: Vec<Column>,
        inputs: Inputs,
        labels: Vec<u32>,
        class_names: Vec<String>,
    ) -> Result<Self, Error> {
        let dataset = Self {
            name: name.to_owned(),
            columns,
            inputs,
            labels,
            classes: class_names.len(),
            class_names,
            source_rows: None,
            test_law: None,
        };
        dataset.check()?;
        Ok(dataset)
    }
    fn check(&self) -> Result<(), Error> {
        let same = |what, needs: usize, have: usize| {
            if needs == have {
                Ok(())
            } else {
                Err(Error::Inconsistent { what, needs: needs as u64, have: have as u64 })
            }
        };
        if self.labels.len() > u32::MAX as usize {
            return Err(Error::Inconsistent {
                what: "records (at most)",
                needs: u64::from(u32::MAX),
                have: self.labels.len() as u64,
            });
        }
        let mut input = 0;
        for column in &self.columns {
            same("first input of a column", input, column.first_input)?;
            input = column.kind.inputs().saturating_add(input);
        }
        same("inputs covered by columns", self.width(), input)?;
        match &self.inputs {
            Inputs::Bits(bits) => {
                same("rows of bits", self.len(), bits.rows)?;
                same("words of bits", bits.rows * bits.words_per_row(), bits.words.len())?;
                let used = bits.width % 64;
                if used != 0 {
                    let padding = !0u64 << used;
                    let per_row = bits.words_per_row();
                    for last in bits.words.iter().skip(per_row - 1).step_by(per_row) {
                        same(
                            "padding bits set in a row",
                            0,
                            (last & padding).count_ones() as usize,
                        )?;
                    }
                }
            }
            Inputs::Reals { width, values } => {
                same("numbers", self.len() * width, values.len())?;
                if let Some(at) = values.iter().position(|v| !v.is_finite()) {
                    // `labels.len()` fits 32 bits, so does the row.
                    let record = RecordId((at / width) as u32);
                    return Err(Error::NotFinite { record, input: at % width });
                }
            }
            Inputs::Bytes { width, highest, values } => {
                same("bytes", self.len() * width, values.len())?;
                let largest = values.iter().copied().max().unwrap_or(1).max(1);
                if largest > *highest {
                    return Err(Error::Inconsistent {
                        what: "byte (needs one not above the highest, which is at least 1)",
                        needs: u64::from(*highest),
                        have: u64::from(largest),
                    });
                }
            }
            Inputs::Graphs(graphs) => same("graphs", self.len(), graphs.set().len())?,
        }
        if let Some(&label) = self.labels.iter().find(|&&l| l as usize >= self.classes) {
            return Err(Error::Inconsistent {
                what: "label (needs one below the number of classes)",
                needs: self.classes as u64,
                have: u64::from(label),
            });
        }
        Ok(())
    }
    /// What the columns hold, neighbours that hold the same together.
    #[must_use]
    pub fn column_runs(&self) -> Vec<ColumnRun<'_>> {
        self.columns.chunk_by(|a, b| a.kind == b.kind).filter_map(ColumnRun::of).collect()
    }
    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.labels.len()
    }
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
    /// Inputs per record.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.inputs.width()
    }
    /// `[channels, height, width]` of the images; `None` for a table. Inputs go channel after channel, row after row.
    #[must_use]
    pub fn shape(&self) -> Option<[usize; 3]> {
        match self.columns.as_slice() {
            [Column { kind: ColumnKind::Image { shape }, .. }] => Some(*shape),
            _ => None,
        }
    }
    /// Row of the file a record came from, from 1; `None` if there is no such record.
    #[must_use]
    pub fn source_row(&self, record: RecordId) -> Option<u64> {
        match &self.source_rows {
            Some(rows) => rows.get(record.0 as usize).copied(),
            None => ((record.0 as usize) < self.len()).then(|| u64::from(record.0) + 1),
        }
    }
    /// How many records each class has, `classes` numbers.
    #[must_use]
    pub fn class_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.classes];
        for &label in &self.labels {
            counts[label as usize] += 1;
        }
        counts
    }
    /// Keeps the records of the `classes` most frequent classes (ties: the earlier class), drops the others and
    /// renumbers labels in the old order. Names and source rows go along.
    ///
    /// # Errors
    /// If fewer than `classes` classes have a record.
    pub fn most_frequent_classes(self, classes: usize) -> Result<Self, Error> {
        if classes < 2 {
            return Err(Error::Setting {
                setting: "classes".to_owned(),
                needs: "at least 2".to_owned(),
                have: classes.to_string(),
            });
        }
        let counts = self.class_counts();
        let mut order: Vec<usize> = (0..self.classes).filter(|&c| counts[c] > 0).collect();
        if order.len() < classes {
            return Err(Error::TooFewClasses {
                file: self.name.into(),
                needs: classes,
                have: order.len(),
            });
        }
        order.sort_by_key(|&c| (std::cmp::Reverse(counts[c]), c));
        order.truncate(classes);
        order.sort_unstable();
        let mut renumbered = vec![None; self.classes];
        for (new, &old) in order.iter().enumerate() {
            renumbered[old] = Some(new as u32);
        }
        let keep: Vec<usize> =
            (0..self.len()).filter(|&i| renumbered[self.labels[i] as usize].is_some()).collect();
        let labels =
            keep.iter().filter_map(|&i| renumbered[self.labels[i] as usize]).collect::<Vec<_>>();
        let source_rows = keep.iter().map(|&i| match &self.source_rows {
            Some(rows) => rows[i],
            None => i as u64 + 1,
        });
        let source_rows = Some(source_rows.collect());
        let test_law = self.test_law.as_ref().map(|law| {
            let before = |end: u32| keep.partition_point(|&i| i < end as usize) as u32;
            before(law.start)..before(law.end)
        });
        let inputs = self.inputs.of_rows(&keep);
        let class_names = order.iter().map(|&c| self.class_names[c].clone()).collect();
        Ok(Self {
            name: self.name,
            columns: self.columns,
            inputs,
            labels,
            classes,
            class_names,
            source_rows,
            test_law,
        })
    }
    /// BLAKE3 of the content (schema, inputs, labels), 64 hexadecimal digits.
    ///
    /// The name is left out: the same table under another path is the same table. Every part is preceded by its
    /// length, so that no two different tables give the same bytes.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let mut hasher =
            blake3::Hasher::new_derive_key("dosimeter 2026 data set fingerprint, version 1");
        let count = |h: &mut blake3::Hasher, n: usize| {
            h.update(&(n as u64).to_le_bytes());
        };
        let text = |h: &mut blake3::Hasher, s: &str| {
            h.update(&(s.len() as u64).to_le_bytes()).update(s.as_bytes());
        };
        count(&mut hasher, self.columns.len());
        for column in &self.columns {
            text(&mut hasher, &column.name);
            match &column.kind {
                ColumnKind::Bit => text(&mut hasher, "bit"),
                ColumnKind::Category(levels) => {
                    text(&mut hasher, "category");
                    count(&mut hasher, levels.len());
                    levels.iter().for_each(|l| text(&mut hasher, l));
                }
                ColumnKind::Real { low, high } => {
                    text(&mut hasher, "real");
                    hasher.update(&low.to_le_bytes()).update(&high.to_le_bytes());
                }
                ColumnKind::Image { shape } => {
                    text(&mut hasher, "image");
                    shape.iter().for_each(|&side| count(&mut hasher, side));
                }
                ColumnKind::Graph { features } => {
                    text(&mut hasher, "graph");
                    count(&mut hasher, *features);
                }
            }
        }
        count(&mut hasher, self.class_names.len());
        self.class_names.iter().for_each(|n| text(&mut hasher, n));
        let law = self.test_law.clone().unwrap_or(0..0);
        hasher.update(&law.start.to_le_bytes()).update(&law.end.to_le_bytes());
        count(&mut hasher, self.len());
        self.labels.iter().for_each(|l| {
            hasher.update(&l.to_le_bytes());
        });
        let mut buffer = Vec::with_capacity(1 << 16);
        let mut write = |hasher: &mut blake3::Hasher, bytes: &[u8]| {
            if buffer.len() + bytes.len() > 1 << 16 {
                hasher.update(&buffer);
                buffer.clear();
            }
            buffer.extend_from_slice(bytes);
        };
        match &self.inputs {
            Inputs::Bits(bits) => {
                write(&mut hasher, b"bits");
                bits.words.iter().for_each(|w| write(&mut hasher, &w.to_le_bytes()));
            }
            Inputs::Reals { values, .. } => {
                write(&mut hasher, b"reals");
                values.iter().for_each(|v| write(&mut hasher, &v.to_le_bytes()));
            }
            Inputs::Bytes { highest, values, .. } => {
                hasher.update(b"bytes").update(&[*highest]).update(values);
            }
            Inputs::Graphs(graphs) => {
                text(&mut hasher, "graphs");
                text(&mut hasher, &format!("{:?}", graphs.feature()));
                text(&mut hasher, &graphs.set().fingerprint());
            }
        }
        hasher.update(&buffer);
        hasher.finalize().to_hex().to_string()
    }
}

fn numbered(classes: usize) -> Vec<String> {
    (0..classes).map(|c| c.to_string()).collect()
}
