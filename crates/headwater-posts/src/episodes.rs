//! Several topics as episodes of one network: each topic is a conversation of its own.
//!
//! In: posts, read once for each topic. Out: [`BinnedEpisodes`], and what was met in each.

use crate::bin::BinnedBeliefs;
use crate::ingest::{PostHooks, bin_posts};
use crate::options::{PostOptions, PostsInput};
use crate::quality::Quality;
use crate::{Error, Scorer};
use headwater::Panel;
use headwater_files::{AtomicFile, BeliefsRows, CsvText};
use std::collections::HashSet;
use std::path::Path;

/// Mean log-odds per user and bin of each topic.
#[derive(Debug)]
pub struct BinnedEpisodes {
    /// The topic, which names the episode, and its beliefs.
    episodes: Vec<(String, BinnedBeliefs)>,
}

/// Topics of which each becomes an episode: two or more, each once.
///
/// # Errors
/// [`Error::Option`] otherwise.
pub fn check_topics(topics: &[String]) -> Result<(), Error> {
    if topics.len() < 2 {
        return Err(Error::option(format!(
            "{} topic(s) given; episodes need at least two, of which each becomes one",
            topics.len()
        )));
    }
    let mut seen = HashSet::new();
    match topics.iter().find(|topic| !seen.insert(topic.trim())) {
        Some(topic) => Err(Error::option(format!("the topic {topic:?} is given twice; each names an episode"))),
        None => Ok(()),
    }
}

/// Reads the posts once for each topic of the options. All other options, such as the fewest posts of a user, apply to each
/// topic for itself: who has too few posts in one is absent from it. `scorer` makes one for each pass, and errors are about the
/// topic that `named` is given.
///
/// # Errors
/// Those of [`bin_posts`], and [`Error::Option`] for fewer than two topics, a topic given twice, and standard input, which
/// cannot be read twice.
pub fn bin_episodes<E: From<Error>>(
    input: &PostsInput,
    options: &PostOptions,
    mut scorer: impl FnMut() -> Result<Option<Box<dyn Scorer>>, E>,
    hooks: &mut dyn PostHooks,
    named: impl Fn(&str, Error) -> E,
) -> Result<(BinnedEpisodes, Vec<(String, Quality)>), E> {
    check_topics(&options.topic)?;
    if let PostsInput::Files(files) = input
        && files.iter().any(|file| file == Path::new("-"))
    {
        return Err(Error::option("standard input cannot be read once for each topic; give a file").into());
    }
    let (mut episodes, mut qualities) = (Vec::new(), Vec::new());
    for topic in &options.topic {
        let name = topic.trim().to_owned();
        let options = PostOptions { topic: vec![topic.clone()], ..options.clone() };
        let found = bin_posts(input, &options, scorer()?, hooks);
        let (beliefs, quality) = found.map_err(|error| match error {
            Error::Core(headwater::Error::Stopped) => E::from(error),
            error => named(&name, error),
        })?;
        episodes.push((name.clone(), beliefs));
        qualities.push((name, quality));
    }
    Ok((BinnedEpisodes { episodes }, qualities))
}

impl BinnedEpisodes {
    /// The panel, with an episode for each topic.
    ///
    /// # Errors
    /// Those of [`BinnedBeliefs::panel`], and what [`Panel::from_episodes`] tells.
    pub fn panel(&self) -> Result<Panel, Error> {
        let one = |(name, beliefs): &(String, BinnedBeliefs)| Ok((name.clone(), beliefs.panel()?));
        let episodes = self.episodes.iter().map(one).collect::<Result<Vec<_>, Error>>()?;
        Ok(Panel::from_episodes(&episodes)?)
    }

