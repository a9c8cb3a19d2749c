//! `headwater beliefs`: posts in, what users believe day by day out.

use crate::error::CliError;
use crate::output::{check, draft_json};
use crate::scorer::{ScorerName, ScorerOptions, scorer};
use crate::terminal::{Format, Terminal, count, csv, percent, short, table, wrapped};
use clap::{Args, ValueEnum};
use headwater_files::{AtomicFile, BeliefsRows};
use headwater_posts::Error;
use headwater_posts::bin::{self, Bin, Calendar, Hypotheses};
use headwater_posts::given::Wanted;
use headwater_posts::ingest::Ingest;
use headwater_posts::post::{Batch, Mapping, Posts};
use headwater_posts::quality::{MaxBad, Quality};
use headwater_posts::read::{Bad, Preset};
use headwater_posts::select::{Moment, Selection, Topic, read_users, window};
use jiff::tz::TimeZone;
use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Headings of `--help`, below the files.
const READING: &str = "Reading";
const SELECTION: &str = "Selection";
const OPINION: &str = "Opinion";

/// Bad rows named one by one on the terminal.
pub(crate) const NAMED: usize = 5;

/// Users listed on the terminal.
const LISTED: usize = 20;

/// Turns posts into beliefs: who said how positive things about a topic, day by day
#[derive(Debug, Args)]
#[command(
    after_help = "Posts are CSV, JSON lines or Parquet, plain, gzip or zstd, with user, time and text.\nTopics: words, \"phrases\", prefix*, #tag, @name, AND, OR, NOT, parentheses; a topic may end in @FROM..TO.\n\nExample: headwater beliefs posts.csv.gz --topic 'biden OR \"white house\"' --timezone America/New_York --out beliefs.parquet\n         headwater beliefs dump.jsonl --preset x-v2 --from 2021-01-20 --min-posts 50 --out beliefs.csv"
)]
pub(crate) struct Beliefs {
    #[command(flatten)]
    options: PostOptions,
    /// Where to write the beliefs: .parquet, otherwise CSV
    #[arg(long, value_name = "BELIEFS")]
    out: PathBuf,
    /// Write the data-quality summary as JSON
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// How to print the summary; the table goes to the terminal, JSON and CSV (by user) to standard output
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Which posts count, and as what: for every command that starts from posts.
#[derive(Debug, Args)]
pub(crate) struct PostOptions {
    /// Files or 'patterns*'; - is standard input (not for discover, which hashes its inputs first)
    #[arg(required = true)]
    pub(crate) posts: Vec<PathBuf>,
    /// The platform the posts come from
    #[arg(help_heading = READING, long, value_enum)]
    preset: Option<PresetName>,
    /// Other names of columns or keys, such as text=body,user=author.handle
    #[arg(help_heading = READING, long, value_name = "FIELD=NAME,…")]
    map: Vec<String>,
    /// Stop when more rows than this cannot be read, a share or a number [default: more than 100 and more than 1%]
    #[arg(help_heading = READING, long, value_name = "SHARE|N")]
    max_bad: Option<MaxBad>,
    /// Write rows that cannot be read as CSV file,line,reason
    #[arg(help_heading = READING, long, value_name = "FILE")]
    pub(crate) rejects: Option<PathBuf>,
    /// What the posts are about; repeat for either of several: QUERY or QUERY@FROM..TO
    #[arg(help_heading = SELECTION, long, value_name = "QUERY")]
    pub(crate) topic: Vec<String>,
    /// First day, in the time zone
    #[arg(help_heading = SELECTION, long, value_name = "DATE")]
    from: Option<Moment>,
    /// Last day, in the time zone
    #[arg(help_heading = SELECTION, long, value_name = "DATE")]
    to: Option<Moment>,
    /// Leave out posts marked with another language [default: en for the built-in scorer]
    #[arg(help_heading = SELECTION, long, value_name = "L", value_delimiter = ',')]
    lang: Vec<String>,
    /// Keep posts in every language
    #[arg(help_heading = SELECTION, long, conflicts_with = "lang")]
    any_language: bool,
    /// Whether a repost is the reposter's opinion
    #[arg(help_heading = SELECTION, long, value_enum, default_value = "keep")]
    reposts: Reposts,
    /// Leave out users with fewer posts
    #[arg(help_heading = SELECTION, long, value_name = "N", default_value_t = 1)]
    min_posts: u64,
    /// Only these users: a CSV with a column user, or one name per line
    #[arg(help_heading = SELECTION, long, value_name = "FILE")]
    pub(crate) users: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) scorer: ScorerOptions,
    /// 2: positive and negative; 3: neutral is a state of its own
    #[arg(help_heading = OPINION, long, value_name = "2|3", default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=3))]
    hypotheses: u8,
    /// Length of a bin: hour, day, week (from Monday), or hours such as 6h
    #[arg(help_heading = OPINION, long, default_value = "day")]
    bin: Bin,
    /// Time zone of the bins and dates, an IANA name
    #[arg(help_heading = OPINION, long, value_name = "ZONE", default_value = "UTC", value_parser = parse_zone)]
    timezone: TimeZone,
    /// Fill silence: users hold their last opinion, and before their first word the first one
    #[arg(help_heading = OPINION, long)]
    carry_forward: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PresetName {
    /// X API v2 as twarc2 saves it
    #[value(name = "x-v2")]
    XV2,
    /// X API v1.1 statuses
    #[value(name = "x-v1")]
    XV1,
    /// Bluesky Jetstream events
    Bluesky,
    /// Mastodon statuses
    Mastodon,
    /// 4CAT's CSV
    #[value(name = "4cat")]
    FourCat,
}

impl From<PresetName> for Preset {
    fn from(name: PresetName) -> Self {
        match name {
            PresetName::XV2 => Preset::XV2,
            PresetName::XV1 => Preset::XV1,
            PresetName::Bluesky => Preset::Bluesky,
            PresetName::Mastodon => Preset::Mastodon,
            PresetName::FourCat => Preset::FourCat,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Reposts {
    Keep,
    Drop,
}

fn parse_zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name).map_err(|_| "wanted an IANA name such as Europe/Berlin, America/New_York or UTC".to_owned())
}

/// How columns are named, by options that several commands share.
pub(crate) fn mapping(preset: Option<PresetName>, map: &[String]) -> Result<Mapping, CliError> {
    let mut mapping = Mapping::default();
    if let Some(preset) = preset {
        if !map.is_empty() && preset != PresetName::FourCat {
            let message = "--map names columns, and this --preset knows where everything is; use one of the two";
            return Err(CliError::Usage { message: message.to_owned(), hint: None });
        }
        mapping = mapping.preset(preset.into());
    }
    map.iter().try_fold(mapping, |mapping, pairs| Ok(mapping.rename(pairs)?))
}

impl Beliefs {
    pub(crate) fn run(self, terminal: &mut Terminal) -> Result<(), CliError> {
        self.check_paths()?;
        let (beliefs, mut quality) = self.options.gather::<CliError>(None, |_| (), terminal)?;
        let table = self.options.write(&self.out, &beliefs, &mut quality, terminal)?;
        let summary = self.summary.as_deref().map(|path| draft_json(path, &quality)).transpose()?;
        table.commit()?;
        summary.map(AtomicFile::commit).transpose()?;
        self.print(&quality, terminal)
    }

