//! The posterior of speaker strengths in coordinates in which it is about normal whatever the scales of its hierarchy.
//!
//! In: a [`StrengthsTarget`], and a point about which the data are judged. Out: the same posterior, of other variables.
//!
//! Where the data tell little of single drifts, their scale may be small, and then levels can only move together: a funnel,
//! in which no fixed step is right. So the drift d of an agent is written as the sum of its mean given the scale and a
//! standardised rest y, and its Student law as a normal law whose variance has a factor λ:
//!
//! `P = 1/(scale²·λ)`, `V = 1/(τ + P)`, `d = V·(τ·d̂ + P·centre) + √V·y`, `λ ~ inverse gamma(ν/2, ν/2)`
//!
//! with τ the precision of d in the data at that point, `d̂ = (I − Bᵀ)μ̂` the drifts of the levels μ̂ there, and
//! `μ = (I − Bᵀ)⁻¹d`. Any τ and μ̂ give the same posterior. Equal drifts make levels of centre/δ, which the data tell much
//! better than either, so that the centre less δ times the mean of μ̂ is a variable. Likewise the mean of the log-odds of the
//! self-weights without their deviations, `c + κ·mean odds`, is told much better than c.
//!
//! A strength, deviation or log news variance about its mean is a variable x times `τ₀·(τ/τ₀)ᵃ`. τ is their standard deviation,
//! τ₀ a first value of it, and a the share of their variance that the data leave: where they leave all of it, x is standard
//! normal whatever τ is; where they leave nothing, x does not change with τ (partial centring, Papaspiliopoulos, Roberts and
//! Sköld 2007).
//!
//! The variables are those of the target with y in the place of the levels, that difference in that of the centre, the mean in
//! that of c and x in those of strengths, deviations and news; then log λ, by ratio, episode and agent; then log τ of strengths,
//! deviations and the news of each log-ratio.

use super::attention::Attention;
use super::marginal::Support;
use super::target::{
    DRIFT_FREEDOM, Density, Evaluation, OF_DEVIATIONS, OF_NEWS, OF_STRENGTHS, StrengthsTarget, UnknownVariance,
};
use crate::Error;
use faer::Mat;
use faer::linalg::solvers::{PartialPivLu, Solve};
use rayon::prelude::*;
use std::ops::Range;

/// Most agents for which I − Bᵀ is factorised; with more, systems are solved by iteration.
const MOST_FACTORISED: usize = 200;

/// Relative residual of the iteration, and its most steps. A point where it does not converge has density zero.
const RESIDUAL: f64 = 1e-11;
const MOST_STEPS: usize = 500;

/// How far the drifts at the point may be from the centre of their law, relative to their distance there, when the pull of
/// that law is taken off them.
const LARGEST_FACTOR: f64 = 3.0;

/// See the head of the file.
#[derive(Debug, Clone)]
pub(crate) struct StandardTarget {
    /// Without the priors of strengths, deviations, news and drifts.
    target: StrengthsTarget,
    /// τ₀ of strengths, deviations and news.
    deviations: [f64; 3],
    /// a of strengths, deviations and news, by place in a point of the target; the others are not used.
    unknown: Vec<f64>,
    /// τ, by ratio, episode and agent.
    precisions: Vec<f64>,
    /// μ̂, likewise.
    levels: Vec<f64>,
}

/// What a point of the new variables is made of.
struct Standing {
    attention: Attention,
    /// The parameters that weights are made of.
    parameters: Vec<f64>,
    solver: NetworkSolver,
    drifts: Vec<f64>,
    levels: Vec<f64>,
    /// P, by cell.
    priors: Vec<f64>,
}

impl StandardTarget {
    /// About a point of the target; `unknown` holds a by place in a point, `precisions` those of the drifts in the data, by
    /// ratio, episode and agent.
    pub(crate) fn new(
        target: &StrengthsTarget,
        point: &[f64],
        unknown: Vec<f64>,
        precisions: Vec<f64>,
    ) -> Result<Self, Error> {
        let mut target = target.clone();
        target.hierarchy = false;
        let deviations = target.variances;
        let attention = Attention::new(&target.support, point);
        let mut drifts = target.drifts(point, &attention);
        let mut levels = Vec::new();
        let solver = NetworkSolver::new(&target.support, attention.weights);
        for number in 0..target.ratios.len() {
            let places = target.ratio(number);
            let (centre, scale) = (point[places.drift_centre()], point[places.drift_scale()].exp());
            let cells = number * places.levels().len()..(number + 1) * places.levels().len();
            for cell in cells.clone() {
                let off = (drifts[cell] - centre) / scale;
                let prior = (DRIFT_FREEDOM + 1.0) / (DRIFT_FREEDOM + off * off) / (scale * scale);
                let factor = (1.0 + prior / precisions[cell]).min(LARGEST_FACTOR);
                drifts[cell] = centre + factor * (drifts[cell] - centre);
            }
            for drifts in drifts[cells].chunks(target.support.agents()) {
                levels.extend(solver.solve(&target.support, drifts).ok_or_else(unsolved)?);
            }
        }
        Ok(StandardTarget { target, deviations: deviations.map(f64::sqrt), unknown, precisions, levels })
    }

