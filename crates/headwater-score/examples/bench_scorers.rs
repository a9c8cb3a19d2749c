//! Times a scorer on a list of texts, once per line on standard input: for `reference/bench_scorers.py`, which takes turns.
//!
//! ```sh
//! bench_scorers builtin TEXTS.json
//! bench_scorers roberta TEXTS.json FOLDER [LOGITS.json]
//! ```
//!
//! In: a JSON list of texts. Out: seconds per pass, one line each. With LOGITS.json, the outputs of the first pass.

#![expect(clippy::print_stdout, reason = "this program prints figures")]

use headwater_score::Scorer;
use headwater_score::builtin::Builtin;
use headwater_score::roberta::Roberta;
use std::error::Error;
use std::io::{BufRead, Write};
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Some(kind), Some(texts)) = (arguments.first(), arguments.get(1)) else {
        return Err("usage: bench_scorers builtin|roberta TEXTS.json [FOLDER [LOGITS.json]]".into());
    };
    let texts: Vec<String> = serde_json::from_slice(&std::fs::read(texts)?)?;
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    match (kind.as_str(), arguments.get(2)) {
        ("builtin", _) => {
            let scorer = Builtin::new();
            turns(|| scorer.score(&texts).map(drop))
        }
        ("roberta", Some(folder)) => {
            let scorer = Roberta::open(folder.as_ref())?;
            if let Some(path) = arguments.get(3) {
                let tokens = texts.iter().map(|text| scorer.tokens(text)).collect::<Result<Vec<_>, _>>()?;
                let found = serde_json::json!({"tokens": tokens, "logits": scorer.logits(&texts)?});
                std::fs::write(path, found.to_string())?;
            }
            // Not `score`, which would remember.
            turns(|| scorer.logits(&texts).map(drop))
        }
        _ => Err("roberta needs a folder".into()),
    }
}

fn turns(pass: impl Fn() -> Result<(), headwater_score::Error>) -> Result<(), Box<dyn Error>> {
    pass()?;
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        line?;
        let started = Instant::now();
        pass()?;
        println!("{}", started.elapsed().as_secs_f64());
        std::io::stdout().flush()?;
    }
    Ok(())
}
