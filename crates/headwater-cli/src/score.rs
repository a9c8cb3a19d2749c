//! `headwater score`: adds sentiment scores to posts.

use crate::beliefs::{BadRowLog, ReadingArgs, mapping, recognised_text};
use crate::error::CliError;
use crate::hints::warning_text;
use crate::output::check;
use crate::scorer::{ReaderArgs, ReaderName, reader};
use crate::terminal::{Terminal, count};
use clap::Args;
use headwater_files::AtomicFile;
use headwater_posts::read::Encoding;
use headwater_posts::scorable::ScorableRows;
use headwater_posts::{IngestWarning, PostsInput, RejectsFile};
use headwater_score::builtin::{Builtin, ScoreExplanation};
use std::path::PathBuf;

/// Adds the sentiment (negative, neutral, positive) to every post
#[derive(Debug, Args)]
#[command(
    after_help = "Adds the columns negative, neutral, positive and score = positive/(negative+positive) to every readable row; an input column of the same name is renamed with the suffix _in. Of a platform's JSON (--preset, or recognised) each post becomes a row with the columns id, user, time, lang, repost and text.\n\nExample: headwater score posts.csv --out scored.csv --explain"
)]
pub(crate) struct ScoreArgs {
    /// Files of posts (CSV, JSON, Parquet, plain or compressed) or 'patterns*'; - is standard input
    #[arg(value_name = "POSTS", required = true)]
    posts: Vec<PathBuf>,
    /// CSV file to write
    #[arg(long, value_name = "SCORED.csv")]
    out: PathBuf,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Add the column why: the terms that contribute most to log(positive/negative), with their contributions
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    scorer: ReaderArgs,
}

/// Posts per block for the built-in scorer and for a text model; the slower one gets smaller blocks, for progress.
const BLOCK: [usize; 2] = [8192, 256];

/// Largest number of terms in the column `why`.
const TERMS: usize = 8;

impl ScoreArgs {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<(), CliError> {
        self.scorer.check()?;
        if self.explain && self.scorer.scorer == ReaderName::Roberta {
            return Err(CliError::usage(
                "--explain works with --scorer builtin only",
                "omit --explain, or use --scorer builtin",
            ));
        }
        let extension = self.out.extension().and_then(|extension| extension.to_str());
        if let Some(extension @ ("parquet" | "npy" | "json" | "jsonl" | "gz" | "zst" | "xlsx")) = extension {
            let message = format!("scored posts are not written as .{extension}");
            return Err(CliError::usage(message, "use a name that ends in .csv"));
        }
        check(&self.posts, [Some(&self.out), self.reading.rejects.as_ref()].into_iter().flatten())?;
        let rejects =
            self.reading.rejects.as_deref().map(|path| RejectsFile::create(path, terminal.csv_text())).transpose()?;
        let mut bad = BadRowLog::new(rejects, terminal);
        let written = self.write(&mut bad, terminal);
        bad.close_quietly(written.is_ok())?;
        let written = written?;
        written.draft.commit()?;
        for encoding in written.decoded {
            terminal.warn(&warning_text(&IngestWarning::Decoded { encoding }));
        }
        if written.bare_reposts > 0 {
            let reposts = count(written.bare_reposts as usize, "repost");
            terminal.remark(&format!("{reposts} left out, because the post they repeat was not read before them"));
        }
        if written.bad > 0 {
            terminal.warn(&format!("{} left out", count(written.bad as usize, "unreadable row")));
        }
        if written.foreign > 0 {
            terminal.warn(&format!(
                "{} tagged as not English; the built-in scorer is for English only",
                count(written.foreign, "post")
            ));
        }
        if written.passed > 0 {
            terminal.remark(&format!("{} without a post", count(written.passed, "line")));
        }
        terminal.remark(&format!("wrote {} to {}", count(written.scored, "scored post"), self.out.display()));
        Ok(())
    }

