//! Speaker strengths: with a known graph, one number per speaker instead of one per edge.
//!
//! In: expected moments. Out: the likeliest strengths g, self-weights s and δ:
//! `a[ℓ,k] = (1−s_k) F[ℓ,k] g_ℓ / Σ_{m≠k} F[m,k] g_m`, `a[k,k] = s_k`; a listener who follows nobody has self-weight one.
//! The log-odds of s_k are `c + κ·log(g_k / Σ_{m≠k} F[m,k] g_m)` plus a deviation per listener: with κ = 0 all have the same
//! self-weight, with κ = 1 and c = 0 a listener counts as one of its own speakers, as with equal weights. A common s would
//! overestimate speakers whose few followers have large self-weights.
//!
//! Log-strengths and deviations are normal about zero with variances that are not known: those have a prior and are
//! integrated out, so that similar strengths are shrunk together and very unequal ones are not.
//!
//! Legend: b = (1−δ)a a column; G, c its normal equations; the loss of a listener is ½bᵀGb − cᵀb.

use super::fit;
use super::quasi_newton::minimise;
use super::regressors::Regressors;
use super::state_space::inverted;
use faer::{Mat, MatRef};

/// Steps of the search within one round; the next round continues it.
const STEPS: usize = 30;

/// Smallest self-weight, so that log-odds are finite.
const SMALLEST_SHARE: f64 = 1e-6;

/// Current strengths.
#[derive(Debug, Clone)]
pub(crate) struct Strengths {
    /// log g.
    logs: Vec<f64>,
    /// Deviations of the log-odds of the s_k from the line below.
    deviations: Vec<f64>,
    /// c: log-odds of s_k where a listener is as strong as all its speakers together.
    own: f64,
    /// κ: slope of the log-odds.
    blend: f64,
}

/// Normal prior with mean zero and unknown variance; the variance has an inverse gamma prior about `variance` with
/// `freedom` degrees of freedom and is integrated out.
struct Prior {
    variance: f64,
    freedom: f64,
}

/// Of log g.
const OF_STRENGTHS: Prior = Prior { variance: 1.0, freedom: 4.0 };

/// Of the deviations of the s_k.
const OF_DEVIATIONS: Prior = Prior { variance: 0.25, freedom: 4.0 };

/// Mean and standard deviation of κ: between its two cases.
const OF_BLEND: (f64, f64) = (0.5, 0.5);

impl Prior {
    /// The negative logarithm of its density.
    fn penalty(&self, values: &[f64]) -> f64 {
        let squares: f64 = values.iter().map(|value| value * value).sum();
        0.5 * (self.freedom + values.len() as f64) * (squares / (self.freedom * self.variance)).ln_1p()
    }

    /// Its gradient.
    fn slopes(&self, values: &[f64]) -> impl Iterator<Item = f64> {
        let squares: f64 = values.iter().map(|value| value * value).sum();
        let times = (self.freedom + values.len() as f64) / (self.freedom * self.variance + squares);
        values.iter().map(move |value| times * value)
    }
}

/// Speakers and normal equations of one listener.
struct Listener {
    agent: usize,
    /// Speakers, by position in the columns.
    speakers: Vec<usize>,
    /// Position of the listener itself.
    own: Option<usize>,
    gram: Mat<f64>,
    linear: Vec<f64>,
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn logit(p: f64) -> f64 {
    (p / (1.0 - p)).ln()
}

/// Mean; zero of an empty slice.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

impl Strengths {
    /// Equal strengths, with self-weights of about `own`.
    pub(crate) fn equal(agents: usize, design: &Regressors<'_>, own: f64) -> Self {
        let mut equal =
            Strengths { logs: vec![0.0; agents], deviations: vec![0.0; agents], own: 0.0, blend: OF_BLEND.0 };
        let listeners: Vec<f64> = equal.selves(design).map(|(_, odds)| equal.blend * odds).collect();
        equal.own = logit(own) - mean(&listeners);
        equal
    }

