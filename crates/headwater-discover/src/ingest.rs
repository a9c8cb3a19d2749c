//! The first stage: posts in, a panel of log-beliefs and the follow graph among its accounts out.

use crate::Error;
use crate::discover::{BELIEFS_FILE, Ingested, LOG_BELIEFS_FILE, Run};
use crate::event::{RunEvent, Warning};
use crate::follow_graph::RunGraph;
use crate::input_names::InputNames;
use crate::pseudonyms::Pseudonyms;
use crate::record::{RunCounts, ScoreResult};
use headwater_files::{folded_name, write_panel};
use headwater_posts::read::{BadRow, Preset};
use headwater_posts::reader::PostBatch;
use headwater_posts::{Error as PostsError, IngestWarning, PostHooks, RejectsFile, bin_posts};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// Time bins that the learner needs.
const FEWEST_BINS: u64 = 10;

/// Instead of the reason why a row cannot be read, where names are replaced.
const HIDDEN_REASON: &str = "cannot be read; why is not shown, because it may contain a name";

/// Accounts that may count, under the names of this run.
struct AllowedUsers {
    /// Those that were asked for.
    listed: Option<HashSet<String>>,
    /// Those that are in the graph as well.
    both: Option<HashSet<String>>,
}

/// Sees the posts as they come: renames, counts accounts outside the graph, reports bad rows.
struct RunHooks<'a> {
    run: &'a Run<'a>,
    pseudonyms: Option<&'a mut Pseudonyms>,
    graph: Option<&'a RunGraph>,
    allowed: AllowedUsers,
    outside: HashSet<String>,
    inside: u64,
    /// Folded names of those who post under a name that the graph has up to case and a leading `@` only.
    folded: HashMap<String, String>,
    /// Those of them that the selection does not know yet.
    admitted: Vec<String>,
    rejects: Option<RejectsFile>,
    /// What files are called where names are replaced.
    names: Option<InputNames>,
}

impl PostHooks for RunHooks<'_> {
    fn batch(&mut self, batch: &mut PostBatch) {
        for post in &mut batch.posts {
            let folded = self.graph.map(|_| folded_name(&post.user));
            if let Some(pseudonyms) = self.pseudonyms.as_deref_mut() {
                post.user = pseudonyms.replace(&post.user);
            }
            let (Some(graph), Some(folded)) = (self.graph, folded) else {
                self.inside += 1;
                continue;
            };
            if graph.users.contains(&post.user) {
                self.inside += 1;
                continue;
            }
            let asked = self.allowed.listed.as_ref().is_none_or(|listed| listed.contains(&post.user));
            if asked && graph.has_folded(&folded) {
                self.inside += 1;
                if self.folded.insert(post.user.clone(), folded).is_none() {
                    self.admitted.push(post.user.clone());
                }
            } else if asked && !self.outside.contains(&post.user) {
                self.outside.insert(post.user.clone());
            }
        }
        if let Some(names) = &self.names {
            // The text of a reason quotes the cell.
            batch.bad.iter_mut().for_each(|bad| bad.reason = HIDDEN_REASON.to_owned());
            let mut latest: Option<(Arc<Path>, Arc<Path>)> = None;
            let posts = batch.posts.iter_mut().map(|post| &mut post.place);
            for place in posts.chain(batch.bad.iter_mut().map(|bad| &mut bad.place)) {
                if latest.as_ref().is_none_or(|(path, _)| !Arc::ptr_eq(path, &place.file)) {
                    let name = names.of_path(&place.file).unwrap_or_else(|| Arc::from(Path::new("posts")));
                    latest = Some((place.file.clone(), name));
                }
                if let Some((_, name)) = &latest {
                    place.file = name.clone();
                }
            }
        }
    }

    fn bad_rows(&mut self, rows: &[BadRow]) -> Result<(), PostsError> {
        if !rows.is_empty() {
            (self.run.observer)(RunEvent::BadRows(rows.to_vec()));
        }
        self.rejects.as_mut().map_or(Ok(()), |rejects| rejects.write(rows))
    }

    fn users(&self) -> Option<HashSet<String>> {
        self.allowed.both.clone()
    }

    fn more_users(&mut self) -> Vec<String> {
        std::mem::take(&mut self.admitted)
    }

    fn unwanted(&mut self, users: &[String]) -> HashSet<String> {
        let Some(graph) = self.graph else { return HashSet::new() };
        let matches = graph.matches(users.iter().map(String::as_str), &self.folded);
        let matched: HashSet<&String> = matches.values().collect();
        let unknown = users.iter().filter(|user| !graph.users.contains(*user) && !matched.contains(user));
        let unknown: HashSet<String> = unknown.cloned().collect();
        self.outside.extend(unknown.iter().cloned());
        unknown
    }

    fn recognised(&mut self, preset: Preset) {
        (self.run.observer)(RunEvent::Recognised(preset));
    }

    fn warning(&mut self, warning: &IngestWarning) {
        (self.run.observer)(RunEvent::Warning(Warning::Ingest(*warning)));
    }
}

