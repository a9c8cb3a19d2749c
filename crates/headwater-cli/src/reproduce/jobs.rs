//! Work cut into independent jobs: parallel, with progress, and kept as they finish, so that an interrupted run goes on
//! where it stopped.

use crate::error::CliError;
use crate::output::{create, write_json};
use crate::terminal::Terminal;
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Where the finished jobs of one experiment are kept.
pub(crate) struct Jobs<'a> {
    pub(crate) terminal: &'a Terminal,
    /// Shown with the progress.
    pub(crate) name: &'static str,
    /// One file a job.
    pub(crate) folder: PathBuf,
    /// What a job's result depends on besides its own key; results of other settings are not taken.
    pub(crate) settings: Value,
}

#[derive(Serialize, Deserialize)]
struct Kept<T> {
    settings: Value,
    result: T,
}

impl Jobs<'_> {
    /// Does all jobs, in any order, on all threads; results come in the order of the keys.
    pub(crate) fn all<T>(
        &self,
        keys: &[String],
        job: impl Fn(usize) -> Result<T, CliError> + Sync,
    ) -> Result<Vec<T>, CliError>
    where
        T: Serialize + DeserializeOwned + Send,
    {
        create(&self.folder)?;
        let progress = Mutex::new((self.terminal.bar(self.name, keys.len() as u64), 0));
        let one = |(index, key): (usize, &String)| {
            let path = self.folder.join(format!("{key}.json"));
            let result = match self.kept(&path) {
                Some(result) => result,
                None => {
                    let result = job(index)?;
                    write_json(&path, &Kept { settings: self.settings.clone(), result: &result })?;
                    result
                }
            };
            let mut progress = progress.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            progress.1 += 1;
            let done = progress.1;
            progress.0.at(done);
            Ok(result)
        };
        keys.par_iter().enumerate().map(one).collect()
    }

    fn kept<T: DeserializeOwned>(&self, path: &Path) -> Option<T> {
        let text = std::fs::read_to_string(path).ok()?;
        let kept: Kept<T> = serde_json::from_str(&text).ok()?;
        (kept.settings == self.settings).then_some(kept.result)
    }
}
