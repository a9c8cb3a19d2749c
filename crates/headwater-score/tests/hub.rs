//! Fetching a model by name, against a server in this file that behaves like the hub, or worse.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use headwater_score::roberta::hub::{self, HubLimits};
use headwater_score::{Error, ModelSource, Roberta};
use sha1::{Digest, Sha1};
use sha2::Sha256;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the server does wrong, and what it was asked.
#[derive(Default)]
struct Behaviour {
    /// Answers with the body break off after so many bytes, once.
    cut: Mutex<Option<(String, usize)>>,
    /// This file's checksum is another one's.
    lie: Mutex<Option<String>>,
    ignores_ranges: Mutex<bool>,
    /// The answer with this body pauses for so long before its second half.
    pause: Mutex<Option<(String, Duration)>>,
    /// Answers name this commit.
    commit: Mutex<Option<String>>,
    asked: Mutex<Vec<String>>,
}

struct Server {
    url: String,
    behaviour: Arc<Behaviour>,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Server {
    /// Serves these files of the fixture as the model owner/tiny.
    fn new(files: &[&str]) -> Self {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/roberta-tiny");
        let files: BTreeMap<String, Vec<u8>> =
            files.iter().map(|name| ((*name).to_owned(), std::fs::read(fixture.join(name)).unwrap())).collect();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let behaviour = Arc::new(Behaviour::default());
        let shared = behaviour.clone();
        // Ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that hangs up is part of the test.
                let _ = answer(stream, &files, &shared);
            }
        });
        Server { url, behaviour }
    }

    fn source(&self, model: &str) -> ModelSource {
        ModelSource::new(model).with_hub(&self.url)
    }

    fn fetch(&self, cache: &Path) -> Result<PathBuf, String> {
        self.fetch_within(cache, &HubLimits::default())
    }

    fn fetch_within(&self, cache: &Path, limits: &HubLimits) -> Result<PathBuf, String> {
        hub::fetch(&self.source("owner/tiny"), cache, limits, &mut |_, _, _| {}).map_err(|error| error.to_string())
    }

    fn folder(&self, cache: &Path) -> PathBuf {
        hub::cache_folder(&self.source("owner/tiny"), cache)
    }

    fn asked(&self) -> String {
        self.behaviour.asked.lock().unwrap().join("\n")
    }
}

fn answer(mut stream: TcpStream, files: &BTreeMap<String, Vec<u8>>, behaviour: &Behaviour) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut from = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        if header.trim().is_empty() {
            break;
        }
        if let Some(range) = header.to_lowercase().strip_prefix("range: bytes=") {
            from = range.trim().trim_end_matches('-').parse().unwrap();
        }
    }
    let (method, path) = request.split_once(' ').unwrap();
    let path = path.split(' ').next().unwrap();
    behaviour.asked.lock().unwrap().push(format!("{method} {path} {from}"));
    let name = path.rsplit('/').next().unwrap();
    let Some(content) =
        files.get(name).filter(|_| path.starts_with("/owner/tiny/resolve/") || path.starts_with("/store/"))
    else {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    };
    let commit = behaviour.commit.lock().unwrap().clone();
    let commit = commit.map_or(String::new(), |commit| format!("X-Repo-Commit: {commit}\r\n"));
    let large = content.len() > 50_000;
    let lie = behaviour.lie.lock().unwrap().as_deref() == Some(name);
    let summed: &[u8] = if lie { b"something else" } else { content };
    if large && !path.starts_with("/store/") {
        let sum = hex(&Sha256::digest(summed));
        let head = format!(
            "HTTP/1.1 302 Found\r\nLocation: /store/{name}\r\nX-Linked-Etag: \"{sum}\"\r\n{commit}ETag: \"other\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        return stream.write_all(head.as_bytes());
    }
    let mut sum = Sha1::new();
    sum.update(format!("blob {}\0", summed.len()));
    sum.update(summed);
    let tag = hex(&sum.finalize());
    if *behaviour.ignores_ranges.lock().unwrap() {
        from = 0;
    }
    let status = if from > 0 { "206 Partial Content" } else { "200 OK" };
    let range = if from > 0 {
        format!("Content-Range: bytes {from}-{}/{}\r\n", content.len() - 1, content.len())
    } else {
        String::new()
    };
    let length = content.len() - from;
    let head = format!(
        "HTTP/1.1 {status}\r\nETag: \"{tag}\"\r\n{commit}{range}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    if method == "HEAD" {
        return Ok(());
    }
    let cut = {
        let mut cut = behaviour.cut.lock().unwrap();
        if cut.as_ref().is_some_and(|(file, _)| file == name) { cut.take() } else { None }
    };
    let pause = behaviour.pause.lock().unwrap().clone().filter(|(file, _)| file == name);
    if let Some((_, pause)) = pause {
        let (first, second) = content[from..].split_at((content.len() - from) / 2);
        stream.write_all(first)?;
        stream.flush()?;
        std::thread::sleep(pause);
        return stream.write_all(second);
    }
    match cut {
        Some((_, bytes)) => stream.write_all(&content[from..][..bytes]),
        None => stream.write_all(&content[from..]),
    }
}