impl Run<'_> {
    /// Reads, scores and bins the posts, and writes the beliefs to the folder, if any.
    pub(crate) fn ingest(
        &self,
        work: Option<&Path>,
        mut pseudonyms: Option<&mut Pseudonyms>,
        graph: Option<&RunGraph>,
    ) -> Result<(Ingested, ScoreResult), Error> {
        let discover = self.discover;
        let hidden = pseudonyms.is_some();
        let allowed = self.allowed(pseudonyms.as_deref_mut(), graph)?;
        let rejects =
            discover.rejects.as_deref().map(|path| RejectsFile::create(path, discover.csv_text)).transpose()?;
        let scorer = self.scorer()?;
        let mut hooks = RunHooks {
            run: self,
            pseudonyms: pseudonyms.as_deref_mut(),
            graph,
            allowed,
            outside: HashSet::new(),
            inside: 0,
            folded: HashMap::new(),
            admitted: Vec::new(),
            rejects,
            names: hidden.then(|| discover.input_names()),
        };
        let read = bin_posts(&discover.posts, &discover.options, scorer, &mut hooks);
        let RunHooks { allowed, outside, inside, folded, rejects, .. } = hooks;
        if let Some(rejects) = rejects {
            rejects.close(read.is_ok())?;
        }
        let (beliefs, mut quality) = read.map_err(|error| match (error, graph) {
            (PostsError::NothingLeft { .. }, Some(graph)) if inside == 0 && !outside.is_empty() => {
                graph.no_posters(outside.len(), outside.iter().min())
            }
            (error, _) => self.unreadable(error, hidden),
        })?;
        if let Some(pseudonyms) = pseudonyms.as_deref() {
            pseudonyms.check()?;
        }
        // Who spoke first would tell who is who.
        let beliefs = if hidden { beliefs.with_users_by_name() } else { beliefs };
        if quality.bins < FEWEST_BINS {
            let (first, last) = (quality.first.clone(), quality.last.clone());
            let (posts, bins) = (self.posts_name(), quality.bins);
            return Err(Error::TooFewBins { posts, first, last, bins, needed: FEWEST_BINS });
        }
        if beliefs.is_constant() {
            return Err(Error::ConstantScores { posts: self.posts_name() });
        }
        (self.observer)(RunEvent::Ingested(Box::new(quality.clone())));
        let panel = beliefs.panel().map_err(|error| match error {
            PostsError::Core(error) => self.about(error),
            other => other.into(),
        })?;
        if let Some(work) = work {
            beliefs.write(&work.join(BELIEFS_FILE), discover.csv_text)?.commit()?;
            write_panel(&work.join(LOG_BELIEFS_FILE), &panel)?.commit()?;
        }
        let posters = || panel.roster().agents().iter().map(String::as_str);
        let matched = graph.map_or_else(BTreeMap::new, |graph| graph.matches(posters(), &folded));
        let listed = allowed.listed.is_some();
        if let Some(allowed) = &allowed.both {
            let present = posters().filter(|name| allowed.contains(*name)).count();
            quality.absent_users = allowed.len().saturating_sub(present + if listed { 0 } else { matched.len() });
        }
        let among = graph
            .map(|graph| graph.among(panel.roster(), &matched, quality.absent_users, outside.len()))
            .transpose()?;
        let warnings = match &among {
            Some((_, counts)) => Warning::about_graph(counts),
            None if quality.absent_users > 0 && allowed.both.is_some() => {
                vec![Warning::Ingest(IngestWarning::AbsentUsers { users: quality.absent_users })]
            }
            None => Vec::new(),
        };
        warnings.into_iter().for_each(|warning| (self.observer)(RunEvent::Warning(warning)));
        let topic = discover.options.topic.iter().map(|topic| match pseudonyms.as_deref() {
            Some(pseudonyms) => pseudonyms.redact(topic),
            None => topic.clone(),
        });
        let (graph, counts) = among.unzip();
        let result = ScoreResult { topic: topic.collect(), counts: RunCounts::new(quality, counts), matched };
        Ok((Ingested { panel, graph }, result))
    }

    /// Names the posts, or hides what may contain a name.
    fn unreadable(&self, error: PostsError, hidden: bool) -> Error {
        match error {
            PostsError::Columns { path, missing, .. } if hidden => {
                Error::HiddenColumns { path, missing: missing.into_iter().map(str::to_owned).collect() }
            }
            PostsError::Line { path, line, .. } if hidden => {
                Error::Hidden { place: format!("{}, line {line}", path.display()) }
            }
            PostsError::WholeFile { place, .. } if hidden => Error::Hidden { place: place.to_string() },
            PostsError::File { path, .. } if hidden => Error::Hidden { place: path.display().to_string() },
            source @ (PostsError::NothingLeft { .. } | PostsError::OneUser { .. }) => {
                Error::NothingKept { posts: self.posts_name(), source: Box::new(source) }
            }
            other => other.into(),
        }
    }

    /// The accounts that may count.
    fn allowed(
        &self,
        mut pseudonyms: Option<&mut Pseudonyms>,
        graph: Option<&RunGraph>,
    ) -> Result<AllowedUsers, Error> {
        let Some(users) = &self.discover.options.users else {
            return Ok(AllowedUsers { listed: None, both: graph.map(|graph| graph.users.clone()) });
        };
        let hidden = pseudonyms.is_some();
        let listed = users.read().map_err(|error| self.unreadable(error, hidden))?;
        let mut run_name = |name: &String| match pseudonyms.as_deref_mut() {
            Some(pseudonyms) => pseudonyms.replace(name),
            None => name.clone(),
        };
        let names: Vec<(String, String)> = listed.iter().map(|user| (run_name(user), folded_name(user))).collect();
        let known = |(user, folded): &&(String, String)| {
            graph.is_none_or(|graph| graph.users.contains(user) || graph.has_folded(folded))
        };
        let both: HashSet<String> = names.iter().filter(known).map(|(user, _)| user.clone()).collect();
        if both.is_empty() {
            return Err(Error::UsersOutsideGraph);
        }
        let listed = names.into_iter().map(|(user, _)| user).collect();
        Ok(AllowedUsers { listed: Some(listed), both: Some(both) })
    }
}
