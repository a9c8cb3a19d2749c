//! Models by name: a hub's address and a model's name in, a folder with its verified files out.
//!
//! A file is fetched into a hidden neighbour named after its checksum, continued there after an interruption, and takes
//! its own name only when the checksum is right: SHA-256 for large files, git's blob SHA-1 for small ones, as the hub
//! gives them. What is in the cache is used without asking the hub again, after its checksums are computed again.
//!
//! The cache has a folder for every hub, model and revision, with the checksums of its files in `.checksums.json`. All files of
//! a folder are of one commit, where the hub names it.
//!
//! The hub is not trusted: files have a largest size, an answer that pauses for too long ends, and an encrypted connection is
//! never redirected to one that is not.

use crate::Error;
use crate::model_source::{FetchProgress, ModelSource, is_name, is_revision};
use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};
use sha2::Sha256;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body};

/// Redirections followed for one file.
const REDIRECTS: usize = 6;

/// Where the checksums of a folder are.
const CHECKSUMS: &str = ".checksums.json";

/// Files that may be large.
const WEIGHTS: [&str; 2] = ["model.safetensors", "pytorch_model.bin"];

/// What is accepted from a hub.
///
/// | field | default | purpose |
/// |---|---|---|
/// | `idle` | 60 s | longest pause of an answer |
/// | `weights` | 4 GiB | largest file of weights |
/// | `other` | 64 MiB | largest other file |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table says it")]
pub struct HubLimits {
    pub idle: Duration,
    pub weights: u64,
    pub other: u64,
}

impl Default for HubLimits {
    fn default() -> Self {
        HubLimits { idle: Duration::from_secs(60), weights: 4 << 30, other: 64 << 20 }
    }
}

/// `headwater/models` in the user's cache folder.
pub fn default_cache() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")))?;
    Some(cache.join("headwater").join("models"))
}

/// The folder of a model in a cache: by hub, model and revision.
pub fn cache_folder(source: &ModelSource, cache: &Path) -> PathBuf {
    let hub = source.hub_url.trim_end_matches('/');
    let host = hub.split_once("://").map_or(hub, |(_, rest)| rest);
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '_' };
    let host: String = host.chars().take(64).map(plain).collect();
    // Hubs whose addresses look alike are told apart by a part of the hash. No name has a "+".
    let hub = format!("{host}+{}", &hex(&Sha256::digest(hub))[..16]);
    cache.join(hub).join(source.model.replace('/', "+")).join(&source.revision)
}

/// Fetches what is missing of a model, checks what is there, and returns its folder.
///
/// # Errors
/// [`Error::Hub`] where the hub does not have it, does not answer, or sends something else; [`Error::Model`] where it cannot
/// be kept.
pub fn fetch(
    source: &ModelSource,
    cache: &Path,
    limits: &HubLimits,
    progress: FetchProgress<'_>,
) -> Result<PathBuf, Error> {
    let refused = |url: &str, problem: &str| Err(Error::Hub { url: url.to_owned(), problem: problem.to_owned() });
    if !is_name(&source.model) {
        return refused(&source.model, "is not the name of a model: expected owner/name");
    }
    if !is_revision(&source.revision) {
        return refused(&source.revision, "is not the name of a revision: expected a branch, a tag or a commit");
    }
    let folder = cache_folder(source, cache);
    std::fs::create_dir_all(&folder).map_err(|error| Error::model(&folder, format!("cannot be created: {error}")))?;
    let repository = format!("{}/{}/resolve", source.hub_url.trim_end_matches('/'), source.model);
    let mut hub = Hub {
        base: format!("{repository}/{}", source.revision),
        agent: agent(limits),
        limits: *limits,
        record: CacheRecord::read(&folder),
        folder,
    };
    // Each line is needed; the first of its sets that the hub has is taken.
    let wanted: [&[&[&str]]; 3] = [
        &[&["config.json"]],
        &[&["model.safetensors"], &["pytorch_model.bin"]],
        &[&["tokenizer.json"], &["vocab.json", "merges.txt"]],
    ];
    // All are looked at: a damaged file must not stay beside a whole one.
    let missing = wanted.into_iter().filter(|sets| !hub.has_one_of(sets)).count();
    if missing == 0 {
        return hub.finished();
    }
    // Every file from one commit, or another one's weights might meet this one's vocabulary.
    let commit = hub.commit("config.json")?;
    if commit != hub.record.commit {
        hub.record = CacheRecord { commit: commit.clone(), files: BTreeMap::new() };
    }
    hub.base = format!("{repository}/{}", commit.as_ref().unwrap_or(&source.revision));
    for sets in wanted.into_iter().filter(|sets| !sets.iter().any(|set| hub.records_all(set))).collect::<Vec<_>>() {
        if !hub.first_of(sets, progress)? {
            let files = sets.iter().map(|set| set.join(" and ")).collect::<Vec<_>>().join(" or ");
            return Err(hub.error(sets[0][0], format!("the hub has no {files} under this name")));
        }
    }
    hub.finished()
}

