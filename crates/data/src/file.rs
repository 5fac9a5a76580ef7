//! Opens files of data, settings and models: only such as hold still.
use crate::Error;
use std::fs::{File, FileType};
use std::path::Path;

/// Opens a file for reading. Whatever else a path may name is refused before it is opened: a named pipe would wait for somebody to
/// write, a device may never end, and none of them can be read twice.
///
/// # Errors
/// [`Error::NotAFile`] with what it is; [`Error::Read`].
pub fn open(file: &Path) -> Result<File, Error> {
    match other_than_file(file).map_err(Error::read(file))? {
        Some(have) => Err(Error::NotAFile { file: file.to_owned(), have }),
        None => File::open(file).map_err(Error::read(file)),
    }
}

/// What a path names if it is no file, as people call it. Links are followed.
///
/// # Errors
/// What the system says, for example that there is nothing.
pub fn other_than_file(file: &Path) -> std::io::Result<Option<&'static str>> {
    let found = std::fs::metadata(file)?.file_type();
    Ok(if found.is_file() {
        None
    } else if found.is_dir() {
        Some("a folder")
    } else {
        Some(special(found))
    })
}

#[cfg(unix)]
fn special(found: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    if found.is_fifo() {
        "a pipe"
    } else if found.is_socket() {
        "a socket"
    } else if found.is_char_device() || found.is_block_device() {
        "a device"
    } else {
        "something else"
    }
}
#[cfg(not(unix))]
fn special(_: FileType) -> &'static str {
    "something else"
}
