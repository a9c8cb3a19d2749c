//! One run at a time in a folder: a lock that ends with the process that holds it, however that ends.

use crate::Error;
use headwater_files::create_folder;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// The locked file, in the subfolder of a run that is under way.
pub(crate) const LOCK_FILE: &str = "lock";

/// How often a lock is tried for while other runs make and remove the folder.
const TRIES: usize = 100;

/// The lock of a folder. It is given back, and its file removed, when this is dropped.
#[derive(Debug)]
pub(crate) struct FolderLock {
    /// Locked while it is open.
    _file: File,
    path: PathBuf,
}

impl FolderLock {
    /// Locks a folder through a file in its subfolder for work, which is made where there is none.
    ///
    /// # Errors
    /// [`Error::FolderInUse`] where another run holds it.
    pub(crate) fn acquire(out: &Path, work: &Path) -> Result<Self, Error> {
        let path = work.join(LOCK_FILE);
        let failed = |source| Error::Write { path: path.clone(), source };
        for _ in 0..TRIES {
            create_folder(work)?;
            let mut options = File::options();
            let mut file = match options.create(true).truncate(false).read(true).write(true).open(&path) {
                // A run that just finished removed the folder.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                opened => opened.map_err(failed)?,
            };
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => {
                    let mut holder = String::new();
                    // Who it is helps, and is not needed.
                    let _ = file.read_to_string(&mut holder);
                    return Err(Error::FolderInUse { folder: out.to_owned(), process: holder.trim().parse().ok() });
                }
                // A file system without locks; elsewhere two runs do not mix.
                Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
                locked => locked.map_err(|error| failed(error.into()))?,
            }
            if !same_file(&file, &path) {
                continue;
            }
            let named = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
            named.map_err(failed)?;
            return Ok(FolderLock { _file: file, path });
        }
        Err(Error::FolderInUse { folder: out.to_owned(), process: None })
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Removed while it is locked: whoever waits for it sees that it is another file, and makes a new one.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Whether an open file is still the one of this name.
#[cfg(unix)]
fn same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |found: std::fs::Metadata| (found.dev(), found.ino());
    file.metadata().ok().map(identity) == std::fs::metadata(path).ok().map(identity)
}

/// Whether an open file is still the one of this name. Open files cannot be removed here.
#[cfg(not(unix))]
fn same_file(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_run_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let (out, work) = (folder.path(), folder.path().join(".headwater"));
        let first = FolderLock::acquire(out, &work).unwrap();
        let told = FolderLock::acquire(out, &work).unwrap_err().to_string();
        assert!(told.contains(&format!("process {}", std::process::id())), "{told}");
        drop(first);
        assert!(!work.join(LOCK_FILE).exists());
        // What a crash leaves behind is no lock.
        std::fs::write(work.join(LOCK_FILE), "1\n").unwrap();
        FolderLock::acquire(out, &work).unwrap();
    }
}