fn agent(limits: &HubLimits) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        // Followed by hand: the checksum is in the answer that redirects.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_connect(Some(Duration::from_secs(30)))
        .timeout_recv_response(Some(limits.idle))
        .user_agent(concat!("headwater/", env!("CARGO_PKG_VERSION")))
        .build();
    config.into()
}

/// What is known of the files of a folder.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct CacheRecord {
    /// The commit they are of, where the hub names it.
    commit: Option<String>,
    /// Checksum of each file.
    files: BTreeMap<String, String>,
}

impl CacheRecord {
    /// That of a folder; a damaged one knows nothing.
    fn read(folder: &Path) -> Self {
        let text = std::fs::read_to_string(folder.join(CHECKSUMS)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn write(&self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(CHECKSUMS);
        let part = folder.join(format!("{CHECKSUMS}.part"));
        let text = serde_json::to_string_pretty(self).map_err(|error| Error::model(&path, error.to_string()))?;
        std::fs::write(&part, text + "\n")
            .and_then(|()| std::fs::rename(&part, &path))
            .map_err(|error| Error::model(&path, format!("cannot be written: {error}")))
    }
}

struct Hub {
    base: String,
    agent: Agent,
    limits: HubLimits,
    folder: PathBuf,
    record: CacheRecord,
}

/// What a file should be.
struct FileClaim {
    checksum: String,
    url: String,
}

enum Checksum {
    Sha256(Sha256),
    Blob(Sha1),
}

impl Hub {
    fn error(&self, file: &str, problem: impl Into<String>) -> Error {
        Error::Hub { url: format!("{}/{file}", self.base), problem: problem.into() }
    }

    /// The folder, without files that are not the recorded ones.
    fn finished(self) -> Result<PathBuf, Error> {
        let names = ["config.json", "tokenizer.json", "vocab.json", "merges.txt"].into_iter().chain(WEIGHTS);
        for path in names.filter(|name| !self.record.files.contains_key(*name)).map(|name| self.folder.join(name)) {
            if path.exists() {
                std::fs::remove_file(&path)
                    .map_err(|error| Error::model(&path, format!("cannot be removed: {error}")))?;
            }
        }
        Ok(self.folder)
    }

    fn records_all(&self, set: &[&str]) -> bool {
        set.iter().all(|file| self.record.files.contains_key(*file))
    }

    /// Whether one of the sets is in the cache as it was fetched. Files that are not what they were are forgotten.
    fn has_one_of(&mut self, sets: &[&[&str]]) -> bool {
        let (folder, files) = (&self.folder, &mut self.record.files);
        let right = |file: &str, claimed: &String| {
            checksum(&folder.join(file), claimed.len()).is_ok_and(|found| found == *claimed)
        };
        for file in sets.iter().copied().flatten() {
            if files.get(*file).is_some_and(|claimed| !right(file, claimed)) {
                files.remove(*file);
            }
        }
        sets.iter().any(|set| self.records_all(set))
    }

    /// The commit that the revision is at; `None` where the hub does not say.
    fn commit(&self, file: &str) -> Result<Option<String>, Error> {
        let url = format!("{}/{file}", self.base);
        let answer = self.agent.head(&url).call().map_err(|error| self.unreachable(file, &error))?;
        let commit = answer.headers().get("x-repo-commit").and_then(|value| value.to_str().ok());
        Ok(commit.filter(|commit| is_revision(commit)).map(str::to_owned))
    }

    /// Fetches the first set of which the hub has every file.
    fn first_of(&mut self, sets: &[&[&str]], progress: FetchProgress<'_>) -> Result<bool, Error> {
        for set in sets {
            let mut claims = Vec::new();
            for file in *set {
                claims.extend(self.claim(file)?.map(|claim| (*file, claim)));
            }
            if claims.len() == set.len() {
                for (file, claim) in claims {
                    self.file(file, &claim, progress)?;
                    self.record.files.insert(file.to_owned(), claim.checksum);
                    self.record.write(&self.folder)?;
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Checksum and place of a file; `None` if the hub does not have it.
    fn claim(&self, file: &str) -> Result<Option<FileClaim>, Error> {
        let mut url = format!("{}/{file}", self.base);
        for _ in 0..REDIRECTS {
            let answer = self.agent.head(&url).call().map_err(|error| self.unreachable(file, &error))?;
            let status = answer.status();
            let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
            let tag = header("x-linked-etag").or_else(|| header("etag").filter(|_| status.is_success()));
            if let Some(tag) = tag {
                let checksum = tag.trim_start_matches("W/").trim_matches('"').to_lowercase();
                let known = matches!(checksum.len(), 40 | 64) && checksum.bytes().all(|byte| byte.is_ascii_hexdigit());
                if !known {
                    return Err(self.error(file, format!("the hub's ETag {tag} is neither a SHA-256 nor a git SHA-1")));
                }
                return Ok(Some(FileClaim { checksum, url }));
            }
            match status {
                // The hub does not say whether a private model exists.
                StatusCode::NOT_FOUND | StatusCode::UNAUTHORIZED => return Ok(None),
                status if status.is_redirection() => url = self.redirected(file, &url, &answer)?,
                status if status.is_success() => return Err(self.error(file, "the hub gives no checksum (ETag)")),
                status => return Err(self.error(file, format!("the hub answers {status}"))),
            }
        }
        Err(self.error(file, "too many redirections"))
    }

    fn unreachable(&self, file: &str, error: &ureq::Error) -> Error {
        self.error(file, format!("cannot be fetched: {error}"))
    }

    fn redirected(&self, file: &str, from: &str, answer: &Response<Body>) -> Result<String, Error> {
        let place = answer.headers().get("location").and_then(|value| value.to_str().ok());
        redirect_target(from, place.unwrap_or_default()).map_err(|problem| self.error(file, problem))
    }

    /// The largest size of a file.
    fn limit(&self, file: &str) -> u64 {
        if WEIGHTS.contains(&file) { self.limits.weights } else { self.limits.other }
    }

    fn file(&self, file: &str, claim: &FileClaim, progress: FetchProgress<'_>) -> Result<(), Error> {
        let path = self.folder.join(file);
        let part = self.folder.join(format!(".{file}.{}.part", claim.checksum));
        let broken = |error: std::io::Error| Error::model(&part, format!("cannot be written: {error}"));
        let mut target = File::options().read(true).append(true).create(true).open(&part).map_err(broken)?;
        let have = target.metadata().map_err(broken)?.len();
        let answer = self.get(file, &claim.url, have)?;
        let done = match answer.status() {
            StatusCode::PARTIAL_CONTENT if starts_at(&answer, have) => Some(have),
            // The whole file, whatever was asked for.
            StatusCode::OK => Some(0),
            // Nothing is left, or the part is longer than the file: the checksum tells.
            StatusCode::RANGE_NOT_SATISFIABLE => None,
            status => return Err(self.error(file, format!("the hub answers {status}"))),
        };
        if let Some(done) = done {
            target.set_len(done).map_err(broken)?;
            let kept = self.body(file, answer, done, progress, |bytes| target.write_all(bytes).map_err(broken));
            if let Err(TransferError { error, keep }) = kept {
                if !keep {
                    std::fs::remove_file(&part).map_err(broken)?;
                }
                return Err(error);
            }
        }
        target.flush().and_then(|()| target.sync_all()).map_err(broken)?;
        drop(target);
        let found = checksum(&part, claim.checksum.len()).map_err(broken)?;
        if found != claim.checksum {
            std::fs::remove_file(&part).map_err(broken)?;
            let problem = format!("the checksum is {found}, the hub says {}; nothing was kept", claim.checksum);
            return Err(self.error(file, problem));
        }
        std::fs::rename(&part, &path).map_err(broken)
    }

    /// Takes the body of an answer, of which `done` bytes came before.
    fn body(
        &self,
        file: &str,
        answer: Response<Body>,
        mut done: u64,
        progress: FetchProgress<'_>,
        mut take: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), TransferError> {
        let limit = self.limit(file);
        let too_large = || {
            let problem = format!("is larger than {limit} bytes, the most that is fetched; nothing was kept");
            TransferError { error: self.error(file, problem), keep: false }
        };
        let broken = |done: u64, why: &str| {
            let problem = format!("the connection broke after {done} bytes{why}; run again to continue");
            TransferError { error: self.error(file, problem), keep: true }
        };
        let total = answer.body().content_length().map_or(0, |length| done.saturating_add(length));
        if total > limit {
            return Err(too_large());
        }
        progress(file, done, total);
        // Reading on a thread of its own: a read that never returns cannot be interrupted, but left behind.
        let mut source = answer.into_body().into_reader();
        let (to, from) = sync_channel::<std::io::Result<Vec<u8>>>(4);
        std::thread::spawn(move || {
            loop {
                let mut buffer = vec![0; 1 << 16];
                let read = source.read(&mut buffer).map(|count| {
                    buffer.truncate(count);
                    buffer
                });
                let last = read.as_ref().map_or(true, Vec::is_empty);
                if to.send(read).is_err() || last {
                    return;
                }
            }
        });
        loop {
            let bytes = match from.recv_timeout(self.limits.idle) {
                Ok(Ok(bytes)) if bytes.is_empty() => break,
                Ok(Ok(bytes)) => bytes,
                Ok(Err(error)) => return Err(broken(done, &format!(" ({error})"))),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(broken(done, &format!(" (nothing came for {} s)", self.limits.idle.as_secs_f64())));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(broken(done, "")),
            };
            done += bytes.len() as u64;
            if done > limit {
                return Err(too_large());
            }
            take(&bytes).map_err(|error| TransferError { error, keep: true })?;
            progress(file, done, total);
        }
        if total > 0 && done < total {
            return Err(broken(done, ""));
        }
        Ok(())
    }

    /// Asks for a file from a byte on, following redirections.
    fn get(&self, file: &str, url: &str, from: u64) -> Result<Response<Body>, Error> {
        let mut url = url.to_owned();
        for _ in 0..REDIRECTS {
            let mut request = self.agent.get(&url);
            if from > 0 {
                request = request.header("Range", format!("bytes={from}-"));
            }
            let answer = request.call().map_err(|error| self.unreachable(file, &error))?;
            if !answer.status().is_redirection() {
                return Ok(answer);
            }
            url = self.redirected(file, &url, &answer)?;
        }
        Err(self.error(file, "too many redirections"))
    }
}

/// Why a body did not come to its end, and whether what came of it is worth keeping.
struct TransferError {
    error: Error,
    keep: bool,
}

/// Where a redirection leads; never from an encrypted connection to one that is not.
fn redirect_target(from: &str, place: &str) -> Result<String, &'static str> {
    let (scheme, rest) = from.split_once("://").ok_or("the address has no scheme")?;
    let lower = place.to_ascii_lowercase();
    if lower.starts_with("https://") || (lower.starts_with("http://") && scheme.eq_ignore_ascii_case("http")) {
        return Ok(place.to_owned());
    }
    if lower.starts_with("http://") {
        return Err("the hub redirects from https to http, which is not followed");
    }
    if let Some(other) = place.strip_prefix("//") {
        return Ok(format!("{scheme}://{other}"));
    }
    if place.is_empty() || place.split('/').next().is_some_and(|first| first.contains(':')) {
        return Err("the hub redirects without an address");
    }
    // Relative to the host.
    let host = rest.split('/').next().unwrap_or_default();
    Ok(format!("{scheme}://{host}/{}", place.trim_start_matches('/')))
}

/// Whether a partial answer begins where we stopped.
fn starts_at(answer: &Response<Body>, from: u64) -> bool {
    let range = answer.headers().get("content-range").and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {from}-")))
}

/// In hexadecimal, of the kind that has so many digits.
fn checksum(path: &Path, digits: usize) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let mut sum = if digits == 64 {
        Checksum::Sha256(Sha256::new())
    } else {
        let mut sum = Sha1::new();
        sum.update(format!("blob {}\0", file.metadata()?.len()));
        Checksum::Blob(sum)
    };
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = file.read(&mut buffer)?;
        match &mut sum {
            _ if count == 0 => break,
            Checksum::Sha256(sum) => sum.update(&buffer[..count]),
            Checksum::Blob(sum) => sum.update(&buffer[..count]),
        }
    }
    Ok(match sum {
        Checksum::Sha256(sum) => hex(&sum.finalize()),
        Checksum::Blob(sum) => hex(&sum.finalize()),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_paths() {
        assert!(["roberta", "owner/model-1.0_x"].into_iter().all(is_name));
        assert!(!["", "/x", "x/", "./x", "../x", "a/b/c", "a b", "a\\b"].into_iter().any(is_name));
    }

    #[test]
    fn checksums_are_those_of_the_hub() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "hello\n").unwrap();
        // As git hash-object and sha256sum print them.
        assert_eq!(checksum(file.path(), 40).unwrap(), "ce013625030ba8dba906f756967f9e9ca394464a");
        let sha256 = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
        assert_eq!(checksum(file.path(), 64).unwrap(), sha256);
    }

    #[test]
    fn encryption_is_not_given_up() {
        let to = |from: &str, place: &str| redirect_target(from, place);
        assert!(to("https://hub/a", "http://hub/b").unwrap_err().contains("from https to http"));
        assert!(to("https://hub/a", "HTTP://hub/b").is_err());
        assert_eq!(to("https://hub/a", "https://store/b").unwrap(), "https://store/b");
        assert_eq!(to("http://hub/a", "https://store/b").unwrap(), "https://store/b");
        assert_eq!(to("https://hub:1/a/b", "/c").unwrap(), "https://hub:1/c");
        assert_eq!(to("https://hub/a", "//store/b").unwrap(), "https://store/b");
        assert!(["", "ftp://store/b", "file:/etc/passwd"].iter().all(|place| to("https://hub/a", place).is_err()));
    }

    #[test]
    fn hubs_models_and_revisions_have_folders_of_their_own() {
        let source =
            |hub: &str, model: &str, revision: &str| ModelSource::new(model).with_hub(hub).with_revision(revision);
        let sources = [
            source("https://hub", "own/mod", "main"),
            source("https://hub", "own--mod", "main"),
            source("https://hub", "own/mod", "v2"),
            source("http://hub", "own/mod", "main"),
            source("https://hub:8443", "own/mod", "main"),
        ];
        let folders: std::collections::BTreeSet<PathBuf> =
            sources.iter().map(|source| cache_folder(source, Path::new("cache"))).collect();
        assert_eq!(folders.len(), sources.len());
        let slash = source("https://hub/", "own/mod", "main");
        assert_eq!(cache_folder(&slash, Path::new("cache")), cache_folder(&sources[0], Path::new("cache")));
    }
}
