//! Where a run keeps its results: in memory, or in a folder that resumes.
//!
//! In a folder every stage writes its files and a record with their hashes into `.headwater`; a record is written after the
//! files it names. At the end the files move up, `run.json` comes last, and `.headwater` is removed. A stage whose
//! dependencies have not changed is loaded instead of run, from an interrupted run as well as from a finished one.
//!
//! A folder is locked while a run writes to it, and one that holds the results of other inputs is not overwritten unless
//! [`Store::with_force`] says so.

use crate::error::InputChange;
use crate::inputs::TEST_GROUPS;
use crate::lock::{FolderLock, LOCK_FILE};
use crate::record::{InputFile, RunRecord, StageFiles, StageName, StageTiming, sha256_of_file, stage_key};
use crate::{Discovery, Error};
use headwater_files::{create_folder, move_file, sync_folder, write_bytes, write_json};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The record of a run, in its folder.
pub const RUN_FILE: &str = "run.json";

/// The subfolder of a run that is under way.
const WORK_FOLDER: &str = ".headwater";

/// A file made from a finished discovery for people or other programs, such as the report page.
#[derive(Clone, Copy)]
pub struct Artifact {
    /// Its name in the folder.
    pub file: &'static str,
    /// Its contents.
    pub render: fn(&Discovery) -> Result<Vec<u8>, String>,
}

impl std::fmt::Debug for Artifact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Artifact").field("file", &self.file).finish_non_exhaustive()
    }
}

/// Where a run keeps its results.
///
/// ```no_run
/// use headwater_discover::Store;
/// let in_memory = Store::memory();
/// let resumable = Store::folder("results");
/// ```
#[derive(Debug)]
pub struct Store {
    folder: Option<Folder>,
    artifacts: Vec<Artifact>,
    done: Vec<(StageName, StageRecord, bool)>,
}

#[derive(Debug)]
struct Folder {
    out: PathBuf,
    /// Where files are while a run is under way.
    work: PathBuf,
    /// Folders that did not exist before, the deepest first.
    new: Vec<PathBuf>,
    /// Whether results of other inputs may be replaced.
    force: bool,
    lock: Option<FolderLock>,
}

/// What a stage left behind.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StageRecord {
    /// Hash of what it depended on.
    key: String,
    /// SHA-256 of the files it made.
    files: BTreeMap<String, String>,
    /// Its typed result, beside the files.
    #[serde(default)]
    result: Value,
    #[serde(default)]
    seconds: f64,
}

/// One stage: its name, what its result depends on, and the files it writes.
pub(crate) struct StageSpec<'a> {
    pub(crate) name: StageName,
    pub(crate) depends: Value,
    pub(crate) files: &'a [&'a str],
}

impl Store {
    /// Keeps everything in memory and writes nothing.
    pub fn memory() -> Self {
        Store { folder: None, artifacts: Vec::new(), done: Vec::new() }
    }

    /// Writes to a folder, which is created where it does not exist, and resumes what it finds there.
    pub fn folder(out: impl Into<PathBuf>) -> Self {
        let out = out.into();
        let work = out.join(WORK_FOLDER);
        let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let new = work.ancestors().filter(missing).map(Path::to_owned).collect();
        let folder = Folder { out, work, new, force: false, lock: None };
        Store { folder: Some(folder), artifacts: Vec::new(), done: Vec::new() }
    }

    /// Writes these files to the folder as well.
    pub fn with_artifacts(mut self, artifacts: &[Artifact]) -> Self {
        self.artifacts = artifacts.to_vec();
        self
    }

    /// Replaces the results of other inputs in the folder as well, where `force` is true.
    pub fn with_force(mut self, force: bool) -> Self {
        self.folder.iter_mut().for_each(|folder| folder.force = force);
        self
    }

    /// Whether files with the names of outputs may be replaced: because that was asked for, or because a run wrote them, finished
    /// or not.
    pub(crate) fn replaces_other_files(&self) -> bool {
        let ours = |folder: &Folder| folder.force || folder.out.join(RUN_FILE).exists() || folder.work.exists();
        self.folder.as_ref().is_none_or(ours)
    }

    /// Locks the folder.
    ///
    /// # Errors
    /// [`Error::FolderInUse`] where another run writes to it.
    pub(crate) fn lock(&mut self) -> Result<(), Error> {
        if let Some(folder) = &mut self.folder {
            folder.lock = Some(FolderLock::acquire(&folder.out, &folder.work)?);
        }
        Ok(())
    }

