//! Trains the built-in scorer and prints what it is worth.
//!
//! ```sh
//! cargo run --release -p train-scorer [-- --out crates/headwater-score/src/builtin/weights.bin]
//! ```
//!
//! In: `sentiment/semeval2013_2016_train.csv` and `sentiment/vader_tweets_rated.csv` in the folder that `HEADWATER_DATA`
//! names (`../shared/data` by default). Out: figures, and with `--out` the weights. The same posts give the same bytes.

#![expect(clippy::print_stdout, reason = "this program prints figures")]

mod train;

use headwater_score::Scorer;
use headwater_score::builtin::Builtin;
use headwater_score::builtin::weights::BuiltinWeights;
use rayon::prelude::*;
use std::error::Error;
use std::path::{Path, PathBuf};
use train::{CLASSES, FeatureTable, Labelled, Training, decoded};

const FOLDS: usize = 5;
const SEED: u64 = 21;

fn main() -> Result<(), Box<dyn Error>> {
    let out = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => None,
        [flag, path] if flag == "--out" => Some(PathBuf::from(path)),
        _ => return Err("usage: train-scorer [--out FILE]".into()),
    };
    let data =
        PathBuf::from(std::env::var_os("HEADWATER_DATA").unwrap_or_else(|| "../shared/data".into())).join("sentiment");
    let (posts, splits) = read(&data.join("semeval2013_2016_train.csv"))?;
    let table = FeatureTable::new(&posts);
    let training = Training::default();
    println!("{} posts, {training:?}, seed {SEED}", posts.len());

    // Every fit at once: the folds, then all but 2016test-A, then everything.
    let folds = folds(table.classes());
    let rows = |wanted: &dyn Fn(usize) -> bool| (0..posts.len()).filter(|row| wanted(*row)).collect::<Vec<usize>>();
    let mut sets: Vec<Vec<usize>> = (0..FOLDS).map(|fold| rows(&|row| folds[row] != fold)).collect();
    sets.push(rows(&|row| splits[row] != "2016test-A"));
    sets.push(rows(&|_| true));
    let fits: Vec<Vec<[f32; 2]>> = sets.par_iter().map(|rows| table.fit(rows, &training)).collect();

    // The temperature is the one number that is fitted on unseen posts.
    let rounded = |fit: &[[f32; 2]]| BuiltinWeights::rounded(fit, 1.0);
    let unseen: Vec<[f64; CLASSES]> = {
        let weights: Vec<BuiltinWeights> = fits[..FOLDS].iter().map(|fit| rounded(fit)).collect();
        (0..posts.len()).map(|row| table.sums(row, &weights[folds[row]])).collect()
    };
    let temperature = temperature(&unseen, table.classes());
    println!(
        "temperature {temperature:.3}, fitted on the posts that each fold left out, every class counting the same"
    );
    Figures::new(&unseen, table.classes(), temperature).print(&format!("{FOLDS}-fold cross-validation"));

    let test = rows(&|row| splits[row] == "2016test-A");
    let classes: Vec<usize> = test.iter().map(|row| table.classes()[*row]).collect();
    let weights = rounded(&fits[FOLDS]);
    let sums: Vec<[f64; CLASSES]> = test.iter().map(|row| table.sums(*row, &weights)).collect();
    Figures::new(&sums, &classes, temperature).print("2016test-A, trained without it");

    let weights = BuiltinWeights::rounded(&fits[FOLDS + 1], temperature as f32);
    let file = weights.to_bytes();
    rated(&data.join("vader_tweets_rated.csv"), weights)?;
    println!("weights: {} bytes, FNV-1a {:016x}", file.len(), headwater_score::builtin::features::hash(&file));
    if let Some(path) = out {
        std::fs::write(&path, file)?;
        println!("written to {}", path.display());
    }
    Ok(())
}

fn read(path: &Path) -> Result<(Vec<Labelled>, Vec<String>), Box<dyn Error>> {
    let (mut posts, mut splits) = (vec![], vec![]);
    let mut reader = csv::Reader::from_path(path).map_err(|error| format!("{}: {error}", path.display()))?;
    for record in reader.records() {
        let record = record?;
        let (Some(class), Some(split), Some(text)) = (record.get(0), record.get(1), record.get(3)) else {
            return Err("expected the columns label, split, id, text".into());
        };
        posts.push(Labelled { text: decoded(text), class: class.parse()? });
        splits.push(split.to_owned());
    }
    Ok((posts, splits))
}

