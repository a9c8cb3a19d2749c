//! `headwater score`: posts in, the same posts with how negative, neutral and positive they are out.

use crate::failure::Failure;
use crate::scorer::{ScorerName, ScorerOptions, scorer};
use crate::screen::{Screen, count};
use clap::Args;
use headwater_files::Draft;
use headwater_posts::score::builtin::{Builtin, Explanation};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Scores every post: how negative, neutral and positive it is
#[derive(Debug, Args)]
#[command(
    after_help = "Adds the columns negative, neutral, positive and score = positive/(negative+positive) to every readable row; an input column of one of these names gets _in behind it.\n\nExample: headwater score posts.csv --out scored.csv --explain"
)]
pub(crate) struct Score {
    /// Posts as CSV with a column text; - is standard input
    #[arg(value_name = "POSTS")]
    posts: PathBuf,
    /// File to write, CSV
    #[arg(long, value_name = "SCORED.csv")]
    out: PathBuf,
    /// Other names of columns, such as text=body
    #[arg(long, value_name = "NAME=COLUMN,…", value_delimiter = ',')]
    map: Vec<String>,
    /// Add a column why: the terms that moved each score, and how much each adds to log(positive/negative)
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    scorer: ScorerOptions,
}

/// Posts that are scored at a time: many for the fast scorer, few for the slow one, so that progress is seen.
const SHARE: [usize; 2] = [8192, 256];

/// Terms that the column `why` has at most.
const TERMS: usize = 8;

impl Score {
    pub(crate) fn run(self, screen: &mut Screen) -> Result<(), Failure> {
        let builtin = self.scorer.scorer == ScorerName::Builtin;
        if self.explain && !builtin {
            return Err(Failure::usage(
                "--explain is for --scorer builtin; a text model has no terms",
                "leave one of the two out",
            ));
        }
        Draft::check(&self.out)?;
        let mut rows = rows(&self.posts, &self.map)?;
        let scorer = scorer(&self.scorer, screen)?;
        let explainer = self.explain.then(Builtin::new);
        let mut out = csv::Writer::from_writer(Draft::create(&self.out)?);
        let failed = |error: csv::Error| Failure::data(format!("{}: cannot write: {error}", self.out.display()));

        let mut added = vec!["negative", "neutral", "positive", "score"];
        if self.explain {
            added.push("why");
        }
        let mut header = Vec::new();
        for name in &rows.header {
            let mut name = name.clone();
            while added.contains(&name.as_str()) || header.contains(&name) {
                name.push_str("_in");
            }
            header.push(name);
        }
        out.write_record(header.iter().map(String::as_str).chain(added)).map_err(failed)?;

        let share = SHARE[usize::from(!builtin)];
        let language = rows.header.iter().position(|name| name == "lang");
        let (mut scored, mut foreign) = (0, 0);
        let mut progress = screen.progress("scoring", rows.size);
        loop {
            let block = rows.next(share)?;
            if block.is_empty() {
                break;
            }
            let texts: Vec<&str> = block.iter().map(|row| row.get(rows.text).unwrap_or_default()).collect();
            let scores = scorer.score(&texts)?;
            for ((row, text), score) in block.iter().zip(&texts).zip(&scores) {
                let numbers =
                    [score.negative, score.neutral, score.positive, score.score()].map(|value| value.to_string());
                let why = explainer.as_ref().map(|explainer| why(&explainer.explain(text)));
                let fields = row.iter().chain(numbers.iter().map(String::as_str)).chain(why.as_deref());
                out.write_record(fields).map_err(failed)?;
            }
            let marked = language.into_iter().flat_map(|column| block.iter().filter_map(move |row| row.get(column)));
            foreign += marked.filter(|lang| !lang.is_empty() && !lang.to_lowercase().starts_with("en")).count();
            scored += block.len();
            progress.at(rows.position());
        }
        drop(progress);
        if scored == 0 {
            return Err(Failure::data(format!("{}: has no readable post", self.posts.display())));
        }
        let draft = out.into_inner().map_err(|error| failed(error.into_error().into()))?;
        draft.commit()?;
        if rows.unreadable > 0 {
            let first = rows.first_unreadable.as_deref().unwrap_or_default();
            screen.warn(&format!("{} left out; the first: {first}", count(rows.unreadable, "unreadable row")));
        }
        if builtin && foreign > 0 {
            screen.warn(&format!(
                "{} marked as not English; the built-in scorer knows English only",
                count(foreign, "post")
            ));
        }
        screen.remark(&format!("{} scored, in {}", count(scored, "post"), self.out.display()));
        Ok(())
    }
}

