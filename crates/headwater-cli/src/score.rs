//! `headwater score`: posts in, the same posts with how negative, neutral and positive they are out.

use crate::beliefs::{BadRows, PresetName, mapping};
use crate::error::CliError;
use crate::output::check;
use crate::scorer::{ReaderArgs, ReaderName, reader};
use crate::terminal::{Terminal, count};
use clap::Args;
use headwater_files::AtomicFile;
use headwater_posts::quality::MaxBad;
use headwater_posts::scorable::ScorableRows;
use headwater_posts::{PostsInput, RejectsFile};
use headwater_score::builtin::{Builtin, ScoreExplanation};
use std::path::PathBuf;

/// Heading of `--help`, below the files.
const READING: &str = "Reading";

/// Scores every post: how negative, neutral and positive it is
#[derive(Debug, Args)]
#[command(
    after_help = "Adds the columns negative, neutral, positive and score = positive/(negative+positive) to every readable row; an input column of one of these names gets _in behind it. With a --preset of JSON lines there is a row per post, with the columns id, user, time, lang, repost and text.\n\nExample: headwater score posts.csv --out scored.csv --explain"
)]
pub(crate) struct Score {
    /// Files of posts (CSV, JSON lines, Parquet, plain or compressed) or 'patterns*'; - is standard input
    #[arg(value_name = "POSTS", required = true)]
    posts: Vec<PathBuf>,
    /// File to write, CSV
    #[arg(long, value_name = "SCORED.csv")]
    out: PathBuf,
    /// The platform the posts come from
    #[arg(help_heading = READING, long, value_enum)]
    preset: Option<PresetName>,
    /// Other names of columns or keys, such as text=body or text=post.content
    #[arg(help_heading = READING, long, value_name = "FIELD=NAME,…")]
    map: Vec<String>,
    /// Stop when more rows than this cannot be read, a share or a number [default: more than 100 and more than 1%]
    #[arg(help_heading = READING, long, value_name = "SHARE|N")]
    max_bad: Option<MaxBad>,
    /// Write rows that cannot be read as CSV file,line,reason
    #[arg(help_heading = READING, long, value_name = "FILE")]
    rejects: Option<PathBuf>,
    /// Add a column why: the terms that moved each score, and how much each adds to log(positive/negative)
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    scorer: ReaderArgs,
}

/// Posts that are scored at a time: many for the fast scorer, few for the slow one, so that progress is seen.
const SHARE: [usize; 2] = [8192, 256];

/// Terms that the column `why` has at most.
const TERMS: usize = 8;

impl Score {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<(), CliError> {
        self.scorer.check()?;
        if self.explain && self.scorer.scorer == ReaderName::Roberta {
            return Err(CliError::usage(
                "--explain is for --scorer builtin; a text model has no terms",
                "leave one of the two out",
            ));
        }
        let extension = self.out.extension().and_then(|extension| extension.to_str());
        if let Some(extension @ ("parquet" | "npy" | "json" | "jsonl" | "gz" | "zst" | "xlsx")) = extension {
            let message = format!("scored posts are not written as .{extension}");
            return Err(CliError::usage(message, "let --out end in .csv"));
        }
        check(&self.posts, [Some(&self.out), self.rejects.as_ref()].into_iter().flatten())?;
        let rejects = self.rejects.as_deref().map(RejectsFile::create).transpose()?;
        let mut bad = BadRows::new(rejects, terminal);
        let written = self.write(&mut bad, terminal);
        bad.close_quietly(written.is_ok())?;
        let written = written?;
        written.draft.commit()?;
        if written.bad > 0 {
            terminal.warn(&format!("{} left out", count(written.bad as usize, "unreadable row")));
        }
        if written.foreign > 0 {
            terminal.warn(&format!(
                "{} marked as not English; the built-in scorer knows English only",
                count(written.foreign, "post")
            ));
        }
        if written.passed > 0 {
            terminal.remark(&format!("{} held no post", count(written.passed, "line")));
        }
        terminal.remark(&format!("{} scored, in {}", count(written.scored, "post"), self.out.display()));
        Ok(())
    }

    fn write(&self, hooks: &mut BadRows<'_>, terminal: &Terminal) -> Result<ScoredFile, CliError> {
        let builtin = self.scorer.scorer == ReaderName::Builtin;
        let mapping = mapping(self.preset, &self.map)?;
        let input = PostsInput::from(self.posts.clone());
        let mut rows = ScorableRows::open(&input, &mapping, self.max_bad.unwrap_or_default(), hooks)?;
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
        out.write_record(header.iter().map(String::as_str).chain(added)).map_err(failed)?;

        let share = SHARE[usize::from(!builtin)];
        let total = rows.total_bytes();
        // A pipe does not say how long it is.
        let _alive = total.is_none().then(|| terminal.spinner("scoring"));
        let (mut scored, mut foreign) = (0, 0);
        let mut progress = terminal.bar("scoring (kB)", total.unwrap_or(0) >> 10);
        loop {
            let block = rows.next(share, hooks)?;
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
                out.write_record(fields).map_err(failed)?;
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
                hint: (rows.other_lines() > 0 || self.preset.is_some())
                    .then(|| "check that --preset names the platform of this file".to_owned()),
            });
        }
        rows.finish()?;
        let draft = out.into_inner().map_err(|error| failed(error.into_error().into()))?;
        let foreign = if builtin { foreign } else { 0 };
        Ok(ScoredFile { draft, scored, foreign, passed: rows.other_lines(), bad: rows.bad() })
    }
}

/// Scored posts that wait for their name.
struct ScoredFile {
    draft: AtomicFile,
    scored: usize,
    /// Posts marked with another language than the scorer reads.
    foreign: usize,
    /// Lines that hold something else than posts.
    passed: usize,
    /// Rows that cannot be read.
    bad: u64,
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