    /// The same variables of another density of the same parameters.
    pub(crate) fn of(&self, target: &StrengthsTarget) -> Self {
        let mut target = target.clone();
        target.hierarchy = false;
        StandardTarget { target, ..self.clone() }
    }

    pub(crate) fn target(&self) -> &StrengthsTarget {
        &self.target
    }

    /// Where log λ are.
    pub(crate) fn factors(&self) -> Range<usize> {
        self.target.size()..self.target.size() + self.precisions.len()
    }

    /// Where the logarithms of the standard deviations are.
    pub(crate) fn log_deviations(&self) -> Range<usize> {
        self.factors().end..self.size()
    }

    /// Where the numbers are that each of them is of, and where their mean is.
    fn families(&self) -> Vec<(UnknownVariance, Range<usize>, Option<usize>)> {
        let layout = self.target.attention();
        let mut families = vec![(OF_STRENGTHS, layout.strengths(), None), (OF_DEVIATIONS, layout.deviations(), None)];
        for number in 0..self.target.ratios.len() {
            let places = self.target.ratio(number);
            families.push((OF_NEWS, places.news(), Some(places.mean_news())));
        }
        families
    }

    fn cells(&self, number: usize) -> Range<usize> {
        let count = self.target.ratio(number).levels().len();
        number * count..(number + 1) * count
    }

    /// The parameters at the given values of the variables.
    pub(crate) fn point(&self, variables: &[f64]) -> Result<Vec<f64>, Error> {
        self.standing(variables).map(|standing| self.point_of(variables, &standing)).ok_or_else(unsolved)
    }

    fn point_of(&self, variables: &[f64], standing: &Standing) -> Vec<f64> {
        let mut point = variables[..self.target.size()].to_vec();
        self.unstandardise(variables, &mut point);
        let adaptation = 1.0 - standing.attention.keep;
        point[..standing.parameters.len()].copy_from_slice(&standing.parameters);
        for number in 0..self.target.ratios.len() {
            let places = self.target.ratio(number);
            point[places.levels()].copy_from_slice(&standing.levels[self.cells(number)]);
            point[places.drift_centre()] += adaptation * self.mean_level(number);
        }
        point
    }

    /// Where strengths, deviations and news are, and the standard deviations that were held.
    pub(crate) fn families_by_deviation(&self) -> impl Iterator<Item = (Range<usize>, f64)> {
        let [strengths, deviations, news] = self.deviations;
        let held = [strengths, deviations].into_iter().chain(std::iter::repeat(news));
        self.families().into_iter().zip(held).map(|((_, places, _), deviation)| (places, deviation))
    }

    /// Strengths, deviations and news from their variables; the others stay as they are.
    fn unstandardise(&self, variables: &[f64], point: &mut [f64]) {
        for (((_, places, mean), (_, held)), at) in
            self.families().into_iter().zip(self.families_by_deviation()).zip(self.log_deviations())
        {
            let centre = mean.map_or(0.0, |place| variables[place]);
            let wider = variables[at] - held.ln();
            for place in places {
                point[place] = centre + held * (self.unknown[place] * wider).exp() * variables[place];
            }
        }
    }

    fn standing(&self, variables: &[f64]) -> Option<Standing> {
        let support = &self.target.support;
        let layout = self.target.attention();
        let mut point = variables[..self.target.size()].to_vec();
        self.unstandardise(variables, &mut point);
        let mut parameters = self.target.pinned(&point[..layout.size()]).into_owned();
        parameters[layout.own()] -=
            parameters[layout.blend()] * Attention::new(support, &parameters).mean_odds(support);
        let attention = Attention::new(support, &parameters);
        let solver = NetworkSolver::new(support, attention.weights.clone());
        let (mut drifts, mut levels, mut priors) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..self.target.ratios.len() {
            let places = self.target.ratio(number);
            let centre = (1.0 - attention.keep) * self.mean_level(number) + variables[places.drift_centre()];
            let scale = variables[places.drift_scale()];
            let standard = &variables[places.levels()];
            for (place, cell) in self.cells(number).enumerate() {
                let prior = (-2.0 * scale - variables[self.factors().start + cell]).exp();
                let variance = 1.0 / (self.precisions[cell] + prior);
                let mean = variance * (self.precisions[cell] * self.estimate(&attention, cell) + prior * centre);
                drifts.push(mean + variance.sqrt() * standard[place]);
                priors.push(prior);
            }
            for drifts in drifts[self.cells(number)].chunks(support.agents()) {
                levels.extend(solver.solve(support, drifts)?);
            }
        }
        Some(Standing { attention, parameters, solver, drifts, levels, priors })
    }

