//! Fetching a model by name, against a server in this file that behaves like the hub, or worse.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use headwater_score::roberta::{Roberta, hub};
use sha1::{Digest, Sha1};
use sha2::Sha256;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// What the server does wrong, and what it was asked.
#[derive(Default)]
struct Behaviour {
    /// Answers with the body break off after so many bytes, once.
    cut: Mutex<Option<(String, usize)>>,
    /// This file's checksum is another one's.
    lie: Mutex<Option<String>>,
    ignores_ranges: Mutex<bool>,
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

    fn fetch(&self, cache: &Path) -> Result<std::path::PathBuf, String> {
        hub::fetch(&self.url, "owner/tiny", cache, &mut |_, _, _| {}).map_err(|error| error.to_string())
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
        files.get(name).filter(|_| path.starts_with("/owner/tiny/resolve/main/") || path.starts_with("/store/"))
    else {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    };
    let large = content.len() > 50_000;
    let lie = behaviour.lie.lock().unwrap().as_deref() == Some(name);
    let summed: &[u8] = if lie { b"something else" } else { content };
    if large && !path.starts_with("/store/") {
        let sum = hex(&Sha256::digest(summed));
        let head = format!(
            "HTTP/1.1 302 Found\r\nLocation: /store/{name}\r\nX-Linked-Etag: \"{sum}\"\r\nETag: \"other\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
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
    let head =
        format!("HTTP/1.1 {status}\r\nETag: \"{tag}\"\r\n{range}Content-Length: {length}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    if method == "HEAD" {
        return Ok(());
    }
    let cut = {
        let mut cut = behaviour.cut.lock().unwrap();
        if cut.as_ref().is_some_and(|(file, _)| file == name) { cut.take() } else { None }
    };
    match cut {
        Some((_, bytes)) => stream.write_all(&content[from..][..bytes]),
        None => stream.write_all(&content[from..]),
    }
}

const WHOLE: [&str; 3] = ["config.json", "model.safetensors", "tokenizer.json"];

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_model_is_fetched_once_and_then_cached() {
    let server = Server::new(&WHOLE);
    let cache = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    let folder = hub::fetch(&server.url, "owner/tiny", cache.path(), &mut |file, done, total| {
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
        let folder = cache.path().join("owner--tiny");
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
        assert!(!names(&cache.path().join("owner--tiny")).iter().any(|name| name.contains(file)));
    }
}

#[test]
fn what_the_hub_does_not_have_is_named() {
    let server = Server::new(&["config.json", "tokenizer.json"]);
    let cache = tempfile::tempdir().unwrap();
    let error = server.fetch(cache.path()).unwrap_err();
    assert!(error.contains("no model.safetensors or pytorch_model.bin"), "{error}");
    let error = hub::fetch(&server.url, "owner/none", cache.path(), &mut |_, _, _| {}).unwrap_err().to_string();
    assert!(error.contains("no config.json under this name"), "{error}");
    assert!(hub::fetch(&server.url, "../x", cache.path(), &mut |_, _, _| {}).is_err());
    // Nobody listens there.
    let error =
        hub::fetch("http://127.0.0.1:1", "owner/tiny", cache.path(), &mut |_, _, _| {}).unwrap_err().to_string();
    assert!(error.contains("cannot be fetched"), "{error}");
}
