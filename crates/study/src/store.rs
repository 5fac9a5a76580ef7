//! A run directory: artifacts named by the hash of what they are, written whole or not at all.
use crate::Error;
use std::fs::{self, File, TryLockError};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Version of the artifact format; part of every task's id.
pub const FORMAT: u32 = 1;
const MARK: &str = "dosimeter-artifact";

/// BLAKE3 of a task's canonical specification, hex.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct TaskId(String);
impl TaskId {
    /// The id of the task that `specification` describes completely.
    ///
    /// # Errors
    /// [`Error::Encode`] if it cannot be written as JSON.
    pub fn of(specification: &impl serde::Serialize) -> Result<Self, Error> {
        let canonical = serde_json::to_vec(specification).map_err(Error::Encode)?;
        let mut hasher = blake3::Hasher::new_derive_key("dosimeter 2026 task id");
        hasher.update(&FORMAT.to_le_bytes()).update(&canonical);
        Ok(Self(hasher.finalize().to_hex().to_string()))
    }
    /// The whole id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// Enough of it for people.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.0[..12]
    }
}

/// What a look into the store found.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// The artifact, its digest verified.
    Whole(Vec<u8>),
    /// Nothing: the task is still to be done.
    Nothing,
    /// A file that is not what was written, and why: to be computed again.
    Corrupt(String),
}

/// A run directory held by this process alone.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    // Held for its lock, which the system drops with the process, however it ends.
    _lock: File,
}
impl Store {
    /// Opens or creates a run directory and locks it.
    ///
    /// # Errors
    /// [`Error::Locked`] if another run holds it, [`Error::NotARun`] if the directory holds something else,
    /// [`Error::Disk`] if it cannot be read or written.
    pub fn open(root: &Path) -> Result<Self, Error> {
        let disk = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Disk { path, source }
        };
        let lock_path = root.join("lock");
        // The lock is an empty file, which copying or tidying may lose.
        let of_a_run = root.join("run.json").is_file() && root.join("tasks").is_dir();
        if root.is_dir() && !lock_path.exists() && !of_a_run {
            let mut entries = fs::read_dir(root).map_err(disk(root))?;
            if entries.next().is_some() {
                return Err(Error::NotARun { path: root.to_owned() });
            }
        }
        fs::create_dir_all(root).map_err(disk(root))?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(disk(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Locked { path: root.to_owned() });
            }
            Err(TryLockError::Error(source)) => {
                return Err(Error::Disk { path: lock_path, source });
            }
        }
        let store = Self { root: root.to_owned(), _lock: lock };
        for folder in [store.root.join("tasks"), store.temporary()] {
            fs::create_dir_all(&folder).map_err(disk(&folder))?;
        }
        // Leftovers of a killed run: nothing refers to them, and nobody else holds the lock.
        for entry in fs::read_dir(store.temporary()).map_err(disk(root))?.flatten() {
            fs::remove_file(entry.path()).map_err(disk(&entry.path()))?;
        }
        Ok(store)
    }
    /// The directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }
    fn temporary(&self) -> PathBuf {
        self.root.join("unfinished")
    }
    /// Where the artifact of a task lies.
    #[must_use]
    pub fn path(root: &Path, id: &TaskId) -> PathBuf {
        root.join("tasks").join(&id.0[..2]).join(&id.0)
    }
    /// Reads and verifies an artifact.
    ///
    /// # Errors
    /// [`Error::Disk`] if the file is there but cannot be read.
    pub fn read(&self, id: &TaskId) -> Result<Found, Error> {
        Self::read_in(&self.root, id)
    }
    /// As [`Store::read`], without holding the directory: for commands that only look.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub fn read_in(root: &Path, id: &TaskId) -> Result<Found, Error> {
        let path = Self::path(root, id);
        match fs::read(&path) {
            Ok(bytes) => Ok(unwrap_artifact(&bytes, id).map_or_else(
                |why| Found::Corrupt(why.to_owned()),
                |payload| Found::Whole(payload.to_vec()),
            )),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(Found::Nothing),
            Err(source) => Err(Error::Disk { path, source }),
        }
    }
    /// The digest in an artifact's header.
    ///
    /// # Errors
    /// [`Error::Disk`] if it cannot be read, [`Error::ArtifactShape`] if it has no header.
    pub fn digest(&self, id: &TaskId) -> Result<String, Error> {
        let path = Self::path(&self.root, id);
        let disk = |source| Error::Disk { path: path.clone(), source };
        let mut header = String::new();
        BufReader::new(File::open(&path).map_err(disk)?).read_line(&mut header).map_err(disk)?;
        let digest = header.trim_end().split(' ').nth(2).ok_or(Error::ArtifactShape)?;
        Ok(digest.to_owned())
    }
    /// Whether an artifact file is there (not verified).
    #[must_use]
    pub fn has(root: &Path, id: &TaskId) -> bool {
        Self::path(root, id).is_file()
    }
    /// Writes an artifact: temporary file, sync, rename, so that it is whole or absent.
    ///
    /// # Errors
    /// [`Error::Disk`], for example when the disk is full; the temporary file is removed.
    pub fn write(&self, id: &TaskId, payload: &[u8]) -> Result<(), Error> {
        let header = format!("{MARK} {FORMAT} {} {}\n", blake3::hash(payload).to_hex(), id.0);
        self.write_whole(&Self::path(&self.root, id), &id.0, &[header.as_bytes(), payload])
    }
    /// Writes a file of the run that people read (`report.json`), whole or not at all.
    ///
    /// # Errors
    /// As [`Store::write`].
    pub fn publish(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.write_whole(&self.root.join(name), &name.replace('/', "-"), &[bytes])
    }
    fn write_whole(&self, path: &Path, temporary: &str, parts: &[&[u8]]) -> Result<(), Error> {
        let disk = |source| Error::Disk { path: path.to_owned(), source };
        let temporary = self.temporary().join(temporary);
        let folder = path.parent().unwrap_or(&self.root);
        let attempt = || {
            fs::create_dir_all(folder)?;
            let mut file = File::create(&temporary)?;
            for part in parts {
                file.write_all(part)?;
            }
            file.sync_all()?;
            fs::rename(&temporary, path)?;
            // The rename itself must survive a power cut too.
            File::open(folder)?.sync_all()
        };
        attempt().map_err(|e| {
            // Best effort: the cause is reported, and `open` removes leftovers.
            let _ = fs::remove_file(&temporary);
            disk(e)
        })
    }
}

