//! `headwater beliefs`: from posts to beliefs per user and time bin.

use crate::error::CliError;
use crate::hints::warning_text;
use crate::output::{check, draft_json};
use crate::scorer::{ScorerArgs, scorer};
use crate::terminal::{Format, Terminal, count, csv, name_cell, percent, table, wrapped};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use headwater_files::AtomicFile;
use headwater_posts::bin::{BinnedBeliefs, Hypotheses};
use headwater_posts::calendar::Bin;
use headwater_posts::given::ScoreRange;
use headwater_posts::mapping::ColumnMapping;
use headwater_posts::quality::{IngestWarning, MaxBad, Quality};
use headwater_posts::read::{BadRow, DateOrder, Preset};
use headwater_posts::select::Moment;
use headwater_posts::{
    BinnedEpisodes, Error, PostHooks, PostOptions, PostsInput, RejectsFile, Reposts, UserList, bin_episodes, bin_posts,
    check_topics,
};
use jiff::tz::TimeZone;
use std::path::PathBuf;
use std::sync::LazyLock;

/// Headings of `--help`, below the files.
const READING: &str = "Reading";
const SELECTION: &str = "Selection";
const OPINION: &str = "Opinion";

/// Bad rows named one by one on the terminal.
pub(crate) const NAMED: usize = 5;

/// Users listed on the terminal.
const LISTED: usize = 20;

/// Turns posts into beliefs: the sentiment of each user about a topic per time bin
#[derive(Debug, Args)]
#[command(
    after_help = "Posts are CSV, JSON or Parquet, plain or compressed, with user, time and text, or files of a platform.\nTopics: words, \"phrases\", prefix*, #tag, @name, AND, OR, NOT, parentheses; a topic may end in @FROM..TO.\n\nExample: headwater beliefs posts.csv.gz --topic 'biden OR \"white house\"' --timezone America/New_York --out beliefs.parquet\n         headwater beliefs dump.jsonl --preset x-v2 --from 2021-01-20 --min-posts 50 --out beliefs.csv"
)]
pub(crate) struct BeliefsArgs {
    #[command(flatten)]
    posts: PostArgs,
    /// Each --topic is a conversation of its own, an episode of the same network, instead of one of several ways to match. Other
    /// options, such as --min-posts, apply to each
    #[arg(help_heading = SELECTION, long, requires = "topic")]
    episodes: bool,
    /// Beliefs file to write: .parquet, otherwise CSV
    #[arg(long, value_name = "BELIEFS")]
    out: PathBuf,
    /// Write the data-quality summary as JSON
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// Output format of the summary; the table goes to standard error, JSON and CSV (by user) to standard output
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// How posts are read.
#[derive(Debug, Args)]
pub(crate) struct ReadingArgs {
    /// Platform of the posts [default: recognised from the file]
    #[arg(help_heading = READING, long, value_enum)]
    pub(crate) preset: Option<PresetName>,
    /// Order of dates whose year is last: mdy (12/31/2024) or dmy (31.12.2024)
    #[arg(help_heading = READING, long, value_name = "mdy|dmy")]
    pub(crate) date_order: Option<DateOrder>,
    /// Names of columns or keys, such as text=body,user=author.handle
    #[arg(help_heading = READING, long, value_name = "FIELD=NAME,…")]
    pub(crate) map: Vec<String>,
    /// Stop when more rows than this are unreadable, a share or a number [default: 1%, but at least 100 rows]
    #[arg(help_heading = READING, long, value_name = "SHARE|N")]
    pub(crate) max_bad: Option<MaxBad>,
    /// List unreadable rows here as CSV file,line,reason
    #[arg(help_heading = READING, long, value_name = "FILE")]
    pub(crate) rejects: Option<PathBuf>,
}

/// Options of every command that reads posts: reading, selection, scoring.
#[derive(Debug, Args)]
pub(crate) struct PostArgs {
    /// Files or 'patterns*'; - is standard input (not for discover, which reads its inputs twice)
    #[arg(required = true)]
    pub(crate) posts: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    /// Topic of the posts: QUERY or QUERY@FROM..TO; with several, a post must match one of them
    #[arg(help_heading = SELECTION, long, value_name = "QUERY")]
    pub(crate) topic: Vec<String>,
    /// First day, in --timezone, or the first number where times are plain numbers
    #[arg(help_heading = SELECTION, long, value_name = "DATE", allow_hyphen_values = true)]
    from: Option<Moment>,
    /// Last day (inclusive), in --timezone, or the last number
    #[arg(help_heading = SELECTION, long, value_name = "DATE", allow_hyphen_values = true)]
    to: Option<Moment>,
    /// Leave out posts tagged with another language [default: en for the built-in scorer]
    #[arg(help_heading = SELECTION, long, value_name = "L", value_delimiter = ',')]
    lang: Vec<String>,
    /// Keep posts in every language
    #[arg(help_heading = SELECTION, long, conflicts_with = "lang")]
    any_language: bool,
    /// Whether reposts count as posts of the reposting user
    #[arg(help_heading = SELECTION, long, value_enum, default_value = "keep")]
    reposts: RepostsName,
    /// Leave out users with fewer posts
    #[arg(help_heading = SELECTION, long, value_name = "N", default_value_t = 1)]
    min_posts: u64,
    /// Only these users: a CSV with a column user, or one name per line
    #[arg(help_heading = SELECTION, long, value_name = "FILE")]
    pub(crate) users: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) scorer: ScorerArgs,
    /// 2: positive and negative; 3: with neutral as a hypothesis of its own
    #[arg(help_heading = OPINION, long, value_name = "2|3", default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=3))]
    hypotheses: u8,
    /// Lowest and highest score of the column score, for --scorer column [default: 0..1]
    #[arg(help_heading = OPINION, long, value_name = "LOW..HIGH", allow_hyphen_values = true)]
    score_range: Option<ScoreRange>,
    /// Length of a time bin: hour, day, week (from Monday), hours such as 6h, or, where times are plain numbers, a number such as 0.5
    #[arg(help_heading = OPINION, long, default_value = "day")]
    bin: Bin,
    /// Time zone of the bins and dates, an IANA name
    #[arg(help_heading = OPINION, long, value_name = "ZONE", default_value = "UTC", value_parser = parse_zone)]
    timezone: TimeZone,
    /// Fill silence with the last opinion of the user, before the first post with the first
    #[arg(help_heading = OPINION, long)]
    carry_forward: bool,
}