const WHOLE: [&str; 3] = ["config.json", "model.safetensors", "tokenizer.json"];

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name != ".checksums.json").collect();
    names.sort();
    names
}

#[test]
fn a_model_is_fetched_once_and_then_cached() {
    let server = Server::new(&WHOLE);
    let cache = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    let source = server.source("owner/tiny");
    let folder = hub::fetch(&source, cache.path(), &HubLimits::default(), &mut |file, done, total| {
        if done == total {
            seen.push(file.to_owned());
        }
    })
    .unwrap();
    assert_eq!(names(&folder), WHOLE);
    assert_eq!(seen, WHOLE);
    Roberta::open(&folder).unwrap();
    let asked = server.behaviour.asked.lock().unwrap().len();
    assert_eq!(server.fetch(cache.path()).unwrap(), folder);
    assert_eq!(server.behaviour.asked.lock().unwrap().len(), asked, "the cache was not used");
}

#[test]
fn other_file_names_are_found() {
    let server = Server::new(&["config.json", "pytorch_model.bin", "vocab.json", "merges.txt"]);
    let cache = tempfile::tempdir().unwrap();
    let folder = server.fetch(cache.path()).unwrap();
    assert_eq!(names(&folder), ["config.json", "merges.txt", "pytorch_model.bin", "vocab.json"]);
    Roberta::open(&folder).unwrap();
}

#[test]
fn an_interruption_is_continued() {
    for ignores_ranges in [false, true] {
        let server = Server::new(&WHOLE);
        *server.behaviour.ignores_ranges.lock().unwrap() = ignores_ranges;
        *server.behaviour.cut.lock().unwrap() = Some(("model.safetensors".to_owned(), 70_000));
        let cache = tempfile::tempdir().unwrap();
        let error = server.fetch(cache.path()).unwrap_err();
        assert!(error.contains("model.safetensors") && error.contains("run again to continue"), "{error}");
        let folder = server.folder(cache.path());
        let left = names(&folder);
        assert!(!left.contains(&"model.safetensors".to_owned()) && left[0].ends_with(".part"), "{left:?}");
        let folder = server.fetch(cache.path()).unwrap();
        assert_eq!(names(&folder), WHOLE);
        let asked = server.behaviour.asked.lock().unwrap().join("\n");
        assert!(asked.contains("GET /store/model.safetensors 70000"), "{asked}");
        Roberta::open(&folder).unwrap();
    }
}

#[test]
fn a_wrong_checksum_is_refused_and_leaves_nothing() {
    for file in ["config.json", "model.safetensors"] {
        let server = Server::new(&WHOLE);
        *server.behaviour.lie.lock().unwrap() = Some(file.to_owned());
        let cache = tempfile::tempdir().unwrap();
        let error = server.fetch(cache.path()).unwrap_err();
        assert!(error.contains(file) && error.contains("the checksum is"), "{error}");
        assert!(!names(&server.folder(cache.path())).iter().any(|name| name.contains(file)));
    }
}

