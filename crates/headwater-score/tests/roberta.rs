//! The text model against Hugging Face transformers, and what it refuses.
//!
//! `fixtures/roberta-tiny` was written by `reference/make_roberta_fixture.py`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use headwater_score::Scorer;
use headwater_score::roberta::Roberta;
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/roberta-tiny")
}

/// A folder with these files of the fixture, some under another name.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (from, to) in files {
        std::fs::copy(fixture().join(from), folder.path().join(to)).unwrap();
    }
    folder
}

const CONFIG: (&str, &str) = ("config.json", "config.json");
const SAFE: (&str, &str) = ("model.safetensors", "model.safetensors");
const TOKENIZER: (&str, &str) = ("tokenizer.json", "tokenizer.json");
const VOCABULARY: (&str, &str) = ("vocab.json", "vocab.json");
const MERGES: (&str, &str) = ("merges.txt", "merges.txt");

struct GoldenCase {
    text: String,
    tokens: Vec<u32>,
    logits: Vec<f64>,
}

fn cases() -> Vec<GoldenCase> {
    let text = std::fs::read_to_string(fixture().join("expected.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    let case = |case: Value| GoldenCase {
        text: case["text"].as_str().unwrap().to_owned(),
        tokens: serde_json::from_value(case["tokens"].clone()).unwrap(),
        logits: serde_json::from_value(case["logits"].clone()).unwrap(),
    };
    cases.into_iter().map(case).collect()
}

fn agrees(model: &Roberta) {
    let cases = cases();
    let texts: Vec<&str> = cases.iter().map(|case| case.text.as_str()).collect();
    let logits = model.logits(&texts).unwrap();
    for (case, logits) in cases.iter().zip(logits) {
        assert_eq!(model.tokens(&case.text).unwrap(), case.tokens, "{:?}", case.text);
        for (found, right) in logits.iter().zip(&case.logits) {
            // f32 on both sides, in another order of summation.
            assert!((f64::from(*found) - right).abs() < 1e-4, "{:?}: {found} {right}", case.text);
        }
    }
}

#[test]
fn every_kind_of_folder_gives_what_transformers_gives() {
    for files in [
        &[CONFIG, SAFE, TOKENIZER][..],
        &[CONFIG, SAFE, VOCABULARY, MERGES],
        &[CONFIG, ("pytorch_model.bin", "pytorch_model.bin"), TOKENIZER],
        &[CONFIG, ("pytorch_model-old.bin", "pytorch_model.bin"), TOKENIZER],
    ] {
        agrees(&Roberta::open(folder(files).path()).unwrap());
    }
}

#[test]
fn a_score_does_not_depend_on_company_or_threads() {
    let model = Roberta::open(&fixture()).unwrap();
    let cases = cases();
    let texts: Vec<&str> = cases.iter().map(|case| case.text.as_str()).collect();
    let together = model.logits(&texts).unwrap();
    let alone: Vec<[f32; 3]> = texts.iter().flat_map(|text| model.logits(&[text]).unwrap()).collect();
    assert_eq!(together, alone);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(one.install(|| model.logits(&texts).unwrap()), together);

    let repeated: Vec<&str> = texts.iter().chain(&texts).copied().collect();
    let scores = model.score(&repeated).unwrap();
    assert_eq!(scores[..texts.len()], scores[texts.len()..]);
    assert_eq!(model.score(&texts).unwrap(), scores[..texts.len()]);
    for (score, logits) in scores.iter().zip(&together) {
        assert!((score.negative + score.neutral + score.positive - 1.0).abs() < 1e-12);
        let ratio = (score.positive / score.negative).ln();
        assert!((ratio - f64::from(logits[2] - logits[0])).abs() < 1e-5);
    }
    assert!(model.score(&[]).unwrap().is_empty());
}

#[test]
fn labels_follow_their_names() {
    let folder = folder(&[CONFIG, SAFE, TOKENIZER]);
    let path = folder.path().join("config.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["id2label"] = serde_json::json!({"0": "positive", "1": "neutral", "2": "negative"});
    std::fs::write(&path, config.to_string()).unwrap();
    let (turned, plain) = (Roberta::open(folder.path()).unwrap(), Roberta::open(&fixture()).unwrap());
    let (turned, plain) = (turned.score(&["x"]).unwrap()[0], plain.score(&["x"]).unwrap()[0]);
    assert_eq!((turned.negative, turned.positive), (plain.positive, plain.negative));
}

#[test]
fn folders_that_lack_something_are_refused() {
    let message = |folder: &Path| Roberta::open(folder).unwrap_err().to_string();
    for (files, part) in [
        (&[SAFE, TOKENIZER][..], "config.json: cannot be read"),
        (&[CONFIG, TOKENIZER], "has no weights: model.safetensors or pytorch_model.bin is needed"),
        (&[CONFIG, SAFE], "has no tokenizer"),
        (&[CONFIG, SAFE, VOCABULARY], "has no tokenizer"),
        (&[CONFIG, ("config.json", "model.safetensors"), TOKENIZER], "is not a safetensors file"),
        (&[CONFIG, ("config.json", "pytorch_model.bin"), TOKENIZER], "is not a torch checkpoint"),
        (&[CONFIG, SAFE, ("vocab.json", "tokenizer.json")], "is not a tokenizer"),
        (&[("vocab.json", "config.json"), SAFE, TOKENIZER], "is not the configuration of a RoBERTa model"),
    ] {
        let folder = folder(files);
        assert!(message(folder.path()).contains(part), "{}", message(folder.path()));
    }
    assert!(message(Path::new("no/such/folder")).contains("is not a folder"));
}

#[test]
fn tensors_that_do_not_fit_are_named() {
    let whole = folder(&[CONFIG, SAFE, TOKENIZER]);
    let change = |name: &str, value: Value| {
        let text = std::fs::read_to_string(fixture().join("config.json")).unwrap();
        let mut config: Value = serde_json::from_str(&text).unwrap();
        config[name] = value;
        std::fs::write(whole.path().join("config.json"), config.to_string()).unwrap();
        Roberta::open(whole.path()).unwrap_err().to_string()
    };
    let error = change("num_hidden_layers", 3.into());
    assert!(
        error.contains("roberta.encoder.layer.2.") && error.contains("is missing") && error.contains("more"),
        "{error}"
    );
    let error = change("intermediate_size", 65.into());
    assert!(error.contains("has shape [64, 32], config.json says [65, 32]"), "{error}");
    let error = change("vocab_size", 10.into());
    assert!(error.contains("vocab_size 10"), "{error}");

    // Cut short: the header is whole, the numbers are not.
    let cut = folder(&[CONFIG, SAFE, TOKENIZER]);
    let path = cut.path().join("model.safetensors");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 5000]).unwrap();
    assert!(Roberta::open(cut.path()).unwrap_err().to_string().contains("cut short"));
}