    /// Whether results in the folder may be replaced by those of these inputs.
    ///
    /// # Errors
    /// [`Error::OtherInputs`] where it holds a finished run on other data.
    pub(crate) fn check_inputs(&self, inputs: &[InputFile]) -> Result<(), Error> {
        let Some(folder) = self.folder.as_ref().filter(|folder| !folder.force) else { return Ok(()) };
        let Some(run) = folder.finished() else { return Ok(()) };
        for role in DATA {
            let (before, now) = (hashes(&run.inputs, role), hashes(inputs, role));
            if before != now {
                let change = match (before.is_empty(), now.is_empty()) {
                    (true, _) => InputChange::Added,
                    (_, true) => InputChange::Dropped,
                    _ => InputChange::Replaced,
                };
                return Err(Error::OtherInputs { folder: folder.out.clone(), role: role.to_owned(), change });
            }
        }
        Ok(())
    }

    /// Gives the folder back; what is needed to resume stays in it.
    pub(crate) fn unlock(&mut self) {
        if let Some(folder) = &mut self.folder
            && folder.lock.take().is_some()
        {
            // A folder that holds something stays.
            let _ = std::fs::remove_dir(&folder.work);
            folder.remove_new();
        }
    }

    /// The folder, where there is one.
    pub fn path(&self) -> Option<&Path> {
        self.folder.as_ref().map(|folder| folder.out.as_path())
    }

    pub(crate) fn artifacts(&self) -> &[Artifact] {
        &self.artifacts
    }

    /// Runs a stage, or loads what it made for the same key. `make` writes its files to the folder it is given, if any, and
    /// returns the stage's value with the result to record; `load` reads the value back from the files.
    pub(crate) fn stage<T, R: Serialize + DeserializeOwned>(
        &mut self,
        stage: &StageSpec<'_>,
        reused: &mut dyn FnMut(StageName),
        make: impl FnOnce(Option<&Path>) -> Result<(T, R), Error>,
        load: impl FnOnce(&dyn Fn(&str) -> PathBuf, &R) -> Result<T, Error>,
    ) -> Result<(T, R), Error> {
        let Some(folder) = &self.folder else {
            let started = Instant::now();
            let made = make(None)?;
            let record = StageRecord::new(String::new(), BTreeMap::new(), &made.1, started)?;
            self.done.push((stage.name, record, false));
            return Ok(made);
        };
        let key = stage_key(stage.name, &stage.depends);
        if let Some((record, result)) = folder.earlier(stage.name, &key) {
            reused(stage.name);
            let value = load(&|file| folder.path(file), &result)?;
            folder.begin()?;
            self.done.push((stage.name, record, true));
            stop_after(stage.name.as_str());
            return Ok((value, result));
        }
        let started = Instant::now();
        folder.begin()?;
        let made = make(Some(&folder.work)).and_then(|made| {
            let hashes = stage.files.iter().map(|file| {
                let (_, hash) = sha256_of_file(&folder.work.join(file))?;
                Ok(((*file).to_owned(), hash))
            });
            let record = StageRecord::new(key, hashes.collect::<Result<_, Error>>()?, &made.1, started)?;
            write_json(&folder.record_path(stage.name), &record)?;
            Ok((record, made))
        });
        match made {
            Ok((record, made)) => {
                self.done.push((stage.name, record, false));
                stop_after(stage.name.as_str());
                Ok(made)
            }
            Err(error) => {
                stage.files.iter().for_each(|file| drop(std::fs::remove_file(folder.work.join(file))));
                Err(error)
            }
        }
    }

    /// The hash of a file that a stage of this run made.
    pub(crate) fn hash(&self, file: &str) -> Option<&str> {
        self.done.iter().find_map(|(_, record, _)| record.files.get(file)).map(String::as_str)
    }

    /// Moves everything to where it belongs and writes the record. Without a `run.json` the folder is unfinished.
    pub(crate) fn finish(&mut self, run: &mut RunRecord) -> Result<(), Error> {
        let started = Instant::now();
        for (name, record, reused) in &self.done {
            let files = StageFiles { key: record.key.clone(), files: record.files.clone() };
            run.stages.insert(*name, files);
            run.timings.insert(name.as_str().to_owned(), StageTiming { seconds: record.seconds, reused: *reused });
        }
        let Some(folder) = &self.folder else { return Ok(()) };
        let io = |path: &Path, source: std::io::Error| Error::Write { path: path.to_owned(), source };
        let record_path = folder.out.join(RUN_FILE);
        // Where the record of an earlier run waits, so that the new one keeps its permissions.
        let record_draft = folder.work.join(RUN_FILE);
        let files: Vec<&String> = self.done.iter().flat_map(|(_, record, _)| record.files.keys()).collect();
        for (position, file) in files.into_iter().enumerate() {
            let (from, to) = (folder.work.join(file), folder.out.join(file));
            if !from.exists() {
                continue;
            }
            // A folder without the records of its stages could not be finished later.
            for (name, record, _) in self.done.iter().filter(|(name, ..)| !folder.record_path(*name).exists()) {
                write_json(&folder.record_path(*name), record)?;
            }
            // Until all files are there, a record that says so would be wrong.
            if record_path.exists() {
                std::fs::rename(&record_path, &record_draft).map_err(|error| io(&record_path, error))?;
                sync_folder(&folder.out)?;
            }
            move_file(&from, &to)?;
            if position == 0 {
                stop_after("write");
            }
        }
        sync_folder(&folder.out)?;
        let seconds = rounded(started.elapsed().as_secs_f64());
        run.timings.insert("write".to_owned(), StageTiming { seconds, reused: false });
        write_json(&record_draft, run)?;
        move_file(&record_draft, &record_path)?;
        sync_folder(&folder.out)?;
        folder.remove_work()?;
        self.unlock();
        Ok(())
    }
}