    fn check_paths(&self) -> Result<(), CliError> {
        let extension = self.out.extension().and_then(|extension| extension.to_str());
        if let Some(extension @ ("npy" | "npz" | "json" | "jsonl" | "gz" | "zst" | "xlsx")) = extension {
            let message = format!("beliefs are not written as .{extension}");
            return Err(CliError::usage(message, "let --out end in .csv or .parquet"));
        }
        let outputs = [Some(&self.out), self.options.rejects.as_ref(), self.summary.as_ref()];
        check(self.options.posts.iter().chain(&self.options.users), outputs.into_iter().flatten())
    }
}

impl PostOptions {
    /// Reads, selects, scores and bins. `known` replaces the users that --users names; `meet` sees every batch before the
    /// door does, and may change it. Errors of the door become the caller's.
    pub(crate) fn gather<E: From<Error> + From<CliError>>(
        &self,
        known: Option<HashSet<String>>,
        meet: impl FnMut(&mut Batch),
        terminal: &Terminal,
    ) -> Result<(bin::Beliefs, Quality), E> {
        let mut selection = self.selection(terminal)?;
        // Whoever says which users may count also says which of them are absent.
        let counted = known.is_some();
        selection.users = match known {
            Some(known) => Some(known),
            None => self.users.as_deref().map(read_users).transpose()?,
        };
        let scorer = scorer(&self.scorer, terminal)?;
        let hypotheses = if self.hypotheses == 3 { Hypotheses::Three } else { Hypotheses::Two };
        let calendar = Calendar::new(self.bin, self.timezone.clone());
        let english = !selection.languages.is_empty() && self.lang.is_empty();
        let mut door = Ingest::new(selection, scorer, calendar, hypotheses)
            .min_posts(self.min_posts)
            .max_bad(self.max_bad.unwrap_or_default());
        let mut rejects = self.rejects.as_deref().map(Rejects::create).transpose()?;
        let read: Result<_, E> = self.read(&mut door, meet, rejects.as_mut(), terminal);
        let read = read.and_then(|()| Ok(door.finish()?));
        if let Some(rejects) = rejects {
            rejects.close(read.is_ok())?;
        }
        let (beliefs, mut quality) = read?;
        if counted {
            quality.absent_users = 0;
        }
        self.warn(&quality, english, terminal);
        Ok((beliefs, quality))
    }