#[test]
fn what_the_hub_does_not_have_is_named() {
    let server = Server::new(&["config.json", "tokenizer.json"]);
    let cache = tempfile::tempdir().unwrap();
    let error = server.fetch(cache.path()).unwrap_err();
    assert!(error.contains("no model.safetensors or pytorch_model.bin"), "{error}");
    let fetch = |source: &ModelSource| -> Result<PathBuf, Error> {
        hub::fetch(source, cache.path(), &HubLimits::default(), &mut |_, _, _| {})
    };
    let error = fetch(&server.source("owner/none")).unwrap_err().to_string();
    assert!(error.contains("no config.json under this name"), "{error}");
    assert!(fetch(&server.source("../x")).is_err());
    assert!(fetch(&server.source("owner/tiny").with_revision("../main")).is_err());
    // Nobody listens there.
    let error = fetch(&ModelSource::new("owner/tiny").with_hub("http://127.0.0.1:1")).unwrap_err().to_string();
    assert!(error.contains("cannot be fetched"), "{error}");
}

#[test]
fn a_file_that_is_too_large_is_refused_and_leaves_nothing() {
    let server = Server::new(&WHOLE);
    let cache = tempfile::tempdir().unwrap();
    for (limits, file) in [
        (HubLimits { other: 100, ..HubLimits::default() }, "config.json"),
        (HubLimits { weights: 1000, ..HubLimits::default() }, "model.safetensors"),
    ] {
        let error = server.fetch_within(cache.path(), &limits).unwrap_err();
        assert!(error.contains(file) && error.contains("is larger than 1"), "{error}");
        assert!(!names(&server.folder(cache.path())).iter().any(|name| name.contains(file)));
    }
    server.fetch(cache.path()).unwrap();
}

#[test]
fn an_answer_that_pauses_for_too_long_ends() {
    let server = Server::new(&WHOLE);
    let cache = tempfile::tempdir().unwrap();
    *server.behaviour.pause.lock().unwrap() = Some(("config.json".to_owned(), Duration::from_secs(2)));
    let limits = HubLimits { idle: Duration::from_millis(300), ..HubLimits::default() };
    let started = std::time::Instant::now();
    let error = server.fetch_within(cache.path(), &limits).unwrap_err();
    assert!(error.contains("config.json") && error.contains("nothing came for 0.3 s"), "{error}");
    assert!(started.elapsed() < Duration::from_millis(1900), "it waited for the second half");
    // A pause that is shorter is none.
    *server.behaviour.pause.lock().unwrap() = Some(("config.json".to_owned(), Duration::from_millis(50)));
    server.fetch(cache.path()).unwrap();
}

#[test]
fn a_cached_file_that_changed_is_fetched_again() {
    let server = Server::new(&WHOLE);
    let cache = tempfile::tempdir().unwrap();
    let folder = server.fetch(cache.path()).unwrap();
    std::fs::write(folder.join("tokenizer.json"), "{}").unwrap();
    // Never fetched, and would be preferred to nothing that was.
    std::fs::write(folder.join("vocab.json"), "{}").unwrap();
    server.behaviour.asked.lock().unwrap().clear();
    assert_eq!(server.fetch(cache.path()).unwrap(), folder);
    assert_eq!(names(&folder), WHOLE);
    Roberta::open(&folder).unwrap();
    let asked = server.asked();
    assert!(asked.contains("GET /owner/tiny/resolve/main/tokenizer.json") && !asked.contains("GET /store"), "{asked}");
}

#[test]
fn all_files_are_of_one_commit() {
    let server = Server::new(&WHOLE);
    let cache = tempfile::tempdir().unwrap();
    let commit = |commit: &str| *server.behaviour.commit.lock().unwrap() = Some(commit.to_owned());
    commit("aaaa");
    let folder = server.fetch(cache.path()).unwrap();
    assert!(server.asked().contains("GET /owner/tiny/resolve/aaaa/config.json"), "{}", server.asked());
    // The branch has moved on when one file has to be fetched again: none of the old commit stays.
    commit("bbbb");
    std::fs::remove_file(folder.join("tokenizer.json")).unwrap();
    server.behaviour.asked.lock().unwrap().clear();
    server.fetch(cache.path()).unwrap();
    for file in ["config.json", "tokenizer.json"] {
        assert!(server.asked().contains(&format!("GET /owner/tiny/resolve/bbbb/{file}")), "{}", server.asked());
    }
    assert_eq!(names(&folder), WHOLE);
}