    /// The mean of μ̂ of a log-ratio.
    fn mean_level(&self, number: usize) -> f64 {
        let levels = &self.levels[self.cells(number)];
        levels.iter().sum::<f64>() / levels.len() as f64
    }

    /// d̂ of a cell.
    fn estimate(&self, attention: &Attention, cell: usize) -> f64 {
        let support = &self.target.support;
        let (first, listener) = (cell / support.agents() * support.agents(), cell % support.agents());
        let heard = support
            .of(listener)
            .map(|edge| attention.weights[edge] * self.levels[first + support.speakers[edge] as usize]);
        self.levels[cell] - heard.sum::<f64>()
    }

    /// The variables at a point of the target, with the likeliest λ there and the standard deviations that were held.
    pub(crate) fn variables(&self, point: &[f64]) -> Vec<f64> {
        let factor = |off: f64| ((DRIFT_FREEDOM + off * off) / (DRIFT_FREEDOM + 1.0)).ln();
        let mut held = self.families_by_deviation().map(|(_, deviation)| deviation.ln());
        self.variables_with(point, &mut |off| factor(off), &mut |_, _, _| held.next().unwrap_or(0.0))
    }

    /// The variables at a point of the target. `factor` gives log λ from a drift relative to the centre and scale of its law,
    /// `deviation` the logarithm of the standard deviation of so many numbers with this sum of squares.
    pub(crate) fn variables_with(
        &self,
        point: &[f64],
        factor: &mut dyn FnMut(f64) -> f64,
        deviation: &mut dyn FnMut(UnknownVariance, usize, f64) -> f64,
    ) -> Vec<f64> {
        let attention = Attention::new(&self.target.support, &self.target.pinned(point));
        let drifts = self.target.drifts(point, &attention);
        let mut variables = point.to_vec();
        let layout = self.target.attention();
        variables[layout.own()] += variables[layout.blend()] * attention.mean_odds(&self.target.support);
        for number in 0..self.target.ratios.len() {
            let places = self.target.ratio(number);
            let (centre, scale) = (point[places.drift_centre()], point[places.drift_scale()].exp());
            for (place, cell) in places.levels().zip(self.cells(number)) {
                let log = factor((drifts[cell] - centre) / scale);
                let prior = 1.0 / (scale * scale * log.exp());
                let variance = 1.0 / (self.precisions[cell] + prior);
                let mean = variance * (self.precisions[cell] * self.estimate(&attention, cell) + prior * centre);
                variables[place] = (drifts[cell] - mean) / variance.sqrt();
                variables.push(log);
            }
            variables[places.drift_centre()] -= (1.0 - attention.keep) * self.mean_level(number);
        }
        for ((law, places, mean), (_, held)) in self.families().into_iter().zip(self.families_by_deviation()) {
            let centre = mean.map_or(0.0, |place| point[place]);
            let squares = places.clone().map(|place| (point[place] - centre).powi(2)).sum();
            let log = deviation(law, places.len(), squares);
            for place in places {
                variables[place] = (point[place] - centre) / held * (-self.unknown[place] * (log - held.ln())).exp();
            }
            variables.push(log);
        }
        variables
    }

