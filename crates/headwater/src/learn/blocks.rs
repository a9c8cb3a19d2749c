//! Blocks of transitions, for fits to moments of several episodes and to resamples.
//!
//! In: a panel. Out: ranges of steps that do not cross episodes, and the sum of their moments with each episode centred on its
//! own mean where that is wanted.

use super::moments::Moments;
use crate::{Error, Panel};
use rand::{Rng, RngExt};
use std::ops::Range;

/// Episodes from which on they are resampled whole rather than in blocks.
const MANY_EPISODES: usize = 10;

/// Episodes that resampling whole ones needs.
const FEWEST_EPISODES: usize = 4;

/// Steps that resampling blocks of them needs.
const FEWEST_STEPS: usize = 11;

/// Blocks of transitions, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blocks {
    /// The steps that the transitions lead into.
    pub(crate) ranges: Vec<Range<usize>>,
    /// The episode of each block.
    episodes: Vec<usize>,
    /// Whether blocks are whole episodes of several.
    whole: bool,
    single: bool,
}

/// What the moments of several episodes are centred on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Centre {
    /// One mean for all.
    Shared,
    /// A mean for each episode.
    Episode,
    /// The same of observed frames, whose means take degrees of freedom.
    ObservedEpisode,
}

impl Blocks {
    /// One block for each episode.
    pub(crate) fn of_episodes(panel: &Panel) -> Self {
        let ranges: Vec<Range<usize>> = panel.episodes().ranges().map(|range| range.start + 1..range.end).collect();
        let single = panel.episodes().is_single();
        Blocks { episodes: (0..ranges.len()).collect(), ranges, whole: !single, single }
    }

    /// Blocks to resample, about `most` of nearly equal length: of one episode, of each of a few long ones, or many or short
    /// episodes whole.
    ///
    /// # Errors
    /// [`Error::NotReady`] for too few steps of one episode, [`Error::Undefined`] for too few short episodes.
    pub(crate) fn to_resample(panel: &Panel, most: usize) -> Result<Self, Error> {
        let episodes = panel.episodes();
        if episodes.is_single() {
            let transitions = panel.steps().saturating_sub(1);
            if transitions + 1 < FEWEST_STEPS {
                return Err(Error::NotReady { seen: panel.steps(), needed: FEWEST_STEPS });
            }
            let ranges = cut(1..panel.steps(), most.min(transitions / 2));
            return Ok(Blocks { episodes: vec![0; ranges.len()], ranges, whole: false, single: true });
        }
        if episodes.count() >= MANY_EPISODES || !episodes.have_own_levels() {
            if episodes.count() < FEWEST_EPISODES {
                let reason = format!(
                    "there are {} episodes, some with few steps; resampling takes at least {FEWEST_EPISODES} such episodes, or ten steps in each",
                    episodes.count()
                );
                return Err(Error::Undefined { what: "an interval", reason });
            }
            return Ok(Blocks::of_episodes(panel));
        }
        let all = episodes.transitions();
        let mut blocks = Blocks { ranges: Vec::new(), episodes: Vec::new(), whole: false, single: false };
        for (number, range) in episodes.ranges().enumerate() {
            let transitions = range.len() - 1;
            let count = (most * transitions / all).clamp(2, transitions / 2);
            blocks.ranges.extend(cut(range.start + 1..range.end, count));
            blocks.episodes.resize(blocks.ranges.len(), number);
        }
        Ok(blocks)
    }

    /// Whether they are whole episodes of several.
    pub(crate) fn are_episodes(&self) -> bool {
        self.whole
    }

    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// As many blocks as there are, with replacement; of a few long episodes as many of each as it has.
    pub(crate) fn draw(&self, rng: &mut impl Rng) -> Vec<usize> {
        if self.single || self.whole {
            return (0..self.len()).map(|_| rng.random_range(0..self.len())).collect();
        }
        let first = |number: usize| self.episodes.partition_point(|episode| *episode < self.episodes[number]);
        let end = |number: usize| self.episodes.partition_point(|episode| *episode <= self.episodes[number]);
        (0..self.len()).map(|number| rng.random_range(first(number)..end(number))).collect()
    }

    /// The frames of these blocks, each with the one before it, as ranges for [`Panel::joined`]: those of one episode are
    /// together, unless they are whole.
    pub(crate) fn frames(&self, numbers: &[usize]) -> Vec<Range<usize>> {
        let before = usize::from(self.whole);
        numbers.iter().map(|&number| self.ranges[number].start - 1..self.ranges[number].end - 1 + before).collect()
    }