fn unwrap_artifact<'a>(bytes: &'a [u8], id: &TaskId) -> Result<&'a [u8], &'static str> {
    let end = bytes.iter().position(|b| *b == b'\n').ok_or("no header line")?;
    let header = std::str::from_utf8(&bytes[..end]).map_err(|_| "header is not text")?;
    let mut words = header.split(' ');
    if words.next() != Some(MARK) || words.next() != Some(&FORMAT.to_string()) {
        return Err("not an artifact of this format");
    }
    let payload = &bytes[end + 1..];
    if words.next() != Some(blake3::hash(payload).to_hex().as_str()) {
        return Err("content does not match its digest");
    }
    // A whole artifact under another task's name: copied or renamed by hand.
    if words.next() != Some(id.as_str()) || words.next().is_some() {
        return Err("content is of another task");
    }
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u32) -> TaskId {
        TaskId::of(&n).unwrap()
    }

    #[test]
    fn what_was_written_is_read_and_what_was_damaged_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("run");
        let store = Store::open(&root).unwrap();
        assert_eq!(store.read(&id(1)).unwrap(), Found::Nothing);
        store.write(&id(1), b"abc\n\0def").unwrap();
        assert_eq!(store.read(&id(1)).unwrap(), Found::Whole(b"abc\n\0def".to_vec()));
        let path = Store::path(&root, &id(1));
        let whole = fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            assert!(matches!(store.read(&id(1)).unwrap(), Found::Corrupt(_)), "cut at {cut}");
            let mut flipped = whole.clone();
            flipped[cut] ^= 1;
            fs::write(&path, &flipped).unwrap();
            assert!(matches!(store.read(&id(1)).unwrap(), Found::Corrupt(_)), "flipped {cut}");
        }
    }

    #[test]
    fn an_artifact_under_the_name_of_another_task_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("run");
        let store = Store::open(&root).unwrap();
        store.write(&id(1), b"one").unwrap();
        store.write(&id(2), b"two").unwrap();
        fs::copy(Store::path(&root, &id(1)), Store::path(&root, &id(2))).unwrap();
        assert!(matches!(store.read(&id(2)).unwrap(), Found::Corrupt(_)));
        assert_eq!(store.read(&id(1)).unwrap(), Found::Whole(b"one".to_vec()));
    }

    #[test]
    fn two_runs_cannot_hold_one_directory_and_the_lock_ends_with_its_holder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("run");
        let first = Store::open(&root).unwrap();
        assert!(matches!(Store::open(&root), Err(Error::Locked { .. })));
        drop(first);
        Store::open(&root).unwrap();
    }

    #[test]
    fn a_folder_with_something_else_in_it_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.tex"), "x").unwrap();
        assert!(matches!(Store::open(folder.path()), Err(Error::NotARun { .. })));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_run_whose_lock_file_was_deleted_is_still_a_run() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("run");
        let store = Store::open(&root).unwrap();
        store.publish("run.json", b"{}").unwrap();
        store.write(&id(1), b"abc").unwrap();
        drop(store);
        fs::remove_file(root.join("lock")).unwrap();
        let store = Store::open(&root).unwrap();
        assert_eq!(store.read(&id(1)).unwrap(), Found::Whole(b"abc".to_vec()));
    }

    #[test]
    fn leftovers_of_a_killed_writer_are_swept_away() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("run");
        drop(Store::open(&root).unwrap());
        fs::write(root.join("unfinished/half"), "x").unwrap();
        let store = Store::open(&root).unwrap();
        assert_eq!(fs::read_dir(store.temporary()).unwrap().count(), 0);
    }

    /// A folder where the artifact should go stands for a disk that refuses: the last step fails.
    #[test]
    fn a_write_that_fails_says_where_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("run");
        let store = Store::open(&root).unwrap();
        let path = Store::path(&root, &id(1));
        fs::create_dir_all(path.join("in the way")).unwrap();
        let error = store.write(&id(1), b"abc").unwrap_err();
        assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
        assert_eq!(fs::read_dir(store.temporary()).unwrap().count(), 0);
    }
}
