//! Independent jobs: parallel, with progress, and saved as they finish, so that an interrupted run continues where it
//! stopped.

use crate::files::{create_folder, write_json};
use crate::{Error, ReplicationSettings};
use headwater::progress;
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The jobs of one experiment, and where finished ones are saved.
pub(crate) struct Jobs {
    /// Shown with the progress.
    pub(crate) name: &'static str,
    /// One file a job.
    pub(crate) folder: PathBuf,
    /// What a job's result depends on besides its own key; results of other settings are not used.
    pub(crate) settings: ReplicationSettings,
}

#[derive(Serialize, Deserialize)]
struct SavedJob<T> {
    settings: ReplicationSettings,
    result: T,
}

impl Jobs {
    /// Runs all jobs, in any order, on all threads; results come in the order of the keys.
    pub(crate) fn all<T>(
        &self,
        keys: &[String],
        job: impl Fn(usize) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error>
    where
        T: Serialize + DeserializeOwned + Send,
    {
        create_folder(&self.folder)?;
        let stage = progress::stage(self.name, keys.len() as u64);
        let one = |(index, key): (usize, &String)| {
            progress::check()?;
            let path = self.folder.join(format!("{key}.json"));
            let result = match self.saved(&path) {
                Some(result) => result,
                None => {
                    let result = job(index)?;
                    write_json(&path, &SavedJob { settings: self.settings.clone(), result: &result })?;
                    result
                }
            };
            stage.advance();
            Ok(result)
        };
        keys.par_iter().enumerate().map(one).collect()
    }

    fn saved<T: DeserializeOwned>(&self, path: &Path) -> Option<T> {
        let text = std::fs::read_to_string(path).ok()?;
        let saved: SavedJob<T> = serde_json::from_str(&text).ok()?;
        (saved.settings == self.settings).then_some(saved.result)
    }
}
