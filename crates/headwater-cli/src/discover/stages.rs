//! Stages: a run in steps that need not be done twice.
//!
//! In: a folder, and for each stage what it depends on. Out: the files of all stages, in the folder, whole or not at all.
//! While a run is under way its files and a record per stage are in `.headwater` inside the folder; a record is written
//! after the files it speaks of, and holds their hashes. At the end the files move up, `run.json` comes last and keeps the
//! records, and `.headwater` is gone.

use super::record::{Run, key, sha256};
use crate::error::CliError;
use crate::output::{create, write_json};
use crate::terminal::Terminal;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What a stage left behind.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    /// Hash of what it depended on.
    key: String,
    /// Hashes of the files it made.
    files: BTreeMap<String, String>,
    /// What else later stages want to know; `run.json` has it at its top.
    #[serde(default)]
    facts: Value,
    #[serde(default)]
    seconds: f64,
}

/// The stages of one run.
pub(crate) struct Stages {
    out: PathBuf,
    /// Where files are while a run is under way.
    room: PathBuf,
    /// Folders that were not there before, the deepest first.
    new: Vec<PathBuf>,
    done: Vec<(&'static str, Record, bool)>,
}

impl Stages {
    pub(crate) fn new(out: &Path) -> Self {
        let room = out.join(".headwater");
        let new = room.ancestors().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        Stages { new: new.map(Path::to_owned).collect(), out: out.to_owned(), room, done: Vec::new() }
    }

    /// Runs a stage, or takes over what it made for the same key. `make` leaves its files in the folder it is given and
    /// returns what later stages want to know.
    pub(crate) fn stage<T: Serialize + DeserializeOwned>(
        &mut self,
        name: &'static str,
        depends: &Value,
        files: &[&str],
        terminal: &Terminal,
        make: impl FnOnce(&Path) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let key = key(name, depends);
        if let Some((record, facts)) = self.earlier(name, &key) {
            terminal.remark(&format!("{name}: done before, on the same files with the same options"));
            self.keep(name, record, true)?;
            return Ok(facts);
        }
        let started = Instant::now();
        create(&self.room)?;
        let made = make(&self.room).and_then(|facts| Ok((self.record(key, files, &facts, started)?, facts)));
        match made {
            Ok((record, facts)) => {
                self.keep(name, record, false)?;
                Ok(facts)
            }
            Err(failure) => {
                files.iter().for_each(|file| drop(std::fs::remove_file(self.room.join(file))));
                self.leave();
                Err(failure)
            }
        }
    }

    fn record<T: Serialize>(
        &self,
        key: String,
        files: &[&str],
        facts: &T,
        started: Instant,
    ) -> Result<Record, CliError> {
        let hashes = files.iter().map(|file| Ok(((*file).to_owned(), sha256(&self.room.join(file))?.1)));
        Ok(Record {
            key,
            files: hashes.collect::<Result<_, CliError>>()?,
            facts: serde_json::to_value(facts).map_err(|error| CliError::data(format!("cannot record: {error}")))?,
            seconds: (started.elapsed().as_secs_f64() * 1e3).round() / 1e3,
        })
    }

    /// A record with this key whose files are as it says.
    fn earlier<T: Serialize + DeserializeOwned>(&self, name: &str, key: &str) -> Option<(Record, T)> {
        let read = |path: PathBuf| serde_json::from_str::<Value>(&std::fs::read_to_string(path).ok()?).ok();
        let interrupted = || serde_json::from_value::<Record>(read(self.record_path(name))?).ok();
        let finished = || {
            let run = read(self.out.join("run.json"))?;
            let record: Record = serde_json::from_value(run.get("stages")?.get(name)?.clone()).ok()?;
            let seconds = run["timings"][name]["seconds"].as_f64().unwrap_or(0.0);
            Some(Record { facts: run, seconds, ..record })
        };
        let candidates: [&dyn Fn() -> Option<Record>; 2] = [&interrupted, &finished];
        candidates.iter().find_map(|candidate| {
            let mut record = candidate().filter(|record| record.key == key)?;
            let facts: T = serde_json::from_value(record.facts.take()).ok()?;
            record.facts = serde_json::to_value(&facts).ok()?;
            let same =
                |(file, hash): (&String, &String)| sha256(&self.path(file)).is_ok_and(|(_, found)| found == *hash);
            record.files.iter().all(same).then_some((record, facts))
        })
    }

    /// Notes that a stage is done.
    fn keep(&mut self, name: &'static str, record: Record, reused: bool) -> Result<(), CliError> {
        create(&self.room)?;
        if !reused {
            write_json(&self.record_path(name), &record)?;
        }
        self.done.push((name, record, reused));
        stop_after(name);
        Ok(())
    }

    fn record_path(&self, name: &str) -> PathBuf {
        self.room.join(format!("{name}.stage.json"))
    }

    /// Where a file is now.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        let fresh = self.room.join(file);
        if fresh.exists() { fresh } else { self.out.join(file) }
    }

    /// The hash of a file that a stage made.
    pub(crate) fn hash(&self, file: &str) -> Option<&str> {
        self.done.iter().find_map(|(_, record, _)| record.files.get(file)).map(String::as_str)
    }

    /// Removes the folders this run made, where nothing is in them.
    fn leave(&self) {
        for folder in &self.new {
            // A folder that holds something stays.
            let _ = std::fs::remove_dir(folder);
        }
    }

    /// Moves everything to where it belongs. Without a `run.json` the folder is unfinished.
    pub(crate) fn finish(self, mut run: Run) -> Result<(), CliError> {
        let started = Instant::now();
        let problem =
            |path: &Path, error: &std::io::Error| CliError::data(format!("{}: cannot write: {error}", path.display()));
        let record = self.out.join("run.json");
        // Until all files are there, what says so would be wrong.
        let moved: Vec<&String> = self.done.iter().flat_map(|(_, record, _)| record.files.keys()).collect();
        for (position, file) in moved.into_iter().enumerate() {
            let (from, to) = (self.room.join(file), self.out.join(file));
            if !from.exists() {
                continue;
            }
            // A folder without its records could not be finished later.
            for (name, record, _) in self.done.iter().filter(|(name, ..)| !self.record_path(name).exists()) {
                write_json(&self.record_path(name), record)?;
            }
            if record.exists() {
                std::fs::remove_file(&record).map_err(|error| problem(&record, &error))?;
            }
            std::fs::rename(&from, &to).map_err(|error| problem(&to, &error))?;
            if position == 0 {
                stop_after("write");
            }
        }
        for (name, record, reused) in &self.done {
            run.stages.insert((*name).to_owned(), json!({ "key": record.key, "files": record.files }));
            run.timings.insert((*name).to_owned(), json!({ "seconds": record.seconds, "reused": reused }));
        }
        let seconds = (started.elapsed().as_secs_f64() * 1e3).round() / 1e3;
        run.timings.insert("write".to_owned(), json!({ "seconds": seconds, "reused": false }));
        write_json(&record, &run)?;
        std::fs::remove_dir_all(&self.room).map_err(|error| problem(&self.room, &error))
    }
}

/// The top of a value, for `run.json`.
pub(crate) fn fields(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// For tests of interrupted runs: aborts the process after the stage that HEADWATER_STOP_AFTER names, as a kill would.
#[cfg(feature = "fault-injection")]
fn stop_after(name: &str) {
    if std::env::var_os("HEADWATER_STOP_AFTER").is_some_and(|stage| stage == name) {
        std::process::abort();
    }
}

#[cfg(not(feature = "fault-injection"))]
fn stop_after(_name: &str) {}
