//! Training of the built-in scorer: labelled posts in, weights out.
//!
//! Multinomial logistic regression with a quadratic penalty, every class with the same total weight, minimised by
//! L-BFGS in one thread: the same posts give the same bits. Folds run side by side.

use headwater_score::builtin::features::{BUCKETS, Features};
use headwater_score::builtin::weights::BuiltinWeights;
use rayon::prelude::*;

/// A post with the class that people gave it: 0 negative, 1 neutral, 2 positive.
#[derive(Debug, Clone)]
pub(crate) struct Labelled {
    /// The post.
    pub(crate) text: String,
    /// The class.
    pub(crate) class: usize,
}

/// Number of classes.
pub(crate) const CLASSES: usize = 3;

/// What training needs besides posts.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `penalty` | 4 | half the sum of squared weights counts like this many posts | > 0 |
/// | `rounds` | 60 | steps of L-BFGS | ≥ 1 |
/// | `fewest` | 2 | posts a bucket must occur in to get a weight | ≥ 1 |
#[derive(Debug, Clone, Copy)]
pub(crate) struct Training {
    pub(crate) penalty: f64,
    pub(crate) rounds: usize,
    pub(crate) fewest: u32,
}

impl Default for Training {
    fn default() -> Self {
        Training { penalty: 4.0, rounds: 60, fewest: 2 }
    }
}

/// Undoes the literal escapes (`\\u002c`, `\\"`, `\\n`) of SemEval's file.
pub(crate) fn decoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let digits = rest[at..].strip_prefix("\\u").and_then(|rest| rest.get(..4));
        let sign = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32);
        let (sign, length) = match (sign, rest[at + 1..].chars().next()) {
            (Some(sign), _) => (sign, 6),
            (None, Some('"')) => ('"', 2),
            (None, Some('n')) => (' ', 2),
            _ => ('\\', 1),
        };
        out.push(sign);
        rest = &rest[at + length..];
    }
    out + rest
}

/// The features of all posts, row by row.
#[derive(Debug)]
pub(crate) struct FeatureTable {
    starts: Vec<usize>,
    buckets: Vec<u32>,
    values: Vec<f32>,
    classes: Vec<usize>,
}

impl FeatureTable {
    /// Reads the posts.
    pub(crate) fn new(posts: &[Labelled]) -> Self {
        let rows: Vec<Vec<(u32, f32)>> = posts
            .par_iter()
            .map_init(Features::default, |features, post| {
                features.read(&post.text);
                let mut row: Vec<(u32, f32)> = features.list().iter().map(|f| (f.bucket, f.value)).collect();
                row.sort_unstable_by_key(|(bucket, _)| *bucket);
                row.dedup_by(|next, kept| {
                    let same = next.0 == kept.0;
                    if same {
                        kept.1 += next.1;
                    }
                    same
                });
                row
            })
            .collect();
        let mut table = FeatureTable { starts: vec![0], buckets: vec![], values: vec![], classes: vec![] };
        for (row, post) in rows.into_iter().zip(posts) {
            table.buckets.extend(row.iter().map(|(bucket, _)| *bucket));
            table.values.extend(row.iter().map(|(_, value)| *value));
            table.starts.push(table.buckets.len());
            table.classes.push(post.class);
        }
        table
    }

    /// The classes, in order.
    pub(crate) fn classes(&self) -> &[usize] {
        &self.classes
    }

    fn row(&self, row: usize) -> impl Iterator<Item = (usize, f32)> {
        let range = self.starts[row]..self.starts[row + 1];
        self.buckets[range.clone()].iter().map(|bucket| *bucket as usize).zip(self.values[range].iter().copied())
    }

    /// Weights from the posts with these rows: per bucket, negative and positive against neutral.
    pub(crate) fn fit(&self, rows: &[usize], training: &Training) -> Vec<[f32; 2]> {
        let problem = TrainingProblem::new(self, rows, training);
        let solution = minimise(&problem, training.rounds);
        let mut weights = vec![[0.0; 2]; BUCKETS];
        for (bucket, found) in problem.used.iter().zip(solution.chunks_exact(CLASSES)) {
            weights[*bucket as usize] = [found[0] - found[1], found[2] - found[1]];
        }
        weights
    }

    /// The sums of a post's weights: negative, neutral (zero by definition) and positive.
    pub(crate) fn sums(&self, row: usize, weights: &BuiltinWeights) -> [f64; CLASSES] {
        let mut sums = [0.0; 2];
        for (bucket, value) in self.row(row) {
            for (sum, weight) in sums.iter_mut().zip(weights.of(bucket as u32)) {
                *sum += f64::from(value * weight);
            }
        }
        [sums[0], 0.0, sums[1]]
    }
}