#[test]
fn checkpoints_that_state_more_than_they_hold_are_refused() {
    use headwater_score::roberta::ModelCheckpoint;
    use std::io::{Cursor, Write};
    // A dictionary with the tensor "w" over storage 0, of this shape.
    let pickle = |shape: &[u8]| {
        let start =
            b"\x80\x02}X\x01\0\0\0wctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\n\
                      X\x01\0\0\x000X\x03\0\0\0cpuK\x02tQK\0";
        [&start[..], shape, b"\x89}tRs."].concat()
    };
    let archive = |pickle: &[u8], storage: &[u8], method: zip::CompressionMethod| {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in [("m/data.pkl", pickle), ("m/data/0", storage)] {
            let method = if name.ends_with("pkl") { zip::CompressionMethod::Stored } else { method };
            let options = zip::write::SimpleFileOptions::default().compression_method(method);
            archive.start_file(name, options).unwrap();
            archive.write_all(bytes).unwrap();
        }
        archive.finish().unwrap().into_inner()
    };
    let read = |file: Vec<u8>| {
        let mut checkpoint = ModelCheckpoint::from_torch(Cursor::new(file), Path::new("x.bin")).unwrap();
        checkpoint.tensor("w").map_err(|error| error.to_string())
    };
    let two = [1.0_f32, 2.0].iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let stored = zip::CompressionMethod::Stored;
    assert_eq!(read(archive(&pickle(b"K\x02\x85K\x01\x85"), &two, stored)).unwrap(), [1.0, 2.0]);
    // 2³⁰ × 2³⁰ numbers.
    let huge = pickle(b"J\0\0\0@J\0\0\0@\x86J\0\0\0@K\x01\x86");
    let told = read(archive(&huge, &two, stored)).unwrap_err();
    assert!(told.contains("takes 4611686018427387904 bytes, and the file has"), "{told}");
    // A megabyte of nothing that becomes a gigabyte.
    let zeros = archive(&pickle(b"J\0\0\x01\0\x85K\x01\x85"), &vec![0; 4 << 16], zip::CompressionMethod::Deflated);
    assert!(zeros.len() < 10_000 && read(zeros).is_err());
}
