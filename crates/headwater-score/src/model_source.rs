//! Where a text model is: a folder or a name in, a folder with the model's files out.

use crate::{Error, Scorer};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The public model hub.
pub const PUBLIC_HUB: &str = "https://huggingface.co";

/// Called while a model is fetched: the file, bytes so far, bytes in all.
pub type FetchProgress<'a> = &'a mut dyn FnMut(&str, u64, u64);

/// A text model: its folder, or its name on a model hub.
///
/// ```
/// use headwater_score::ModelSource;
/// let error = ModelSource::new("no/such/folder").open(&mut |_, _, _| ()).err().unwrap();
/// assert!(error.to_string().starts_with("no/such/folder: is not a folder"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelSource {
    /// A folder, or `name` or `owner/name` on the hub.
    pub model: String,
    /// The hub's address.
    pub hub_url: String,
    /// Branch, tag or commit on the hub.
    #[serde(default = "main_revision", skip_serializing_if = "is_main_revision")]
    pub revision: String,
    /// Folder for fetched models; `None` is `headwater/models` in the user's cache folder.
    pub cache: Option<PathBuf>,
}

impl ModelSource {
    /// A folder, or a name on the public hub.
    pub fn new(model: impl Into<String>) -> Self {
        ModelSource { model: model.into(), hub_url: PUBLIC_HUB.to_owned(), revision: main_revision(), cache: None }
    }

    /// With another hub.
    pub fn with_hub(mut self, url: impl Into<String>) -> Self {
        self.hub_url = url.into();
        self
    }

    /// With another branch, tag or commit.
    pub fn with_revision(mut self, revision: impl Into<String>) -> Self {
        self.revision = revision.into();
        self
    }

    /// With another folder for fetched models.
    pub fn with_cache(mut self, folder: Option<PathBuf>) -> Self {
        self.cache = folder;
        self
    }

    /// The model's folder. A name that is no folder is fetched from the hub (feature `hub`).
    ///
    /// # Errors
    /// [`Error::Hub`] where the hub does not have it or does not answer, [`Error::NoCache`] where it cannot be kept.
    pub fn folder(&self, progress: FetchProgress<'_>) -> Result<PathBuf, Error> {
        let folder = Path::new(&self.model);
        if folder.exists() || !is_name(&self.model) {
            return Ok(folder.to_owned());
        }
        self.fetch(progress)
    }

    #[cfg(feature = "hub")]
    fn fetch(&self, progress: FetchProgress<'_>) -> Result<PathBuf, Error> {
        use crate::roberta::hub;
        let cache = self.cache.clone().or_else(hub::default_cache).ok_or(Error::NoCache)?;
        hub::fetch(self, &cache, &hub::HubLimits::default(), progress)
    }

    #[cfg(not(feature = "hub"))]
    fn fetch(&self, _progress: FetchProgress<'_>) -> Result<PathBuf, Error> {
        Ok(PathBuf::from(&self.model))
    }

    /// The model, fetched where needed, ready to score.
    #[cfg(feature = "transformer")]
    pub fn open(&self, progress: FetchProgress<'_>) -> Result<Box<dyn Scorer>, Error> {
        let folder = self.folder(progress)?;
        let _stage = headwater::progress::stage("reading the model", 0);
        Ok(Box::new(crate::Roberta::open(&folder)?))
    }

    /// The model, fetched where needed, ready to score: not in this build.
    #[cfg(not(feature = "transformer"))]
    pub fn open(&self, _progress: FetchProgress<'_>) -> Result<Box<dyn Scorer>, Error> {
        Err(Error::NoTransformer)
    }
}

fn main_revision() -> String {
    "main".to_owned()
}

fn is_main_revision(revision: &String) -> bool {
    *revision == main_revision()
}

/// Whether a text can be the name of a model: `name` or `owner/name`.
pub fn is_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((owner, name)) => is_revision(owner) && is_revision(name),
        None => is_revision(text),
    }
}

/// Whether a text can be the name of a revision, or a part of the name of a model.
pub fn is_revision(text: &str) -> bool {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    !text.is_empty() && text.len() <= 128 && !text.starts_with('.') && text.chars().all(allowed)
}