/// `love +1.20; ¬good -0.71`, the strongest first.
fn why(explanation: &Explanation) -> String {
    let strong = explanation.terms.iter().take(TERMS).filter(|term| term.contribution.abs() >= 0.005);
    strong.map(|term| format!("{} {:+.2}", term.term, term.contribution)).collect::<Vec<_>>().join("; ")
}

/// The rows of a table of posts, in order.
struct Rows {
    reader: csv::Reader<Box<dyn Read>>,
    path: PathBuf,
    header: Vec<String>,
    /// Which column is the text.
    text: usize,
    /// Bytes of the input, as far as known.
    size: u64,
    unreadable: usize,
    first_unreadable: Option<String>,
}

/// Opens a table of posts.
fn rows(path: &Path, map: &[String]) -> Result<Rows, Failure> {
    let unreadable = |error: std::io::Error| Failure::data(format!("{}: cannot read: {error}", path.display()));
    let (input, size): (Box<dyn Read>, u64) = if path == Path::new("-") {
        (Box::new(std::io::stdin()), 0)
    } else {
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let size = file.metadata().map_err(unreadable)?.len();
        (Box::new(file), size)
    };
    let mut wanted = "text";
    for entry in map {
        match entry.split_once('=') {
            Some(("text", column)) => wanted = column,
            Some(_) => {}
            None => {
                return Err(Failure::usage(format!("--map {entry:?} is not NAME=COLUMN"), "such as --map text=body"));
            }
        }
    }
    let mut reader = csv::ReaderBuilder::new().flexible(true).buffer_capacity(1 << 16).from_reader(input);
    let named = |error: csv::Error| Failure::data(format!("{}: not a table: {error}", path.display()));
    let mut header: Vec<String> = reader.headers().map_err(named)?.iter().map(str::to_owned).collect();
    if let Some(first) = header.first_mut()
        && let Some(rest) = first.strip_prefix('\u{feff}')
    {
        *first = rest.to_owned();
    }
    let Some(text) = header.iter().position(|name| name == wanted) else {
        return Err(Failure::Data {
            message: format!("{}: no column {wanted:?}; found {}", path.display(), header.join(", ")),
            hint: Some("say which column is the text with --map text=COLUMN".to_owned()),
        });
    };
    Ok(Rows { reader, path: path.to_owned(), header, text, size, unreadable: 0, first_unreadable: None })
}

impl Rows {
    /// At most so many rows; none at the end.
    fn next(&mut self, most: usize) -> Result<Vec<csv::StringRecord>, Failure> {
        let mut block = Vec::new();
        while block.len() < most {
            let mut row = csv::StringRecord::new();
            let problem = match self.reader.read_record(&mut row) {
                Ok(false) => break,
                Ok(true) if row.len() == self.header.len() => {
                    block.push(row);
                    continue;
                }
                Ok(true) => format!("{} fields, the header has {}", row.len(), self.header.len()),
                Err(error) if error.is_io_error() => {
                    return Err(Failure::data(format!("{}: cannot read: {error}", self.path.display())));
                }
                Err(error) => error.to_string(),
            };
            self.unreadable += 1;
            let line = row.position().map_or(0, csv::Position::line);
            self.first_unreadable.get_or_insert_with(|| format!("{}, line {line}: {problem}", self.path.display()));
        }
        Ok(block)
    }

    /// Bytes read so far.
    fn position(&self) -> u64 {
        self.reader.position().byte()
    }
}