    /// Density and gradient of the variables from those of the parameters.
    fn pull(&self, variables: &[f64], standing: &Standing, of_point: &Evaluation) -> Option<Evaluation> {
        let (target, support) = (&self.target, &self.target.support);
        let agents = support.agents();
        let mut value = of_point.value;
        let mut gradient = of_point.gradient.clone();
        gradient.resize(self.size(), 0.0);
        let mut by_weight = vec![0.0; support.edges()];
        for number in 0..target.ratios.len() {
            let places = target.ratio(number);
            let adaptation = 1.0 - standing.attention.keep;
            let centre = adaptation * self.mean_level(number) + variables[places.drift_centre()];
            for (episode, first) in self.cells(number).step_by(agents).enumerate() {
                let by_level = &of_point.gradient[places.levels()][episode * agents..][..agents];
                // dμ = (I − Bᵀ)⁻¹(dd + dBᵀμ).
                let by_drift = standing.solver.solve_transposed(support, by_level)?;
                for listener in 0..agents {
                    let cell = first + listener;
                    let (precision, prior, drift) =
                        (self.precisions[cell], standing.priors[cell], standing.drifts[cell]);
                    let variance = 1.0 / (precision + prior);
                    let place = places.levels().start + cell - self.cells(number).start;
                    let (y, off) = (variables[place], drift - centre);
                    let log_factor = variables[self.factors().start + cell];
                    // The normal law of the drift, the change of variables, and the law of log λ.
                    value += 0.5 * (prior.ln() + variance.ln()) - 0.5 * prior * off * off;
                    value -= 0.5 * DRIFT_FREEDOM * (log_factor + (-log_factor).exp());
                    let through = by_drift[listener] - prior * off;
                    for edge in support.of(listener) {
                        let speaker = support.speakers[edge] as usize;
                        by_weight[edge] += by_drift[listener] * standing.levels[first + speaker];
                        by_weight[edge] -= through * variance * precision * self.levels[first + speaker];
                    }
                    gradient[place] = through * variance.sqrt();
                    gradient[places.drift_centre()] += through * variance * prior + prior * off;
                    let mean = drift - variance.sqrt() * y;
                    let by_prior = through * (variance * (centre - mean) - 0.5 * variance * variance.sqrt() * y)
                        - 0.5 * off * off
                        + 0.5 / prior
                        - 0.5 * variance;
                    gradient[places.drift_scale()] -= 2.0 * prior * by_prior;
                    gradient[self.factors().start + cell] =
                        -prior * by_prior - 0.5 * DRIFT_FREEDOM * (1.0 - (-log_factor).exp());
                }
            }
            let by_adaptation = gradient[places.drift_centre()] * self.mean_level(number);
            gradient[target.attention().keep()] -= adaptation * (1.0 - adaptation) * by_adaptation;
        }
        standing.attention.add_gradient(support, &standing.parameters, &by_weight, &mut gradient);
        // c is its variable less κ times the mean odds.
        let layout = target.attention();
        let by_own = gradient[layout.own()];
        gradient[layout.blend()] -= by_own * standing.attention.mean_odds(support);
        let times = -by_own * standing.parameters[layout.blend()];
        Attention::add_odds_gradient(support, &standing.parameters, times, &mut gradient);
        for (((law, places, mean), (_, held)), at) in
            self.families().into_iter().zip(self.families_by_deviation()).zip(self.log_deviations())
        {
            let deviation = variables[at].exp();
            let mass = law.freedom * law.variance / (deviation * deviation);
            // The inverse gamma law of the variance, in its logarithm.
            value -= law.freedom * variables[at] + 0.5 * mass;
            gradient[at] = mass - law.freedom;
            let wider = variables[at] - held.ln();
            for place in places {
                let slope = gradient[place];
                let (unknown, x) = (self.unknown[place], variables[place]);
                let scale = held * (unknown * wider).exp();
                // x is normal with the rest of the standard deviation.
                let precision = (-2.0 * (1.0 - unknown) * wider).exp();
                value -= (1.0 - unknown) * wider + 0.5 * precision * x * x;
                gradient[place] = scale * slope - precision * x;
                gradient[at] += unknown * scale * x * slope + (1.0 - unknown) * (precision * x * x - 1.0);
                if let Some(mean) = mean {
                    gradient[mean] += slope;
                }
            }
        }
        if target.adaptation.is_some() {
            gradient[target.attention().keep()] = 0.0;
        }
        let finite = value.is_finite() && gradient.iter().all(|slope| slope.is_finite());
        finite.then_some(Evaluation { value, gradient })
    }
}

impl Density for StandardTarget {
    fn size(&self) -> usize {
        self.target.size() + self.precisions.len() + 2 + self.target.ratios.len()
    }

    fn evaluate(&self, points: &[Vec<f64>]) -> Result<Vec<Evaluation>, Error> {
        let standings: Vec<Option<Standing>> = points.par_iter().map(|point| self.standing(point)).collect();
        let parameters: Vec<Vec<f64>> = points
            .iter()
            .zip(&standings)
            .map(|(variables, standing)| match standing {
                Some(standing) => self.point_of(variables, standing),
                // Of no use, but every variable has a place.
                None => variables[..self.target.size()].to_vec(),
            })
            .collect();
        let found = self.target.evaluate(&parameters)?;
        let none = || Evaluation { value: f64::NEG_INFINITY, gradient: vec![0.0; self.size()] };
        let pulled = points.par_iter().zip(&standings).zip(&found).map(|((variables, standing), found)| {
            let standing = standing.as_ref().filter(|_| found.value.is_finite());
            standing.and_then(|standing| self.pull(variables, standing, found)).unwrap_or_else(none)
        });
        Ok(pulled.collect())
    }
}