    /// Given strengths, and c, κ and deviations from given self-weights by linear regression of their log-odds.
    pub(crate) fn given(strengths: &[f64], design: &Regressors<'_>, owns: impl Fn(usize) -> f64) -> Self {
        let logs: Vec<f64> = strengths.iter().map(|strength| strength.ln()).collect();
        let mut given = Strengths { deviations: vec![0.0; logs.len()], logs, own: 0.0, blend: OF_BLEND.0 };
        let (listeners, odds): (Vec<usize>, Vec<f64>) = given.selves(design).unzip();
        let kept: Vec<f64> = listeners
            .iter()
            .map(|&listener| logit(owns(listener).clamp(SMALLEST_SHARE, 1.0 - SMALLEST_SHARE)))
            .collect();
        let (middle, level) = (mean(&odds), mean(&kept));
        let across: f64 = odds.iter().map(|odds| (odds - middle).powi(2)).sum();
        let along: f64 = odds.iter().zip(&kept).map(|(odds, kept)| (odds - middle) * (kept - level)).sum();
        if across > 0.0 {
            given.blend = along / across;
        }
        given.own = level - given.blend * middle;
        for ((listener, odds), kept) in listeners.iter().zip(&odds).zip(&kept) {
            given.deviations[*listener] = kept - given.own - given.blend * odds;
        }
        given
    }