/// The training posts with their buckets renumbered to those in use.
struct TrainingProblem {
    used: Vec<u32>,
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
    classes: Vec<usize>,
    importance: [f32; CLASSES],
    penalty: f32,
}

impl TrainingProblem {
    fn new(table: &FeatureTable, rows: &[usize], training: &Training) -> Self {
        let mut occurs = vec![0_u32; BUCKETS];
        for row in rows {
            table.row(*row).for_each(|(bucket, _)| occurs[bucket] += 1);
        }
        let used: Vec<u32> = (0..BUCKETS as u32).filter(|bucket| occurs[*bucket as usize] >= training.fewest).collect();
        let mut number = vec![u32::MAX; BUCKETS];
        used.iter().enumerate().for_each(|(at, bucket)| number[*bucket as usize] = at as u32);
        let mut problem = TrainingProblem {
            used,
            starts: vec![0],
            columns: vec![],
            values: vec![],
            classes: rows.iter().map(|row| table.classes[*row]).collect(),
            importance: [0.0; CLASSES],
            penalty: (training.penalty / rows.len() as f64) as f32,
        };
        for row in rows {
            for (bucket, value) in table.row(*row) {
                if number[bucket] != u32::MAX {
                    problem.columns.push(number[bucket]);
                    problem.values.push(value);
                }
            }
            problem.starts.push(problem.columns.len());
        }
        for class in 0..CLASSES {
            let count = problem.classes.iter().filter(|found| **found == class).count();
            problem.importance[class] = 1.0 / (CLASSES * count.max(1)) as f32;
        }
        problem
    }

    /// The loss and its gradient.
    fn evaluate(&self, weights: &[f32], gradient: &mut [f32]) -> f64 {
        let mut loss = 0.0;
        for (slot, weight) in gradient.iter_mut().zip(weights) {
            *slot = self.penalty * weight;
            loss += 0.5 * f64::from(self.penalty * weight * weight);
        }
        for row in 0..self.classes.len() {
            let range = self.starts[row]..self.starts[row + 1];
            let mut sums = [0.0_f32; CLASSES];
            for at in range.clone() {
                let column = self.columns[at] as usize * CLASSES;
                for class in 0..CLASSES {
                    sums[class] += self.values[at] * weights[column + class];
                }
            }
            let class = self.classes[row];
            let importance = self.importance[class];
            let probabilities = softmax(sums);
            loss -= f64::from(importance) * f64::from(probabilities[class].max(1e-30).ln());
            let mut residual = probabilities;
            residual[class] -= 1.0;
            residual.iter_mut().for_each(|value| *value *= importance);
            for at in range {
                let column = self.columns[at] as usize * CLASSES;
                for class in 0..CLASSES {
                    gradient[column + class] += self.values[at] * residual[class];
                }
            }
        }
        loss
    }
}

fn softmax(sums: [f32; CLASSES]) -> [f32; CLASSES] {
    let largest = sums.iter().copied().fold(f32::MIN, f32::max);
    let powers = sums.map(|sum| (sum - largest).exp());
    let total: f32 = powers.iter().sum();
    powers.map(|power| power / total)
}

fn dot(left: &[f32], right: &[f32]) -> f64 {
    // Eight running sums: fast, and the same order every time.
    let mut sums = [0.0_f64; 8];
    for (left, right) in left.chunks(8).zip(right.chunks(8)) {
        for (at, (left, right)) in left.iter().zip(right).enumerate() {
            sums[at] += f64::from(left * right);
        }
    }
    sums.iter().sum()
}

fn add(to: &mut [f32], factor: f64, what: &[f32]) {
    let factor = factor as f32;
    to.iter_mut().zip(what).for_each(|(to, what)| *to += factor * what);
}

