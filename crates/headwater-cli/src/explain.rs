//! `headwater explain`: why an agent is where it is, who shaped it, whom it shapes, what if it were not there.

use crate::failure::Failure;
use crate::screen::{Format, Screen, csv, number, percent, short, table};
use clap::{Args, ValueEnum};
use headwater::influence::{
    Attribution, Influence, Intervention, by_hops, error_probability, strongest_paths, what_if,
};
use headwater::model::Likelihood;
use headwater::{Model, influence};
use headwater_files::read_model;
use serde::Serialize;
use std::path::PathBuf;

/// Hops for which totals are shown.
const HOPS: usize = 3;

/// Explains one agent: who made it think so, whom it shapes, what changes without it
#[derive(Debug, Args)]
#[command(after_help = "Example: headwater explain model.json --agent 7 --what-if remove")]
pub(crate) struct Explain {
    /// The model (.json or .npz)
    model: PathBuf,
    /// Name of the agent
    #[arg(long, value_name = "NAME")]
    agent: String,
    /// A thought experiment: the agent is gone, or always neutral
    #[arg(long, value_enum)]
    what_if: Option<WhatIfName>,
    /// How many agents to list
    #[arg(long, default_value_t = 10, value_name = "K")]
    top: usize,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WhatIfName {
    /// It is gone, and its listeners give its weight to the others they hear
    Remove,
    /// It goes on speaking, but never takes a side
    Neutral,
}

#[derive(Debug, Serialize)]
struct Explanation {
    agent: String,
    rank: usize,
    agents: usize,
    truth: String,
    reference: String,
    hypotheses: Vec<String>,
    influence: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<f64>,
    centrality: f64,
    informativeness: f64,
    self_weight: f64,
    /// D(θ*‖θ) and the agent's share of the network divergence, per hypothesis.
    divergences: Vec<Divergence>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_probability: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contrarian: Option<Contrary>,
    sources: Vec<Source>,
    shapes: Vec<Reach>,
    #[serde(skip_serializing_if = "Option::is_none")]
    likelihoods: Option<Likelihood>,
    #[serde(skip_serializing_if = "Option::is_none")]
    what_if: Option<Change>,
}

#[derive(Debug, Serialize)]
struct Divergence {
    hypothesis: String,
    divergence: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    share_of_network: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Contrary {
    believes: String,
    margin: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    standard_errors: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Source {
    agent: String,
    /// Share of the explained agent's expected log-belief that originates here.
    attribution: f64,
    weight: f64,
    /// Attribution that arrives over 0, 1, … hops.
    by_hops: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_strength: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Reach {
    agent: String,
    /// Share of that agent's expected log-belief that originates in the explained one.
    attribution: f64,
}

#[derive(Debug, Serialize)]
struct Change {
    kind: &'static str,
    /// Belief in the truth that the mean log-belief of the others amounts to.
    belief_before: f64,
    belief_after: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_alone: Vec<String>,
    agents: Vec<Shift>,
}

#[derive(Debug, Serialize)]
struct Shift {
    agent: String,
    before: f64,
    after: f64,
}

impl Explain {
    pub(crate) fn run(self, screen: &mut Screen) -> Result<(), Failure> {
        let model = read_model(&self.model)?;
        let agent = model.roster.agent(&self.agent)?;
        let found = influence(&model)?;
        let explanation = self.explain(&model, &found, agent)?;
        match self.format {
            Format::Json => screen.json(&explanation),
            Format::Csv => screen.result(&explanation.csv()),
            Format::Table => screen.text(&explanation.text()),
        }
    }

    fn explain(&self, model: &Model, found: &Influence, agent: usize) -> Result<Explanation, Failure> {
        let names = model.roster.agents();
        let hypotheses = model.roster.hypotheses();
        let stochastic = model.combination.stochastic().combination;
        let attribution = Attribution::of(model)?;
        let sources = attribution.sources_of(agent);
        let hops = by_hops(&stochastic, model.adaptation, agent, HOPS);
        let paths = strongest_paths(&stochastic, model.adaptation, agent);
        let strongest = |values: &[f64]| {
            let mut order: Vec<usize> = (0..values.len()).collect();
            order.sort_by(|&a, &b| values[b].total_cmp(&values[a]).then(a.cmp(&b)));
            order.truncate(self.top);
            order
        };
        let source = |other: usize| {
            let path = paths[other].as_ref().filter(|path| path.agents.len() > 1);
            Source {
                agent: names[other].clone(),
                attribution: sources[other],
                weight: stochastic.weight(other, agent),
                by_hops: hops.iter().map(|hop| hop[other]).collect(),
                path: path.map(|path| model.roster.names(&path.agents)),
                path_strength: path.map(|path| path.strength),
            }
        };
        let mut reach = attribution.reach_of(agent);
        reach[agent] = f64::MIN;
        let rank = found.ranking().iter().position(|&other| other == agent).map_or(0, |position| position + 1);
        let divergence = |hypothesis: usize| Divergence {
            hypothesis: hypotheses[hypothesis].clone(),
            divergence: found.divergences[agent][hypothesis],
            share_of_network: found.divergence_shares(hypothesis).map(|shares| shares[agent]),
        };
        Ok(Explanation {
            agent: names[agent].clone(),
            rank,
            agents: names.len(),
            truth: hypotheses[found.truth].clone(),
            reference: model.roster.reference().to_owned(),
            hypotheses: hypotheses.to_vec(),
            influence: found.influence[agent],
            share: found.share.as_ref().map(|share| share[agent]),
            centrality: found.centrality.values[agent],
            informativeness: found.informativeness[agent],
            self_weight: stochastic.weight(agent, agent),
            divergences: (0..hypotheses.len()).filter(|&other| other != found.truth).map(divergence).collect(),
            error_probability: match model.innovation {
                Some(_) => Some(error_probability(model, found.truth, agent)?),
                None => None,
            },
            contrarian: found.contrarians.iter().find(|contrarian| contrarian.agent == agent).map(|contrarian| {
                Contrary {
                    believes: hypotheses[contrarian.believes].clone(),
                    margin: contrarian.margin,
                    standard_errors: contrarian.standard_errors,
                }
            }),
            sources: strongest(&sources).into_iter().map(source).collect(),
            shapes: strongest(&reach)
                .into_iter()
                .filter(|&other| other != agent)
                .map(|other| Reach { agent: names[other].clone(), attribution: reach[other] })
                .collect(),
            likelihoods: model.likelihoods.as_ref().map(|likelihoods| likelihoods[agent].clone()),
            what_if: self.what_if.map(|kind| self.change(model, found, agent, kind)).transpose()?,
        })
    }

    fn change(&self, model: &Model, found: &Influence, agent: usize, kind: WhatIfName) -> Result<Change, Failure> {
        let (kind, intervention) = match kind {
            WhatIfName::Remove => ("remove", Intervention::Remove),
            WhatIfName::Neutral => ("neutral", Intervention::Freeze(vec![0.0; model.evidence.ratios()])),
        };
        let outcome = what_if(model, agent, &intervention)?;
        let [belief_before, belief_after] = outcome.belief(found.truth);
        let mut shifts: Vec<Shift> = (outcome.others.iter().enumerate())
            .map(|(position, &other)| {
                let [before, after] = outcome.belief_of(position, found.truth);
                Shift { agent: model.roster.agents()[other].clone(), before, after }
            })
            .collect();
        shifts.sort_by(|a, b| (b.after - b.before).abs().total_cmp(&(a.after - a.before).abs()));
        shifts.truncate(self.top);
        let left_alone = model.roster.names(&outcome.stranded);
        Ok(Change { kind, belief_before, belief_after, left_alone, agents: shifts })
    }
}

impl Explanation {
    fn text(&self) -> String {
        let name = short(&self.agent);
        let mut text = format!(
            "{name} is number {} of {}: influence {} ({} of all) = centrality {} × informativeness {}.\n",
            self.rank,
            self.agents,
            number(self.influence),
            self.share.map_or("–".into(), percent),
            number(self.centrality),
            number(self.informativeness)
        );
        text.push_str(&format!("It gives itself the weight {}.", number(self.self_weight)));
        if let Some(error) = self.error_probability {
            text.push_str(&format!(" It names something other than {:?} {} of the time.", self.truth, percent(error)));
        }
        text.push('\n');
        text.push_str(&format!("The network settles on {:?}. Reference: {:?}.\n", self.truth, self.reference));
        if let Some(contrary) = &self.contrarian {
            let margin = match contrary.standard_errors {
                Some(errors) => format!("{errors:.1} standard errors"),
                None => format!("{} nats an observation", number(contrary.margin)),
            };
            text.push_str(&format!("Its own evidence points to {:?} instead, by {margin}.\n", contrary.believes));
        }
        text.push_str(&format!("\nWhat it knows: divergence of {:?} from each alternative\n", self.truth));
        let rows = self.divergences.iter().map(|row| {
            let share = row.share_of_network.map_or("–".into(), percent);
            vec![row.hypothesis.clone(), number(row.divergence), share]
        });
        text.push_str(&table(&["alternative", "divergence", "of the network's"], 1, rows.collect()));
        text.push_str(&format!("\nWho made {name} think so: origin of its expected opinion\n"));
        let rows = self.sources.iter().map(|row| {
            let direct: f64 = row.by_hops.iter().take(2).sum();
            let path = row
                .path
                .as_ref()
                .map_or("itself".into(), |path| path.iter().map(|name| short(name)).collect::<Vec<_>>().join(" → "));
            let shares = [percent(row.attribution), percent(direct), number(row.weight)];
            [short(&row.agent), path].into_iter().chain(shares).collect()
        });
        text.push_str(&table(&["source", "strongest path", "origin", "direct", "weight"], 2, rows.collect()));
        text.push_str(&format!("\nWhom {name} shapes: the part of their expected opinion that starts here\n"));
        let rows = self.shapes.iter().map(|row| vec![short(&row.agent), percent(row.attribution)]);
        text.push_str(&table(&["listener", "origin"], 1, rows.collect()));
        match &self.likelihoods {
            Some(Likelihood::Discrete { probabilities }) => {
                text.push_str("\nIts private observations: probability of each symbol under each hypothesis\n");
                text.push_str(&self.likelihood_table("symbol", probabilities));
            }
            Some(Likelihood::Gaussian { means }) => {
                text.push_str("\nIts private observations: Gaussian, mean under each hypothesis\n");
                text.push_str(&self.likelihood_table("dimension", means));
            }
            Some(Likelihood::Unknown) => text.push_str("\nIts private observations could not be identified.\n"),
            None => {}
        }
        if let Some(change) = &self.what_if {
            let what = if change.kind == "remove" { "were gone" } else { "never took a side" };
            text.push_str(&format!(
                "\nIf {name} {what}, the others' belief in {:?} would go from {} to {}.\n",
                self.truth,
                fine(change.belief_before),
                fine(change.belief_after)
            ));
            if !change.left_alone.is_empty() {
                text.push_str(&format!("Left with nobody else to hear: {}.\n", change.left_alone.join(", ")));
            }
            let rows = change.agents.iter().map(|row| vec![short(&row.agent), fine(row.before), fine(row.after)]);
            text.push_str(&table(&["most changed", "before", "after"], 1, rows.collect()));
        }
        text
    }

    fn likelihood_table(&self, first: &str, rows: &[Vec<f64>]) -> String {
        let names = self.hypotheses.iter().map(String::as_str);
        let header: Vec<&str> = std::iter::once(first).chain(names).collect();
        let rows = rows.iter().enumerate().map(|(index, row)| {
            std::iter::once(index.to_string()).chain(row.iter().map(|value| number(*value))).collect()
        });
        table(&header, 1, rows.collect())
    }

    fn csv(&self) -> String {
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut add = |section: &str, agent: &str, values: [Option<f64>; 3], path: String| {
            let numbers = values.map(|value| value.map_or(String::new(), |value| value.to_string()));
            rows.push([vec![section.to_owned(), agent.to_owned()], numbers.to_vec(), vec![path]].concat());
        };
        for row in &self.sources {
            let path = row.path.as_ref().map_or(String::new(), |path| path.join(" > "));
            add("source", &row.agent, [Some(row.attribution), Some(row.weight), row.path_strength], path);
        }
        for row in &self.shapes {
            add("shapes", &row.agent, [Some(row.attribution), None, None], String::new());
        }
        let mut header = vec!["section", "agent", "attribution", "weight", "path_strength", "path"];
        if let Some(change) = &self.what_if {
            header.extend(["before", "after"]);
            rows.iter_mut().for_each(|row| row.extend([String::new(), String::new()]));
            let all = std::iter::once(("", change.belief_before, change.belief_after))
                .chain(change.agents.iter().map(|row| (row.agent.as_str(), row.before, row.after)));
            rows.extend(all.map(|(agent, before, after)| {
                let empty = || String::new();
                let section = format!("what-if {}", change.kind);
                let numbers = [before.to_string(), after.to_string()];
                [section, agent.to_owned(), empty(), empty(), empty(), empty()].into_iter().chain(numbers).collect()
            }));
        }
        csv(&header, rows)
    }
}

/// Beliefs move by little when one of many is gone.
fn fine(share: f64) -> String {
    format!("{:.3}%", 100.0 * share)
}