    /// Listeners with a self-weight and other speakers, and log g of each less that of all its other speakers.
    fn selves<'a>(&'a self, design: &'a Regressors<'_>) -> impl Iterator<Item = (usize, f64)> + 'a {
        design.listeners.iter().enumerate().filter_map(|(position, &listener)| {
            let speakers = design.regressors(position);
            let own = speakers.binary_search(&design.original(listener)).ok();
            self.odds(speakers, own).map(|odds| (listener, odds))
        })
    }

    /// g, with a geometric mean of one.
    pub(crate) fn relative(&self) -> Vec<f64> {
        let mean = self.logs.iter().sum::<f64>() / self.logs.len() as f64;
        self.logs.iter().map(|log| (log - mean).exp()).collect()
    }

    /// All parameters as unconstrained numbers.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = f64> + '_ {
        self.logs.iter().chain(&self.deviations).copied().chain([self.own, self.blend])
    }

    pub(crate) fn read(&mut self, numbers: &[f64]) {
        let agents = self.logs.len();
        self.logs.copy_from_slice(&numbers[..agents]);
        self.deviations.copy_from_slice(&numbers[agents..2 * agents]);
        self.own = numbers[2 * agents];
        self.blend = numbers[2 * agents + 1];
    }

    /// The columns b of all listeners.
    pub(crate) fn columns(&self, design: &Regressors<'_>, sum: f64) -> Vec<Vec<f64>> {
        design.each(|position| {
            let speakers = design.regressors(position);
            let own = speakers.binary_search(&design.original(design.listeners[position])).ok();
            self.column(design.listeners[position], speakers, own).iter().map(|weight| sum * weight).collect()
        })
    }

    /// Typical self-weight: from the mean of the log-odds.
    pub(crate) fn self_weight(&self, design: &Regressors<'_>) -> f64 {
        let odds = self.selves(design).map(|(listener, odds)| self.kept(listener, odds));
        logistic(mean(&odds.collect::<Vec<f64>>()))
    }

    /// The negative logarithm of the prior.
    pub(crate) fn penalty(&self) -> f64 {
        let blend = (self.blend - OF_BLEND.0) / OF_BLEND.1;
        OF_STRENGTHS.penalty(&self.logs) + OF_DEVIATIONS.penalty(&self.deviations) + 0.5 * blend * blend
    }

    /// log g of a listener less that of all its other speakers, if it has others and itself.
    fn odds(&self, speakers: &[usize], own: Option<usize>) -> Option<f64> {
        let own = own.filter(|_| speakers.len() > 1)?;
        let others = (0..speakers.len()).filter(|place| *place != own);
        let total: f64 = others.map(|place| self.logs[speakers[place]].exp()).sum();
        Some(self.logs[speakers[own]] - total.ln())
    }

    /// Log-odds of s_k.
    fn kept(&self, listener: usize, odds: f64) -> f64 {
        self.own + self.blend * odds + self.deviations[listener]
    }

    /// The weights of a listener.
    fn column(&self, listener: usize, speakers: &[usize], own: Option<usize>) -> Vec<f64> {
        let kept = self.odds(speakers, own).map_or(1.0, |odds| logistic(self.kept(listener, odds)));
        let strength = |place: usize| if Some(place) == own { 0.0 } else { self.logs[speakers[place]].exp() };
        let total: f64 = (0..speakers.len()).map(strength).sum();
        let weight = |place: usize| match own {
            _ if total == 0.0 => 1.0 / speakers.len() as f64,
            Some(own) if own == place => kept,
            Some(_) => (1.0 - kept) * strength(place) / total,
            // A listener whose own series cannot be told from nothing gives all to the others.
            None => strength(place) / total,
        };
        (0..speakers.len()).map(weight).collect()
    }

    /// The loss of all listeners with the penalty, and its gradient by the [numbers](Self::numbers) and the log-odds of
    /// the sum.
    fn loss(&self, listeners: &[Listener], sum: f64) -> (f64, Vec<f64>) {
        let agents = self.logs.len();
        // Where in the numbers c, κ and the sum are.
        let (common, blend, last) = (2 * agents, 2 * agents + 1, 2 * agents + 2);
        let mut gradient = vec![0.0; last + 1];
        let mut loss = self.penalty();
        let slopes = OF_STRENGTHS.slopes(&self.logs).chain(OF_DEVIATIONS.slopes(&self.deviations));
        gradient.iter_mut().zip(slopes).for_each(|(gradient, slope)| *gradient = slope);
        gradient[blend] = (self.blend - OF_BLEND.0) / OF_BLEND.1.powi(2);
        for listener in listeners {
            let column = self.column(listener.agent, &listener.speakers, listener.own);
            let weights: Vec<f64> = column.iter().map(|weight| sum * weight).collect();
            let pulled = &listener.gram * MatRef::from_column_major_slice(&weights, weights.len(), 1);
            let pulled = pulled.col_as_slice(0);
            let slope: Vec<f64> = pulled.iter().zip(&listener.linear).map(|(pulled, linear)| pulled - linear).collect();
            let terms = weights.iter().zip(pulled).zip(&listener.linear);
            loss += terms.map(|((weight, pulled), linear)| weight * (0.5 * pulled - linear)).sum::<f64>();
            gradient[last] +=
                (1.0 - sum) * weights.iter().zip(&slope).map(|(weight, slope)| weight * slope).sum::<f64>();
            let others = || (0..column.len()).filter(|place| Some(*place) != listener.own);
            let given: f64 = others().map(|place| column[place]).sum();
            if given == 0.0 || others().next().is_none() {
                continue;
            }
            let mean = others().map(|place| column[place] * slope[place]).sum::<f64>() / given;
            for place in others() {
                gradient[listener.speakers[place]] += sum * column[place] * (slope[place] - mean);
            }
            if let (Some(own), Some(odds)) = (listener.own, self.odds(&listener.speakers, listener.own)) {
                let kept = column[own];
                let slope = sum * kept * (1.0 - kept) * (slope[own] - mean);
                gradient[agents + listener.agent] += slope;
                gradient[common] += slope;
                gradient[blend] += slope * odds;
                gradient[listener.speakers[own]] += slope * self.blend;
                for place in others() {
                    gradient[listener.speakers[place]] -= slope * self.blend * column[place] / given;
                }
            }
        }
        (loss, gradient)
    }
}