    /// The sum of the moments of these blocks, each as often as it is listed; `moments` are those of all blocks.
    pub(crate) fn sum(&self, moments: &[Moments], numbers: &[usize], centre: Centre) -> Result<Moments, Error> {
        let empty = || Moments::empty(moments[0].agents(), moments[0].ratios());
        let mut sum = empty();
        if self.single || centre == Centre::Shared {
            for &number in numbers {
                sum.merge(&moments[number])?;
            }
            return Ok(sum);
        }
        let mut add = |episode: &Moments| match centre {
            Centre::ObservedEpisode => sum.join_centred(episode),
            Centre::Episode | Centre::Shared => sum.join(episode),
        };
        if self.whole {
            numbers.iter().for_each(|&number| add(&moments[number]));
            return Ok(sum);
        }
        for group in numbers.chunk_by(|one, next| self.episodes[*one] == self.episodes[*next]) {
            let mut episode = empty();
            for &number in group {
                episode.merge(&moments[number])?;
            }
            add(&episode);
        }
        Ok(sum)
    }
}

/// Cuts a range into so many of nearly equal length.
fn cut(range: Range<usize>, count: usize) -> Vec<Range<usize>> {
    let border = |number: usize| range.start + number * range.len() / count;
    (0..count).map(|number| border(number)..border(number + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Roster;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn panel(lengths: &[usize]) -> Panel {
        let steps: usize = lengths.iter().sum();
        let cells = (0..2 * steps).map(|cell| ((cell * 7919) % 101) as f64).collect();
        let panel = Panel::complete(Roster::numbered(2, 2).unwrap(), cells).unwrap();
        match lengths.len() {
            1 => panel,
            _ => panel
                .in_episodes(lengths.iter().enumerate().map(|(n, steps)| (n.to_string(), *steps)).collect())
                .unwrap(),
        }
    }

    fn moments(panel: &Panel, blocks: &Blocks) -> Vec<Moments> {
        let one = |range: &Range<usize>| {
            let mut moments = Moments::empty(2, 1);
            moments.push_frames(&panel.cells()[(range.start - 1) * 2..range.end * 2]);
            moments
        };
        blocks.ranges.iter().map(one).collect()
    }

    #[test]
    fn blocks_do_not_cross_episodes() {
        assert_eq!(Blocks::to_resample(&panel(&[21]), 4).unwrap().ranges, [1..6, 6..11, 11..16, 16..21]);
        let few = Blocks::to_resample(&panel(&[11, 21]), 6).unwrap();
        assert_eq!(few.ranges, [1..6, 6..11, 12..17, 17..22, 22..27, 27..32]);
        assert_eq!((few.episodes.clone(), few.whole), (vec![0, 0, 1, 1, 1, 1], false));
        let short = Blocks::to_resample(&panel(&[3, 3, 4, 12]), 6).unwrap();
        assert_eq!((short.ranges.clone(), short.whole), (vec![1..3, 4..6, 7..10, 11..22], true));
        assert!(Blocks::to_resample(&panel(&[12; 10]), 30).unwrap().whole, "many episodes are resampled whole");
        assert!(matches!(Blocks::to_resample(&panel(&[3, 3, 3]), 6), Err(Error::Undefined { .. })));
        assert!(matches!(Blocks::to_resample(&panel(&[10]), 6), Err(Error::NotReady { seen: 10, needed: 11 })));
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..20 {
            let drawn = few.draw(&mut rng);
            assert!(drawn[..2].iter().all(|block| *block < 2) && drawn[2..].iter().all(|block| (2..6).contains(block)));
        }
        assert_eq!(short.frames(&[1, 1, 3]), [3..6, 3..6, 10..22]);
        assert_eq!(few.frames(&[0, 1, 2]), [0..5, 5..10, 11..16]);
    }

    #[test]
    fn sums_of_blocks_are_moments_of_the_whole() {
        for lengths in [&[21][..], &[11, 21], &[3, 3, 4, 12]] {
            let panel = panel(lengths);
            let blocks = Blocks::to_resample(&panel, 6).unwrap();
            let numbers: Vec<usize> = (0..blocks.len()).collect();
            let sum = blocks.sum(&moments(&panel, &blocks), &numbers, Centre::ObservedEpisode).unwrap();
            let whole = Moments::from_panel(&panel, 1..panel.steps());
            assert_eq!((sum.weight(), sum.freedom()), (whole.weight(), whole.freedom()), "{lengths:?}");
            for cell in 0..4 {
                let (row, column) = (cell / 2, cell % 2);
                assert!((sum.xx(row, column) - whole.xx(row, column)).abs() < 1e-9 * whole.xx(row, row));
                assert!((sum.xy(row, column) - whole.xy(row, column)).abs() < 1e-9 * whole.xx(row, row));
            }
            let means = sum.mean_x().into_iter().zip(whole.mean_x()).all(|(a, b)| (a - b).abs() < 1e-12 * b.abs());
            assert!(means);
        }
    }
}
