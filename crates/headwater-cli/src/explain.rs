//! `headwater explain`: why an agent is where it is, who shaped it, whom it shapes, what if it were not there.

use crate::error::CliError;
use crate::terminal::{Format, Terminal, csv, number, percent, short, table};
use clap::{Args, ValueEnum};
use headwater::model::Likelihood;
use headwater_files::read_model;
use headwater_report::Explanation;
use headwater_report::explanation::WhatIfKind;
use std::path::PathBuf;

/// Explains one agent: who made it think so, whom it shapes, what changes without it
#[derive(Debug, Args)]
#[command(after_help = "Example: headwater explain model.json --agent 7 --what-if remove")]
pub(crate) struct ExplainArgs {
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

impl ExplainArgs {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<(), CliError> {
        let model = read_model(&self.model)?;
        let agent = model.roster.agent(&self.agent)?;
        let thought = self.what_if.map(|name| match name {
            WhatIfName::Remove => WhatIfKind::Remove,
            WhatIfName::Neutral => WhatIfKind::Neutral,
        });
        let explanation = Explanation::new(&model, agent, self.top, thought)?;
        match self.format {
            Format::Json => terminal.json(&explanation),
            Format::Csv => terminal.result(&sheet(&explanation)),
            Format::Table => terminal.text(&text(&explanation)),
        }
    }
}

fn text(explanation: &Explanation) -> String {
    let name = short(&explanation.agent);
    let mut text = format!(
        "{name} is number {} of {}: influence {} ({} of all) = centrality {} × informativeness {}.\n",
        explanation.rank,
        explanation.agents,
        number(explanation.influence),
        explanation.share.map_or("–".into(), percent),
        number(explanation.centrality),
        number(explanation.informativeness)
    );
    text.push_str(&format!("It gives itself the weight {}.", number(explanation.self_weight)));
    if let Some(error) = explanation.error_probability {
        text.push_str(&format!(
            " It names something other than {:?} {} of the time.",
            explanation.truth,
            percent(error)
        ));
    }
    text.push('\n');
    text.push_str(&format!(
        "The network settles on {:?}. Reference: {:?}.\n",
        explanation.truth, explanation.reference
    ));
    if let Some(contrary) = &explanation.contrarian {
        let margin = match contrary.standard_errors {
            Some(errors) => format!("{errors:.1} standard errors"),
            None => format!("{} nats an observation", number(contrary.margin)),
        };
        text.push_str(&format!("Its own evidence points to {:?} instead, by {margin}.\n", contrary.believes));
    }
    text.push_str(&format!("\nWhat it knows: divergence of {:?} from each alternative\n", explanation.truth));
    let rows = explanation.divergences.iter().map(|row| {
        let share = row.share_of_network.map_or("–".into(), percent);
        vec![row.hypothesis.clone(), number(row.divergence), share]
    });
    text.push_str(&table(&["alternative", "divergence", "of the network's"], 1, rows.collect()));
    text.push_str(&format!("\nWho made {name} think so: origin of its expected opinion\n"));
    let rows = explanation.sources.iter().map(|row| {
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
    let rows = explanation.shapes.iter().map(|row| vec![short(&row.agent), percent(row.attribution)]);
    text.push_str(&table(&["listener", "origin"], 1, rows.collect()));
    match &explanation.likelihoods {
        Some(Likelihood::Discrete { probabilities }) => {
            text.push_str("\nIts private observations: probability of each symbol under each hypothesis\n");
            text.push_str(&likelihood_table(explanation, "symbol", probabilities));
        }
        Some(Likelihood::Gaussian { means }) => {
            text.push_str("\nIts private observations: Gaussian, mean under each hypothesis\n");
            text.push_str(&likelihood_table(explanation, "dimension", means));
        }
        Some(Likelihood::Unknown) => text.push_str("\nIts private observations could not be identified.\n"),
        None => {}
    }
    if let Some(change) = &explanation.what_if {
        let what = if change.kind == WhatIfKind::Remove { "were gone" } else { "never took a side" };
        text.push_str(&format!(
            "\nIf {name} {what}, the others' belief in {:?} would go from {} to {}.\n",
            explanation.truth,
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

fn likelihood_table(explanation: &Explanation, first: &str, rows: &[Vec<f64>]) -> String {
    let names = explanation.hypotheses.iter().map(String::as_str);
    let header: Vec<&str> = std::iter::once(first).chain(names).collect();
    let rows = rows
        .iter()
        .enumerate()
        .map(|(index, row)| std::iter::once(index.to_string()).chain(row.iter().map(|value| number(*value))).collect());
    table(&header, 1, rows.collect())
}

fn sheet(explanation: &Explanation) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut add = |section: &str, agent: &str, values: [Option<f64>; 3], path: String| {
        let numbers = values.map(|value| value.map_or(String::new(), |value| value.to_string()));
        rows.push([vec![section.to_owned(), agent.to_owned()], numbers.to_vec(), vec![path]].concat());
    };
    for row in &explanation.sources {
        let path = row.path.as_ref().map_or(String::new(), |path| path.join(" > "));
        add("source", &row.agent, [Some(row.attribution), Some(row.weight), row.path_strength], path);
    }
    for row in &explanation.shapes {
        add("shapes", &row.agent, [Some(row.attribution), None, None], String::new());
    }
    let mut header = vec!["section", "agent", "attribution", "weight", "path_strength", "path"];
    if let Some(change) = &explanation.what_if {
        header.extend(["before", "after"]);
        rows.iter_mut().for_each(|row| row.extend([String::new(), String::new()]));
        let all = std::iter::once(("", change.belief_before, change.belief_after))
            .chain(change.agents.iter().map(|row| (row.agent.as_str(), row.before, row.after)));
        rows.extend(all.map(|(agent, before, after)| {
            let empty = || String::new();
            let section = format!("what-if {}", change.kind.name());
            let numbers = [before.to_string(), after.to_string()];
            [section, agent.to_owned(), empty(), empty(), empty(), empty()].into_iter().chain(numbers).collect()
        }));
    }
    csv(&header, rows)
}

/// Beliefs move by little when one of many is gone.
fn fine(share: f64) -> String {
    format!("{:.3}%", 100.0 * share)
}
