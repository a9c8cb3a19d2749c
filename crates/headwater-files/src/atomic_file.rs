//! Whole files or none: writing goes to a hidden neighbour that takes the final name only when it is complete.

use crate::Error;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use tempfile::NamedTempFile;

/// Drafts that exist right now, so that an interrupt can remove them.
static OPEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn open() -> MutexGuard<'static, Vec<PathBuf>> {
    OPEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Removes every unfinished file. For the moment before a process ends on an interrupt: no draft can be committed
/// afterwards.
pub fn discard_unfinished() {
    let drafts = open();
    for path in drafts.iter() {
        // Whether it was still there does not matter.
        let _ = std::fs::remove_file(path);
    }
    std::mem::forget(drafts);
}

/// A file being written. Dropped without [`AtomicFile::commit`], it leaves nothing behind.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// A hidden neighbour.
    Hidden(BufWriter<NamedTempFile>),
    /// A pipe or device: nothing to rename.
    Direct(BufWriter<File>),
}

impl AtomicFile {
    /// Starts a file that will replace `path`.
    pub fn create(path: &Path) -> Result<Self, Error> {
        if std::fs::metadata(path).is_ok_and(|found| found.is_dir()) {
            return Err(Error::file(path, "is a folder; a file name is needed"));
        }
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            let file = File::options().write(true).open(path).map_err(Error::io(path, "cannot write"))?;
            return Ok(AtomicFile { path: path.to_owned(), target: Target::Direct(BufWriter::new(file)) });
        }
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        match std::fs::metadata(folder) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(Error::file(path, format!("{} is a file, not a folder", folder.display()))),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Error::NoFolder { path: path.to_owned(), folder: folder.to_owned() });
            }
            // Whatever it is, the next attempt says so.
            Err(_) => {}
        }
        let name = path.file_name().ok_or_else(|| Error::file(path, "is not a file name"))?;
        let prefix = format!(".{}.", name.to_string_lossy());
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".tmp");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut drafts = open();
        let file =
            builder.tempfile_in(folder).map_err(plain).map_err(Error::io(path, "cannot write into its folder"))?;
        drafts.push(file.path().to_owned());
        drop(drafts);
        Ok(AtomicFile { path: path.to_owned(), target: Target::Hidden(BufWriter::with_capacity(1 << 20, file)) })
    }

    /// Whether a file could be written there, without leaving one.
    pub fn check(path: &Path) -> Result<(), Error> {
        AtomicFile::create(path).map(drop)
    }

    /// The final name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name.
    pub fn commit(mut self) -> Result<(), Error> {
        self.flush().map_err(Error::io(&self.path, "cannot write"))?;
        if let Target::Hidden(writer) = &mut self.target {
            let mut drafts = open();
            let file = writer.get_mut();
            let hidden = file.path().to_owned();
            std::fs::rename(&hidden, &self.path).map_err(Error::io(&self.path, "cannot replace"))?;
            drafts.retain(|draft| *draft != hidden);
        }
        Ok(())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Target::Hidden(writer) = &self.target {
            let hidden = writer.get_ref().path();
            open().retain(|draft| draft != hidden);
        }
    }
}

/// What the operating system said, without the name of the hidden neighbour, which means nothing to anybody.
fn plain(error: std::io::Error) -> std::io::Error {
    if error.get_ref().is_none() {
        return error;
    }
    // The crate that makes such files wraps the error in a text and gives no way to it.
    let told = error.to_string();
    std::io::Error::new(error.kind(), told.split(" at path ").next().unwrap_or_default())
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut self.target {
            Target::Hidden(writer) => writer.write(bytes).map_err(plain),
            Target::Direct(writer) => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match &mut self.target {
            Target::Hidden(writer) => writer.flush().map_err(plain),
            Target::Direct(writer) => writer.flush(),
        }
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        match &mut self.target {
            Target::Hidden(writer) => writer.seek(to).map_err(plain),
            Target::Direct(writer) => writer.seek(to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        let mut draft = AtomicFile::create(&path).unwrap();
        draft.write_all(b"half").unwrap();
        drop(draft);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let mut draft = AtomicFile::create(&path).unwrap();
        draft.write_all(b"whole").unwrap();
        assert!(!path.exists());
        draft.commit().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn impossible_places_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let message = |path: &Path| AtomicFile::create(path).unwrap_err().to_string();
        assert!(message(folder.path()).contains("is a folder"));
        let missing = message(&folder.path().join("no/such/x.json"));
        assert!(missing.contains("x.json: there is no folder ") && missing.ends_with("no/such"), "{missing}");
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert!(message(&folder.path().join("file/x.json")).ends_with("file is a file, not a folder"));
    }

    #[test]
    fn the_hidden_neighbour_is_not_named() {
        // Whoever may do anything cannot be refused by a folder: a name too long for a hidden neighbour is.
        let folder = tempfile::tempdir().unwrap();
        let name = "x".repeat(250);
        let told = AtomicFile::create(&folder.path().join(&name)).unwrap_err().to_string();
        assert!(told.contains("cannot write into its folder: ") && told.matches(&name).count() == 1, "{told}");
    }
}
