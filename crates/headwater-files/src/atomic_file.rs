//! Whole files or none: writing goes to a hidden neighbour that takes the final name only when it is complete.

use crate::Error;
use std::fs::{File, TryLockError};
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
///
/// The file and its folder are synced to disk before the new name counts. An existing file keeps its permissions, and a
/// symbolic link its place: what it points to is replaced.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// A hidden neighbour of the place that the file will take.
    Hidden(BufWriter<NamedTempFile>, PathBuf),
    /// A pipe or device: nothing to rename.
    Direct(BufWriter<File>),
    /// A pipe or device that gets everything at the end, because the format goes back to what was written.
    Spooled(BufWriter<File>, File),
}

/// Bytes of a name that are part of the name of its hidden neighbour, so that long names leave space for the rest.
const NAME_PART: usize = 200;

/// What follows the name in the name of a hidden neighbour: a dot, six random characters and this.
const SUFFIX: &str = ".tmp";

/// Random characters in the name of a hidden neighbour.
const RANDOM: usize = 6;

/// Links that are followed before we take them for a circle.
const MOST_LINKS: usize = 40;

/// How often a hidden neighbour is made before we give up: another process may take a new one for an orphan.
const TRIES: usize = 8;

impl AtomicFile {
    /// Starts a file that will replace `path`.
    pub fn create(path: &Path) -> Result<Self, Error> {
        AtomicFile::create_with(path, |file| Ok(Target::Direct(BufWriter::new(file))))
    }

    /// The same for a format whose writer seeks: a pipe gets everything at the end.
    pub fn create_seekable(path: &Path) -> Result<Self, Error> {
        AtomicFile::create_with(path, |pipe| Ok(Target::Spooled(BufWriter::new(tempfile::tempfile()?), pipe)))
    }

    fn create_with(path: &Path, pipe: impl Fn(File) -> std::io::Result<Target>) -> Result<Self, Error> {
        let found = std::fs::metadata(path);
        if found.as_ref().is_ok_and(std::fs::Metadata::is_dir) {
            return Err(Error::file(path, "is a folder; a file name is needed"));
        }
        // By the name given: what links such as /dev/stdout lead to may have no name.
        if found.as_ref().is_ok_and(|found| !found.is_file()) {
            let file = File::options().write(true).open(path).map_err(Error::io(path, "cannot write"))?;
            let target = pipe(file).map_err(Error::io(path, "cannot write"))?;
            return Ok(AtomicFile { path: path.to_owned(), target });
        }
        let place = followed(path)?;
        let folder = folder_of(&place);
        match std::fs::metadata(folder) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(Error::file(path, format!("{} is a file, not a folder", folder.display()))),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Error::NoFolder { path: path.to_owned(), folder: folder.to_owned() });
            }
            // Whatever it is, the next attempt says so.
            Err(_) => {}
        }
        let name = place.file_name().ok_or_else(|| Error::file(path, "is not a file name"))?.to_string_lossy();
        let prefix = format!(".{}.", &name[..name.floor_char_boundary(NAME_PART)]);
        remove_orphans(folder, &prefix);
        let refused = |error| Error::io(path, "cannot write into its folder")(plain(error));
        let file = hidden_neighbour(folder, &prefix).map_err(refused)?;
        keep_permissions(path, file.path())?;
        let target = Target::Hidden(BufWriter::with_capacity(1 << 20, file), place);
        Ok(AtomicFile { path: path.to_owned(), target })
    }

    /// Whether a file could be written there, without leaving one. A pipe or device is not opened: whoever reads it would
    /// see its end.
    pub fn check(path: &Path) -> Result<(), Error> {
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            return Ok(());
        }
        AtomicFile::create(path).map(drop)
    }

    /// The final name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name.
    pub fn commit(mut self) -> Result<(), Error> {
        self.flush().map_err(Error::io(&self.path, "cannot write"))?;
        match &mut self.target {
            Target::Hidden(writer, place) => {
                let file = writer.get_mut();
                file.as_file().sync_all().map_err(Error::io(&self.path, "cannot write"))?;
                let mut drafts = open();
                let hidden = file.path().to_owned();
                std::fs::rename(&hidden, &place).map_err(Error::io(&self.path, "cannot replace"))?;
                drafts.retain(|draft| *draft != hidden);
                drop(drafts);
                sync_folder(folder_of(place))
            }
            Target::Direct(_) => Ok(()),
            Target::Spooled(writer, pipe) => {
                let spool = writer.get_mut();
                let copied = spool.rewind().and_then(|()| std::io::copy(spool, pipe));
                copied.map(drop).map_err(Error::io(&self.path, "cannot write"))
            }
        }
    }
}

