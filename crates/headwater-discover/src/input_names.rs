//! What messages call the inputs of a run that replaces names: by what they are for, because files may be named after
//! accounts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Paths of inputs, and what they are called instead.
#[derive(Debug, Clone, Default)]
pub struct InputNames {
    /// The longest path first: it may contain a shorter one.
    names: Vec<(String, String)>,
}

impl InputNames {
    pub(crate) fn new(inputs: impl IntoIterator<Item = (PathBuf, String)>) -> Self {
        let mut names: Vec<(String, String)> =
            inputs.into_iter().map(|(path, name)| (path.display().to_string(), name)).collect();
        names.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        names.dedup_by(|(a, _), (b, _)| a == b);
        InputNames { names }
    }

    /// The name of an input, where this is one.
    pub(crate) fn of_path(&self, path: &Path) -> Option<Arc<Path>> {
        let shown = path.display().to_string();
        self.names.iter().find(|(path, _)| *path == shown).map(|(_, name)| Arc::from(Path::new(name)))
    }

    /// A text with the paths in it replaced.
    ///
    /// A path is replaced where it stands alone: a file called `a` is not every letter of that kind.
    pub fn replace_in(&self, text: &str) -> String {
        let part = |character: char| character.is_alphanumeric() || "_-./\\".contains(character);
        let mut out = String::new();
        let mut rest = text;
        let mut before: Option<char> = None;
        while let Some(first) = rest.chars().next() {
            let found = self.names.iter().find(|(path, _)| {
                let after = rest.strip_prefix(path.as_str());
                !path.is_empty() && !before.is_some_and(part) && after.is_some_and(|after| !after.starts_with(part))
            });
            let length = match found {
                Some((path, name)) => {
                    out.push_str(name);
                    path.len()
                }
                None => {
                    out.push(first);
                    first.len_utf8()
                }
            };
            before = rest[..length].chars().next_back();
            rest = &rest[length..];
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_replaced_where_they_stand_alone() {
        let inputs = [("a", "posts file 1"), ("dump/ann.csv", "posts file 2"), ("ann.csv", "graph")];
        let names = InputNames::new(inputs.map(|(path, name)| (path.into(), name.to_owned())));
        assert_eq!(names.replace_in("dump/ann.csv, line 3: a bad cell"), "posts file 2, line 3: posts file 1 bad cell");
        assert_eq!(names.replace_in("a: cannot read; see ann.csv"), "posts file 1: cannot read; see graph");
        assert_eq!(names.replace_in("old/ann.csv and ann.csv.gz"), "old/ann.csv and ann.csv.gz");
        assert_eq!(names.of_path(Path::new("ann.csv")).as_deref(), Some(Path::new("graph")));
    }
}
