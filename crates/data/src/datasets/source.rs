//! Opens a file as text whatever it is wrapped in: plain, gzip, tar, gzipped tar.
use crate::Error;
use flate2::read::MultiGzDecoder;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

const BUFFER: usize = 1 << 18;

/// Whether the file starts like a zip archive, which is what an NPZ is.
pub(crate) fn is_zip(file: &Path) -> Result<bool, Error> {
    let mut start = [0; 4];
    let mut opened = crate::file::open(file)?;
    let have = fill(&mut opened, &mut start).map_err(Error::read(file))?;
    Ok(start[..have].starts_with(b"PK\x03\x04") || start[..have].starts_with(b"PK\x05\x06"))
}

/// Reads the text of `file`; of an archive, the member whose file name is `member`, or its first regular file.
pub(crate) fn with_text<T>(
    file: &Path,
    member: Option<&str>,
    read: impl FnOnce(&mut dyn BufRead) -> Result<T, Error>,
) -> Result<T, Error> {
    let opened = crate::file::open(file)?;
    let mut raw = BufReader::with_capacity(BUFFER, opened);
    if raw.fill_buf().map_err(Error::read(file))?.starts_with(&[0x1f, 0x8b]) {
        let inner = MultiGzDecoder::new(raw);
        unwrap_tar(file, member, BufReader::with_capacity(BUFFER, inner), read)
    } else {
        unwrap_tar(file, member, raw, read)
    }
}

fn unwrap_tar<T>(
    file: &Path,
    member: Option<&str>,
    mut text: impl BufRead,
    read: impl FnOnce(&mut dyn BufRead) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut start = vec![0; 512];
    let have = fill(&mut text, &mut start).map_err(Error::read(file))?;
    start.truncate(have);
    let is_tar = start.get(257..262) == Some(b"ustar");
    let mut text = std::io::Cursor::new(start).chain(text);
    if !is_tar {
        return read(&mut text);
    }
    let mut archive = tar::Archive::new(text);
    let mut have = Vec::new();
    for entry in archive.entries().map_err(Error::read(file))? {
        let entry = entry.map_err(Error::read(file))?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path_bytes().into_owned();
        let name = path.rsplit(|b| *b == b'/').next().unwrap_or_default();
        if member.is_none_or(|m| name == m.as_bytes()) {
            return read(&mut BufReader::with_capacity(BUFFER, entry));
        }
        if have.len() < 8 {
            have.push(String::from_utf8_lossy(&path).into_owned());
        }
    }
    let name = member.unwrap_or("a regular file").to_owned();
    Err(Error::Missing { file: file.to_owned(), name, have })
}

/// Calls `read(i, content)` for each file of an archive whose file name is `names[i]`, in the archive's order; `false` if `file` is
/// no tar (also gzipped).
///
/// # Errors
/// If the archive is damaged, lacks one of them or holds one twice; else what `read` says.
pub(super) fn with_members(
    file: &Path,
    names: &[String],
    mut read: impl FnMut(usize, &mut dyn BufRead) -> Result<(), Error>,
) -> Result<bool, Error> {
    let opened = crate::file::open(file)?;
    let mut raw = BufReader::with_capacity(BUFFER, opened);
    let zipped = raw.fill_buf().map_err(Error::read(file))?.starts_with(&[0x1f, 0x8b]);
    let mut content: Box<dyn BufRead> = if zipped {
        Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(raw)))
    } else {
        Box::new(raw)
    };
    let mut start = vec![0; 512];
    let have = fill(&mut content, &mut start).map_err(Error::read(file))?;
    start.truncate(have);
    if start.get(257..262) != Some(b"ustar") {
        return Ok(false);
    }
    let mut archive = tar::Archive::new(std::io::Cursor::new(start).chain(content));
    let (mut found, mut have) = (vec![false; names.len()], Vec::new());
    for entry in archive.entries().map_err(Error::read(file))? {
        let entry = entry.map_err(Error::read(file))?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path_bytes().into_owned();
        let name = path.rsplit(|b| *b == b'/').next().unwrap_or_default();
        if have.len() < 16 {
            have.push(String::from_utf8_lossy(&path).into_owned());
        }
        let Some(i) = names.iter().position(|n| n.as_bytes() == name) else { continue };
        if std::mem::replace(&mut found[i], true) {
            let reason = format!("two of its files are named `{}`", names[i]);
            return Err(Error::Damaged { file: file.to_owned(), format: "tar", reason });
        }
        read(i, &mut BufReader::with_capacity(BUFFER, entry))?;
    }
    match found.iter().position(|found| !found) {
        Some(i) => Err(Error::Missing { file: file.to_owned(), name: names[i].clone(), have }),
        None => Ok(true),
    }
}

/// Reads until `buffer` is full or the end.
pub(crate) fn fill(reader: &mut (impl Read + ?Sized), buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut have = 0;
    while have < buffer.len() {
        match reader.read(&mut buffer[have..]) {
            Ok(0) => break,
            Ok(n) => have += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(have)
}

/// Longest line read: a million fields of 64 bytes.
const LINE_LIMIT: usize = 64 << 20;

/// Lines with their row number from 1, bounded in length; blank lines are counted but not given out.
pub(crate) struct Lines<'a> {
    file: &'a Path,
    reader: &'a mut dyn BufRead,
    line: Vec<u8>,
    row: u64,
}
impl<'a> Lines<'a> {
    pub(crate) fn new(file: &'a Path, reader: &'a mut dyn BufRead) -> Self {
        Self { file, reader, line: Vec::new(), row: 0 }
    }
    /// The next line without its end, and its row.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, &[u8])>, Error> {
        loop {
            self.line.clear();
            let have = (&mut *self.reader)
                .take(LINE_LIMIT as u64 + 1)
                .read_until(b'\n', &mut self.line)
                .map_err(Error::read(self.file))?;
            if have == 0 {
                return Ok(None);
            }
            self.row += 1;
            if have > LINE_LIMIT {
                let (file, limit) = (self.file.to_owned(), LINE_LIMIT);
                return Err(Error::LongLine { file, row: self.row, limit });
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(Some((self.row, self.line.trim_ascii())));
            }
        }
    }
}
