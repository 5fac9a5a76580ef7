//! Tables in Parquet, by the row interface.
use super::table::{Schema, Table, TableBuilder, Value};
use crate::{Dataset, Error, FieldProblem};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::Type;
use std::fs::File;
use std::path::Path;

/// Runs a step of the parquet crate, which asserts some of what a damaged file can violate, and takes its panic for damage.
pub(crate) fn guarded<T>(file: &Path, step: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    // What the step changed is not looked at again.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(step)).unwrap_or_else(|_| {
        Err(Error::Damaged {
            file: file.to_owned(),
            format: "Parquet",
            reason: "its metadata contradicts itself".into(),
        })
    })
}

/// An opened file, and the names of its columns.
pub(crate) fn open(file: &Path) -> Result<(SerializedFileReader<File>, Vec<String>), Error> {
    guarded(file, || open_unguarded(file))
}
fn open_unguarded(file: &Path) -> Result<(SerializedFileReader<File>, Vec<String>), Error> {
    let opened = crate::file::open(file)?;
    let reader = SerializedFileReader::new(opened).map_err(damaged(file))?;
    for group in reader.metadata().row_groups() {
        for column in group.columns() {
            let start =
                column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
            if start < 0 || column.compressed_size() < 0 || column.num_values() < 0 {
                let (file, reason) = (file.to_owned(), "a column has a negative place or size");
                return Err(Error::Damaged { file, format: "Parquet", reason: reason.into() });
            }
        }
    }
    let columns = reader.metadata().row_groups().iter().flat_map(|group| group.columns());
    for codec in columns.map(|column| column.compression()) {
        use parquet::basic::Compression::{GZIP, SNAPPY, UNCOMPRESSED, ZSTD};
        if !matches!(codec, UNCOMPRESSED | SNAPPY | GZIP(_) | ZSTD(_)) {
            // The level some names carry, `BROTLI(BrotliLevel(1))`, is the crate's default.
            let have = codec.to_string().split('(').next().unwrap_or_default().to_lowercase();
            return Err(Error::Codec { file: file.to_owned(), have });
        }
    }
    let fields = reader.metadata().file_metadata().schema().get_fields();
    let names = fields.iter().map(|f| f.name().to_owned()).collect();
    Ok((reader, names))
}

/// What takes rows, field by field.
pub(crate) trait TakesRows {
    /// A record begins.
    fn start(&mut self, row: u64) -> Result<(), Error>;
    /// The field of a column.
    fn push(&mut self, row: u64, column: usize, value: Value<'_>) -> Result<(), Error>;
    /// The record is whole; says whether to go on.
    fn end(&mut self, row: u64) -> Result<bool, Error>;
}
impl TakesRows for TableBuilder<'_> {
    fn start(&mut self, _: u64) -> Result<(), Error> {
        self.start_record()
    }
    fn push(&mut self, row: u64, column: usize, value: Value<'_>) -> Result<(), Error> {
        Self::push(self, row, column, value)
    }
    fn end(&mut self, _: u64) -> Result<bool, Error> {
        Ok(true)
    }
}

pub(super) fn load(table: &Table) -> Result<Dataset, Error> {
    let file = table.path.as_path();
    let (reader, names) = open(file)?;
    let schema = Schema {
        file,
        label: Some(&table.label),
        ignore: &table.ignore,
        columns: &table.columns,
        other_columns: table.other_columns.as_ref(),
    };
    let mut builder = TableBuilder::new(schema, names)?;
    let columns: Vec<usize> = (0..builder.width()).filter(|&i| builder.is_read(i)).collect();
    rows(file, &reader, &columns, &mut builder)?;
    builder.finish(None, table.classes)
}

/// Hands the fields of these columns, row by row, to `taker`.
pub(crate) fn rows(
    file: &Path,
    reader: &SerializedFileReader<File>,
    read: &[usize],
    taker: &mut dyn TakesRows,
) -> Result<(), Error> {
    let mut rows = guarded(file, || {
        let root = reader.metadata().file_metadata().schema();
        let projected = read.iter().map(|&i| root.get_fields()[i].clone()).collect();
        let projection = Type::group_type_builder(root.name())
            .with_fields(projected)
            .build()
            .map_err(damaged(file))?;
        reader.get_row_iter(Some(projection)).map_err(damaged(file))
    })?;
    for row in 1_u64.. {
        let next = guarded(file, || rows.next().transpose().map_err(damaged(file)))?;
        let Some(record) = next else { break };
        taker.start(row)?;
        for (&column, (name, field)) in read.iter().zip(record.get_column_iter()) {
            let text;
            let value = match field {
                Field::Null => Value::Null,
                Field::Bool(b) => Value::Number(f64::from(u8::from(*b))),
                Field::Byte(n) => Value::Number(f64::from(*n)),
                Field::Short(n) => Value::Number(f64::from(*n)),
                Field::Int(n) => Value::Number(f64::from(*n)),
                Field::Long(n) => Value::Number(*n as f64),
                Field::UByte(n) => Value::Number(f64::from(*n)),
                Field::UShort(n) => Value::Number(f64::from(*n)),
                Field::UInt(n) => Value::Number(f64::from(*n)),
                Field::ULong(n) => Value::Number(*n as f64),
                Field::Float16(n) => Value::Number(n.to_f64()),
                Field::Float(n) => Value::Number(f64::from(*n)),
                Field::Double(n) => Value::Number(*n),
                Field::Str(s) => Value::Text(s.as_bytes().trim_ascii()),
                Field::Bytes(bytes) => Value::Text(bytes.data().trim_ascii()),
                Field::Decimal(_)
                | Field::Date(_)
                | Field::TimeMillis(_)
                | Field::TimeMicros(_)
                | Field::TimestampMillis(_)
                | Field::TimestampMicros(_) => {
                    text = field.to_string();
                    Value::Text(text.as_bytes())
                }
                _ => {
                    let (file, field) = (file.to_owned(), name.clone());
                    let problem = FieldProblem::NotATableValue;
                    return Err(Error::Field { file, row, field, problem });
                }
            };
            taker.push(row, column, value)?;
        }
        if !taker.end(row)? {
            break;
        }
    }
    Ok(())
}

pub(crate) fn damaged(file: &Path) -> impl Fn(parquet::errors::ParquetError) -> Error + Copy + '_ {
    move |e| Error::Damaged { file: file.to_owned(), format: "Parquet", reason: e.to_string() }
}
