//! What was learned so far: weights, evidence, and the model.

use super::{Gsl, GslParams};
use crate::learn::Method;
use crate::learn::whitened::{self, Means};
use crate::model::{self, ColumnDiagnostics, Diagnostics, Skill, TrueHypothesis};
use crate::{Combination, Error, Evidence, Model, Panel};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatRef, Par};

impl Gsl {
    /// Every parameter, with the support, the known evidence and the first weights.
    fn all_params(&self) -> GslParams {
        GslParams {
            support: self.support.clone(),
            evidence: self.known.clone(),
            initial: self.initial.clone(),
            ..self.params.clone()
        }
    }

    /// A as learned so far.
    pub fn combination(&self) -> Combination {
        let dense = Combination::from_columns(self.columns.clone(), self.agents())
            .expect("an update that overflows is an error");
        if self.support.is_some() { dense.to_sparse() } else { dense }
    }

    /// Squared Frobenius distance of A to a truth in column order, without a copy.
    pub fn distance(&self, truth: &[f64]) -> f64 {
        self.columns.iter().zip(truth).map(|(met, wanted)| (met - wanted).powi(2)).sum()
    }

    /// L̂ over the window, with known L̄ too.
    pub fn evidence(&self) -> Result<Evidence, Error> {
        let needed = self.params.window + 1;
        if self.window.seen < needed {
            return Err(Error::NotReady { seen: self.window.seen, needed });
        }
        let (agents, ratios) = (self.agents(), self.ratios());
        let (keep, scale) = (1.0 - self.params.adaptation, self.params.window as f64);
        let a = MatRef::from_column_major_slice(&self.columns, agents, agents);
        let before = MatRef::from_column_major_slice(&self.window.sum_before, agents, ratios);
        let mut evidence = MatRef::from_column_major_slice(&self.window.sum, agents, ratios).to_owned();
        matmul(evidence.as_mut(), Accum::Add, a.transpose(), before, -keep, Par::Seq);
        let unit = self.params.adaptation * scale;
        for cell in 0..agents * ratios {
            evidence[(cell / ratios, cell % ratios)] /= unit;
        }
        Evidence::from_matrix(evidence.as_ref())
    }

    /// The model as of now, with θ* from the frames of the window.
    pub fn model(&self) -> Result<Model, Error> {
        self.clone().into_model()
    }

    fn into_model(self) -> Result<Model, Error> {
        let evidence = self.evidence()?;
        let cells = self.agents() * self.ratios();
        let order: Vec<f64> = (self.window.seen - self.params.window - 1..self.window.seen)
            .flat_map(|index| {
                let slot = index % (self.params.window + 1);
                self.window.frames[slot * cells..(slot + 1) * cells].iter().copied()
            })
            .collect();
        let recent = Panel::complete(self.roster.clone(), order)?;
        let truth = model::settled(&recent, self.params.adaptation);
        self.assembled(evidence, truth)
    }

    /// The last window lies in one episode, so the evidence is the mean over the steps of all.
    fn into_model_of_episodes(self, panel: &Panel) -> Result<Model, Error> {
        let (combination, adaptation) = (self.combination(), self.params.adaptation);
        let rows = whitened::mean_evidence(&Means::from_panel(panel), &combination, adaptation, panel.ratios());
        let evidence = Evidence::from_rows(rows, panel.agents(), panel.ratios())?;
        let mut model = self.assembled(evidence, model::settled(panel, adaptation))?;
        model.diagnostics.evidence_steps = Some(panel.episodes().transitions());
        model.diagnostics.episodes = whitened::evidence_by_episode(panel, &combination, adaptation);
        Ok(model)
    }

    fn assembled(self, evidence: Evidence, truth: TrueHypothesis) -> Result<Model, Error> {
        let method = Method::Gsl(self.all_params());
        let dense = Combination::from_columns(self.columns, self.roster.agents().len())?;
        let combination = if self.support.is_some() { dense.to_sparse() } else { dense };
        let sums = combination.column_sums();
        let spread = sums.iter().fold(f64::MIN, |a, b| a.max(*b)) - sums.iter().fold(f64::MAX, |a, b| a.min(*b));
        let statistical = |agent: &String| ColumnDiagnostics::statistical(agent, self.roster.ratios());
        let columns = self.roster.agents().iter().map(statistical).collect();
        Ok(Model {
            truth: Some(truth),
            roster: self.roster,
            combination,
            evidence,
            adaptation: self.params.adaptation,
            track: model::Track::default(),
            method,
            innovation: None,
            likelihoods: None,
            diagnostics: Diagnostics {
                columns,
                column_sum_spread: Some(spread),
                evidence_steps: Some(self.params.window),
                steps: Some(self.learned),
                ..Diagnostics::default()
            },
        })
    }

    /// The model after a whole panel: also θ* over the last 3/δ steps and the innovation covariance.
    pub fn finish(self, panel: &Panel, skill: Option<Skill>) -> Result<Model, Error> {
        let mut model = match panel.episodes().is_single() {
            true => self.into_model()?,
            false => self.into_model_of_episodes(panel)?,
        };
        model.truth = Some(model::settled(panel, model.adaptation));
        model.innovation = Some(model::innovation(panel, &model.combination, model.adaptation)?);
        model.diagnostics.skill = skill;
        Ok(model)
    }
}