/// A preset as an option names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PresetName(Preset);

impl ValueEnum for PresetName {
    fn value_variants<'a>() -> &'a [Self] {
        // In the order of their declaration; the library's list has the order in which they are recognised.
        static ALL: LazyLock<Vec<PresetName>> = LazyLock::new(|| {
            let mut presets = Preset::ALL;
            presets.sort_unstable();
            presets.map(PresetName).to_vec()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.about()))
    }
}

impl From<PresetName> for Preset {
    fn from(name: PresetName) -> Self {
        name.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RepostsName {
    Keep,
    Drop,
}

fn parse_zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name).map_err(|_| "must be an IANA name such as Europe/Berlin, America/New_York or UTC".to_owned())
}

/// Pairs of field and column as `--map` gives them.
pub(crate) fn columns(map: &[String]) -> Result<Vec<(String, String)>, CliError> {
    let pairs = map.iter().flat_map(|pairs| pairs.split(',')).filter(|pair| !pair.trim().is_empty());
    let pair = |pair: &str| match pair.split_once('=') {
        Some((field, column)) => Ok((field.trim().to_owned(), column.trim().to_owned())),
        None => Err(CliError::Usage {
            message: format!("{pair:?} in --map is not of the form field=column, such as text=body"),
            hint: None,
        }),
    };
    pairs.map(pair).collect()
}

/// The mapping of columns, from options that several commands share.
pub(crate) fn mapping(preset: Option<PresetName>, map: &[String]) -> Result<ColumnMapping, CliError> {
    Ok(ColumnMapping::new(preset.map(Preset::from), &columns(map)?)?)
}

