//! The effect of removing an agent, or of fixing its opinion.

use super::attribution::{Attribution, BLOCK, settle, strided};
use crate::combination::{add_scaled, dot};
use crate::{Combination, Error, Model};
use faer::Mat;
use faer::prelude::Solve;
use rayon::prelude::*;

/// A hypothetical change of one agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Intervention {
    /// The agent is removed; its listeners renormalise their other weights.
    Remove,
    /// The agent always states these log-ratios; all zero is a neutral opinion.
    Freeze(Vec<f64>),
}

/// Expected beliefs of the other agents before and after an intervention.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct WhatIf {
    /// The others, by their index in the model.
    pub others: Vec<usize>,
    /// Their expected log-ratios now, one vector per ratio.
    pub before: Vec<Vec<f64>>,
    /// The same after the intervention.
    pub after: Vec<Vec<f64>>,
    /// Listeners without another speaker; they keep their own beliefs.
    pub stranded: Vec<usize>,
}

impl WhatIf {
    /// Belief in a hypothesis that the mean log-ratios of the others amount to, before and after.
    pub fn belief(&self, hypothesis: usize) -> [f64; 2] {
        [&self.before, &self.after].map(|ratios| {
            let mean = |values: &Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
            belief(&ratios.iter().map(mean).collect::<Vec<_>>(), hypothesis)
        })
    }

    /// The same for one of the others, by position in [`WhatIf::others`].
    pub fn belief_of(&self, position: usize, hypothesis: usize) -> [f64; 2] {
        [&self.before, &self.after]
            .map(|ratios| belief(&ratios.iter().map(|values| values[position]).collect::<Vec<_>>(), hypothesis))
    }
}

fn belief(log_ratios: &[f64], hypothesis: usize) -> f64 {
    let mut out = Vec::new();
    crate::panel::probabilities(log_ratios.iter().copied(), &mut out);
    out[hypothesis]
}

/// Expected beliefs of the others if one agent were removed or its opinion fixed:
/// (I − (1−δ)Ãᵀ)⁻¹(δL̄ + (1−δ) r s).
pub fn what_if(model: &Model, agent: usize, intervention: &Intervention) -> Result<WhatIf, Error> {
    let stochastic = model.combination.stochastic().combination;
    let agents = stochastic.agents();
    let ratios = model.evidence.ratios();
    let now = Attribution::from_stochastic(stochastic.clone(), model.adaptation);
    let others: Vec<usize> = (0..agents).filter(|&other| other != agent).collect();
    let keep = 1.0 - model.adaptation;
    let mut reduced = stochastic.without(agent);
    let mut stranded = Vec::new();
    let frozen = match intervention {
        Intervention::Remove => {
            let renormalised = reduced.stochastic();
            stranded = renormalised.empty.iter().map(|&position| others[position]).collect();
            reduced = renormalised.combination;
            vec![0.0; ratios]
        }
        Intervention::Freeze(log_ratios) if log_ratios.len() == ratios => log_ratios.clone(),
        Intervention::Freeze(log_ratios) => {
            return Err(Error::Shape {
                what: "frozen opinion",
                met: format!("{} log-ratios", log_ratios.len()),
                wanted: format!("{ratios}"),
            });
        }
    };
    let then = Attribution::from_stochastic(reduced, model.adaptation);
    let select = |values: Vec<f64>| -> Vec<f64> { others.iter().map(|&other| values[other]).collect() };
    let before = now.expected(&model.evidence).into_iter().map(select).collect();
    let after = (0..ratios)
        .map(|ratio| {
            let source: Vec<f64> = others
                .iter()
                .map(|&other| {
                    model.adaptation * model.evidence.agent(other)[ratio]
                        + keep * stochastic.weight(agent, other) * frozen[ratio]
                })
                .collect();
            then.solve_transposed(&source)
        })
        .collect();
    Ok(WhatIf { others, before, after, stranded })
}

/// [`what_if`] with [`Intervention::Remove`] for many agents of one network.
///
/// Without agent m, and with K the sums of what its listeners give others, the expected beliefs solve
/// `(M − (I − K)) x = δK L̄` on the others, M = I − (1−δ)Aᵀ. Up to a thousand agents M is inverted once; dropping row and
/// column m from the inverse is a rank-one update, and what is left, `(I − M⁻¹(I − K)) x = δM⁻¹K L̄`, takes GMRES a few products,
/// because I − K is zero but for m's listeners. Larger networks are left to settle, many removals side by side.
#[derive(Debug)]
pub struct Removals<'a> {
    model: &'a Model,
    stochastic: Combination,
    /// Per speaker: who hears it, and with what weight.
    listeners: Vec<Vec<(usize, f64)>>,
    /// Expected log-ratios now, one vector per ratio.
    expected: Vec<Vec<f64>>,
    pub(super) inverse: Option<Mat<f64>>,
}

