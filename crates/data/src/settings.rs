//! Files that people write: bounds, studies, models.
use crate::Error;
use std::io::Read;
use std::path::Path;

/// Most bytes of such a file: several times what the largest of them has.
pub const LIMIT: u64 = 64 << 20;

/// The text of a settings file of at most [`LIMIT`] bytes, so that a table or a device named by mistake does not fill the memory.
///
/// # Errors
/// [`Error::Read`], also for text that is not UTF-8; [`Error::LongSettings`].
pub fn text(file: &Path) -> Result<String, Error> {
    let opened = crate::file::open(file)?;
    let mut bytes = Vec::new();
    opened.take(LIMIT + 1).read_to_end(&mut bytes).map_err(Error::read(file))?;
    if bytes.len() as u64 > LIMIT {
        return Err(Error::LongSettings { file: file.to_owned(), limit: LIMIT });
    }
    let invalid = |e| std::io::Error::new(std::io::ErrorKind::InvalidData, e);
    String::from_utf8(bytes).map_err(|e| Error::read(file)(invalid(e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("settings");
        let mut content = vec![b'a'; LIMIT as usize];
        std::fs::write(&file, &content).unwrap();
        assert_eq!(text(&file).unwrap().len() as u64, LIMIT);
        content.push(b'a');
        std::fs::write(&file, &content).unwrap();
        let said = text(&file).unwrap_err().to_string();
        assert!(
            said.ends_with("settings: longer than 67108864 bytes, needs a settings file"),
            "{said}"
        );
        std::fs::write(&file, b"\xff").unwrap();
        assert!(matches!(text(&file), Err(Error::Read { .. })));
    }
}
