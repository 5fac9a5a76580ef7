//! Tables in CSV.
use super::source;
use super::table::{CsvTable, Schema, TableBuilder, Value};
use crate::{Dataset, Error, FieldProblem};
use std::collections::VecDeque;
use std::io::{BufRead, Read};
use std::path::Path;

pub(super) fn load(table: &CsvTable) -> Result<Dataset, Error> {
    let file = table.path.as_path();
    let delimiter = delimiter(table.delimiter)?;
    source::with_text(file, None, |text| read(table, file, delimiter, text))
}

/// The byte of what the user says separates fields.
pub(crate) fn delimiter(given: char) -> Result<u8, Error> {
    let byte = u8::try_from(given).ok().filter(u8::is_ascii);
    byte.filter(|d| !matches!(d, b'"' | b'\n' | b'\r')).ok_or_else(|| Error::Setting {
        setting: "delimiter".into(),
        needs: "one ASCII character other than a quote or a line end".into(),
        have: format!("{given:?}"),
    })
}

/// The rows of a CSV, the header among them, one after another.
pub(crate) struct Rows<'a> {
    file: &'a Path,
    reader: csv::Reader<Watched<'a>>,
    skipped: u64,
}
impl<'a> Rows<'a> {
    /// `text` begins behind `skipped` lines of the file.
    pub(crate) fn new(
        file: &'a Path,
        delimiter: u8,
        skipped: u64,
        text: &'a mut dyn BufRead,
    ) -> Self {
        let quotes = Quotes::new(file, delimiter, skipped);
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .from_reader(Watched {
                text,
                since_line_end: 0,
                quotes,
                read: 0,
                line_ends: VecDeque::new(),
                passed: 0,
            });
        Self { file, reader, skipped }
    }
    /// Reads the next row into `record` and says on which line of the file it begins; `None` at the end.
    pub(crate) fn next(&mut self, record: &mut csv::ByteRecord) -> Result<Option<u64>, Error> {
        if !self.reader.read_byte_record(record).map_err(|e| problem(self.file, e))? {
            return Ok(None);
        }
        // The crate's own line is where the record before ended: blank lines, and the second byte of a Windows line end, come
        // between. So the line is counted back from the end, whose own line end is not before its last byte.
        let last_byte = self.reader.position().byte().saturating_sub(1);
        let ended = self.reader.get_mut().line_ends_before(last_byte) + 1;
        Ok(Some(self.skipped + ended - super::csv_chunks::newlines(record.as_slice())))
    }
    /// How many bytes of the text the rows so far took.
    pub(super) fn byte(&self) -> u64 {
        self.reader.position().byte()
    }
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
    let mut rows = Rows::new(file, delimiter, table.skip_lines, text);
    let schema = Schema {
        file,
        label: Some(&table.label),
        ignore: &table.ignore,
        columns: &table.columns,
        other_columns: table.other_columns.as_ref(),
    };
    let mut record = csv::ByteRecord::new();
    let mut builder: Option<TableBuilder<'_>> = None;
    while let Some(line) = rows.next(&mut record)? {
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
    header(file, row, first)
}

/// The names that a row of the file gives to its columns.
pub(crate) fn header(file: &Path, row: u64, first: &csv::ByteRecord) -> Result<Vec<String>, Error> {
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
        csv::ErrorKind::Io(source) => match source.downcast::<Error>() {
            Ok(error) => error,
            Err(source) => Error::Read { file: file.to_owned(), source },
        },
        _ => Error::Damaged { file: file.to_owned(), format: "CSV", reason },
    }
}

pub(super) const LINE_LIMIT: usize = 64 << 20;

/// Fails rather than letting one endless line fill the memory, or a wrong quote swallow records.
struct Watched<'a> {
    text: &'a mut dyn BufRead,
    since_line_end: usize,
    quotes: Quotes<'a>,
    /// Bytes read so far.
    read: u64,
    /// Where among them the line ends are that nobody asked beyond yet.
    line_ends: VecDeque<u64>,
    /// How many were before those.
    passed: u64,
}
impl Watched<'_> {
    /// Line ends before a byte of the text; asked in ascending order.
    fn line_ends_before(&mut self, byte: u64) -> u64 {
        while self.line_ends.front().is_some_and(|at| *at < byte) {
            self.line_ends.pop_front();
            self.passed += 1;
        }
        self.passed
    }
}
impl Read for Watched<'_> {
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
        let checked = if have == 0 && !buffer.is_empty() {
            self.quotes.end()
        } else {
            self.quotes.watch(&buffer[..have])
        };
        checked.map_err(std::io::Error::other)?;
        let from = self.read;
        self.line_ends
            .extend(memchr::memchr_iter(b'\n', &buffer[..have]).map(|at| from + at as u64));
        self.read += have as u64;
        Ok(have)
    }
}