    /// The table of beliefs with a column `episode` (Parquet by extension, otherwise CSV), which takes its name when it is
    /// committed.
    pub fn write(&self, path: &Path, text: CsvText) -> Result<AtomicFile, Error> {
        let Some((_, first)) = self.episodes.first() else {
            return Err(Error::option("there are no episodes to write"));
        };
        let mut rows = BeliefsRows::with_episodes(path, first.hypotheses().names(), text)?;
        for (name, beliefs) in &self.episodes {
            beliefs.check_filled()?;
            beliefs.visit(|cell| {
                headwater::progress::check()?;
                let time = beliefs.time_of(cell.slot);
                Ok::<(), Error>(rows.write_in(name, &time, beliefs.user(cell.user), &cell.ratios, cell.posts)?)
            })?;
        }
        Ok(rows.finish()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ScorerChoice, read_posts};

    const POSTS: &str = "user,time,text,score\nann,2024-05-01,the tax is good,0.9\nbob,2024-05-01,tax and war,0.2\nann,2024-05-03,tax again,0.8\nbob,2024-05-06,war,0.4\ncem,2024-05-07,war again,0.6\ndan,2024-05-07,the weather,0.6\n";

    #[test]
    fn each_topic_is_an_episode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("posts.csv");
        std::fs::write(&path, POSTS).unwrap();
        let input = PostsInput::from(path.as_path());
        let with = |topics: &[&str]| PostOptions {
            topic: topics.iter().map(|topic| (*topic).to_owned()).collect(),
            scorer: ScorerChoice::Column,
            ..PostOptions::default()
        };
        let bin = |options: &PostOptions| bin_episodes(&input, options, || Ok(None), &mut (), |_, error| error);
        let (episodes, qualities) = bin(&with(&["tax", "war"])).unwrap();
        let panel = episodes.panel().unwrap();
        assert_eq!(panel.roster().agents(), ["ann", "bob", "cem"]);
        assert_eq!(panel.episodes().names().unwrap(), ["tax", "war"]);
        assert_eq!(panel.episodes().ranges().collect::<Vec<_>>(), [0..3, 3..10]);
        assert_eq!(panel.absences(), [(2, 0), (0, 1)]);
        assert_eq!(qualities.iter().map(|(_, quality)| quality.kept).collect::<Vec<_>>(), [3, 3]);
        // Alone each topic gives the same numbers.
        for (number, topic) in ["tax", "war"].into_iter().enumerate() {
            let (alone, _) = read_posts(&input, &with(&[topic]), None, &mut ()).unwrap();
            for (step, to) in panel.episodes().range(number).enumerate() {
                for (agent, name) in alone.roster().agents().iter().enumerate() {
                    let there = panel.roster().agent(name).unwrap();
                    assert_eq!(panel.posts(to, there), alone.posts(step, agent));
                    assert_eq!(panel.frame(to)[(there, 0)], alone.frame(step)[(agent, 0)]);
                }
            }
        }
        for name in ["b.csv", "b.parquet"] {
            let table = folder.path().join(name);
            episodes.write(&table, CsvText::Neutralised).unwrap().commit().unwrap();
            let read = headwater_files::read_beliefs(&table, false).unwrap().panel;
            assert_eq!((read.episodes().names(), read.roster()), (panel.episodes().names(), panel.roster()), "{name}");
        }
        let said = |options: &PostOptions| bin(options).unwrap_err().to_string();
        assert!(said(&with(&["tax"])).contains("episodes need at least two"));
        assert!(said(&with(&["tax", "tax "])).contains("is given twice"));
        let named = bin_episodes(
            &input,
            &with(&["tax", "weather"]),
            || Ok(None),
            &mut (),
            |topic, error| {
                assert!(matches!(error, Error::OneUser { .. }), "{error}");
                Error::option(topic.to_owned())
            },
        );
        assert!(named.unwrap_err().to_string().contains("weather"));
        let piped = PostsInput::from(Path::new("-"));
        let piped = bin_episodes(&piped, &with(&["tax", "war"]), || Ok(None), &mut (), |_, error| error);
        assert!(piped.unwrap_err().to_string().contains("standard input cannot be read"));
    }
}