impl BeliefsArgs {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<(), CliError> {
        self.check_paths()?;
        if self.episodes {
            return self.run_episodes(terminal);
        }
        let (beliefs, quality) = self.posts.gather(terminal)?;
        let table = terminal.watched(None, |_| beliefs.write(&self.out, terminal.csv_text()))?;
        let summary = self.summary.as_deref().map(|path| draft_json(path, &quality)).transpose()?;
        table.commit()?;
        summary.map(AtomicFile::commit).transpose()?;
        self.print(&quality, terminal)
    }

    /// The same for each topic.
    fn run_episodes(&self, terminal: &Terminal) -> Result<(), CliError> {
        check_topics(&self.posts.topic)?;
        let (beliefs, qualities) = self.posts.gather_episodes(terminal)?;
        let table = terminal.watched(None, |_| beliefs.write(&self.out, terminal.csv_text()))?;
        let by_topic: serde_json::Map<String, serde_json::Value> = qualities
            .iter()
            .filter_map(|(topic, quality)| Some((topic.clone(), serde_json::to_value(quality).ok()?)))
            .collect();
        let summary = self.summary.as_deref().map(|path| draft_json(path, &by_topic)).transpose()?;
        table.commit()?;
        summary.map(AtomicFile::commit).transpose()?;
        match self.format {
            Format::Json => terminal.json(&by_topic),
            Format::Csv => {
                let rows = qualities.iter().flat_map(|(topic, quality)| {
                    user_rows(quality).map(move |row| [topic.clone()].into_iter().chain(row).collect())
                });
                let header: Vec<&str> = ["episode"].into_iter().chain(USER_COLUMNS).collect();
                terminal.result(&csv(&header, rows.collect(), terminal.csv_text()))
            }
            Format::Table => {
                let options = self.posts.options()?;
                for (topic, quality) in &qualities {
                    terminal.remark(&format!("{topic}: {}", wrapped(&quality_text(quality, &options))));
                }
                terminal.remark(&format!("wrote {}", self.out.display()));
                Ok(())
            }
        }
    }

    fn check_paths(&self) -> Result<(), CliError> {
        let extension = self.out.extension().and_then(|extension| extension.to_str());
        if let Some(extension @ ("npy" | "npz" | "json" | "jsonl" | "gz" | "zst" | "xlsx")) = extension {
            let message = format!("beliefs are not written as .{extension}");
            return Err(CliError::usage(message, "use a name that ends in .csv or .parquet"));
        }
        let outputs = [Some(&self.out), self.posts.reading.rejects.as_ref(), self.summary.as_ref()];
        check(self.posts.posts.iter().chain(&self.posts.users), outputs.into_iter().flatten())
    }
}

impl PostArgs {
    /// The files.
    pub(crate) fn input(&self) -> PostsInput {
        PostsInput::from(self.posts.clone())
    }

    /// The options, as the library takes them.
    pub(crate) fn options(&self) -> Result<PostOptions, CliError> {
        Ok(PostOptions {
            topic: self.topic.clone(),
            since: self.from,
            until: self.to,
            bin: self.bin,
            timezone: self.timezone.clone(),
            reposts: if self.reposts == RepostsName::Keep { Reposts::Keep } else { Reposts::Drop },
            languages: self.lang.clone(),
            any_language: self.any_language,
            min_posts: self.min_posts,
            users: self.users.clone().map(UserList::File),
            hypotheses: if self.hypotheses == 3 { Hypotheses::Three } else { Hypotheses::Two },
            scorer: self.scorer.choice(),
            carry_forward: self.carry_forward,
            score_range: self.score_range,
            preset: self.reading.preset.map(Preset::from),
            date_order: self.reading.date_order,
            columns: columns(&self.reading.map)?,
            max_bad: self.reading.max_bad.unwrap_or_default(),
        })
    }

    /// Reads, selects, scores and bins.
    fn gather(&self, terminal: &Terminal) -> Result<(BinnedBeliefs, Quality), CliError> {
        let (input, options) = (self.input(), self.options()?);
        options.check()?;
        let scorer = scorer(&self.scorer, terminal)?;
        let rejects =
            self.reading.rejects.as_deref().map(|path| RejectsFile::create(path, terminal.csv_text())).transpose()?;
        let mut hooks = TerminalHooks { terminal, bad: BadRowLog::new(rejects, terminal) };
        let read = terminal.watched(None, |_| bin_posts(&input, &options, scorer, &mut hooks));
        hooks.bad.close(read.is_ok())?;
        Ok(read?)
    }

