//! What a run reads: every input with its hash and with its name in messages.

use crate::Error;
use crate::discover::{
    BELIEFS_FILE, CommonInput, Discover, GroupsInput, LOG_BELIEFS_FILE, MODEL_FILE, RANKING_FILES, Run,
};
use crate::follow_graph::GraphInput;
use crate::input_names::InputNames;
use crate::record::{Hasher, InputFile};
use crate::store::{RUN_FILE, Store};
use headwater::progress;
use headwater_posts::{PostsInput, ScorerChoice, UserList};
use headwater_score::{ModelSource, Scorer};
use std::fmt::Debug;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Role of the groups of the graph test among the inputs.
pub(crate) const TEST_GROUPS: &str = "test-groups";

impl Discover {
    /// What messages call the inputs where names are replaced.
    pub(crate) fn input_names(&self) -> InputNames {
        let Discover { posts, options, graph, common, groups, .. } = self;
        let mut inputs = Vec::new();
        if let PostsInput::Files(patterns) = posts {
            inputs.extend(patterns.iter().map(|path| (path.clone(), "posts".to_owned())));
        }
        // Files that cannot be listed are named by their pattern.
        let files = posts.files().unwrap_or_default();
        let single = files.len() == 1;
        let numbered = files
            .into_iter()
            .zip(1..)
            .map(|(path, number)| (path, if single { "posts".to_owned() } else { format!("posts file {number}") }));
        inputs.splice(0..0, numbered);
        inputs.extend(graph.as_ref().and_then(GraphInput::path).map(|path| (path.to_owned(), "graph".to_owned())));
        if let Some(UserList::File(path)) = &options.users {
            inputs.push((path.clone(), "users".to_owned()));
        }
        if let Some(CommonInput::File(path)) = common {
            inputs.push((path.clone(), "groups".to_owned()));
        }
        inputs.extend(groups.as_ref().and_then(GroupsInput::path).map(|path| (path.to_owned(), "groups".to_owned())));
        InputNames::new(inputs)
    }
}

impl Run<'_> {
    /// No file is both read and written.
    pub(crate) fn check_outputs(&self, store: &Store) -> Result<(), Error> {
        let Some(folder) = store.path() else { return Ok(()) };
        let inputs: Vec<PathBuf> = self.input_paths().iter().filter_map(|path| path.canonicalize().ok()).collect();
        let artifacts = store.artifacts().iter().map(|artifact| artifact.file);
        let files = [BELIEFS_FILE, LOG_BELIEFS_FILE, MODEL_FILE, RUN_FILE].into_iter().chain(RANKING_FILES);
        if folder.exists() && !folder.is_dir() {
            return Err(Error::NotAFolder { path: folder.to_owned() });
        }
        let files: Vec<&str> = files.chain(artifacts).collect();
        for file in &files {
            let path = folder.join(file);
            if path.canonicalize().is_ok_and(|output| inputs.contains(&output)) {
                return Err(Error::Overwrite { path });
            }
        }
        if store.replaces_other_files() {
            return Ok(());
        }
        match files.iter().map(|file| folder.join(file)).find(|path| path.exists()) {
            Some(path) => Err(Error::OtherFile { path }),
            None => Ok(()),
        }
    }

    /// Every file that is named as an input.
    fn input_paths(&self) -> Vec<PathBuf> {
        let Discover { posts, options, graph, common, groups, .. } = self.discover;
        let mut paths = match posts {
            PostsInput::Files(files) => files.clone(),
            _ => Vec::new(),
        };
        paths.extend(graph.as_ref().and_then(GraphInput::path).map(Path::to_owned));
        if let Some(UserList::File(path)) = &options.users {
            paths.push(path.clone());
        }
        if let Some(CommonInput::File(path)) = common {
            paths.push(path.clone());
        }
        paths.extend(groups.as_ref().and_then(GroupsInput::path).map(Path::to_owned));
        paths
    }

    /// Every input with its hash.
    pub(crate) fn inputs(&self) -> Result<Vec<InputFile>, Error> {
        let Discover { posts, options, text_model, graph, common, groups, .. } = self.discover;
        let _stage = progress::stage("hashing inputs", 0);
        let mut inputs = Vec::new();
        for path in posts.files()? {
            inputs.push(InputFile::read("posts", &path)?);
        }
        if let PostsInput::Batches { batches, .. } = posts {
            inputs.push(InputFile::in_memory("posts", |to| hash_batches(batches, to))?);
        }
        match graph {
            Some(GraphInput::File(path)) => inputs.push(InputFile::read("graph", path)?),
            Some(GraphInput::Edges(edges)) => inputs.push(InputFile::in_memory("graph", |to| hash_debug(edges, to))?),
            None => {}
        }
        match &options.users {
            Some(UserList::File(path)) => inputs.push(InputFile::read("users", path)?),
            Some(UserList::Names(names)) => inputs.push(InputFile::in_memory("users", |to| hash_debug(names, to))?),
            None => {}
        }
        match common {
            Some(CommonInput::File(path)) => inputs.push(InputFile::read("groups", path)?),
            Some(CommonInput::Groups(groups)) => {
                inputs.push(InputFile::in_memory("groups", |to| hash_debug(&groups.sorted(), to))?);
            }
            Some(CommonInput::Network) | None => {}
        }
        match groups {
            Some(GroupsInput::File(path)) => inputs.push(InputFile::read(TEST_GROUPS, path)?),
            Some(GroupsInput::Groups(groups)) => {
                inputs.push(InputFile::in_memory(TEST_GROUPS, |to| hash_debug(&groups.sorted(), to))?);
            }
            None => {}
        }
        if let Some(model) = self.text_model(text_model.as_ref()) {
            let folder = model.folder(&mut fetch_progress())?;
            inputs.extend(InputFile::read_folder("scorer", &folder)?);
        }
        Ok(inputs)
    }

    /// The text model, where the options ask for one.
    pub(crate) fn text_model<'a>(&self, model: Option<&'a ModelSource>) -> Option<&'a ModelSource> {
        model.filter(|_| self.discover.options.scorer == ScorerChoice::Roberta)
    }

    /// What scores the posts; none where they bring their own scores, or the built-in scorer does.
    pub(crate) fn scorer(&self) -> Result<Option<Box<dyn Scorer>>, Error> {
        let model = self.text_model(self.discover.text_model.as_ref());
        Ok(model.map(|model| model.open(&mut fetch_progress())).transpose()?)
    }
}

/// Bytes that stand for tables in memory.
fn hash_batches(batches: &[arrow_array::RecordBatch], to: &mut Hasher) -> Result<(), Error> {
    let Some(first) = batches.first() else { return Ok(()) };
    let unhashed = |error: arrow_schema::ArrowError| Error::Record { problem: error.to_string() };
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(to, &first.schema()).map_err(unhashed)?;
    batches.iter().try_for_each(|batch| writer.write(batch)).map_err(unhashed)?;
    writer.finish().map_err(unhashed)
}

/// Bytes that stand for a small value in memory.
fn hash_debug(value: &impl Debug, to: &mut Hasher) -> Result<(), Error> {
    write!(to, "{value:?}").map_err(|error| Error::Record { problem: error.to_string() })
}

/// Reports how much of a model has been fetched.
fn fetch_progress() -> impl FnMut(&str, u64, u64) {
    let mut stage = None;
    move |file: &str, done: u64, total: u64| {
        if done == 0 {
            // The stage of the file before ends first.
            stage = None;
        }
        stage.get_or_insert_with(|| progress::stage(&format!("fetching {file}"), total)).at(done);
    }
}