/// Roles of the inputs that are data. The files of a scorer are an option.
const DATA: [&str; 5] = ["posts", "graph", "users", "groups", TEST_GROUPS];

/// Hashes of the inputs with a role.
pub(crate) fn hashes<'a>(inputs: &'a [InputFile], role: &str) -> Vec<&'a str> {
    inputs.iter().filter(|input| input.role == role).map(|input| input.sha256.as_str()).collect()
}

impl StageRecord {
    fn new<R: Serialize>(
        key: String,
        files: BTreeMap<String, String>,
        result: &R,
        started: Instant,
    ) -> Result<Self, Error> {
        let result = serde_json::to_value(result).map_err(|error| Error::Record { problem: error.to_string() })?;
        Ok(StageRecord { key, files, result, seconds: rounded(started.elapsed().as_secs_f64()) })
    }
}

/// Milliseconds are what a reader of timings wants.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

impl Folder {
    fn begin(&self) -> Result<(), Error> {
        Ok(create_folder(&self.work)?)
    }

    /// Where a file is now.
    fn path(&self, file: &str) -> PathBuf {
        let fresh = self.work.join(file);
        if fresh.exists() { fresh } else { self.out.join(file) }
    }

    fn record_path(&self, name: StageName) -> PathBuf {
        self.work.join(format!("{}.stage.json", name.as_str()))
    }

    /// A record with this key whose files are as it says.
    fn earlier<R: DeserializeOwned>(&self, name: StageName, key: &str) -> Option<(StageRecord, R)> {
        let read = |path: PathBuf| std::fs::read_to_string(path).ok();
        let interrupted = || serde_json::from_str::<StageRecord>(&read(self.record_path(name))?).ok();
        let finished = || {
            let run = self.finished()?;
            let StageFiles { key, files } = run.stages.get(&name)?.clone();
            let seconds = run.timings.get(name.as_str()).map_or(0.0, |timing| timing.seconds);
            Some(StageRecord { key, files, result: run.stage_result(name), seconds })
        };
        let candidates: [&dyn Fn() -> Option<StageRecord>; 2] = [&interrupted, &finished];
        candidates.iter().find_map(|candidate| {
            let record = candidate().filter(|record| record.key == key)?;
            let result: R = serde_json::from_value(record.result.clone()).ok()?;
            let same = |(file, hash): (&String, &String)| {
                sha256_of_file(&self.path(file)).is_ok_and(|(_, found)| found == *hash)
            };
            record.files.iter().all(same).then_some((record, result))
        })
    }

    /// The record of a finished run.
    fn finished(&self) -> Option<RunRecord> {
        serde_json::from_str(&std::fs::read_to_string(self.out.join(RUN_FILE)).ok()?).ok()
    }

    /// Removes what a finished run does not need; the lock goes last.
    fn remove_work(&self) -> Result<(), Error> {
        let failed = |source| Error::Write { path: self.work.clone(), source };
        for entry in std::fs::read_dir(&self.work).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name() == LOCK_FILE {
                continue;
            }
            match entry.file_type().map_err(failed)?.is_dir() {
                true => std::fs::remove_dir_all(entry.path()).map_err(failed)?,
                false => std::fs::remove_file(entry.path()).map_err(failed)?,
            }
        }
        Ok(())
    }

    /// Removes the folders this run made, where nothing is in them.
    fn remove_new(&self) {
        for folder in &self.new {
            // A folder that holds something stays.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Writes a file of a stage.
pub(crate) fn write_file(work: &Path, file: &str, bytes: &[u8]) -> Result<(), Error> {
    Ok(write_bytes(&work.join(file), bytes)?)
}

/// With the feature `fault-injection`: ends the process after the stage that this variable names, as a crash would.
#[cfg(feature = "fault-injection")]
fn stop_after(name: &str) {
    if std::env::var_os("HEADWATER_STOP_AFTER").is_some_and(|stage| stage == name) {
        std::process::abort();
    }
}

#[cfg(not(feature = "fault-injection"))]
fn stop_after(_: &str) {}
