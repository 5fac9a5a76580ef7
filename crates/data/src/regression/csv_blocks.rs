//! The rows of a CSV in blocks, parsed by several threads and handed out in the order of the file.
use super::Counts;
use super::bounds::TableBounds;
use super::decimal::number;
use super::encoder::Encoder;
use super::rows::RowBlock;
use crate::Error;
use crate::datasets::csv_chunks::{Chunk, Chunks};
use crate::datasets::csv_file;
use crate::datasets::table::Value;
use std::any::Any;
use std::collections::BTreeMap;
use std::io::BufRead;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::{Mutex, PoisonError, mpsc};

/// Hands every row to `visit`, block after block. The rows, their order and the first error are the same for any number of threads.
pub(super) fn csv_blocks<E: From<Error>>(
    file: &Path,
    bounds: &TableBounds,
    needs_target: bool,
    threads: NonZeroUsize,
    text: &mut dyn BufRead,
    visit: &mut dyn FnMut(&RowBlock) -> Result<(), E>,
) -> Result<Counts, E> {
    let delimiter = csv_file::delimiter(bounds.delimiter)?;
    let mut chunks = Chunks::new(file, delimiter, text);
    let mut first = Chunk::default();
    let encoder = loop {
        if !chunks.next(&mut first)? {
            return Err(Error::NoRecords { file: file.to_owned() }.into());
        }
        if let Some((record, row, end)) = first.first(file, delimiter)? {
            let names = csv_file::header(file, row, &record)?;
            first.drop_front(end);
            break Encoder::new(file, bounds, names, needs_target)?;
        }
    };
    let parser = Parser { encoder: &encoder, delimiter };
    let mut counts = Counts::default();
    let mut take = |parsed: Parsed| -> Result<Parsed, E> {
        visit(&parsed.block)?;
        encoder.count(&parsed.block, &mut counts);
        parsed.failed.map_or(Ok(Parsed { failed: None, ..parsed }), |e| Err(e.into()))
    };
    if threads.get() == 1 {
        let mut parsed = Parsed::new(0, first, encoder.block());
        loop {
            parser.parse(&mut parsed);
            parsed = take(parsed)?;
            if !chunks.next(&mut parsed.chunk)? {
                return Ok(counts);
            }
        }
    }
    in_parallel(&parser, threads, first, &mut chunks, &mut take)?;
    Ok(counts)
}

/// A piece of the file and its rows: all of them, or those before the one that is wrong.
struct Parsed {
    place: u64,
    chunk: Chunk,
    block: RowBlock,
    failed: Option<Error>,
}
impl Parsed {
    const fn new(place: u64, chunk: Chunk, block: RowBlock) -> Self {
        Self { place, chunk, block, failed: None }
    }
}

/// This thread reads and hands out, the others parse; a few pieces are under way at a time.
fn in_parallel<E: From<Error>>(
    parser: &Parser<'_>,
    threads: NonZeroUsize,
    first: Chunk,
    chunks: &mut Chunks<'_>,
    take: &mut dyn FnMut(Parsed) -> Result<Parsed, E>,
) -> Result<(), E> {
    let (work, queue) = mpsc::channel::<Parsed>();
    let queue = Mutex::new(queue);
    std::thread::scope(|scope| {
        // Owned here, so that its end, however it comes about, ends the threads.
        let work = work;
        let (done, results) = mpsc::channel::<Result<Parsed, Box<dyn Any + Send>>>();
        for _ in 0..threads.get() {
            let (done, queue) = (done.clone(), &queue);
            scope.spawn(move || {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(mut parsed) = next else { break };
                    let parse = AssertUnwindSafe(|| {
                        parser.parse(&mut parsed);
                        parsed
                    });
                    if done.send(catch_unwind(parse)).is_err() {
                        break;
                    }
                }
            });
        }
        let (mut sent, mut taken, mut end) = (0, 0, Ok(false));
        let mut waiting = BTreeMap::new();
        let mut idle = vec![Parsed::new(0, first, parser.encoder.block())];
        let mut is_first = true;
        loop {
            while matches!(end, Ok(false)) && sent - taken < threads.get() as u64 + 2 {
                let fresh = || Parsed::new(0, Chunk::default(), parser.encoder.block());
                let mut parsed = idle.pop().unwrap_or_else(fresh);
                if !std::mem::replace(&mut is_first, false) {
                    match chunks.next(&mut parsed.chunk) {
                        Ok(true) => {}
                        other => {
                            end = other.map(|_| true);
                            break;
                        }
                    }
                }
                parsed.place = sent;
                sent += 1;
                // The queue is closed only with this function.
                let _ = work.send(parsed);
            }
            if sent == taken {
                return end.map(drop).map_err(E::from);
            }
            let Ok(parsed) = results.recv() else { return Ok(()) };
            let parsed = parsed.unwrap_or_else(|panic| resume_unwind(panic));
            waiting.insert(parsed.place, parsed);
            while let Some(parsed) = waiting.remove(&taken) {
                idle.push(take(parsed)?);
                taken += 1;
            }
        }
    })
}

