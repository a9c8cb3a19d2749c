//! Network formation: follow edges in, a strongly connected network of accounts with weights out (the paper, Section VI).
//!
//! From a start account go to its followers, and theirs, to some depth, at most so many of each; keep those who post often
//! enough and have few enough followers; add a hub; keep the strongly connected component the hub is in; weigh by the
//! averaging rule: listeners give themselves and everyone they follow the same weight.
//!
//! Edges are streamed, names stored once, and the graph is two flat lists: ten million edges take a few hundred megabytes.

use crate::Error;
use crate::read::open_text;
use headwater::graph::strong_components;
use indexmap::IndexSet;
use serde::Serialize;
use std::collections::HashMap;
use std::path::Path;

/// Who follows whom, by account.
#[derive(Debug)]
pub struct FollowGraph {
    names: IndexSet<Box<str>>,
    /// Followers of account a are `followers[starts[a]..starts[a + 1]]`, in file order, each once.
    starts: Vec<usize>,
    followers: Vec<u32>,
    /// Rows that said the same as an earlier one.
    pub repeated: u64,
    /// Rows in which an account follows itself.
    pub selves: u64,
}

/// What is known about accounts from elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountFacts {
    /// Number of followers.
    pub followers: HashMap<String, u64>,
    /// Number of posts.
    pub posts: HashMap<String, u64>,
}

/// The limits of the procedure; defaults are the paper's.
///
/// | field | default | purpose |
/// |---|---|---|
/// | `depth` | 2 | steps from the start account |
/// | `per_account` | 1000 | followers taken of each account, the first in the file |
/// | `max_followers` | 10 000 | accounts with as many or more are left out, except the hub |
/// | `min_posts` | 0 | accounts with fewer are left out, except the hub |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table says it")]
pub struct NetworkLimits {
    pub depth: u32,
    pub per_account: usize,
    pub max_followers: u64,
    pub min_posts: u64,
}

impl Default for NetworkLimits {
    fn default() -> Self {
        NetworkLimits { depth: 2, per_account: 1000, max_followers: 10_000, min_posts: 0 }
    }
}

/// Why an account is not in the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftOutReason {
    /// Not within the depth of the start account.
    NotReached,
    /// Within it, but beyond the followers taken of each account.
    BeyondPerAccount,
    /// As many followers as the limit, or more.
    TooManyFollowers,
    /// Fewer posts than the limit.
    TooFewPosts,
    /// Cannot hear the hub, or is not heard by it, within the network.
    NotStronglyConnected,
}

impl LeftOutReason {
    /// All of them, in the order in which they are applied.
    pub const ALL: [LeftOutReason; 5] = [
        LeftOutReason::NotReached,
        LeftOutReason::BeyondPerAccount,
        LeftOutReason::TooManyFollowers,
        LeftOutReason::TooFewPosts,
        LeftOutReason::NotStronglyConnected,
    ];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            LeftOutReason::NotReached => "not reached from the start account",
            LeftOutReason::BeyondPerAccount => "beyond the followers taken of each account",
            LeftOutReason::TooManyFollowers => "too many followers",
            LeftOutReason::TooFewPosts => "too few posts",
            LeftOutReason::NotStronglyConnected => "not strongly connected with the hub",
        }
    }
}

/// The network.
#[derive(Debug, Clone, PartialEq)]
pub struct FollowNetwork {
    /// Accounts, by their index in the file.
    pub members: Vec<u32>,
    /// (source, target, weight): what the target gives the source; target by target, itself included.
    pub edges: Vec<(u32, u32, f64)>,
    /// Everybody else, and why.
    pub left_out: Vec<(u32, LeftOutReason)>,
    /// Size of a larger component that the hub is not in, if there is one.
    pub larger: Option<usize>,
}