/// Gives a complete file its place, where an existing file is replaced and keeps its permissions. Both are on one file system,
/// and the folder is not synced: see [`sync_folder`].
pub fn move_file(from: &Path, to: &Path) -> Result<(), Error> {
    keep_permissions(to, from)?;
    std::fs::rename(from, to).map_err(Error::io(to, "cannot replace"))
}

/// Gives a file the permissions of the one that it will replace, if there is one.
fn keep_permissions(replaced: &Path, file: &Path) -> Result<(), Error> {
    match std::fs::metadata(replaced) {
        Ok(found) if found.is_file() => std::fs::set_permissions(file, found.permissions())
            .map_err(Error::io(replaced, "cannot keep its permissions")),
        _ => Ok(()),
    }
}

/// Where a file is written in the end: links are followed, also those to a file that does not exist yet.
fn followed(path: &Path) -> Result<PathBuf, Error> {
    let mut place = path.to_owned();
    for _ in 0..MOST_LINKS {
        match std::fs::read_link(&place) {
            Ok(link) => place = folder_of(&place).join(link),
            Err(_) => return Ok(place),
        }
    }
    Err(Error::file(path, "is a symbolic link that leads to itself"))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Makes the names in a folder durable.
pub fn sync_folder(folder: &Path) -> Result<(), Error> {
    // Only Unix opens folders; elsewhere a rename is durable by itself.
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some file systems have nothing to sync in a folder.
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
        other => other.map_err(Error::io(folder, "cannot write")),
    }
}

/// A new hidden file, locked as long as it is open, so that it can be told from what a crash left behind.
fn hidden_neighbour(folder: &Path, prefix: &str) -> std::io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix).suffix(SUFFIX).rand_bytes(RANDOM);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut drafts = open();
    for _ in 0..TRIES {
        let file = builder.tempfile_in(folder)?;
        let taken = matches!(file.as_file().try_lock(), Err(TryLockError::WouldBlock));
        if !taken && file.path().exists() {
            drafts.push(file.path().to_owned());
            return Ok(file);
        }
    }
    Err(std::io::Error::other("other processes keep removing our temporary files"))
}

