//! Private likelihoods recovered from certified columns, and the exact evidence that follows from them.

use super::Means;
use crate::learn::private_likelihoods::{self, PrivateLikelihoods};
use crate::learn::symbols::Split;
use crate::model::{self, Innovation, Likelihood, TrueHypothesis};
use crate::{Error, Evidence, Model, Panel};

/// Replaces mean evidence by the exact evidence of the recovered private models. Returns for which agents.
pub(super) fn private_models(
    model: &mut Model,
    panel: &Panel,
    means: &Means,
    listeners: &[usize],
    splits: &[Option<Split>],
    warnings: &mut Vec<String>,
) -> Result<Vec<bool>, Error> {
    let (agents, ratios) = (panel.agents(), panel.ratios());
    let mut found: Vec<Option<PrivateLikelihoods>> = vec![None; agents];
    let mut unseen = Vec::new();
    for (&listener, split) in listeners.iter().zip(splits) {
        let Some(split) = split.as_ref().filter(|split| split.certified) else { continue };
        if split.single {
            unseen.push(listener);
            continue;
        }
        // The centres are residuals of centred data; add what the means leave.
        let base: Vec<f64> = (0..ratios)
            .map(|ratio| {
                let heard: f64 = (model.combination.listener(listener))
                    .map(|(speaker, weight)| weight * means.x[ratio * agents + speaker])
                    .sum();
                means.y[ratio * agents + listener] - (1.0 - model.adaptation) * heard
            })
            .collect();
        let ratio = |(centre, base): (&f64, &f64)| (centre + base) / model.adaptation;
        let ratios = split.centres.iter().map(|centre| centre.iter().zip(&base).map(ratio).collect()).collect();
        found[listener] = private_likelihoods::recover(ratios, split.counts());
    }
    if !unseen.is_empty() {
        warnings.push(format!(
            "only one private symbol of these agents occurred, so their likelihoods are not identified and their evidence is a mean over all steps: {}",
            panel.roster().list(&unseen)
        ));
    }
    let exact = found.iter().map(Option::is_some).collect();
    if found.iter().all(Option::is_none) {
        return Ok(exact);
    }
    let truth = private_likelihoods::likeliest(&found, ratios + 1);
    let mut evidence = Vec::with_capacity(agents * ratios);
    let mut innovation = Vec::with_capacity(agents * ratios * ratios);
    for (agent, atoms) in found.iter().enumerate() {
        match atoms {
            Some(atoms) => {
                let (mean, covariance) = atoms.moments(truth);
                evidence.extend(mean);
                innovation.extend(covariance);
            }
            None => {
                evidence.extend_from_slice(model.evidence.agent(agent));
                match &model.innovation {
                    Some(known) => innovation.extend_from_slice(known.agent(agent)),
                    None => innovation.extend(std::iter::repeat_n(0.0, ratios * ratios)),
                }
            }
        }
    }
    model.evidence = Evidence::from_rows(evidence, agents, ratios)?;
    model.innovation = Some(Innovation::from_cells(innovation, agents, ratios)?);
    model.truth =
        Some(TrueHypothesis { hypothesis: truth, agreement: model::agreement(panel, model.adaptation, truth) });
    let fallen: Vec<usize> =
        (0..agents).filter(|agent| found[*agent].is_none() && unseen.binary_search(agent).is_err()).collect();
    if !fallen.is_empty() {
        warnings
            .push(format!("the private likelihoods of these agents are not identified, so their evidence is a mean over all steps: {}", panel.roster().list(&fallen)));
    }
    let known =
        |atoms: Option<PrivateLikelihoods>| atoms.map_or(Likelihood::Unknown, PrivateLikelihoods::into_likelihood);
    model.likelihoods = Some(found.into_iter().map(known).collect());
    Ok(exact)
}