/// Products after which a removal is solved directly instead.
const KRYLOV: usize = 60;

/// How much smaller a round of products makes the residual.
const KRYLOV_GAIN: f64 = 1e-7;

/// Rounds after which a removal is solved directly instead.
const CORRECTIONS: usize = 5;

/// The residual of a removal, relative to δ times its solution: ten digits of the solution.
const REMOVAL_RESIDUAL: f64 = 1e-10;

impl<'a> Removals<'a> {
    /// Prepares the removals of a model's agents.
    pub fn new(model: &'a Model) -> Result<Self, Error> {
        crate::model::check_adaptation(model.adaptation)?;
        let stochastic = model.combination.stochastic().combination;
        let agents = stochastic.agents();
        let mut listeners = vec![Vec::new(); agents];
        for (speaker, listener, weight) in stochastic.edges() {
            if speaker != listener && weight > 0.0 {
                listeners[speaker].push((listener, weight));
            }
        }
        let attribution = Attribution::from_stochastic(stochastic.clone(), model.adaptation);
        let expected = attribution.expected(&model.evidence);
        let inverse = attribution.lu.map(|lu| lu.solve_transpose(Mat::<f64>::identity(agents, agents)));
        Ok(Removals { model, stochastic, listeners, expected, inverse })
    }

    /// The effect of removing each of these agents, one at a time.
    pub fn without_each(&self, chosen: &[usize]) -> Result<Vec<WhatIf>, Error> {
        match &self.inverse {
            Some(inverse) => chosen.par_iter().map(|&agent| self.solved(agent, inverse)).collect(),
            None => Ok(chosen.par_chunks(BLOCK).flat_map_iter(|chosen| self.settled(chosen)).collect()),
        }
    }

    /// Weight that each listener of an agent gives to others, and the listeners without another speaker.
    fn kept(&self, agent: usize) -> (Vec<(usize, f64)>, Vec<usize>) {
        let rest = |&(listener, weight): &(usize, f64)| {
            // One minus nearly one has few digits: count what is left.
            let others = || self.stochastic.listener(listener).filter(|(speaker, _)| *speaker != agent);
            let kept = if weight < 0.5 { 1.0 - weight } else { others().map(|(_, weight)| weight).sum() };
            (listener, kept)
        };
        let (left, alone): (Vec<_>, Vec<_>) = self.listeners[agent].iter().map(rest).partition(|(_, kept)| *kept > 0.0);
        (left, alone.into_iter().map(|(listener, _)| listener).collect())
    }

    fn outcome(&self, agent: usize, after: &[Vec<f64>], stranded: Vec<usize>) -> WhatIf {
        let others: Vec<usize> = (0..self.stochastic.agents()).filter(|&other| other != agent).collect();
        let select = |values: &Vec<f64>| others.iter().map(|&other| values[other]).collect();
        let (before, after) = (self.expected.iter().map(select).collect(), after.iter().map(select).collect());
        WhatIf { others, before, after, stranded }
    }

    fn solved(&self, agent: usize, inverse: &Mat<f64>) -> Result<WhatIf, Error> {
        let agents = self.stochastic.agents();
        let (kept, stranded) = self.kept(agent);
        let gone = inverse.col_as_slice(agent);
        // The inverse without row and column of the agent.
        let apply = |sparse: &mut dyn Iterator<Item = (usize, f64)>| {
            let mut out = vec![0.0; agents];
            sparse.for_each(|(other, value)| add_scaled(&mut out, value, inverse.col_as_slice(other)));
            let factor = -out[agent] / gone[agent];
            add_scaled(&mut out, factor, gone);
            out[agent] = 0.0;
            out
        };
        let product = |x: &[f64]| {
            let mut out = apply(&mut kept.iter().map(|&(listener, kept)| (listener, (1.0 - kept) * x[listener])));
            out.iter_mut().zip(x).for_each(|(out, x)| *out = x - *out);
            out
        };
        let mut after = Vec::new();
        for ratio in 0..self.model.evidence.ratios() {
            let mut right = self.model.evidence.ratio(ratio);
            right.iter_mut().for_each(|value| *value *= self.model.adaptation);
            kept.iter().for_each(|&(listener, kept)| right[listener] *= kept);
            stranded.iter().for_each(|&listener| right[listener] = self.model.evidence.agent(listener)[ratio]);
            right[agent] = 0.0;
            let mut x = self.expected[ratio].clone();
            x[agent] = 0.0;
            // Dropping an agent from the inverse cancels as many digits as δ is small: correct by the weights themselves.
            let mut rounds = 0;
            loop {
                let mut residual = self.stochastic.hear(&x);
                let left = 1.0 - self.model.adaptation;
                residual.iter_mut().zip(&x).zip(&right).for_each(|((out, x), right)| *out = right - x + left * *out);
                kept.iter().for_each(|&(listener, kept)| residual[listener] += (1.0 - kept) * x[listener]);
                residual[agent] = 0.0;
                let largest = |values: &[f64]| values.iter().fold(0.0f64, |most, value| most.max(value.abs()));
                if largest(&residual) <= REMOVAL_RESIDUAL * self.model.adaptation * largest(&x) {
                    break;
                }
                let correction = gmres(product, &apply(&mut residual.into_iter().enumerate()));
                let Some(correction) = correction.filter(|_| rounds < CORRECTIONS) else {
                    return what_if(self.model, agent, &Intervention::Remove);
                };
                add_scaled(&mut x, 1.0, &correction);
                rounds += 1;
            }
            after.push(x);
        }
        Ok(self.outcome(agent, &after, stranded))
    }