/// Follows the quotes beside the `csv` crate, which takes an unclosed field to the end of the file for a field and
/// text behind a closing quote for a part of it.
pub(super) struct Quotes<'a> {
    file: &'a Path,
    delimiter: u8,
    line: u64,
    /// Where the latest quoted field began.
    opened: u64,
    at: At,
}
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    FileStart,
    FieldStart,
    Unquoted,
    Quoted,
    /// Behind a quote that closes the field unless another follows.
    Closed,
    /// Behind spaces behind the closing quote.
    Padded,
}
impl<'a> Quotes<'a> {
    pub(super) const fn new(file: &'a Path, delimiter: u8, skipped: u64) -> Self {
        Self { file, delimiter, line: skipped + 1, opened: 0, at: At::FileStart }
    }
    /// The line that comes next, from 1.
    pub(super) const fn line(&self) -> u64 {
        self.line
    }
    fn watch(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.last_record_end(bytes).map(drop)
    }
    /// Follows more of the text and says behind which of its bytes the last whole record ends, if one ends at a `\n` there.
    pub(super) fn last_record_end(&mut self, bytes: &[u8]) -> Result<Option<usize>, Error> {
        let mut start = 0;
        if self.at == At::FileStart {
            start = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
            self.at = At::FieldStart;
        }
        let inside = matches!(self.at, At::Quoted | At::Closed | At::Padded);
        if !inside && memchr::memchr(b'"', bytes).is_none() {
            self.line += super::csv_chunks::newlines(bytes);
            if let Some(&last) = bytes[start..].last() {
                self.at = if self.ends_field(last) { At::FieldStart } else { At::Unquoted };
            }
            return Ok(memchr::memrchr(b'\n', bytes).map(|at| at + 1));
        }
        let mut end = None;
        for (at, &byte) in bytes.iter().enumerate().skip(start) {
            self.step(byte)?;
            if byte == b'\n' && self.at == At::FieldStart {
                end = Some(at + 1);
            }
        }
        Ok(end)
    }
    const fn ends_field(&self, byte: u8) -> bool {
        byte == self.delimiter || matches!(byte, b'\n' | b'\r')
    }
    fn step(&mut self, byte: u8) -> Result<(), Error> {
        self.at = match (self.at, byte) {
            (At::Quoted, b'"') => At::Closed,
            (At::Quoted, _) | (At::Closed, b'"') => At::Quoted,
            (_, byte) if self.ends_field(byte) => At::FieldStart,
            (At::FieldStart, b'"') => {
                self.opened = self.line;
                At::Quoted
            }
            (At::Closed | At::Padded, byte) if byte.is_ascii_whitespace() => At::Padded,
            (At::Closed | At::Padded, _) => {
                return self.refuse("has text after its closing quote");
            }
            _ => At::Unquoted,
        };
        self.line += u64::from(byte == b'\n');
        Ok(())
    }
    pub(super) fn end(&self) -> Result<(), Error> {
        if self.at == At::Quoted {
            return self.refuse("is not closed before the end of the file");
        }
        Ok(())
    }
    fn refuse(&self, problem: &'static str) -> Result<(), Error> {
        Err(Error::Quotes { file: self.file.to_owned(), row: self.opened, problem })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(text: &[u8], chunk: usize) -> Result<(), Error> {
        let mut quotes = Quotes::new(Path::new("f"), b',', 0);
        text.chunks(chunk).try_for_each(|bytes| quotes.watch(bytes))?;
        quotes.end()
    }
    /// The `csv` crate finds a record behind the text if, and only if, all its quotes are closed.
    fn is_closed(text: &str) -> bool {
        let text = format!("{text}\nend");
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(text.as_bytes());
        reader.byte_records().last().is_some_and(|r| r.is_ok_and(|r| r == vec!["end"]))
    }
    #[test]
    fn quotes_are_followed_as_the_csv_crate_does_however_the_text_is_cut() {
        let mut unclosed = 0;
        for number in 0..5_usize.pow(7) {
            let text: String =
                (0..7).map(|i| ['"', ',', '\n', 'a', ' '][number / 5_usize.pow(i) % 5]).collect();
            let whole = watched(text.as_bytes(), 7).map_err(|e| e.to_string());
            for chunk in [1, 3] {
                let cut = watched(text.as_bytes(), chunk).map_err(|e| e.to_string());
                assert_eq!(cut, whole, "{text:?} in pieces of {chunk}");
            }
            match whole {
                Ok(()) => assert!(is_closed(&text), "{text:?}"),
                Err(e) if e.contains("not closed") => {
                    unclosed += 1;
                    assert!(!is_closed(&text), "{text:?}");
                }
                Err(_) => {}
            }
        }
        assert!(unclosed > 1_000, "{unclosed}");
    }
}