impl FollowGraph {
    /// Reads CSV `source,target`, plain or compressed; `seen` is told about rows now and then.
    pub fn read(path: &Path, mut seen: impl FnMut(u64)) -> Result<Self, Error> {
        let (head, stream) = open_text(path)?;
        if head.iter().all(u8::is_ascii_whitespace) {
            return Err(Error::file(
                path,
                "is empty; expected CSV with the columns source,target: who is followed, by whom",
            ));
        }
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(crate::read::csv::delimiter(&head))
            .flexible(true)
            .buffer_capacity(1 << 18)
            .from_reader(stream);
        let line_error = |line: u64, problem: String| Error::Line { path: path.to_owned(), line, problem };
        let broken = |error: csv::Error| match error.position().map(csv::Position::line) {
            Some(line) => line_error(line, "is not UTF-8 text".to_owned()),
            None => Error::file(path, format!("cannot be read: {error}")),
        };
        let header = reader.headers().map_err(broken)?;
        let column = |name: &str| header.iter().position(|found| found.trim() == name);
        let (Some(source), Some(target)) = (column("source"), column("target")) else {
            let met = header.iter().collect::<Vec<_>>().join(",");
            return Err(line_error(1, format!("columns are {met:?}; expected source,target")));
        };
        let mut names: IndexSet<Box<str>> = IndexSet::new();
        let mut edges: Vec<(u32, u32)> = Vec::new();
        let mut record = csv::StringRecord::new();
        let mut selves = 0;
        while reader.read_record(&mut record).map_err(broken)? {
            let line = record.position().map_or(0, csv::Position::line);
            let mut account = |column: usize, name: &str| -> Result<u32, Error> {
                let text = record.get(column).map(str::trim).filter(|text| !text.is_empty());
                let text =
                    text.ok_or_else(|| line_error(line, format!("column {name}: is empty; a name is expected")))?;
                Ok(match names.get_index_of(text) {
                    Some(index) => index,
                    None => names.insert_full(text.into()).0,
                } as u32)
            };
            let (source, target) = (account(source, "source")?, account(target, "target")?);
            if source == target {
                selves += 1;
            } else {
                edges.push((source, target));
            }
            if edges.len().is_multiple_of(1 << 16) {
                seen(edges.len() as u64);
            }
        }
        if edges.is_empty() {
            return Err(Error::file(
                path,
                "holds no edges; expected rows below source,target: who is followed, by whom",
            ));
        }
        Ok(FollowGraph::new(names, edges, selves))
    }

    fn new(names: IndexSet<Box<str>>, edges: Vec<(u32, u32)>, selves: u64) -> Self {
        let (starts, mut followers) = grouped(names.len(), edges.iter().copied());
        drop(edges);
        // Each follower once: the last account that was seen to have it tells.
        let mut met = vec![u32::MAX; names.len()];
        let mut kept_starts = vec![0; starts.len()];
        let mut kept = 0;
        for account in 0..names.len() {
            for position in starts[account]..starts[account + 1] {
                let follower = followers[position];
                if std::mem::replace(&mut met[follower as usize], account as u32) != account as u32 {
                    followers[kept] = follower;
                    kept += 1;
                }
            }
            kept_starts[account + 1] = kept;
        }
        let repeated = (followers.len() - kept) as u64;
        followers.truncate(kept);
        FollowGraph { names, starts: kept_starts, followers, repeated, selves }
    }

    /// The name of an account.
    pub fn name(&self, account: u32) -> &str {
        self.names.get_index(account as usize).map_or("", AsRef::as_ref)
    }

    /// How many accounts there are.
    pub fn accounts(&self) -> usize {
        self.names.len()
    }

    /// How many edges.
    pub fn edges(&self) -> usize {
        self.followers.len()
    }

    fn followers(&self, account: u32) -> &[u32] {
        &self.followers[self.starts[account as usize]..self.starts[account as usize + 1]]
    }

    fn find(&self, name: &str, role: &str) -> Result<u32, Error> {
        let found = self.names.get_index_of(name).map(|index| index as u32);
        found.ok_or_else(|| {
            let alike = self.names.iter().find(|known| known.eq_ignore_ascii_case(name));
            let alike = alike.map_or(String::new(), |alike| format!("; did you mean {alike:?}?"));
            let problem =
                format!("is not among the {} accounts of the edges, but is to be the {role}{alike}", self.accounts());
            Error::Account { account: name.to_owned(), problem }
        })
    }

