//! Probabilities as log-ratios, and back.

use crate::Error;

/// A probability of zero is replaced by this before the logarithm is taken, and counted.
pub const SMALLEST_PROBABILITY: f64 = 1e-12;

/// Probabilities must sum to one within this.
pub const SUM_TOLERANCE: f64 = 1e-6;

/// Turns probabilities into log-ratios `log ψ(θ_0)/ψ(θ_j)`; returns how many zeros were raised to
/// [`SMALLEST_PROBABILITY`].
///
/// ```
/// let mut ratio = [0.0];
/// let raised = headwater::panel::log_ratios(&[0.75, 0.25], &mut ratio, &["yes", "no"]).unwrap();
/// assert_eq!((raised, ratio[0]), (0, 3f64.ln()));
/// ```
pub fn log_ratios<S: AsRef<str>>(probabilities: &[f64], out: &mut [f64], hypotheses: &[S]) -> Result<usize, Error> {
    if let (&[first, second], [ratio]) = (probabilities, &mut *out)
        && let Some(found) = log_ratio(first, second)
    {
        *ratio = found;
        return Ok(0);
    }
    let mut raised = 0;
    let mut sum = 0.0;
    for (position, &value) in probabilities.iter().enumerate() {
        let problem = if !value.is_finite() {
            "a probability must be a finite number in 0…1"
        } else if value < 0.0 {
            "a probability must not be negative"
        } else {
            raised += usize::from(value == 0.0);
            sum += value;
            continue;
        };
        let hypothesis = hypotheses[position].as_ref().to_owned();
        return Err(Error::Belief { hypothesis, problem: format!("found {value}; {problem}") });
    }
    if (sum - 1.0).abs() > SUM_TOLERANCE {
        let first = hypotheses[0].as_ref();
        let last = hypotheses[hypotheses.len() - 1].as_ref();
        return Err(Error::Belief {
            hypothesis: format!("{first}…{last}"),
            problem: format!("the probabilities sum to {sum}, but must sum to 1 within {SUM_TOLERANCE:e}"),
        });
    }
    // One rounding of the quotient costs less than the difference of two large logarithms.
    let raised_to = |value: f64| if value == 0.0 { SMALLEST_PROBABILITY } else { value };
    let reference = raised_to(probabilities[0]);
    for (ratio, &value) in out.iter_mut().zip(&probabilities[1..]) {
        let quotient = reference / raised_to(value);
        // Beyond the range of a quotient the logarithms are far enough apart to be subtracted.
        *ratio = if quotient.is_normal() { quotient.ln() } else { reference.ln() - raised_to(value).ln() };
    }
    Ok(raised)
}

/// The common case of two hypotheses and valid, positive probabilities. `None` where [`log_ratios`] has to check further.
#[inline]
pub fn log_ratio(first: f64, second: f64) -> Option<f64> {
    let quotient = first / second;
    let plain = first > 0.0 && second > 0.0 && (first + second - 1.0).abs() <= SUM_TOLERANCE && quotient.is_normal();
    plain.then(|| quotient.ln())
}

/// The inverse of [`log_ratios`]: H log-ratios to |Θ| probabilities, without overflow.
pub fn probabilities(log_ratios: impl Iterator<Item = f64> + Clone, out: &mut Vec<f64>) {
    let lowest = log_ratios.clone().fold(0.0, f64::min);
    out.clear();
    out.push(lowest.exp());
    out.extend(log_ratios.map(|ratio| (lowest - ratio).exp()));
    let sum: f64 = out.iter().sum();
    out.iter_mut().for_each(|value| *value /= sum);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names() -> Vec<String> {
        vec!["a".into(), "b".into(), "c".into()]
    }

    #[test]
    fn probabilities_are_checked() {
        let mut out = [0.0; 2];
        let mut say = |values: &[f64]| log_ratios(values, &mut out, &names()).map_err(|error| error.to_string());
        assert_eq!(say(&[0.5, 0.5, 0.0]), Ok(1));
        assert!(say(&[0.5, -0.1, 0.6]).unwrap_err().contains("\"b\": found -0.1"));
        assert!(say(&[f64::NAN, 0.5, 0.5]).unwrap_err().contains("\"a\": found NaN"));
        assert!(say(&[0.5, 0.4, 0.0]).unwrap_err().contains("sum to 0.9"));
        log_ratios(&[1.0 - 2e-17, 1e-17, 1e-17], &mut out, &names()).unwrap();
        assert!((out[0] - 1e17f64.ln()).abs() < 1e-12, "small but positive is left alone");
        log_ratios(&[1.0, 0.0, 0.0], &mut out, &names()).unwrap();
        assert!((out[0] - 1e12f64.ln()).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn probabilities_undo_log_ratios(raw in proptest::collection::vec(1e-6f64..1.0, 2..6)) {
            let sum: f64 = raw.iter().sum();
            let wanted: Vec<f64> = raw.iter().map(|value| value / sum).collect();
            let names: Vec<String> = (0..raw.len()).map(|index| index.to_string()).collect();
            let mut ratios = vec![0.0; raw.len() - 1];
            log_ratios(&wanted, &mut ratios, &names).unwrap();
            let mut back = Vec::new();
            probabilities(ratios.iter().copied(), &mut back);
            for (met, wanted) in back.iter().zip(&wanted) {
                prop_assert!((met - wanted).abs() < 1e-14);
            }
        }
    }
}