    /// The languages that stay; all where there are none.
    pub(crate) fn languages(&self) -> Vec<String> {
        match self.scorer.scorer {
            _ if !self.lang.is_empty() => self.lang.clone(),
            ScorerName::Builtin if !self.any_language => vec!["en".to_owned()],
            _ => Vec::new(),
        }
    }

    fn selection(&self, terminal: &Terminal) -> Result<Selection, CliError> {
        let topics = self.topic.iter().map(|topic| Topic::parse(topic, &self.timezone)).collect::<Result<_, _>>()?;
        let languages = self.languages();
        let foreign = self.any_language || !languages.iter().all(|lang| lang.to_ascii_lowercase().starts_with("en"));
        if self.scorer.scorer == ScorerName::Builtin && foreign {
            terminal.warn("the built-in scorer reads English; its opinion of other languages is noise");
        }
        Ok(Selection {
            topics,
            window: window(self.from, self.to, &self.timezone)?,
            languages,
            reposts: self.reposts == Reposts::Keep,
            users: None,
        })
    }

    fn read<E: From<Error> + From<CliError>>(
        &self,
        door: &mut Ingest,
        mut meet: impl FnMut(&mut Batch),
        mut rejects: Option<&mut Rejects>,
        terminal: &Terminal,
    ) -> Result<(), E> {
        let mut mapping = mapping(self.preset, &self.map)?;
        if self.scorer.scorer == ScorerName::Column {
            mapping = mapping.with_scores(if self.hypotheses == 3 { Wanted::Classes } else { Wanted::Either });
            if self.topic.is_empty() {
                mapping = mapping.without_text();
            }
        }
        let mut named = 0;
        each_batch::<E>(&self.posts, mapping, terminal, |mut batch| {
            meet(&mut batch);
            let taken = door.take(&mut batch);
            for bad in &batch.bad {
                if named < NAMED {
                    terminal.warn(&bad.to_string());
                }
                named += 1;
            }
            if let Some(rejects) = rejects.as_deref_mut() {
                rejects.write(&batch.bad)?;
            }
            Ok(taken?)
        })?;
        if named > NAMED {
            terminal.warn(&format!("and {} more rows that cannot be read", named - NAMED));
        }
        Ok(())
    }