    /// The same for each topic; unreadable rows are shown and listed for every pass.
    fn gather_episodes(&self, terminal: &Terminal) -> Result<(BinnedEpisodes, Vec<(String, Quality)>), CliError> {
        let (input, options) = (self.input(), self.options()?);
        options.check()?;
        let rejects =
            self.reading.rejects.as_deref().map(|path| RejectsFile::create(path, terminal.csv_text())).transpose()?;
        let mut hooks = TerminalHooks { terminal, bad: BadRowLog::new(rejects, terminal) };
        let named =
            |topic: &str, error: Error| CliError::from(error).map_text(|text| format!("topic {topic:?}: {text}"));
        let read = terminal
            .watched(None, |_| bin_episodes(&input, &options, || scorer(&self.scorer, terminal), &mut hooks, named));
        hooks.bad.close(read.is_ok())?;
        read
    }
}

const USER_COLUMNS: [&str; 6] = ["user", "posts", "bins", "silent_share", "first", "last"];

/// A row of CSV for each user.
fn user_rows(quality: &Quality) -> impl Iterator<Item = Vec<String>> + '_ {
    quality.by_user.iter().map(|user| {
        let numbers = [user.posts.to_string(), user.bins.to_string(), user.silent_share.to_string()];
        [user.user.clone()].into_iter().chain(numbers).chain([user.first.clone(), user.last.clone()]).collect()
    })
}

/// What is said of posts whose platform was recognised.
pub(crate) fn recognised_text(preset: Preset) -> String {
    format!("recognised {} (--preset {preset})", preset.words())
}

/// Shows bad rows and warnings on the terminal while posts are read.
struct TerminalHooks<'a> {
    terminal: &'a Terminal,
    bad: BadRowLog<'a>,
}

impl PostHooks for TerminalHooks<'_> {
    fn bad_rows(&mut self, rows: &[BadRow]) -> Result<(), Error> {
        self.bad.see(rows)
    }

    fn recognised(&mut self, preset: Preset) {
        self.terminal.remark(&recognised_text(preset));
    }

    fn warning(&mut self, warning: &IngestWarning) {
        self.bad.summary();
        self.terminal.warn(&warning_text(warning));
    }
}

/// Unreadable rows: the first are shown, all are counted and listed.
pub(crate) struct BadRowLog<'a> {
    terminal: &'a Terminal,
    rejects: Option<RejectsFile>,
    seen: usize,
    summarised: bool,
}

impl PostHooks for BadRowLog<'_> {
    fn bad_rows(&mut self, rows: &[BadRow]) -> Result<(), Error> {
        self.see(rows)
    }
}

impl<'a> BadRowLog<'a> {
    pub(crate) fn new(rejects: Option<RejectsFile>, terminal: &'a Terminal) -> Self {
        BadRowLog { terminal, rejects, seen: 0, summarised: false }
    }

    pub(crate) fn see(&mut self, rows: &[BadRow]) -> Result<(), Error> {
        for bad in rows {
            if self.seen < NAMED {
                self.terminal.warn(&bad.to_string());
            }
            self.seen += 1;
        }
        self.rejects.as_mut().map_or(Ok(()), |rejects| rejects.write(rows))
    }

    /// Says how many were not shown.
    pub(crate) fn summary(&mut self) {
        if self.seen > NAMED && !self.summarised {
            self.terminal.warn(&format!("and {} more unreadable rows", self.seen - NAMED));
            self.summarised = true;
        }
    }

    fn close(mut self, done: bool) -> Result<(), Error> {
        if done {
            self.summary();
        }
        self.close_quietly(done)
    }

    /// Without saying how many were not shown.
    pub(crate) fn close_quietly(self, done: bool) -> Result<(), Error> {
        self.rejects.map_or(Ok(()), |rejects| rejects.close(done))
    }
}

