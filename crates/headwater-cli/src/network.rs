//! `headwater network`: the paper's network formation, from a follow graph to a strongly connected subnetwork with weights.

use crate::beliefs::{PresetName, mapping};
use crate::error::CliError;
use crate::output::check;
use crate::terminal::{Format, Terminal, count, csv, table, wrapped};
use clap::Args;
use headwater_files::{AtomicFile, CsvText};
use headwater_posts::Error;
use headwater_posts::ingest::each_batch;
use headwater_posts::network::{AccountFacts, FollowGraph, FollowNetwork, LeftOutReason, NetworkLimits, read_facts};
use headwater_posts::read::DateOrder;
use headwater_posts::reader::PostReader;
use headwater_posts::select::{Selection, Selector};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Forms a strongly connected network around a hub from followers of followers, limited by size and activity
#[derive(Debug, Args)]
#[command(
    after_help = "Edges are CSV source,target: the target follows the source.\n\nExample: headwater network follows.csv --hub GOPLeader --start RepJimBanks --posts posts.csv --min-posts 100 --out edges.csv"
)]
pub(crate) struct NetworkArgs {
    /// Follow graph: CSV source,target, plain, gzip or zstd; - is standard input
    edges: PathBuf,
    /// Account that is always included
    #[arg(long, value_name = "A")]
    hub: String,
    /// Account to start from
    #[arg(long, value_name = "B")]
    start: String,
    /// Edges file to write: CSV source,target,weight
    #[arg(long, value_name = "EDGES")]
    out: PathBuf,
    /// Number of follower steps from the start account
    #[arg(long, value_name = "N", default_value_t = NetworkLimits::default().depth)]
    depth: u32,
    /// Maximum number of followers per account, the first in the file
    #[arg(long, value_name = "N", default_value_t = NetworkLimits::default().per_account)]
    per_account: usize,
    /// Leave out accounts with this many followers or more, except the hub
    #[arg(long, value_name = "N", default_value_t = NetworkLimits::default().max_followers)]
    max_followers: u64,
    /// Leave out accounts with fewer posts, except the hub; needs --posts, or --users with the column posts
    #[arg(long, value_name = "N", default_value_t = 0)]
    min_posts: u64,
    /// Posts to count; repeatable
    #[arg(long, value_name = "POSTS")]
    posts: Vec<PathBuf>,
    /// Platform of the posts
    #[arg(long, value_enum, requires = "posts")]
    preset: Option<PresetName>,
    /// Order of dates whose year is last: mdy (12/31/2024) or dmy (31.12.2024)
    #[arg(long, value_name = "mdy|dmy", requires = "posts")]
    date_order: Option<DateOrder>,
    /// Names of the posts' columns or keys
    #[arg(long, value_name = "FIELD=NAME,…", requires = "posts")]
    map: Vec<String>,
    /// Counts per account: CSV with user and followers, posts, or both
    #[arg(long, value_name = "FILE")]
    users: Option<PathBuf>,
    /// List the accounts left out here as CSV account,reason
    #[arg(long, value_name = "FILE")]
    left_out: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// What is printed.
#[derive(Debug, Serialize)]
struct NetworkSummary {
    accounts: usize,
    follows: usize,
    repeated: u64,
    members: usize,
    edges: usize,
    left_out: Vec<LeftOut>,
}

#[derive(Debug, Serialize)]
struct LeftOut {
    reason: LeftOutReason,
    accounts: usize,
}

impl NetworkArgs {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<(), CliError> {
        let inputs = [&self.edges].into_iter().chain(&self.posts).chain(&self.users);
        check(inputs, [Some(&self.out), self.left_out.as_ref()].into_iter().flatten())?;
        let facts = self.facts(terminal)?;
        let alive = terminal.spinner("reading edges");
        let follows = FollowGraph::read(&self.edges, |_| ())?;
        drop(alive);
        let limits = NetworkLimits {
            depth: self.depth,
            per_account: self.per_account,
            max_followers: self.max_followers,
            min_posts: self.min_posts,
        };
        let alive = terminal.spinner("forming the network");
        let formed = follows.network(&self.hub, &self.start, limits, &facts)?;
        drop(alive);
        if follows.repeated + follows.selves > 0 {
            let (repeated, selves) = (follows.repeated, follows.selves);
            terminal.warn(&format!(
                "left out {repeated} duplicate rows and {selves} rows of accounts that follow themselves"
            ));
        }
        if let Some(larger) = formed.larger {
            terminal.warn(&format!(
                "the hub is not in the largest strongly connected component, which has {} accounts",
                larger
            ));
        }
        let text = terminal.csv_text();
        let edges = write_edges(&self.out, &follows, &formed, text)?;
        let left_out =
            self.left_out.as_deref().map(|path| write_left_out(path, &follows, &formed, text)).transpose()?;
        edges.commit()?;
        left_out.map(AtomicFile::commit).transpose()?;
        self.print(&follows, &formed, terminal)
    }