fn unsolved() -> Error {
    Error::Undefined { what: "the levels of opinion", reason: "the equations of the network do not converge".into() }
}

/// Solves (I − Bᵀ)x = r and (I − B)x = r.
struct NetworkSolver {
    /// B by edge.
    weights: Vec<f64>,
    factor: Option<PartialPivLu<f64>>,
}

impl NetworkSolver {
    fn new(support: &Support, weights: Vec<f64>) -> Self {
        let agents = support.agents();
        let factor = (agents <= MOST_FACTORISED).then(|| {
            let mut matrix = Mat::<f64>::identity(agents, agents);
            for listener in 0..agents {
                for edge in support.of(listener) {
                    matrix[(listener, support.speakers[edge] as usize)] -= weights[edge];
                }
            }
            matrix.partial_piv_lu()
        });
        NetworkSolver { weights, factor }
    }

    fn solve(&self, support: &Support, right: &[f64]) -> Option<Vec<f64>> {
        match &self.factor {
            Some(factor) => finite(&factor.solve(&column(right))),
            None => stabilised(right, |x, out| self.forward(support, x, out)),
        }
    }

    fn solve_transposed(&self, support: &Support, right: &[f64]) -> Option<Vec<f64>> {
        match &self.factor {
            Some(factor) => finite(&factor.solve_transpose(&column(right))),
            None => stabilised(right, |x, out| self.backward(support, x, out)),
        }
    }

    /// (I − Bᵀ)x.
    fn forward(&self, support: &Support, x: &[f64], out: &mut [f64]) {
        for (listener, out) in out.iter_mut().enumerate() {
            let heard = support.of(listener).map(|edge| self.weights[edge] * x[support.speakers[edge] as usize]);
            *out = x[listener] - heard.sum::<f64>();
        }
    }

    /// (I − B)x.
    fn backward(&self, support: &Support, x: &[f64], out: &mut [f64]) {
        out.copy_from_slice(x);
        for listener in 0..x.len() {
            for edge in support.of(listener) {
                out[support.speakers[edge] as usize] -= self.weights[edge] * x[listener];
            }
        }
    }
}

fn column(values: &[f64]) -> Mat<f64> {
    Mat::from_fn(values.len(), 1, |row, _| values[row])
}

fn finite(solution: &Mat<f64>) -> Option<Vec<f64>> {
    let solution = solution.col_as_slice(0).to_vec();
    solution.iter().all(|value| value.is_finite()).then_some(solution)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Biconjugate gradients, stabilised (van der Vorst 1992); none where they do not converge.
fn stabilised(right: &[f64], product: impl Fn(&[f64], &mut [f64])) -> Option<Vec<f64>> {
    let size = right.len();
    let goal = RESIDUAL * dot(right, right).sqrt();
    let mut x = vec![0.0; size];
    let mut residual = right.to_vec();
    if goal == 0.0 {
        return Some(x);
    }
    let shadow = residual.clone();
    let mut direction = residual.clone();
    let (mut along, mut image) = (vec![0.0; size], vec![0.0; size]);
    let mut overlap = dot(&shadow, &residual);
    for _ in 0..MOST_STEPS {
        product(&direction, &mut along);
        let length = overlap / dot(&shadow, &along);
        residual.iter_mut().zip(&along).for_each(|(to, along)| *to -= length * along);
        x.iter_mut().zip(&direction).for_each(|(to, by)| *to += length * by);
        product(&residual, &mut image);
        let squares = dot(&image, &image);
        if squares == 0.0 {
            break;
        }
        let smoothing = dot(&image, &residual) / squares;
        x.iter_mut().zip(&residual).for_each(|(to, by)| *to += smoothing * by);
        residual.iter_mut().zip(&image).for_each(|(to, image)| *to -= smoothing * image);
        if dot(&residual, &residual).sqrt() <= goal {
            break;
        }
        let next = dot(&shadow, &residual);
        let turn = next / overlap * length / smoothing;
        overlap = next;
        for place in 0..size {
            direction[place] = residual[place] + turn * (direction[place] - smoothing * along[place]);
        }
    }
    // Breakdowns leave a large residual or no number.
    product(&x, &mut along);
    let left: f64 = along.iter().zip(right).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    (left <= 100.0 * goal).then_some(x)
}

#[cfg(test)]
mod tests;
