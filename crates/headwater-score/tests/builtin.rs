//! The built-in scorer: the weights are what they claim to be; scores are explained.

use headwater_score::Scorer;
use headwater_score::builtin::Builtin;
use headwater_score::builtin::features::hash;
use headwater_score::builtin::weights::{BuiltinWeights, FILE_SIZE};
use std::path::PathBuf;

#[test]
fn the_weights_are_those_that_training_printed() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/builtin/weights.bin");
    let file = std::fs::read(path).unwrap();
    assert_eq!(file.len(), FILE_SIZE);
    assert!(file.len() < 8 << 20);
    // As printed by tools/train-scorer.
    assert_eq!(format!("{:016x}", hash(&file)), "6d21ec85c8a9c665");
    let weights = BuiltinWeights::from_bytes(&file).unwrap();
    assert!((0.5..2.0).contains(&weights.temperature));
}

#[test]
fn opinions_are_told_apart() {
    let scorer = Builtin::new();
    let score = |text: &str| scorer.score(&[text]).unwrap()[0];
    for good in ["I love this so much!!", "best day ever :)", "Congratulations, what a great win", "😍😍"] {
        assert!(score(good).score() > 0.8, "{good}: {:?}", score(good));
    }
    for bad in ["I hate this so much", "worst day ever :(", "what a shame, this is terrible", "I don't like it at all"]
    {
        assert!(score(bad).score() < 0.25, "{bad}: {:?}", score(bad));
    }
    for flat in ["The meeting is on Monday at 10:30", "Obama speaks in Chicago on Tuesday http://t.co/x"] {
        assert!(score(flat).neutral > 0.6, "{flat}: {:?}", score(flat));
    }
    // Nothing said, nothing claimed: close to even.
    assert!((0.3..0.7).contains(&score("").score()), "{:?}", score(""));
}

#[test]
fn a_post_of_any_number_of_words_of_the_lexicon_has_a_score() {
    let scorer = Builtin::new();
    for word in ["good ", "bad ", "not good ", "!", "😍", "😠 ", "good bad "] {
        for times in [32_767, 32_768, 65_536, 200_000] {
            let sentiment = scorer.score(&[&word.repeat(times)]).unwrap()[0];
            assert!(sentiment.score().is_finite(), "{word:?} times {times}: {sentiment:?}");
        }
    }
    // Counts say the same from five words on.
    assert!(scorer.score(&["good ".repeat(60_000).as_str()]).unwrap()[0].score() > 0.8);
}

#[test]
fn scores_are_probabilities_whatever_the_text() {
    let scorer = Builtin::new();
    let long = "word ".repeat(100_000);
    let odd = ["", "\0", "\u{feff}", "\\u002c", "&amp;&", "((((((", "@", "#", "ﷺ", "e\u{301}\u{301}", "👩‍👩‍👧‍👦", &long];
    let scores = scorer.score(&odd).unwrap();
    for (text, score) in odd.iter().zip(&scores) {
        let sum = score.negative + score.neutral + score.positive;
        assert!((sum - 1.0).abs() < 1e-12 && score.score().is_finite(), "{score:?}");
        assert_eq!(scorer.score(&[text]).unwrap()[0], *score);
    }
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(one.install(|| scorer.score(&odd).unwrap()), scores);
}

#[test]
fn contributions_add_up_to_the_score() {
    let scorer = Builtin::new();
    for text in ["I do not love this, but the REST is great :)", "RT @x: bad bad news http://t.co/y", ""] {
        let explanation = scorer.explain(text);
        let score = explanation.sentiment;
        assert_eq!(score, scorer.score(&[text]).unwrap()[0]);
        let sum: f64 = explanation.terms.iter().map(|term| term.contribution).sum();
        // Summed in f32 for the score and in f64 here.
        assert!((sum - (score.positive / score.negative).ln()).abs() < 1e-4, "{text}: {sum}");
        let sum: f64 = explanation.terms.iter().map(|term| term.against_neutral[0]).sum();
        assert!((sum - (score.positive / score.neutral).ln()).abs() < 1e-4, "{text}: {sum}");
    }
    let explanation = scorer.explain("I do not love this");
    assert!(explanation.terms.iter().any(|term| term.term == "¬love"), "{:?}", explanation.terms);
}