    fn warn(&self, quality: &Quality, english: bool, terminal: &Terminal) {
        let dropped = &quality.dropped;
        if dropped.language > 0 && english {
            let posts = count(dropped.language as usize, "post");
            terminal.warn(&format!(
                "{posts} marked with another language than English left out; --any-language keeps them"
            ));
        }
        if quality.absent_users > 0 {
            terminal.warn(&format!("{} of --users: no post of theirs is left", count(quality.absent_users, "user")));
        }
        if quality.clipped as f64 > 0.01 * quality.kept as f64 {
            let share = percent(quality.clipped as f64 / quality.kept as f64);
            terminal.warn(&format!(
                "{} ({share}) clipped to stay {} away from certainty; scores this sure may be rounded",
                count(quality.clipped as usize, "opinion"),
                bin::CLIP
            ));
        }
    }

    /// The table of beliefs, ready to be committed.
    pub(crate) fn write(
        &self,
        out: &Path,
        beliefs: &bin::Beliefs,
        quality: &mut Quality,
        terminal: &Terminal,
    ) -> Result<AtomicFile, CliError> {
        let mut rows = BeliefsRows::create(out, beliefs.hypotheses.names())?;
        let total = if self.carry_forward { quality.bins * quality.users as u64 } else { quality.beliefs };
        let mut progress = terminal.progress("writing", total);
        let mut written = 0;
        let mut shown: Option<(i64, String)> = None;
        let mut failed = None;
        let mut write = |cell: bin::Cell| {
            if failed.is_some() {
                return;
            }
            // One text per bin, not per row.
            if shown.as_ref().is_none_or(|(start, _)| *start != cell.slot.start) {
                shown = Some((cell.slot.start, beliefs.calendar.show(cell.slot.start)));
            }
            let time = shown.as_ref().map_or("", |(_, text)| text);
            failed = rows.write(time, beliefs.user(cell.user), &cell.ratios, cell.posts).err();
            written += 1;
            if written % 4096 == 0 {
                progress.at(written);
            }
        };
        if self.carry_forward {
            quality.carried_forward = beliefs.carried_forward(&mut write);
        } else {
            beliefs.cells().for_each(&mut write);
        }
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(rows.finish()?),
        }
    }
}

impl Beliefs {
    fn print(&self, quality: &Quality, terminal: &mut Terminal) -> Result<(), CliError> {
        match self.format {
            Format::Json => terminal.json(quality),
            Format::Csv => {
                let rows = quality.by_user.iter().map(|user| {
                    let numbers = [user.posts.to_string(), user.bins.to_string(), user.silent_share.to_string()];
                    let times = [user.first.clone(), user.last.clone()];
                    [user.user.clone()].into_iter().chain(numbers).chain(times).collect()
                });
                terminal.result(&csv(&["user", "posts", "bins", "silent_share", "first", "last"], rows.collect()))
            }
            Format::Table => {
                terminal.remark(&wrapped(&told(quality)));
                let mut users: Vec<_> = quality.by_user.iter().collect();
                users.sort_by_key(|user| std::cmp::Reverse(user.posts));
                let rows = users.iter().take(LISTED).map(|user| {
                    let day = |time: &str| time.get(..10).unwrap_or(time).to_owned();
                    let (first, last) = (day(&user.first), day(&user.last));
                    vec![short(&user.user), user.posts.to_string(), percent(user.silent_share), first, last]
                });
                terminal.remark(table(&["user", "posts", "silent", "first", "last"], 1, rows.collect()).trim_end());
                if users.len() > LISTED {
                    let more = count(users.len() - LISTED, "more user");
                    terminal.remark(&format!("… and {more}; --summary FILE has them all"));
                }
                terminal.remark(&format!("\nwrote {}", self.out.display()));
                Ok(())
            }
        }
    }
}

/// The summary in words.
pub(crate) fn told(quality: &Quality) -> String {
    let dropped = &quality.dropped;
    let reasons = [
        (quality.rejected, "unreadable"),
        (quality.duplicates, "repeated"),
        (quality.updates, "new wordings"),
        (dropped.user, "by other users"),
        (dropped.window, "outside the dates"),
        (dropped.language, "in other languages"),
        (dropped.repost, "reposted"),
        (dropped.topic, "off topic"),
        (dropped.min_posts, "by users with too few posts"),
    ];
    let left: Vec<String> =
        reasons.iter().filter(|(count, _)| *count > 0).map(|(count, why)| format!("{count} {why}")).collect();
    let left = if left.is_empty() { String::new() } else { format!(" ({})", left.join(", ")) };
    let other = match quality.other_lines {
        0 => String::new(),
        lines => format!(" {} held no post.", count(lines as usize, "line")),
    };
    let filled = match quality.carried_forward {
        0 => String::new(),
        filled => format!(" {} filled by carrying opinions forward.", count(filled as usize, "silence")),
    };
    format!(
        "{} of {} kept{left}.{other}\n{} over {} from {} to {}; {} of it silent, {} clipped.{filled}\n",
        quality.kept,
        count(quality.rows as usize, "post"),
        count(quality.users, "user"),
        count(quality.bins as usize, "bin"),
        quality.first,
        quality.last,
        percent(quality.silent_share),
        count(quality.clipped as usize, "opinion"),
    )
}

/// Reads posts batch by batch, with a sign of life.
pub(crate) fn each_batch<E: From<Error>>(
    names: &[PathBuf],
    mapping: Mapping,
    terminal: &Terminal,
    mut each: impl FnMut(Batch) -> Result<(), E>,
) -> Result<(), E> {
    let posts = Posts::open(names, mapping)?;
    let total = posts.total_bytes();
    // A pipe does not say how long it is.
    let _alive = total.is_none().then(|| terminal.alive("reading"));
    let mut progress = terminal.progress("reading (kB)", total.unwrap_or(0) >> 10);
    for batch in posts.batches() {
        let batch = batch?;
        if total.is_some() {
            progress.at(batch.bytes >> 10);
        }
        each(batch)?;
    }
    Ok(())
}

/// The rows that cannot be read, as CSV.
pub(crate) struct Rejects {
    draft: AtomicFile,
    rows: usize,
}

impl Rejects {
    pub(crate) fn create(path: &Path) -> Result<Self, CliError> {
        let mut rejects = Rejects { draft: AtomicFile::create(path)?, rows: 0 };
        rejects.line("file,line,reason\n")?;
        Ok(rejects)
    }

    /// Keeps the list of a run that was done, or that stopped because of it: whoever reads that wants it most of all.
    pub(crate) fn close(self, done: bool) -> Result<(), CliError> {
        if done || self.rows > 0 {
            self.draft.commit()?;
        }
        Ok(())
    }

    pub(crate) fn write(&mut self, rows: &[Bad]) -> Result<(), CliError> {
        self.rows += rows.len();
        for bad in rows {
            let cells = vec![bad.place.file.display().to_string(), bad.place.line.to_string(), bad.reason.clone()];
            let text = csv(&[], vec![cells]);
            self.line(text.trim_start_matches('\n'))?;
        }
        Ok(())
    }

    fn line(&mut self, text: &str) -> Result<(), CliError> {
        let path = self.draft.path().to_owned();
        let failed = |source| Error::Io { path, doing: "cannot write", source };
        Ok(self.draft.write_all(text.as_bytes()).map_err(failed)?)
    }
}