/// A fold for every post: classes are dealt out evenly, in a seeded order.
fn folds(classes: &[usize]) -> Vec<usize> {
    let mut state = SEED;
    let mut draw = || {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let mut order: Vec<(usize, u64, usize)> =
        classes.iter().enumerate().map(|(row, class)| (*class, draw(), row)).collect();
    order.sort_unstable();
    let mut folds = vec![0; classes.len()];
    for (place, (_, _, row)) in order.into_iter().enumerate() {
        folds[row] = place % FOLDS;
    }
    folds
}

fn probabilities(sums: &[f64; CLASSES], temperature: f64) -> [f64; CLASSES] {
    let largest = sums.iter().copied().fold(f64::MIN, f64::max);
    let powers = sums.map(|sum| ((sum - largest) / temperature).exp());
    let total: f64 = powers.iter().sum();
    powers.map(|power| power / total)
}

/// The temperature of the smallest log-loss, every class counting the same.
fn temperature(sums: &[[f64; CLASSES]], classes: &[usize]) -> f64 {
    let mut counts = [0.0; CLASSES];
    classes.iter().for_each(|class| counts[*class] += 1.0);
    let loss = |temperature: f64| -> f64 {
        let each = sums.iter().zip(classes);
        each.map(|(sums, class)| -probabilities(sums, temperature)[*class].ln() / counts[*class]).sum()
    };
    let candidates = (0..=200).map(|step| 0.5 + 0.01 * f64::from(step));
    candidates.map(|t| (loss(t), t)).min_by(|a, b| a.0.total_cmp(&b.0)).map_or(1.0, |(_, t)| t)
}

struct Figures {
    recalls: [f64; CLASSES],
    accuracy: f64,
    /// Of the likeliest class, in fifteen bins: as the posts are, and with every class counting the same.
    calibration: [f64; 2],
    loss: f64,
}

impl Figures {
    fn new(sums: &[[f64; CLASSES]], classes: &[usize], temperature: f64) -> Self {
        const BINS: usize = 15;
        let (mut right, mut counts) = ([0.0; CLASSES], [0.0; CLASSES]);
        classes.iter().for_each(|class| counts[*class] += 1.0);
        let mut bins = [[0.0; BINS]; 2];
        let mut loss = 0.0;
        for (sums, class) in sums.iter().zip(classes) {
            let p = probabilities(sums, temperature);
            let likeliest = (0..CLASSES).fold(0, |best, class| if p[class] > p[best] { class } else { best });
            let hit = f64::from(u8::from(likeliest == *class));
            right[*class] += hit;
            loss -= p[*class].ln();
            let bin = ((p[likeliest] * BINS as f64) as usize).min(BINS - 1);
            bins[0][bin] += (p[likeliest] - hit) / classes.len() as f64;
            bins[1][bin] += (p[likeliest] - hit) / (CLASSES as f64 * counts[*class]);
        }
        Figures {
            recalls: std::array::from_fn(|class| right[class] / counts[class]),
            accuracy: right.iter().sum::<f64>() / classes.len() as f64,
            calibration: bins.map(|bins| bins.iter().map(|gap| gap.abs()).sum()),
            loss: loss / classes.len() as f64,
        }
    }

    fn print(&self, what: &str) {
        let [negative, neutral, positive] = self.recalls;
        let macro_recall = (negative + neutral + positive) / 3.0;
        println!("{what}:");
        println!(
            "  macro recall {macro_recall:.4} (negative {negative:.3}, neutral {neutral:.3}, positive {positive:.3}), accuracy {:.4}",
            self.accuracy
        );
        let [plain, even] = self.calibration;
        println!(
            "  expected calibration error {plain:.4}, with every class counting the same {even:.4}; log-loss {:.4}",
            self.loss
        );
    }
}

/// Agreement with people's ratings from −4 to 4 of posts that no training saw.
fn rated(path: &Path, weights: BuiltinWeights) -> Result<(), Box<dyn Error>> {
    let Ok(mut reader) = csv::Reader::from_path(path) else {
        println!("no {}: agreement with ratings not measured", path.display());
        return Ok(());
    };
    let (mut ratings, mut texts) = (vec![], vec![]);
    for record in reader.records() {
        let record = record?;
        ratings.push(record.get(0).unwrap_or_default().parse::<f64>()?);
        texts.push(record.get(1).unwrap_or_default().to_owned());
    }
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let scores = Builtin::with_weights(weights).score(&texts)?;
    let scores: Vec<f64> = scores.iter().map(|score| score.positive - score.negative).collect();
    println!(
        "{} rated tweets: correlation of positive − negative with the mean rating {:.4}",
        texts.len(),
        correlation(&ratings, &scores)
    );
    Ok(())
}

fn correlation(left: &[f64], right: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (a, b) = (mean(left), mean(right));
    let product: f64 = left.iter().zip(right).map(|(x, y)| (x - a) * (y - b)).sum();
    let (p, q): (f64, f64) =
        left.iter().zip(right).fold((0.0, 0.0), |(p, q), (x, y)| (p + (x - a).powi(2), q + (y - b).powi(2)));
    product / (p * q).sqrt()
}