impl BeliefsArgs {
    fn print(&self, quality: &Quality, terminal: &Terminal) -> Result<(), CliError> {
        let options = self.posts.options()?;
        match self.format {
            Format::Json => terminal.json(quality),
            Format::Csv => terminal.result(&csv(&USER_COLUMNS, user_rows(quality).collect(), terminal.csv_text())),
            Format::Table => {
                terminal.remark(&wrapped(&quality_text(quality, &options)));
                let mut users: Vec<_> = quality.by_user.iter().collect();
                users.sort_by_key(|user| std::cmp::Reverse(user.posts));
                let rows = users.iter().take(LISTED).map(|user| {
                    let day = |time: &str| time.get(..10).unwrap_or(time).to_owned();
                    let (first, last) = (day(&user.first), day(&user.last));
                    vec![name_cell(&user.user), user.posts.to_string(), percent(user.silent_share), first, last]
                });
                let users_shown = table(&["user", "posts", "silent", "first", "last"], 1, rows.collect());
                terminal.remark(wrapped(&users_shown).trim_end());
                if users.len() > LISTED {
                    let more = count(users.len() - LISTED, "more user");
                    terminal.remark(&format!("… and {more}; --summary FILE lists them all"));
                }
                terminal.remark(&format!("\nwrote {}", self.out.display()));
                Ok(())
            }
        }
    }
}

/// An RFC 3339 time as people write it, on its own clock: the day, and the minute where bins are shorter than a day.
fn local(time: &str, bin: Bin) -> String {
    match (time.split_once('T'), bin) {
        (Some((day, _)), Bin::Day | Bin::Week) => day.to_owned(),
        (Some((day, clock)), Bin::Hours(_)) => format!("{day} {}", clock.get(..5).unwrap_or(clock)),
        (None, _) | (_, Bin::Units(_)) => time.to_owned(),
    }
}

/// The summary as text.
pub(crate) fn quality_text(quality: &Quality, options: &PostOptions) -> String {
    let dropped = &quality.dropped;
    let reasons = [
        (quality.rejected, "unreadable"),
        (quality.duplicates, "duplicate"),
        (quality.updates, "edits of another post"),
        (dropped.user, "by other users"),
        (dropped.window, "outside the dates"),
        (dropped.language, "in other languages"),
        (dropped.repost, "reposts"),
        (dropped.topic, "off topic"),
        (dropped.min_posts, "by users with too few posts"),
    ];
    let left: Vec<String> =
        reasons.iter().filter(|(count, _)| *count > 0).map(|(count, why)| format!("{count} {why}")).collect();
    let left = if left.is_empty() { String::new() } else { format!(" ({})", left.join(", ")) };
    let mut other = match quality.other_lines {
        0 => String::new(),
        lines => format!(" {} without a post.", count(lines as usize, "line")),
    };
    if quality.deleted_accounts > 0 {
        let by = match quality.deleted_accounts {
            1 => "1 of these posts is".to_owned(),
            posts => format!("{posts} of these posts are"),
        };
        other += &format!(" {by} by deleted accounts and left out: nobody knows which of them are one account.");
    }
    if quality.reposts_by_text > 0 {
        other += &format!(
            " {} taken for reposts, because they begin with RT @name.",
            count(quality.reposts_by_text as usize, "post")
        );
    }
    if quality.reposts_without_text > 0 {
        let reposts = count(quality.reposts_without_text as usize, "repost");
        other += &format!(" {reposts} left out, because the post they repeat was not read before them.");
    }
    let filled = match quality.carried_forward {
        0 => String::new(),
        filled => format!(" {} filled by carrying opinions forward.", count(filled as usize, "silence")),
    };
    format!(
        "Kept {} of {}{left}.{other}\n{} over {} from {} to {}{}; {} silent, {} clipped.{filled}\n",
        quality.kept,
        count(quality.rows as usize, "post"),
        count(quality.users, "user"),
        count(quality.bins as usize, "bin"),
        local(&quality.first, options.bin),
        local(&quality.last, options.bin),
        match options.bin.is_numeric() {
            true => String::new(),
            false => format!(" ({})", options.timezone.iana_name().unwrap_or("UTC")),
        },
        percent(quality.silent_share),
        count(quality.clipped as usize, "opinion"),
    )
}
