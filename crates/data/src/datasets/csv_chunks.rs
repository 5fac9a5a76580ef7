//! Whole records of a CSV, a few hundred kilobytes at a time, so that they can be parsed apart from one another.
use super::csv_file::{LINE_LIMIT, Quotes, Rows};
use crate::Error;
use std::io::{BufRead, ErrorKind, Read};
use std::path::Path;

/// Records that follow one another, none of them cut.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    pub(crate) bytes: Vec<u8>,
    /// Line of the file on which they begin, from 1.
    pub(crate) first_line: u64,
    /// Whether there is a quote anywhere in them; without one, every line end ends a record.
    pub(crate) has_quotes: bool,
    is_start: bool,
}
impl Chunk {
    /// Takes what has been parsed off the front.
    pub(crate) fn drop_front(&mut self, bytes: usize) {
        self.first_line += newlines(&self.bytes[..bytes]);
        self.bytes.drain(..bytes);
        self.is_start &= bytes == 0;
    }
    /// Calls `take` for each record with the line on which it begins. Blank lines are no records.
    pub(crate) fn records<E: From<Error>>(
        &self,
        file: &Path,
        delimiter: u8,
        mut take: impl FnMut(u64, &csv::ByteRecord) -> Result<(), E>,
    ) -> Result<(), E> {
        // Only at the start of a file is a byte order mark one; the crate would take it off at any start.
        let mark = !self.is_start && self.bytes.starts_with(b"\xef\xbb\xbf");
        let blank: &[u8] = if mark { b"\n" } else { b"" };
        let skipped = (self.first_line - 1).saturating_sub(blank.len() as u64);
        let mut text = blank.chain(self.bytes.as_slice());
        let mut rows = Rows::new(file, delimiter, skipped, &mut text);
        let mut record = csv::ByteRecord::new();
        while let Some(line) = rows.next(&mut record)? {
            take(line, &record)?;
        }
        Ok(())
    }
    /// The first record and where the next may begin; `None` if there is none.
    pub(crate) fn first(
        &self,
        file: &Path,
        delimiter: u8,
    ) -> Result<Option<(csv::ByteRecord, u64, usize)>, Error> {
        let mut text = self.bytes.as_slice();
        let skipped = self.first_line.saturating_sub(1);
        let mut rows = Rows::new(file, delimiter, skipped, &mut text);
        let mut record = csv::ByteRecord::new();
        let line = rows.next(&mut record)?;
        Ok(line.map(|line| (record, line, rows.byte() as usize)))
    }
}

/// Cuts a text between records. Where is a matter of how it comes out of the file, so nothing may depend on it.
pub(crate) struct Chunks<'a> {
    file: &'a Path,
    text: &'a mut dyn BufRead,
    quotes: Quotes<'a>,
    /// Behind the last whole record.
    rest: Vec<u8>,
    line: u64,
    is_start: bool,
}
impl<'a> Chunks<'a> {
    pub(crate) fn new(file: &'a Path, delimiter: u8, text: &'a mut dyn BufRead) -> Self {
        let quotes = Quotes::new(file, delimiter, 0);
        Self { file, text, quotes, rest: Vec::new(), line: 1, is_start: true }
    }
    /// Fills `chunk` with the next records; `false` at the end.
    pub(crate) fn next(&mut self, chunk: &mut Chunk) -> Result<bool, Error> {
        chunk.bytes.clear();
        chunk.bytes.append(&mut self.rest);
        (chunk.first_line, chunk.is_start) = (self.line, self.is_start);
        self.is_start = false;
        loop {
            let fresh = match self.text.fill_buf() {
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                fresh => fresh.map_err(Error::read(self.file))?,
            };
            if fresh.is_empty() {
                self.quotes.end()?;
                break;
            }
            let (have, end) = (fresh.len(), self.quotes.last_record_end(fresh)?);
            chunk.bytes.extend_from_slice(&fresh[..end.unwrap_or(have)]);
            self.rest.extend_from_slice(&fresh[end.unwrap_or(have)..]);
            self.text.consume(have);
            if end.is_some() {
                break;
            }
            if chunk.bytes.len() > LINE_LIMIT {
                let (file, row) = (self.file.to_owned(), chunk.first_line);
                return Err(Error::LongLine { file, row, limit: LINE_LIMIT });
            }
        }
        self.line = self.quotes.line() - newlines(&self.rest);
        chunk.has_quotes = memchr::memchr(b'"', &chunk.bytes).is_some();
        Ok(!chunk.bytes.is_empty())
    }
}

pub(super) fn newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