struct Parser<'a> {
    encoder: &'a Encoder<'a>,
    delimiter: u8,
}
impl Parser<'_> {
    fn parse(&self, parsed: &mut Parsed) {
        let Parsed { chunk, block, failed, .. } = parsed;
        block.clear();
        *failed =
            if chunk.has_quotes { self.quoted(chunk, block) } else { self.plain(chunk, block) }
                .err();
    }
    fn quoted(&self, chunk: &Chunk, block: &mut RowBlock) -> Result<(), Error> {
        let encoder = self.encoder;
        chunk.records(encoder.file, self.delimiter, |row, record| {
            if record.len() != encoder.width() {
                return Err(encoder.field_count(row, record.len()));
            }
            let at = block.len();
            block.start(row);
            let mut fields = record.iter().enumerate();
            fields
                .try_for_each(|(column, field)| {
                    encoder.push(block, at, column, Value::Text(field.trim_ascii()))
                })
                .inspect_err(|_| block.truncate(at))
        })
    }
    /// Records without a quote, found and turned into numbers in one walk.
    fn plain(&self, chunk: &Chunk, block: &mut RowBlock) -> Result<(), Error> {
        let bytes = chunk.bytes.as_slice();
        // A delimiter that can stand in a number ends one too early or too late.
        let apart = !self.delimiter.is_ascii_alphanumeric() && !b"+-.".contains(&self.delimiter);
        let numbers = (0..self.encoder.width()).map(|c| apart && self.encoder.takes_numbers(c));
        let numbers: Vec<bool> = numbers.collect();
        let (mut at, mut row) = (0, chunk.first_line);
        loop {
            while let Some(byte) = bytes.get(at).filter(|b| matches!(b, b'\n' | b'\r')) {
                row += u64::from(*byte == b'\n');
                at += 1;
            }
            if at == bytes.len() {
                return Ok(());
            }
            let place = block.len();
            block.start(row);
            match self.row(bytes, at, &numbers, place, block) {
                Ok(Some(end)) => at = end,
                wrong => {
                    block.truncate(place);
                    let end = memchr::memchr2(b'\n', b'\r', &bytes[at..]);
                    let record = &bytes[at..at + end.unwrap_or(bytes.len() - at)];
                    let have = 1 + memchr::memchr_iter(self.delimiter, record).count();
                    let count = self.encoder.field_count(row, have);
                    return Err(match wrong {
                        Err(wrong) if have == self.encoder.width() => wrong,
                        _ => count,
                    });
                }
            }
        }
    }
    /// Takes the record that begins at `at`; `None` if it has another number of fields.
    fn row(
        &self,
        bytes: &[u8],
        mut at: usize,
        numbers: &[bool],
        place: usize,
        block: &mut RowBlock,
    ) -> Result<Option<usize>, Error> {
        for (column, takes_numbers) in numbers.iter().enumerate() {
            if column > 0 {
                if bytes.get(at) != Some(&self.delimiter) {
                    return Ok(None);
                }
                at += 1;
            }
            let ends = |end: usize| {
                bytes.get(end).is_none_or(|b| *b == self.delimiter || matches!(b, b'\n' | b'\r'))
            };
            let number = if *takes_numbers { number(&bytes[at..]) } else { None };
            if let Some((number, length)) = number.filter(|(_, length)| ends(at + length)) {
                self.encoder.number(block, place, column, number);
                at += length;
            } else {
                let rest = &bytes[at..];
                let length = memchr::memchr3(self.delimiter, b'\n', b'\r', rest);
                let field = &rest[..length.unwrap_or(rest.len())];
                self.encoder.push(block, place, column, Value::Text(field.trim_ascii()))?;
                at += field.len();
            }
        }
        Ok((bytes.get(at) != Some(&self.delimiter)).then_some(at))
    }
}
