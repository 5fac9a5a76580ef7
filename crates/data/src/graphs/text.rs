//! Numbers in lines of text, and texts within a zip.
use crate::datasets::source::{self, Lines};
use crate::{Error, FieldProblem};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Most bytes of a text, measured while it is read: 8 GiB. COLLAB has 84 MB.
const TEXT_LIMIT: u64 = 8 << 30;

/// A whole number, with a sign or without.
pub(super) fn whole(field: &[u8]) -> Result<i64, FieldProblem> {
    if field.is_empty() {
        return Err(FieldProblem::Empty);
    }
    let (digits, sign) = field.strip_prefix(b"-").map_or((field, 1), |digits| (digits, -1));
    if digits.is_empty() || digits.len() > 18 {
        return Err(FieldProblem::NotAWholeNumber);
    }
    digits.iter().try_fold(0_i64, |number, digit| match digit {
        b'0'..=b'9' => Ok(number * 10 + i64::from(digit - b'0') * sign),
        _ => Err(FieldProblem::NotAWholeNumber),
    })
}
/// A finite number.
pub(super) fn real(field: &[u8]) -> Result<f32, FieldProblem> {
    let number = std::str::from_utf8(field).ok().and_then(|text| text.parse::<f32>().ok());
    match number {
        Some(number) if number.is_finite() => Ok(number),
        Some(_) => Err(FieldProblem::NotFinite),
        None => Err(FieldProblem::NotANumber),
    }
}
/// What is wrong with a field of a row.
pub(super) fn wrong(file: &Path, row: u64, field: &str, problem: FieldProblem) -> Error {
    Error::Field { file: file.to_owned(), row, field: field.to_owned(), problem }
}

/// A reader that fails where a text goes on after the limit.
struct Bounded<R> {
    inner: R,
    left: u64,
}
impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let have = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(have as u64).ok_or_else(|| {
            std::io::Error::other(format!("holds more than {TEXT_LIMIT} bytes of text"))
        })?;
        Ok(have)
    }
}
const fn bounded<R>(inner: R) -> Bounded<R> {
    Bounded { inner, left: TEXT_LIMIT }
}

/// Reads the lines of a text, plain or gzipped.
pub(super) fn lines<T>(
    file: &Path,
    read: impl FnOnce(&mut Lines<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    source::with_text(file, None, |text| {
        let mut text = BufReader::with_capacity(1 << 18, bounded(text));
        read(&mut Lines::new(file, &mut text))
    })
}

/// An open zip.
pub(super) struct Zip<'a> {
    file: &'a Path,
    archive: zip::ZipArchive<BufReader<File>>,
}
impl<'a> Zip<'a> {
    pub(super) fn open(file: &'a Path) -> Result<Self, Error> {
        let opened = crate::file::open(file)?;
        let archive = zip::ZipArchive::new(BufReader::new(opened)).map_err(damaged(file))?;
        Ok(Self { file, archive })
    }
    /// Names of the files that belong to the data, none of them the system's.
    pub(super) fn names(&self) -> Vec<String> {
        let names = self.archive.file_names().flatten().map(|name| name.into_owned());
        names.filter(|n| !n.split('/').any(|p| p == "__MACOSX" || p.starts_with('.'))).collect()
    }
    /// Reads the lines of a file of the zip. `shown` is the name that errors give it.
    pub(super) fn lines<T>(
        &mut self,
        name: &str,
        shown: &Path,
        read: impl FnOnce(&mut Lines<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let entry = self.archive.by_name(name).map_err(damaged(self.file))?;
        let mut text = BufReader::with_capacity(1 << 18, bounded(entry));
        let text: &mut dyn BufRead = &mut text;
        read(&mut Lines::new(shown, text))
    }
}
fn damaged(file: &Path) -> impl FnOnce(zip::result::ZipError) -> Error + '_ {
    move |e| Error::Damaged { file: file.to_owned(), format: "zip", reason: e.to_string() }
}