    /// Forms the network around a hub, from a start account.
    pub fn network(
        &self,
        hub: &str,
        start: &str,
        limits: NetworkLimits,
        facts: &AccountFacts,
    ) -> Result<FollowNetwork, Error> {
        let (hub, start) = (self.find(hub, "hub")?, self.find(start, "start")?);
        let mut fate: Vec<Option<LeftOutReason>> = vec![Some(LeftOutReason::NotReached); self.accounts()];
        // Breadth first, so that everybody is met by a shortest way. All are expanded: the limits choose among those
        // who were collected, as in the paper.
        fate[start as usize] = None;
        let mut frontier = vec![start];
        for _ in 0..limits.depth {
            let mut next = Vec::new();
            for &account in &frontier {
                for (rank, &follower) in self.followers(account).iter().enumerate() {
                    let fate = &mut fate[follower as usize];
                    match fate {
                        Some(_) if rank < limits.per_account => {
                            *fate = None;
                            next.push(follower);
                        }
                        Some(LeftOutReason::NotReached) => *fate = Some(LeftOutReason::BeyondPerAccount),
                        _ => {}
                    }
                }
            }
            frontier = next;
        }
        for account in 0..self.accounts() as u32 {
            let fate = &mut fate[account as usize];
            if account == hub {
                *fate = None;
            }
            if fate.is_some() || account == hub {
                continue;
            }
            let name = self.name(account);
            let followers = facts.followers.get(name).copied().unwrap_or(self.followers(account).len() as u64);
            if followers >= limits.max_followers {
                *fate = Some(LeftOutReason::TooManyFollowers);
            } else if facts.posts.get(name).copied().unwrap_or(0) < limits.min_posts {
                *fate = Some(LeftOutReason::TooFewPosts);
            }
        }
        let within: Vec<u32> =
            (0..self.accounts() as u32).filter(|&account| fate[account as usize].is_none()).collect();
        let (component, larger) = self.component(&within, hub);
        if component.len() < 2 {
            let problem = format!(
                "is strongly connected with nobody among the {} accounts within the limits; expected a hub that follows some of its followers",
                within.len()
            );
            return Err(Error::Account { account: self.name(hub).to_owned(), problem });
        }
        within.iter().for_each(|&account| fate[account as usize] = Some(LeftOutReason::NotStronglyConnected));
        component.iter().for_each(|&account| fate[account as usize] = None);
        let left_out =
            (0..self.accounts() as u32).filter_map(|account| Some((account, fate[account as usize]?))).collect();
        Ok(FollowNetwork { edges: self.weigh(&component), members: component, left_out, larger })
    }

    /// The strongly connected component of one account among some, ascending; and the size of a larger one, if any.
    fn component(&self, within: &[u32], of: u32) -> (Vec<u32>, Option<usize>) {
        let place: HashMap<u32, u32> = within.iter().zip(0..).map(|(&account, place)| (account, place)).collect();
        let inside = within.iter().flat_map(|&source| {
            let place = &place;
            self.followers(source).iter().filter_map(move |target| Some((place[&source], *place.get(target)?)))
        });
        let components = strong_components(within.len(), inside);
        let hub = place[&of] as usize;
        let members = components.iter().find(|members| members.binary_search(&hub).is_ok());
        let members: Vec<u32> = members.into_iter().flatten().map(|&member| within[member]).collect();
        let largest = components.first().map(Vec::len).filter(|largest| *largest > members.len());
        (members, largest)
    }

    /// The averaging rule over the edges among some accounts.
    fn weigh(&self, members: &[u32]) -> Vec<(u32, u32, f64)> {
        let place: HashMap<u32, u32> = members.iter().zip(0..).map(|(&account, place)| (account, place)).collect();
        let heard = members.iter().flat_map(|&source| {
            let place = &place;
            self.followers(source).iter().filter_map(move |target| Some((*place.get(target)?, source)))
        });
        let (starts, sources) = grouped(members.len(), heard);
        let mut edges = Vec::with_capacity(sources.len() + members.len());
        for (position, &target) in members.iter().enumerate() {
            let sources = &sources[starts[position]..starts[position + 1]];
            let weight = 1.0 / (sources.len() + 1) as f64;
            edges.push((target, target, weight));
            edges.extend(sources.iter().map(|&source| (source, target, weight)));
        }
        edges
    }
}