/// Minimises the loss over strengths, self-weights and the sum of weights, starting from their current values. Returns the
/// columns b and the sum.
pub(crate) fn maximise(
    strengths: &mut Strengths,
    design: &Regressors<'_>,
    innovation: &[Mat<f64>],
    sum: f64,
    given: Option<f64>,
) -> (Vec<Vec<f64>>, f64) {
    let listeners = design.each(|position| {
        let listener = design.listeners[position];
        let speakers = design.regressors(position).to_vec();
        let own = speakers.binary_search(&design.original(listener)).ok();
        let (gram, linear) = fit::normal(&design.listener_moments(position), &inverted(&innovation[listener]));
        Listener { agent: listener, speakers, own, gram, linear }
    });
    let last = 2 * strengths.logs.len() + 2;
    let start: Vec<f64> = strengths.numbers().chain([logit(given.unwrap_or(sum))]).collect();
    let read = |x: &[f64]| {
        let mut read = strengths.clone();
        read.read(&x[..last]);
        (read, logistic(x[last]))
    };
    let loss = |x: &[f64]| {
        let (strengths, sum) = read(x);
        let (loss, mut gradient) = strengths.loss(&listeners, sum);
        if given.is_some() {
            gradient[last] = 0.0;
        }
        (loss, gradient)
    };
    let (found, sum) = read(&minimise(loss, start, STEPS));
    let sum = given.unwrap_or_else(|| sum.clamp(1.0 - fit::ADAPTATION.end(), 1.0 - fit::ADAPTATION.start()));
    *strengths = found;
    (strengths.columns(design, sum), sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three agents that hear each other in part; the last hears itself alone.
    fn listeners() -> Vec<Listener> {
        let heard = [vec![0, 1, 2], vec![0, 1], vec![2]];
        let of = |(agent, speakers): (usize, &Vec<usize>)| Listener {
            agent,
            own: speakers.iter().position(|&speaker| speaker == agent),
            gram: Mat::from_fn(speakers.len(), speakers.len(), |row, column| {
                if row == column { 9.0 + agent as f64 } else { 1.5 - 0.5 * (row + column) as f64 }
            }),
            linear: (0..speakers.len()).map(|place| 4.0 - 1.3 * place as f64 + agent as f64).collect(),
            speakers: speakers.clone(),
        };
        heard.iter().enumerate().map(of).collect()
    }

    #[test]
    fn the_gradient_is_that_of_the_loss() {
        let listeners = listeners();
        let here = [0.3, -0.8, 0.6, 0.2, -0.4, 0.1, -1.2, 0.7, 1.5];
        let at = |x: &[f64]| {
            let mut strengths = Strengths { logs: vec![0.0; 3], deviations: vec![0.0; 3], own: 0.0, blend: 0.0 };
            strengths.read(&x[..8]);
            strengths.loss(&listeners, logistic(x[8]))
        };
        let (_, gradient) = at(&here);
        for place in 0..here.len() {
            let moved = |by: f64| {
                let mut x = here;
                x[place] += by;
                at(&x).0
            };
            let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            // Central differences of 1e-5 are good to about 1e-10 of the third derivative, and to rounding.
            assert!((slope - gradient[place]).abs() < 1e-7, "{place}: {slope} {}", gradient[place]);
        }
    }

    #[test]
    fn an_unknown_variance_follows_the_values() {
        // (4 + 2)/2 · ln(1 + 8/4), and slopes of (4 + 2)/(4 + 8) times the values.
        assert!((OF_STRENGTHS.penalty(&[2.0, -2.0]) - 3.0 * 3f64.ln()).abs() < 1e-12);
        assert_eq!(OF_STRENGTHS.slopes(&[2.0, -2.0]).collect::<Vec<_>>(), [1.0, -1.0]);
    }
}