    fn settled(&self, chosen: &[usize]) -> Vec<WhatIf> {
        let (agents, width) = (self.stochastic.agents(), chosen.len());
        let kept: Vec<_> = chosen.iter().map(|&agent| self.kept(agent)).collect();
        let forget = |values: &mut [f64]| {
            chosen.iter().enumerate().for_each(|(column, &agent)| values[agent * width + column] = 0.0);
        };
        let ratios = self.model.evidence.ratios();
        let after: Vec<Vec<f64>> = (0..ratios)
            .map(|ratio| {
                let evidence = self.model.evidence.ratio(ratio);
                let mut start: Vec<f64> =
                    (0..agents * width).map(|cell| self.model.adaptation * evidence[cell / width]).collect();
                forget(&mut start);
                settle(start, self.model.adaptation, |term, next| {
                    self.stochastic.hear_many(term, width, next);
                    for (column, (kept, alone)) in kept.iter().enumerate() {
                        kept.iter().for_each(|&(listener, kept)| next[listener * width + column] /= kept);
                        let cells = alone.iter().map(|listener| listener * width + column);
                        cells.for_each(|cell| next[cell] = term[cell]);
                    }
                    forget(next);
                })
            })
            .collect();
        let one = |(column, (&agent, (_, alone))): (usize, (&usize, (_, Vec<usize>)))| {
            let after: Vec<_> = after.iter().map(|after| strided(after, column, width)).collect();
            self.outcome(agent, &after, alone)
        };
        chosen.iter().zip(kept).enumerate().map(one).collect()
    }
}

/// Solves `T x = b` to [`KRYLOV_GAIN`] by the generalised minimal residual method (Saad and Schultz); `None` when [`KRYLOV`]
/// products do not do.
fn gmres(product: impl Fn(&[f64]) -> Vec<f64>, b: &[f64]) -> Option<Vec<f64>> {
    let norm = |v: &[f64]| dot(v, v).sqrt();
    let size = norm(b);
    let mut x = vec![0.0; b.len()];
    if size == 0.0 {
        return Some(x);
    }
    let target = KRYLOV_GAIN * size;
    let mut basis = vec![b.iter().map(|value| value / size).collect::<Vec<f64>>()];
    // The triangle of the Hessenberg matrix after its rotations, column by column, and the rotated right side.
    let mut triangle: Vec<Vec<f64>> = Vec::new();
    let mut turns: Vec<(f64, f64)> = Vec::new();
    let mut right = vec![size];
    for step in 0..KRYLOV {
        let mut v = product(&basis[step]);
        let mut heights = Vec::with_capacity(step + 2);
        for known in &basis {
            let along = dot(known, &v);
            add_scaled(&mut v, -along, known);
            heights.push(along);
        }
        let rest = norm(&v);
        for (row, &(cosine, sine)) in turns.iter().enumerate() {
            let (upper, lower) = (heights[row], heights[row + 1]);
            (heights[row], heights[row + 1]) = (cosine * upper + sine * lower, cosine * lower - sine * upper);
        }
        let length = heights[step].hypot(rest);
        if length == 0.0 {
            return None;
        }
        let (cosine, sine) = (heights[step] / length, rest / length);
        heights[step] = length;
        turns.push((cosine, sine));
        triangle.push(heights);
        right.push(-sine * right[step]);
        right[step] *= cosine;
        if right[step + 1].abs() <= target || rest == 0.0 {
            let mut factors = vec![0.0; step + 1];
            for row in (0..=step).rev() {
                let known: f64 = (row + 1..=step).map(|column| triangle[column][row] * factors[column]).sum();
                factors[row] = (right[row] - known) / triangle[row][row];
            }
            factors.iter().zip(&basis).for_each(|(factor, v)| add_scaled(&mut x, *factor, v));
            return Some(x);
        }
        v.iter_mut().for_each(|value| *value /= rest);
        basis.push(v);
    }
    None
}