/// Pairs by their first: offsets, and the seconds in the order given.
fn grouped(count: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> (Vec<usize>, Vec<u32>) {
    let mut starts = vec![0usize; count + 1];
    pairs.clone().for_each(|(first, _)| starts[first as usize + 1] += 1);
    for index in 0..count {
        starts[index + 1] += starts[index];
    }
    let mut seconds = vec![0; starts[count]];
    let mut next = starts.clone();
    for (first, second) in pairs {
        seconds[next[first as usize]] = second;
        next[first as usize] += 1;
    }
    (starts, seconds)
}

/// Reads what is known of accounts: a CSV with `user` and `followers`, `posts`, or both.
pub fn read_facts(path: &Path) -> Result<AccountFacts, Error> {
    let (head, stream) = open_text(path)?;
    let delimiter = crate::read::csv::delimiter(&head);
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(stream);
    let broken = |error: csv::Error| Error::file(path, format!("cannot be read: {error}"));
    let header = reader.headers().map_err(broken)?.clone();
    let column = |name: &str| header.iter().position(|found| found.trim() == name);
    let (user, followers, posts) = (column("user"), column("followers"), column("posts"));
    let (Some(user), true) = (user, followers.is_some() || posts.is_some()) else {
        let met = header.iter().collect::<Vec<_>>().join(",");
        return Err(Error::file(path, format!("columns are {met:?}; expected user and followers, posts, or both")));
    };
    let mut facts = AccountFacts::default();
    for record in reader.records() {
        let record = record.map_err(broken)?;
        let line = record.position().map_or(0, csv::Position::line);
        let name = record.get(user).unwrap_or_default().trim();
        for (column, known, title) in
            [(followers, &mut facts.followers, "followers"), (posts, &mut facts.posts, "posts")]
        {
            let Some(text) =
                column.and_then(|column| record.get(column)).map(str::trim).filter(|text| !text.is_empty())
            else {
                continue;
            };
            let number = text.parse::<f64>().ok().filter(|number| *number >= 0.0 && number.fract() == 0.0);
            let Some(number) = number else {
                let problem = format!("column {title}: found {text:?}; expected a whole number");
                return Err(Error::Line { path: path.to_owned(), line, problem });
            };
            known.insert(name.to_owned(), number as u64);
        }
    }
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn follows(edges: &str) -> FollowGraph {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("edges.csv");
        let rows: String = edges.split(' ').map(|edge| edge.replace('>', ",") + "\n").collect();
        std::fs::write(&path, format!("source,target\n{rows}")).unwrap();
        FollowGraph::read(&path, |_| ()).unwrap()
    }

    fn names(follows: &FollowGraph, accounts: &[u32]) -> String {
        accounts.iter().map(|&account| follows.name(account)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_paper_s_procedure() {
        // b is followed by c and d, c by e, e by f (too deep); h is the hub: c, d and e follow it, and it follows d.
        let follows = follows("b>c b>d c>e e>f h>c h>d h>e d>h e>d c>d d>c b>c z>z h>g d>e");
        assert_eq!((follows.repeated, follows.selves), (1, 1));
        let network = follows.network("h", "b", NetworkLimits::default(), &AccountFacts::default()).unwrap();
        assert_eq!(names(&follows, &network.members), "c d e h");
        let reason = |name: &str| {
            let account = follows.find(name, "").unwrap();
            network.left_out.iter().find(|(left, _)| *left == account).map(|(_, reason)| *reason)
        };
        assert_eq!(reason("b"), Some(LeftOutReason::NotStronglyConnected), "b hears nobody");
        assert_eq!(
            (reason("f"), reason("g"), reason("h")),
            (Some(LeftOutReason::NotReached), Some(LeftOutReason::NotReached), None)
        );
        // c hears b (outside), h and d: with itself three.
        let weight = |source: &str, target: &str| {
            let (source, target) = (follows.find(source, "").unwrap(), follows.find(target, "").unwrap());
            network.edges.iter().find(|edge| edge.0 == source && edge.1 == target).map(|edge| edge.2)
        };
        assert_eq!(
            (weight("c", "c"), weight("h", "c"), weight("d", "c")),
            (Some(1.0 / 3.0), Some(1.0 / 3.0), Some(1.0 / 3.0))
        );
        assert_eq!((weight("b", "c"), weight("d", "h"), weight("h", "h")), (None, Some(0.5), Some(0.5)));
        let mut sums: HashMap<u32, f64> = HashMap::new();
        network.edges.iter().for_each(|(_, target, weight)| *sums.entry(*target).or_default() += weight);
        assert!(sums.values().all(|sum| (sum - 1.0).abs() < 1e-12));
    }

    #[test]
    fn every_limit_is_a_parameter() {
        let follows = follows("b>c b>d b>e c>h d>h e>h h>b h>c h>d h>e h>b b>h");
        let form = |limits: NetworkLimits, facts: &AccountFacts| {
            let network = follows.network("h", "b", limits, facts).unwrap();
            let left: Vec<(String, LeftOutReason)> =
                network.left_out.iter().map(|(account, reason)| (follows.name(*account).to_owned(), *reason)).collect();
            (names(&follows, &network.members), left)
        };
        let everybody = form(NetworkLimits::default(), &AccountFacts::default());
        assert_eq!(everybody, ("b c d e h".into(), vec![]));
        let two =
            form(NetworkLimits { per_account: 2, depth: 1, ..NetworkLimits::default() }, &AccountFacts::default());
        assert_eq!(two, ("b c d h".into(), vec![("e".into(), LeftOutReason::BeyondPerAccount)]));
        // The hub itself has four followers and stays.
        let small = form(NetworkLimits { max_followers: 3, ..NetworkLimits::default() }, &AccountFacts::default());
        assert_eq!(small, ("c d e h".into(), vec![("b".into(), LeftOutReason::TooManyFollowers)]));
        let facts = AccountFacts {
            followers: [("c".to_owned(), 10_000)].into(),
            posts: [("b".to_owned(), 5), ("c".to_owned(), 5), ("d".to_owned(), 4)].into(),
        };
        let (members, left) = form(NetworkLimits { min_posts: 5, ..NetworkLimits::default() }, &facts);
        assert_eq!((members.as_str(), left.len()), ("b h", 3), "b has five posts: that is enough");
        assert_eq!(left[0], ("c".into(), LeftOutReason::TooManyFollowers));
        assert_eq!(left[1], ("d".into(), LeftOutReason::TooFewPosts));
    }

    #[test]
    fn accounts_that_are_not_there_or_alone() {
        let follows = follows("b>c Hub>b");
        let said = |hub: &str, start: &str| {
            follows.network(hub, start, NetworkLimits::default(), &AccountFacts::default()).unwrap_err().to_string()
        };
        assert!(said("hub", "b").contains("did you mean \"Hub\"?"));
        assert!(said("Hub", "x").contains("\"x\" is not among the 3 accounts"));
        assert!(said("Hub", "b").contains("strongly connected with nobody"));
    }

    #[test]
    fn a_long_chain_is_no_overflow() {
        // Everybody follows the one before, the first the last.
        let count = 100_000;
        let names = (0..count).map(|account: u32| account.to_string().into_boxed_str()).collect();
        let edges = (0..count).map(|account| (account, (account + 1) % count)).collect();
        let limits = NetworkLimits { depth: count, ..NetworkLimits::default() };
        let network = FollowGraph::new(names, edges, 0).network("0", "0", limits, &AccountFacts::default()).unwrap();
        assert_eq!((network.members.len(), network.larger), (count as usize, None));
    }

    proptest! {
        #[test]
        fn members_hear_the_hub_and_are_heard_by_it(edges in prop::collection::vec((0u32..12, 0u32..12), 0..40)) {
            let names = (0..12).map(|account: u32| account.to_string().into_boxed_str()).collect();
            let edges: Vec<(u32, u32)> = edges.into_iter().filter(|(from, to)| from != to).collect();
            let mut reached = [[false; 12]; 12];
            (0..12).for_each(|account| reached[account][account] = true);
            for _ in 0..12 {
                for &(from, to) in &edges {
                    (0..12).for_each(|start| reached[start][to as usize] |= reached[start][from as usize]);
                }
            }
            let mutual: Vec<u32> = (0..12).filter(|&other| reached[0][other as usize] && reached[other as usize][0]).collect();
            let limits = NetworkLimits { depth: 12, ..NetworkLimits::default() };
            let network = FollowGraph::new(names, edges, 0).network("0", "0", limits, &AccountFacts::default());
            prop_assert_eq!(network.map_or(vec![0], |network| network.members), mutual);
        }
    }
}