/// L-BFGS with six pairs and a backtracking line search, from zero.
fn minimise(problem: &TrainingProblem, rounds: usize) -> Vec<f32> {
    const PAIRS: usize = 6;
    let size = problem.used.len() * CLASSES;
    let mut point = vec![0.0_f32; size];
    let mut gradient = vec![0.0_f32; size];
    let mut value = problem.evaluate(&point, &mut gradient);
    let start = dot(&gradient, &gradient).sqrt();
    let mut history: Vec<(Vec<f32>, Vec<f32>, f64)> = Vec::new();
    for _ in 0..rounds {
        let mut direction = gradient.clone();
        let mut shares = vec![0.0; history.len()];
        for (at, (moved, turned, product)) in history.iter().enumerate().rev() {
            shares[at] = dot(moved, &direction) / product;
            add(&mut direction, -shares[at], turned);
        }
        let scale = history.last().map_or(1.0 / start.max(1e-12), |(_, turned, product)| product / dot(turned, turned));
        direction.iter_mut().for_each(|slot| *slot *= scale as f32);
        for (at, (moved, turned, product)) in history.iter().enumerate() {
            let correction = shares[at] - dot(turned, &direction) / product;
            add(&mut direction, correction, moved);
        }
        let slope = -dot(&gradient, &direction);
        if slope > -1e-12 * value.abs().max(1e-12) {
            break;
        }
        let mut step = 1.0;
        let mut tried = vec![0.0_f32; size];
        let (next, found) = loop {
            let mut next = point.clone();
            add(&mut next, -step, &direction);
            let found = problem.evaluate(&next, &mut tried);
            if found <= value + 1e-4 * step * slope || step < 1e-6 {
                break (next, found);
            }
            step *= 0.5;
        };
        let moved: Vec<f32> = next.iter().zip(&point).map(|(new, old)| new - old).collect();
        let turned: Vec<f32> = tried.iter().zip(&gradient).map(|(new, old)| new - old).collect();
        let product = dot(&moved, &turned);
        if product > 1e-18 {
            if history.len() == PAIRS {
                history.remove(0);
            }
            history.push((moved, turned, product));
        }
        let gain = value - found;
        (point, gradient, value) = (next, tried, found);
        if gain < 1e-6 * value {
            break;
        }
    }
    point
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone() {
        assert_eq!(decoded(r#"a\u002c b\u2019s \"x\" \ \u12 \\"#), "a, b’s \"x\" \\ \\u12 \\\\");
    }

    #[test]
    fn training_separates_and_repeats_itself() {
        let good = ["what a lovely day", "I love it", "great work, thanks", "so happy today"];
        let bad = ["what an awful day", "I hate it", "terrible work, shame", "so angry today"];
        let flat = ["the meeting is on monday", "it is at noon", "work starts at nine", "today is tuesday"];
        let mut posts = Vec::new();
        for (class, texts) in [bad, flat, good].into_iter().enumerate() {
            posts.extend(texts.map(|text| Labelled { text: text.to_owned(), class }));
        }
        let table = FeatureTable::new(&posts);
        let rows: Vec<usize> = (0..posts.len()).collect();
        let training = Training { penalty: 0.1, rounds: 30, fewest: 1 };
        let fit = table.fit(&rows, &training);
        assert_eq!(fit, table.fit(&rows, &training));
        let weights = BuiltinWeights::rounded(&fit, 1.0);
        for row in rows {
            let sums = table.sums(row, &weights);
            let likeliest = (0..CLASSES).max_by(|a, b| sums[*a].total_cmp(&sums[*b])).unwrap();
            assert_eq!(likeliest, posts[row].class, "{}", posts[row].text);
        }
    }

    #[test]
    #[ignore = "needs third-party data: set HEADWATER_DATA"]
    fn training_on_a_part_of_the_data_works() {
        let data = std::path::PathBuf::from(
            std::env::var_os("HEADWATER_DATA").unwrap_or_else(|| "../../../shared/data".into()),
        );
        let path = data.join("sentiment/semeval2013_2016_train.csv");
        let mut reader = csv::Reader::from_path(&path).unwrap();
        let mut posts = Vec::new();
        for record in reader.records().step_by(10) {
            let record = record.unwrap();
            posts.push(Labelled { text: decoded(&record[3]), class: record[0].parse().unwrap() });
        }
        let table = FeatureTable::new(&posts);
        let (test, train): (Vec<usize>, Vec<usize>) = (0..table.classes().len()).partition(|row| row % 3 == 0);
        let weights = BuiltinWeights::rounded(&table.fit(&train, &Training { rounds: 20, ..Training::default() }), 1.0);
        let (mut right, mut counts) = ([0.0; 3], [0.0; 3]);
        for row in test {
            let sums = table.sums(row, &weights);
            let class = table.classes()[row];
            counts[class] += 1.0;
            if sums.iter().all(|sum| *sum <= sums[class]) {
                right[class] += 1.0;
            }
        }
        let recall = (0..3).map(|class| right[class] / counts[class]).sum::<f64>() / 3.0;
        // 0.62 measured; chance is 0.33.
        assert!(recall > 0.57, "{recall}");
    }
}
