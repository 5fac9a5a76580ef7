//! The rows of a Parquet file in blocks, column by column.
use super::Counts;
use super::encoder::Encoder;
use super::rows::RowBlock;
use crate::Error;
use crate::datasets::parquet_file::{self, TakesRows, damaged, guarded};
use crate::datasets::table::Value;
use parquet::basic::{ConvertedType, LogicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;

/// Rows of a block: so many that the way from a column to rows stays in the cache nearby.
const ROWS: usize = 1024;

type Visit<'a, E> = &'a mut dyn FnMut(&RowBlock) -> Result<(), E>;

/// Hands every row to `visit`, block after block; memory is that of a block and a page of each column.
pub(super) fn parquet_blocks<E: From<Error>>(
    encoder: &Encoder<'_>,
    reader: &SerializedFileReader<File>,
    visit: Visit<'_, E>,
) -> Result<Counts, E> {
    let columns = encoder.read();
    match leaves(reader, &columns) {
        Some(leaves) => by_columns(encoder, reader, &columns, &leaves, visit),
        None => by_rows(encoder, reader, &columns, visit),
    }
}

/// Where the values of these columns are, if all of them are plain numbers, bits and texts; dates, decimals and lists are not.
fn leaves(reader: &SerializedFileReader<File>, columns: &[usize]) -> Option<Vec<usize>> {
    let schema = reader.metadata().file_metadata().schema_descr();
    let plain = |column: &usize| {
        let leaf = schema.columns().iter().enumerate().position(|(leaf, about)| {
            schema.get_column_root_idx(leaf) == *column && about.path().parts().len() == 1
        })?;
        let about = schema.column(leaf);
        use parquet::basic::Type::{BOOLEAN, BYTE_ARRAY, DOUBLE, FLOAT, INT32, INT64};
        let logical = about.logical_type_ref();
        let is_plain = match about.physical_type() {
            BOOLEAN | DOUBLE | FLOAT => true,
            INT32 | INT64 => {
                logical.is_none() && about.converted_type() == ConvertedType::NONE
                    || matches!(logical, Some(LogicalType::Integer(kind)) if kind.is_signed)
            }
            BYTE_ARRAY => {
                matches!(about.converted_type(), ConvertedType::NONE | ConvertedType::UTF8)
                    && matches!(logical, None | Some(LogicalType::String))
            }
            _ => false,
        };
        (is_plain && about.max_rep_level() == 0 && about.max_def_level() <= 1).then_some(leaf)
    };
    columns.iter().map(plain).collect()
}

fn by_columns<E: From<Error>>(
    encoder: &Encoder<'_>,
    reader: &SerializedFileReader<File>,
    columns: &[usize],
    leaves: &[usize],
    visit: Visit<'_, E>,
) -> Result<Counts, E> {
    let file = encoder.file;
    let (mut counts, mut block) = (Counts::default(), encoder.block());
    let mut next = 1_u64;
    for group in 0..reader.num_row_groups() {
        let (mut readers, mut left) = guarded(file, || {
            let group = reader.get_row_group(group).map_err(damaged(file))?;
            let of = |leaf: &usize| group.get_column_reader(*leaf).map_err(damaged(file));
            let readers = leaves.iter().map(of).collect::<Result<Vec<_>, _>>()?;
            Ok((readers, group.metadata().num_rows().max(0) as u64))
        })?;
        while left > 0 {
            let rows = left.min(ROWS as u64) as usize;
            block.clear();
            (next..next + rows as u64).for_each(|number| block.start(number));
            // The first row that is wrong, and of it the first column.
            let mut wrong: Option<(usize, Error)> = None;
            for (&column, reader) in columns.iter().zip(&mut readers) {
                let rows = wrong.as_ref().map_or(rows, |(row, _)| *row);
                let found =
                    guarded(file, || read(encoder, &mut block, column, reader, rows, left))?;
                wrong = found.or(wrong);
            }
            if let Some((row, _)) = &wrong {
                block.truncate(*row);
            }
            visit(&block)?;
            if let Some((_, error)) = wrong {
                return Err(error.into());
            }
            encoder.count(&block, &mut counts);
            next += rows as u64;
            left -= rows as u64;
        }
    }
    Ok(counts)
}

/// Takes the next `rows` values of a column into the block, up to the first that is wrong.
fn read(
    encoder: &Encoder<'_>,
    block: &mut RowBlock,
    column: usize,
    reader: &mut ColumnReader,
    rows: usize,
    left: u64,
) -> Result<Option<(usize, Error)>, Error> {
    use ColumnReader as R;
    let mut taker = Taker { encoder, block, column, rows, left };
    match reader {
        R::DoubleColumnReader(r) => taker.take(r, |x| Value::Number(*x)),
        R::FloatColumnReader(r) => taker.take(r, |x| Value::Number(f64::from(*x))),
        R::Int32ColumnReader(r) => taker.take(r, |x| Value::Number(f64::from(*x))),
        R::Int64ColumnReader(r) => taker.take(r, |x| Value::Number(*x as f64)),
        R::BoolColumnReader(r) => taker.take(r, |x| Value::Number(f64::from(u8::from(*x)))),
        R::ByteArrayColumnReader(r) => taker.take(r, |x| Value::Text(x.data().trim_ascii())),
        R::Int96ColumnReader(_) | R::FixedLenByteArrayColumnReader(_) => {
            Err(taker.short("a column is of another type than its schema says"))
        }
    }
}
struct Taker<'a, 'b> {
    encoder: &'a Encoder<'b>,
    block: &'a mut RowBlock,
    column: usize,
    rows: usize,
    /// Rows of the group from here on, for an error.
    left: u64,
}
impl Taker<'_, '_> {
    fn short(&self, reason: &str) -> Error {
        let reason = format!("{reason}, {} rows before the end of a group", self.left);
        Error::Damaged { file: self.encoder.file.to_owned(), format: "Parquet", reason }
    }
    fn take<T: DataType>(
        &mut self,
        reader: &mut ColumnReaderImpl<T>,
        value: impl Fn(&T::T) -> Value<'_>,
    ) -> Result<Option<(usize, Error)>, Error> {
        let (mut levels, mut values) =
            (Vec::with_capacity(self.rows), Vec::with_capacity(self.rows));
        let read = reader.read_records(self.rows, Some(&mut levels), None, &mut values);
        let (rows, have, _) = read.map_err(damaged(self.encoder.file))?;
        if rows != self.rows || have != values.len() || !(levels.is_empty() || levels.len() == rows)
        {
            return Err(self.short("a column is shorter than its group"));
        }
        let takes_numbers = self.encoder.takes_numbers(self.column);
        let mut taken = 0;
        if takes_numbers && have == rows {
            let numbers = values.iter().map_while(|v| match value(v) {
                Value::Number(number) => Some(number),
                _ => None,
            });
            taken = self.encoder.numbers(self.block, self.column, numbers);
        }
        let mut values = values.iter().skip(taken);
        for at in taken..rows {
            let is_there = levels.get(at).is_none_or(|level| *level > 0);
            let value = if is_there { values.next().map(&value) } else { Some(Value::Null) };
            let value = value.ok_or_else(|| self.short("a column is shorter than its group"))?;
            match value {
                Value::Number(number) if takes_numbers && number.is_finite() => {
                    self.encoder.number(self.block, at, self.column, number);
                }
                value => {
                    if let Err(error) = self.encoder.push(self.block, at, self.column, value) {
                        return Ok(Some((at, error)));
                    }
                }
            }
        }
        Ok(None)
    }
}

/// For columns of any type, through the crate's rows.
fn by_rows<E: From<Error>>(
    encoder: &Encoder<'_>,
    reader: &SerializedFileReader<File>,
    columns: &[usize],
    visit: Visit<'_, E>,
) -> Result<Counts, E> {
    struct Taker<'a, 'b, E> {
        encoder: &'a Encoder<'b>,
        block: RowBlock,
        counts: Counts,
        visit: Visit<'a, E>,
        /// What `visit` said; it is not this crate's error.
        failed: Option<E>,
    }
    impl<E> Taker<'_, '_, E> {
        fn hand_out(&mut self) -> bool {
            self.failed = (self.visit)(&self.block).err();
            self.encoder.count(&self.block, &mut self.counts);
            self.block.clear();
            self.failed.is_none()
        }
    }
    impl<E> TakesRows for Taker<'_, '_, E> {
        fn start(&mut self, row: u64) -> Result<(), Error> {
            self.block.start(row);
            Ok(())
        }
        fn push(&mut self, _: u64, column: usize, value: Value<'_>) -> Result<(), Error> {
            let at = self.block.len() - 1;
            let pushed = self.encoder.push(&mut self.block, at, column, value);
            pushed.inspect_err(|_| self.block.truncate(at))
        }
        fn end(&mut self, _: u64) -> Result<bool, Error> {
            Ok(self.block.len() < ROWS || self.hand_out())
        }
    }
    let (block, counts) = (encoder.block(), Counts::default());
    let mut taker = Taker { encoder, block, counts, visit, failed: None };
    let read = parquet_file::rows(encoder.file, reader, columns, &mut taker);
    if taker.failed.is_none() {
        taker.hand_out();
    }
    match taker.failed {
        Some(error) => Err(error),
        None => read.map(|()| taker.counts).map_err(E::from),
    }
}
