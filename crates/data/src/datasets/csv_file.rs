//! Tables in CSV.
use super::source;
use super::table::{CsvTable, Schema, TableBuilder, Value};
use crate::{Dataset, Error, FieldProblem};
use std::io::{BufRead, Read};
use std::path::Path;

pub(super) fn load(table: &CsvTable) -> Result<Dataset, Error> {
    let file = table.path.as_path();
    let delimiter = u8::try_from(table.delimiter).ok().filter(u8::is_ascii);
    let Some(delimiter) = delimiter.filter(|d| !matches!(d, b'"' | b'\n' | b'\r')) else {
        return Err(Error::Setting {
            setting: "delimiter".into(),
            needs: "one ASCII character other than a quote or a line end".into(),
            have: format!("{:?}", table.delimiter),
        });
    };
    source::with_text(file, None, |text| read(table, file, delimiter, text))
}

fn read(
    table: &CsvTable,
    file: &Path,
    delimiter: u8,
    text: &mut dyn BufRead,
) -> Result<Dataset, Error> {
    for row in 1..=table.skip_lines {
        skip_line(file, row, text)?;
    }
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .from_reader(ShortLines { text, since_line_end: 0 });
    let schema = Schema {
        file,
        label: Some(&table.label),
        ignore: &table.ignore,
        columns: &table.columns,
        other_columns: table.other_columns.as_ref(),
    };
    let mut record = csv::ByteRecord::new();
    let mut builder: Option<TableBuilder<'_>> = None;
    loop {
        let more = reader.read_byte_record(&mut record).map_err(|e| problem(file, e))?;
        if !more {
            break;
        }
        let line = record.position().map_or(0, csv::Position::line) + table.skip_lines;
        let first = builder.is_none();
        let builder = match &mut builder {
            Some(builder) => builder,
            none => {
                let names = names(table, file, line, &record)?;
                none.insert(TableBuilder::new(schema, names)?)
            }
        };
        if record.len() != builder.width() {
            let (needs, have) = (builder.width(), record.len());
            return Err(Error::FieldCount { file: file.to_owned(), row: line, needs, have });
        }
        if first && table.header && table.names.is_none() {
            continue;
        }
        builder.start_record()?;
        for (i, field) in record.iter().enumerate() {
            builder.push(line, i, Value::Text(field.trim_ascii()))?;
        }
    }
    let builder = builder.ok_or_else(|| Error::NoRecords { file: file.to_owned() })?;
    builder.finish(None, table.classes)
}

fn names(
    table: &CsvTable,
    file: &Path,
    row: u64,
    first: &csv::ByteRecord,
) -> Result<Vec<String>, Error> {
    if let Some(names) = &table.names {
        if table.header {
            return Err(Error::Setting {
                setting: "names".into(),
                needs: "`header = false` (with a header the file names its columns)".into(),
                have: "given with `header = true`".into(),
            });
        }
        return Ok(names.clone());
    }
    if !table.header {
        return Ok((1..=first.len()).map(|i| format!("column {i}")).collect());
    }
    let name = |(i, field): (usize, &[u8])| match std::str::from_utf8(field) {
        Ok(name) => Ok(name.trim().trim_start_matches('\u{feff}').to_owned()),
        Err(_) => Err(Error::Field {
            file: file.to_owned(),
            row,
            field: format!("column {}", i + 1),
            problem: FieldProblem::NotUtf8,
        }),
    };
    first.iter().enumerate().map(name).collect()
}

fn skip_line(file: &Path, row: u64, text: &mut dyn BufRead) -> Result<(), Error> {
    let mut line = Vec::new();
    let have =
        text.take(LINE_LIMIT as u64).read_until(b'\n', &mut line).map_err(Error::read(file))?;
    if have == LINE_LIMIT {
        return Err(Error::LongLine { file: file.to_owned(), row, limit: LINE_LIMIT });
    }
    Ok(())
}

fn problem(file: &Path, error: csv::Error) -> Error {
    let reason = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(source) => Error::Read { file: file.to_owned(), source },
        _ => Error::Damaged { file: file.to_owned(), format: "CSV", reason },
    }
}

const LINE_LIMIT: usize = 64 << 20;

/// Fails rather than letting one endless line fill the memory.
struct ShortLines<'a> {
    text: &'a mut dyn BufRead,
    since_line_end: usize,
}
impl Read for ShortLines<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let have = self.text.read(buffer)?;
        self.since_line_end = match buffer[..have].iter().rposition(|b| *b == b'\n') {
            Some(at) => have - at,
            None => self.since_line_end + have,
        };
        if self.since_line_end > LINE_LIMIT {
            let reason = format!("a line is longer than {LINE_LIMIT} bytes");
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, reason));
        }
        Ok(have)
    }
}
