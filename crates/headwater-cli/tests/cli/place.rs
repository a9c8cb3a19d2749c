//! A folder in which the program is run.

use assert_cmd::Command;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;

/// A temporary folder, and the program run in it.
pub(crate) struct Place {
    folder: TempDir,
}

/// Arguments of a command: one text split at spaces, or words as they are.
pub(crate) trait Words {
    fn words(&self) -> Vec<String>;
}

impl Words for str {
    fn words(&self) -> Vec<String> {
        self.split_whitespace().map(str::to_owned).collect()
    }
}

impl Words for String {
    fn words(&self) -> Vec<String> {
        self.as_str().words()
    }
}

impl<T: AsRef<str>> Words for [T] {
    fn words(&self) -> Vec<String> {
        self.iter().map(|word| word.as_ref().to_owned()).collect()
    }
}

impl<T: AsRef<str>, const N: usize> Words for [T; N] {
    fn words(&self) -> Vec<String> {
        self.as_slice().words()
    }
}

impl<T: AsRef<str>> Words for Vec<T> {
    fn words(&self) -> Vec<String> {
        self.as_slice().words()
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// A key that only its owner can read.
    pub(crate) fn write_key(&self, name: &str, key: impl AsRef<[u8]>) {
        self.write(name, key);
        #[cfg(unix)]
        self.set_mode(name, 0o600);
    }

    #[cfg(unix)]
    pub(crate) fn set_mode(&self, name: &str, mode: u32) {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(self.path(name), permissions).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Everything in the folder and below, hidden files too.
    pub(crate) fn files(&self) -> Vec<String> {
        files(self.folder.path())
    }

    pub(crate) fn command(&self, arguments: &(impl Words + ?Sized)) -> Command {
        let mut command = Command::cargo_bin("headwater").unwrap();
        command.current_dir(self.folder.path()).args(arguments.words());
        // Tables are as wide as this says.
        command.env_remove("COLUMNS");
        command
    }

    pub(crate) fn run(&self, arguments: &(impl Words + ?Sized)) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs what must succeed; returns standard output and standard error.
    pub(crate) fn both(&self, arguments: &(impl Words + ?Sized)) -> (String, String) {
        let output = self.run(arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{:?}\n{errors}", arguments.words());
        (String::from_utf8(output.stdout).unwrap(), errors)
    }

    /// Runs what must succeed; returns standard output.
    pub(crate) fn done(&self, arguments: &(impl Words + ?Sized)) -> String {
        self.both(arguments).0
    }

    /// Runs what must succeed and print JSON.
    pub(crate) fn json(&self, arguments: &(impl Words + ?Sized)) -> Value {
        serde_json::from_str(&self.done(arguments)).unwrap()
    }

    /// A file of JSON.
    pub(crate) fn read_json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    /// Runs what must fail with this code, print nothing as a result and leave no new file; returns standard error.
    pub(crate) fn refused(&self, arguments: &(impl Words + ?Sized), code: i32) -> String {
        let before = self.files();
        let output = self.run(arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{:?}\n{errors}", arguments.words());
        assert_eq!(self.files(), before, "{:?} left something behind", arguments.words());
        assert!(output.stdout.is_empty() && !errors.contains("panicked"), "{errors}");
        errors
    }
}

/// All files and folders below a folder, hidden ones too.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            names.push(path.strip_prefix(folder).unwrap().display().to_string());
            if path.is_dir() {
                waiting.push(path);
            }
        }
    }
    names.sort();
    names
}

/// The data that a page carries.
pub(crate) fn page_data(html: &str) -> Value {
    let start = html.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let end = start + html[start..].find("</script>").unwrap();
    serde_json::from_str(&html[start..end]).unwrap()
}