    fn write(&self, hooks: &mut BadRowLog<'_>, terminal: &Terminal) -> Result<ScoredFile, CliError> {
        let builtin = self.scorer.scorer == ReaderName::Builtin;
        let mapping = mapping(self.reading.preset, &self.reading.map)?;
        let input = PostsInput::from(self.posts.clone());
        let mut rows = ScorableRows::open(&input, &mapping, self.reading.max_bad.unwrap_or_default(), hooks)?;
        rows.recognised().iter().for_each(|preset| terminal.remark(&recognised_text(*preset)));
        let scorer = reader(&self.scorer, terminal)?;
        let explainer = self.explain.then(Builtin::new);
        let mut out = csv::Writer::from_writer(AtomicFile::create(&self.out)?);
        let failed = |error: csv::Error| CliError::data(format!("{}: cannot write: {error}", self.out.display()));

        let mut added = vec!["negative", "neutral", "positive", "score"];
        if self.explain {
            added.push("why");
        }
        let (mut header, mut used) = (Vec::new(), std::collections::HashSet::new());
        for name in rows.header() {
            let mut name = name.clone();
            while added.contains(&name.as_str()) || used.contains(&name) {
                name.push_str("_in");
            }
            used.insert(name.clone());
            header.push(name);
        }
        let sheet = terminal.csv_text();
        let names = header.iter().map(String::as_str).chain(added);
        out.write_record(names.map(|name| sheet.cell(name).into_owned())).map_err(failed)?;

        let block_size = BLOCK[usize::from(!builtin)];
        let total = rows.total_bytes();
        // The length of a pipe is not known.
        let _alive = total.is_none().then(|| terminal.spinner("scoring"));
        let (mut scored, mut foreign) = (0, 0);
        let mut progress = terminal.bar("scoring (kB)", total.unwrap_or(0) >> 10);
        loop {
            let block = rows.next(block_size, hooks)?;
            if block.is_empty() {
                break;
            }
            let texts: Vec<&str> = block.iter().map(|(text, _)| text.as_str()).collect();
            headwater::progress::check()?;
            let scores = scorer.score(&texts)?;
            for ((text, row), score) in block.iter().zip(&scores) {
                let numbers =
                    [score.negative, score.neutral, score.positive, score.score()].map(|value| value.to_string());
                let why = explainer.as_ref().map(|explainer| why(&explainer.explain(text)));
                let fields = row.iter().chain(&numbers).map(String::as_str).chain(why.as_deref());
                out.write_record(fields.map(|field| sheet.cell(field).into_owned())).map_err(failed)?;
            }
            let marked = rows.language().into_iter().flat_map(|column| block.iter().map(move |(_, row)| &row[column]));
            foreign += marked.filter(|lang| !lang.is_empty() && !lang.to_lowercase().starts_with("en")).count();
            scored += block.len();
            if total.is_some() {
                progress.at(rows.bytes() >> 10);
            }
        }
        drop(progress);
        if scored == 0 {
            let first = rows.first_bad().map_or(String::new(), |first| format!("; the first row: {first}"));
            return Err(CliError::Data {
                message: format!("{}: has no readable post{first}", self.posts[0].display()),
                hint: (rows.other_lines() > 0 || self.reading.preset.is_some())
                    .then(|| "check that --preset names the platform of this file".to_owned()),
            });
        }
        rows.finish()?;
        let draft = out.into_inner().map_err(|error| failed(error.into_error().into()))?;
        let foreign = if builtin { foreign } else { 0 };
        let (decoded, bare_reposts) = (rows.decoded(), rows.bare_reposts());
        Ok(ScoredFile { draft, scored, foreign, passed: rows.other_lines(), bad: rows.bad(), decoded, bare_reposts })
    }
}

/// A file of scored posts that is not committed yet.
struct ScoredFile {
    draft: AtomicFile,
    scored: usize,
    /// Posts tagged with a language that the scorer does not support.
    foreign: usize,
    /// Lines that are not posts.
    passed: usize,
    /// Unreadable rows.
    bad: u64,
    /// Encodings other than UTF-8.
    decoded: Vec<Encoding>,
    /// Reposts whose text is not known.
    bare_reposts: u64,
}

/// `love +1.20; ¬good -0.71; (the rest) +0.05`, the strongest first; they sum to log(positive/negative).
fn why(explanation: &ScoreExplanation) -> String {
    let strong = || explanation.terms.iter().take(TERMS).filter(|term| term.contribution.abs() >= 0.005);
    let all: f64 = explanation.terms.iter().map(|term| term.contribution).sum();
    let rest = all - strong().map(|term| term.contribution).sum::<f64>();
    let mut words: Vec<String> = strong().map(|term| format!("{} {:+.2}", term.term, term.contribution)).collect();
    if rest.abs() >= 0.005 {
        words.push(format!("(the rest) {rest:+.2}"));
    }
    words.join("; ")
}