    /// Follower and post counts from other files.
    fn facts(&self, terminal: &Terminal) -> Result<AccountFacts, CliError> {
        let mut facts = self.users.as_deref().map(read_facts).transpose()?.unwrap_or_default();
        if !self.posts.is_empty() {
            facts.posts.clear();
            let mut selector = Selector::new(Selection::default());
            let mapping = mapping(self.preset, &self.map)?.without_text();
            let mapping = match self.date_order {
                Some(order) => mapping.with_date_order(order),
                None => mapping,
            };
            let posts = PostReader::open(&self.posts, mapping)?;
            terminal.watched(None, |_| {
                each_batch(posts, |batch| {
                    for post in batch.posts.iter().filter(|post| selector.keep(post)) {
                        match facts.posts.get_mut(&post.user) {
                            Some(posts) => *posts += 1,
                            None => drop(facts.posts.insert(post.user.clone(), 1)),
                        }
                    }
                    batch.bad.iter().take(1).for_each(|bad| terminal.warn(&bad.to_string()));
                    Ok::<(), CliError>(())
                })
            })?;
        }
        if self.min_posts > 0 && facts.posts.is_empty() {
            return Err(CliError::usage(
                "--min-posts needs the number of posts per account",
                "give --posts POSTS, or --users FILE with the column posts",
            ));
        }
        Ok(facts)
    }

    fn print(&self, follows: &FollowGraph, formed: &FollowNetwork, terminal: &Terminal) -> Result<(), CliError> {
        let left_out = LeftOutReason::ALL.map(|reason| LeftOut {
            reason,
            accounts: formed.left_out.iter().filter(|(_, why)| *why == reason).count(),
        });
        let summary = NetworkSummary {
            accounts: follows.accounts(),
            follows: follows.edges(),
            repeated: follows.repeated,
            members: formed.members.len(),
            edges: formed.edges.len() - formed.members.len(),
            left_out: left_out.into_iter().filter(|left| left.accounts > 0).collect(),
        };
        let words = |left: &LeftOut| vec![left.reason.words().to_owned(), left.accounts.to_string()];
        match self.format {
            Format::Json => terminal.json(&summary),
            Format::Csv => {
                let kept = vec!["in the network".to_owned(), summary.members.to_string()];
                let rows = std::iter::once(kept).chain(summary.left_out.iter().map(words)).collect();
                terminal.result(&csv(&["account", "count"], rows, terminal.csv_text()))
            }
            Format::Table => {
                let (accounts, follows) = (count(summary.accounts, "account"), count(summary.follows, "edge"));
                let kept = vec!["in the network".to_owned(), summary.members.to_string()];
                let rows = std::iter::once(kept).chain(summary.left_out.iter().map(words)).collect();
                let table = wrapped(&table(&["accounts", "number"], 1, rows));
                terminal.remark(&format!(
                    "{accounts} and {follows} read; {} and {} (without self-loops) in the network\n\n{table}\nwrote {}",
                    count(summary.members, "account"),
                    count(summary.edges, "edge"),
                    self.out.display()
                ));
                Ok(())
            }
        }
    }
}

fn write_edges(
    path: &Path,
    follows: &FollowGraph,
    formed: &FollowNetwork,
    text: CsvText,
) -> Result<AtomicFile, CliError> {
    write_csv(path, text, &["source", "target", "weight"], formed.edges.iter(), |(source, target, weight)| {
        vec![follows.name(*source).to_owned(), follows.name(*target).to_owned(), weight.to_string()]
    })
}

fn write_left_out(
    path: &Path,
    follows: &FollowGraph,
    formed: &FollowNetwork,
    text: CsvText,
) -> Result<AtomicFile, CliError> {
    write_csv(path, text, &["account", "reason"], formed.left_out.iter(), |(account, reason)| {
        vec![follows.name(*account).to_owned(), reason.words().to_owned()]
    })
}

fn write_csv<T>(
    path: &Path,
    text: CsvText,
    header: &[&str],
    rows: impl Iterator<Item = T>,
    cells: impl Fn(T) -> Vec<String>,
) -> Result<AtomicFile, CliError> {
    let failed = |source: std::io::Error| Error::Io { path: path.to_owned(), doing: "cannot write", source };
    let mut out = ::csv::Writer::from_writer(AtomicFile::create(path)?);
    out.write_record(header).map_err(|error| failed(error.into()))?;
    for row in rows {
        let cells = cells(row);
        out.write_record(cells.iter().map(|cell| text.cell(cell).into_owned()))
            .map_err(|error| failed(error.into()))?;
    }
    Ok(out.into_inner().map_err(|error| failed(error.into_error()))?)
}
