//! `headwater explain`: the reasons for an agent's rank, sources of the belief, agents influenced, what-ifs.

use crate::error::CliError;
use crate::report::read_ranking;
use crate::terminal::{Format, Terminal, csv, name_cell, number, percent, shown, table};
use clap::{Args, ValueEnum};
use headwater::Model;
use headwater::evaluate::Verdict;
use headwater::model::Likelihood;
use headwater::words::list;
use headwater_discover::RANKING_FILES;
use headwater_files::{CsvText, read_model};
use headwater_report::Explanation;
use headwater_report::explanation::WhatIfKind;
use headwater_report::page::ranks;
use std::path::PathBuf;

/// Explains the rank of one agent: sources of the belief, agents influenced, effect of a removal
#[derive(Debug, Args)]
#[command(after_help = "Example: headwater explain model.json --agent 7 --what-if remove")]
pub(crate) struct ExplainArgs {
    /// The model (.json or .npz)
    model: PathBuf,
    /// Name of the agent
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    agent: String,
    /// Hypothetical change: the agent is removed, or always neutral
    #[arg(long, value_enum)]
    what_if: Option<WhatIfName>,
    /// JSON of rank or discover, for the verdict [default: ranking.json beside the model, if it is of this model]
    #[arg(long, value_name = "RANKING")]
    ranking: Option<PathBuf>,
    /// Number of agents in each list
    #[arg(long, default_value_t = 10, value_name = "K")]
    top: usize,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WhatIfName {
    /// The agent is removed; listeners give the weight to the others they listen to
    Remove,
    /// The agent goes on speaking, but stays neutral between the hypotheses
    Neutral,
}

impl ExplainArgs {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<(), CliError> {
        let model = read_model(&self.model)?;
        let agent = model.roster.agent(&self.agent)?;
        let what_if = self.what_if.map(|name| match name {
            WhatIfName::Remove => WhatIfKind::Remove,
            WhatIfName::Neutral => WhatIfKind::Neutral,
        });
        let mut explanation = Explanation::new(&model, agent, self.top, what_if)?;
        if let Some(verdict) = self.verdict(&model)? {
            explanation = explanation.with_verdict(verdict);
        }
        match self.format {
            Format::Json => terminal.json(&explanation),
            Format::Csv => terminal.result(&sheet(&explanation, terminal.csv_text())),
            Format::Table => terminal.text(&text(&explanation)),
        }
    }
}

impl ExplainArgs {
    /// The verdict of the ranking that is named, or of the one that `discover` wrote beside the model.
    fn verdict(&self, model: &Model) -> Result<Option<Verdict>, CliError> {
        let beside = self.model.with_file_name(RANKING_FILES[0]);
        let (ranking, path) = match &self.ranking {
            Some(path) => (read_ranking(path)?, path),
            // Any file may have that name.
            None => match read_ranking(&beside) {
                Ok(ranking) => (ranking, &beside),
                Err(_) => return Ok(None),
            },
        };
        match ranks(model, &ranking).map_err(CliError::from)? {
            true => Ok(Some(ranking.verdict)),
            false if self.ranking.is_none() => Ok(None),
            false => Err(CliError::Data {
                message: format!("{}: is not a ranking of {}", path.display(), self.model.display()),
                hint: Some("rank the model again: headwater rank MODEL --format json".to_owned()),
            }),
        }
    }
}

fn text(explanation: &Explanation) -> String {
    let name = shown(&explanation.agent);
    let mut text = format!("{}\n", explanation.verdict);
    if let Some(caution) = explanation.verdict.caution() {
        text.push_str(&format!("{caution}\n"));
    }
    text.push_str(&format!(
        "\n{name}: rank {} of {}; influence {} ({} of all) = centrality {} × informativeness {}.\n",
        explanation.rank,
        explanation.agents,
        number(explanation.influence),
        explanation.share.map_or("–".into(), |share| percent(f64::from(explanation.sign.unwrap_or(1)) * share)),
        number(explanation.centrality),
        number(explanation.informativeness)
    ));
    text.push_str(&format!("Self-weight: {}.", number(explanation.self_weight)));
    if let Some(error) = explanation.error_probability {
        text.push_str(&format!(" Probability of believing in another hypothesis: {}.", percent(error)));
    }
    text.push('\n');
    if explanation.supported() {
        text.push_str(&format!("The network settles on {:?}. ", explanation.truth));
    }
    text.push_str(&format!("Reference: {:?}.\n", explanation.reference));
    if let Some(contrary) = explanation.contrarian.as_ref().filter(|_| explanation.supported()) {
        let margin = match contrary.standard_errors {
            Some(errors) => format!("{errors:.1} standard errors"),
            None => format!("{} nats per observation", number(contrary.margin)),
        };
        text.push_str(&format!("The agent's own evidence points to {:?} instead, by {margin}.\n", contrary.believes));
    }
    text.push_str(&format!("\nOwn evidence: divergence of {:?} from each alternative\n", explanation.truth));
    let rows = explanation.divergences.iter().map(|row| {
        let share = row.share_of_network.map_or("–".into(), percent);
        vec![name_cell(&row.hypothesis), number(row.divergence), share]
    });
    text.push_str(&table(&["alternative", "divergence", "share of network"], 1, rows.collect()));
    text.push_str(&format!("\nSources of the expected opinion of {name}\n"));
    let rows = explanation.sources.iter().map(|row| {
        let direct: f64 = row.by_hops.iter().take(2).sum();
        let path = row
            .path
            .as_ref()
            .map_or("self".into(), |path| path.iter().map(|name| name_cell(name)).collect::<Vec<_>>().join(" → "));
        let shares = [percent(row.attribution), percent(direct), number(row.weight)];
        [name_cell(&row.agent), path].into_iter().chain(shares).collect()
    });
    text.push_str(&table(&["source", "strongest path", "share", "direct", "weight"], 2, rows.collect()));
    text.push_str(&format!("\nAgents influenced by {name}: share of their expected opinion that originates here\n"));
    let rows = explanation.shapes.iter().map(|row| vec![name_cell(&row.agent), percent(row.attribution)]);
    text.push_str(&table(&["listener", "share"], 1, rows.collect()));
    match &explanation.likelihoods {
        Some(Likelihood::Discrete { probabilities }) => {
            text.push_str("\nPrivate observations: probability of each symbol under each hypothesis\n");
            text.push_str(&likelihood_table(explanation, "symbol", probabilities));
        }
        Some(Likelihood::Gaussian { means }) => {
            text.push_str("\nPrivate observations: Gaussian, mean under each hypothesis\n");
            text.push_str(&likelihood_table(explanation, "dimension", means));
        }
        Some(Likelihood::Unknown) => text.push_str("\nPrivate observations: not identified.\n"),
        None => {}
    }
    if let Some(change) = &explanation.what_if {
        let what = if change.kind == WhatIfKind::Remove { "were removed" } else { "stayed neutral" };
        text.push_str(&format!(
            "\nIf {name} {what}, the belief of the others in {:?} would change from {} to {}.\n",
            explanation.truth,
            fine(change.belief_before),
            fine(change.belief_after)
        ));
        if !change.left_alone.is_empty() {
            text.push_str(&format!(
                "Left without anybody else to listen to: {}.\n",
                list(change.left_alone.iter().map(String::as_str))
            ));
        }
        let rows = change.agents.iter().map(|row| vec![name_cell(&row.agent), fine(row.before), fine(row.after)]);
        text.push_str(&table(&["most affected", "before", "after"], 1, rows.collect()));
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

fn sheet(explanation: &Explanation, written: CsvText) -> String {
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
    csv(&header, rows, written)
}

/// Three decimals: the removal of one agent of many changes beliefs little.
fn fine(share: f64) -> String {
    format!("{:.3}%", 100.0 * share)
}