/// Removes hidden neighbours that a crash left behind. One that is being written is locked.
fn remove_orphans(folder: &Path, prefix: &str) {
    let length = prefix.len() + RANDOM + SUFFIX.len();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let ours = name
            .to_str()
            .is_some_and(|name| name.len() == length && name.starts_with(prefix) && name.ends_with(SUFFIX));
        if ours
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok())
        {
            // Whoever removed it first, it is gone.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Target::Hidden(writer, _) = &self.target {
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
            Target::Hidden(writer, _) => writer.write(bytes).map_err(plain),
            Target::Direct(writer) | Target::Spooled(writer, _) => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match &mut self.target {
            Target::Hidden(writer, _) => writer.flush().map_err(plain),
            Target::Direct(writer) | Target::Spooled(writer, _) => writer.flush(),
        }
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        match &mut self.target {
            Target::Hidden(writer, _) => writer.seek(to).map_err(plain),
            Target::Direct(writer) | Target::Spooled(writer, _) => writer.seek(to),
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
    fn names_as_long_as_the_system_allows_are_written() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["x".repeat(255), "ü".repeat(127)] {
            let path = folder.path().join(&name);
            let mut draft = AtomicFile::create(&path).unwrap();
            draft.write_all(b"whole").unwrap();
            draft.commit().unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        }
        let long = "x".repeat(256);
        let mut draft = AtomicFile::create(&folder.path().join(&long)).unwrap();
        draft.write_all(b"whole").unwrap();
        let told = draft.commit().unwrap_err().to_string();
        assert_eq!(told.matches(&long).count(), 1, "{told}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_a_crash_left_behind_is_removed_and_what_is_being_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        for orphan in [".a.json.abc123.tmp", ".a.json.mine.tmp", ".b.json.abc123.tmp"] {
            std::fs::write(folder.path().join(orphan), "half").unwrap();
        }
        let mut first = AtomicFile::create(&path).unwrap();
        let second = AtomicFile::create(&path).unwrap();
        first.write_all(b"first").unwrap();
        first.commit().unwrap();
        second.commit().unwrap();
        let mut names: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        // Other names are not ours to judge.
        assert_eq!(names, [".a.json.mine.tmp", ".b.json.abc123.tmp", "a.json"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_moved_file_keeps_the_permissions_of_the_one_it_replaces() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (new, place) = (folder.path().join("new.txt"), folder.path().join("place.txt"));
        let mode = || std::fs::metadata(&place).unwrap().permissions().mode() & 0o777;
        for (before, wanted) in [(None, 0o640), (Some(0o600), 0o600), (Some(0o444), 0o444)] {
            std::fs::write(&new, "new").unwrap();
            std::fs::set_permissions(&new, PermissionsExt::from_mode(0o640)).unwrap();
            if let Some(before) = before {
                std::fs::set_permissions(&place, PermissionsExt::from_mode(before)).unwrap();
            }
            move_file(&new, &place).unwrap();
            assert_eq!((mode(), new.exists()), (wanted, false));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_without_a_name_is_written_directly() {
        use std::io::Read;
        use std::os::fd::AsRawFd;
        for seekable in [false, true] {
            let (mut reader, writer) = std::io::pipe().unwrap();
            let path = PathBuf::from(format!("/proc/self/fd/{}", writer.as_raw_fd()));
            AtomicFile::check(&path).unwrap();
            let create = if seekable { AtomicFile::create_seekable } else { AtomicFile::create };
            let mut file = create(&path).unwrap();
            file.write_all(b"whole").unwrap();
            file.commit().unwrap();
            drop(writer);
            let mut read = String::new();
            reader.read_to_string(&mut read).unwrap();
            assert_eq!(read, "whole");
        }
    }

    #[cfg(unix)]
    #[test]
    fn permissions_and_links_are_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.txt"), folder.path().join("link.txt"));
        std::fs::write(&real, "old").unwrap();
        std::fs::set_permissions(&real, PermissionsExt::from_mode(0o600)).unwrap();
        symlink("real.txt", &link).unwrap();
        let write = |path: &Path, text: &[u8]| {
            let mut draft = AtomicFile::create(path).unwrap();
            draft.write_all(text).unwrap();
            draft.commit().unwrap();
        };
        write(&link, b"new");
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read(&real).unwrap(), b"new");
        assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
        // A link to nothing makes what it points to.
        let (ahead, target) = (folder.path().join("ahead.txt"), folder.path().join("sub/there.txt"));
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        symlink("sub/there.txt", &ahead).unwrap();
        write(&ahead, b"made");
        assert_eq!(std::fs::read(&target).unwrap(), b"made");
        symlink("circle", folder.path().join("circle")).unwrap();
        let told = AtomicFile::create(&folder.path().join("circle")).unwrap_err().to_string();
        assert!(told.ends_with("leads to itself"), "{told}");
    }
}
