//! Models by name: a hub's address and a model's name in, a folder with its verified files out.
//!
//! A file is fetched into a hidden neighbour named after its checksum, continued there after an interruption, and takes
//! its own name only when the checksum is right: SHA-256 for large files, git's blob SHA-1 for small ones, as the hub
//! gives them. What is in the cache is used without asking the hub again.

use crate::Error;
use crate::model_source::{FetchProgress, is_name};
use sha1::{Digest, Sha1};
use sha2::Sha256;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body};

/// `headwater/models` in the user's cache folder.
pub fn default_cache() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")))?;
    Some(cache.join("headwater").join("models"))
}

/// Fetches what is missing of a model and returns its folder.
pub fn fetch(hub: &str, name: &str, cache: &Path, watch: FetchProgress<'_>) -> Result<PathBuf, Error> {
    if !is_name(name) {
        let problem = "is not the name of a model: wanted owner/name";
        return Err(Error::Hub { url: name.to_owned(), problem: problem.to_owned() });
    }
    let folder = cache.join(name.replace('/', "--"));
    std::fs::create_dir_all(&folder).map_err(|error| Error::model(&folder, format!("cannot be created: {error}")))?;
    let hub = Hub { base: format!("{}/{name}/resolve/main", hub.trim_end_matches('/')), agent: agent(), folder };
    // Each line is needed; the first of its sets that the hub has is taken.
    let wanted: [&[&[&str]]; 3] = [
        &[&["config.json"]],
        &[&["model.safetensors"], &["pytorch_model.bin"]],
        &[&["tokenizer.json"], &["vocab.json", "merges.txt"]],
    ];
    for sets in wanted {
        let cached = sets.iter().any(|set| set.iter().all(|file| hub.folder.join(file).is_file()));
        if !cached && !hub.first_of(sets, watch)? {
            let files = sets.iter().map(|set| set.join(" and ")).collect::<Vec<_>>().join(" or ");
            return Err(hub.error(sets[0][0], format!("the hub has no {files} under this name")));
        }
    }
    Ok(hub.folder)
}

fn agent() -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        // Followed by hand: the checksum is in the answer that redirects.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_connect(Some(Duration::from_secs(30)))
        .timeout_recv_response(Some(Duration::from_secs(60)))
        .user_agent(concat!("headwater/", env!("CARGO_PKG_VERSION")))
        .build();
    config.into()
}

struct Hub {
    base: String,
    agent: Agent,
    folder: PathBuf,
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

    /// Fetches the first set of which the hub has every file.
    fn first_of(&self, sets: &[&[&str]], watch: FetchProgress<'_>) -> Result<bool, Error> {
        for set in sets {
            let mut claims = Vec::new();
            for file in *set {
                claims.extend(self.claim(file)?.map(|claim| (*file, claim)));
            }
            if claims.len() == set.len() {
                for (file, claim) in claims {
                    self.file(file, &claim, watch)?;
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
                    return Err(self.error(file, format!("the hub's ETag {tag} is no SHA-256 and no git SHA-1")));
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
        let place = place.ok_or_else(|| self.error(file, "the hub redirects to nowhere"))?;
        if place.starts_with("http://") || place.starts_with("https://") {
            return Ok(place.to_owned());
        }
        // Relative to the host.
        let host = from.find("://").map_or(0, |at| at + 3);
        let end = from[host..].find('/').map_or(from.len(), |at| host + at);
        Ok(format!("{}/{}", &from[..end], place.trim_start_matches('/')))
    }

    fn file(&self, file: &str, claim: &FileClaim, watch: FetchProgress<'_>) -> Result<(), Error> {
        let path = self.folder.join(file);
        let part = self.folder.join(format!(".{file}.{}.part", claim.checksum));
        let broken = |error: std::io::Error| Error::model(&part, format!("cannot be written: {error}"));
        let mut target = File::options().read(true).append(true).create(true).open(&part).map_err(broken)?;
        let have = target.metadata().map_err(broken)?.len();
        let mut answer = self.get(file, &claim.url, have)?;
        let mut done = match answer.status() {
            StatusCode::PARTIAL_CONTENT if starts_at(&answer, have) => have,
            // The whole file, whatever was asked for.
            StatusCode::OK => 0,
            // Nothing is left, or the part is longer than the file: the checksum tells.
            StatusCode::RANGE_NOT_SATISFIABLE => u64::MAX,
            status => return Err(self.error(file, format!("the hub answers {status}"))),
        };
        if done == 0 {
            target.set_len(0).map_err(broken)?;
        }
        if done != u64::MAX {
            let total = answer.body().content_length().map_or(0, |length| done + length);
            watch(file, done, total);
            let mut source = answer.body_mut().as_reader();
            let mut buffer = vec![0; 1 << 16];
            loop {
                let count = source.read(&mut buffer).map_err(|error| {
                    self.error(
                        file,
                        format!("the connection broke after {done} bytes ({error}); run again to continue"),
                    )
                })?;
                if count == 0 {
                    break;
                }
                target.write_all(&buffer[..count]).map_err(broken)?;
                done += count as u64;
                watch(file, done, total);
            }
            if total > 0 && done < total {
                return Err(self.error(file, format!("the connection broke after {done} bytes; run again to continue")));
            }
        }
        target.flush().map_err(broken)?;
        drop(target);
        let found = checksum(&part, claim.checksum.len()).map_err(broken)?;
        if found != claim.checksum {
            std::fs::remove_file(&part).map_err(broken)?;
            let problem = format!("the checksum is {found}, the hub says {}; nothing was kept", claim.checksum);
            return Err(self.error(file, problem));
        }
        std::fs::rename(&part, &path).map_err(broken)
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

const REDIRECTS: usize = 6;

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
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(match sum {
        Checksum::Sha256(sum) => hex(&sum.finalize()),
        Checksum::Blob(sum) => hex(&sum.finalize()),
    })
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
}
