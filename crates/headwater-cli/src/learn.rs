//! `headwater learn`: beliefs in, a model out.

mod paper;

use crate::error::CliError;
use crate::fit_args::{FitArgs, QUICKER};
use crate::output::check;
use crate::terminal::{Format, Terminal, count, csv, number, percent, short, table, wrapped};
use clap::{Args, ValueEnum};
use headwater::evaluate::Verdict;
use headwater::fit::{self, FilledPanel};
use headwater::learn::gsl::Constraint;
use headwater::learn::released::{ReleasedParams, as_released};
use headwater::learn::state_space::StateSpaceParams;
use headwater::learn::track::{Memory, TrackParams, Tracker};
use headwater::learn::whitened::WhitenedParams;
use headwater::model::{Change, Smoothing, Status};
use headwater::panel::Times;
use headwater::{Method, Model, Panel, influence};
use headwater_files::{LoadedBeliefs, name_times, read_beliefs, read_edges, show_time, write_model};
use serde::Serialize;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Up to this many agents the ranking is shown along with the model.
const RANKED_AGENTS: usize = 1000;

/// Headings of `--help`, below the options all methods share.
const WHITENED: &str = "Whitened";
const PAPER: &str = "Paper's learner (gsl)";
const RELEASED: &str = "Authors' scripts (as-released), with learning rate, batch, sparsity and passes";

/// Learns who listens to whom, and how well informed each one is, from public beliefs
#[derive(Debug, Args)]
#[command(
    after_help = "Example: headwater learn world/beliefs.parquet --out model.json\n         headwater learn world/beliefs.parquet --out model.json --method gsl --adaptation 0.05 --window 50"
)]
pub(crate) struct Learn {
    /// Beliefs: .csv, .parquet or .npy; - is CSV on standard input
    beliefs: PathBuf,
    /// Where to write the model: .json, or .npz, which is compact and fast
    #[arg(long, value_name = "MODEL")]
    out: PathBuf,
    /// The learner [default: whitened for complete beliefs, state-space with silence]
    #[arg(long, value_enum)]
    method: Option<MethodName>,
    /// The numbers are log-ratios log ψ(θ_0)/ψ(θ_j) instead of probabilities
    #[arg(long)]
    log_ratios: bool,
    /// Only these edges (and self-weights) may be non-zero: CSV source,target
    #[arg(long, value_name = "EDGES", conflicts_with = "resume")]
    graph: Option<PathBuf>,
    #[command(flatten)]
    fit: FitArgs,
    /// How exact a weight should be, for the number of steps that would take
    #[arg(help_heading = WHITENED, long, value_name = "ERROR", default_value_t = 0.01, value_parser = parse_precision)]
    precision: f64,
    /// Follow a changing network; where nothing is exact, a step back counts λ times as much as the next
    #[arg(help_heading = WHITENED, long, value_name = "λ", allow_negative_numbers = true, conflicts_with = "recent")]
    forget: Option<f64>,
    /// Follow a changing network; where nothing is exact, only this many steps back count
    #[arg(help_heading = WHITENED, long, value_name = "STEPS")]
    recent: Option<usize>,
    /// Follow a changing network, and print a JSON line at each change: time, kind, listeners
    #[arg(help_heading = WHITENED, long)]
    follow: bool,
    /// M, steps in the running means [default: 50]
    #[arg(help_heading = PAPER, long, value_name = "M")]
    window: Option<usize>,
    /// μ, how far an update goes [default: 0.1]
    #[arg(help_heading = PAPER, long, value_name = "μ", allow_negative_numbers = true)]
    learning_rate: Option<f64>,
    /// W, steps averaged into one update [default: 1]
    #[arg(help_heading = PAPER, long, value_name = "W")]
    batch: Option<usize>,
    /// α, pulls small weights to zero [default: 0]
    #[arg(help_heading = PAPER, long, value_name = "α", allow_negative_numbers = true)]
    sparsity: Option<f64>,
    /// How often to go through the beliefs [default: 1]
    #[arg(help_heading = PAPER, long, value_name = "P")]
    passes: Option<usize>,
    /// Choose M, μ and α by the forecast error on the last fifth of the steps
    #[arg(help_heading = PAPER, long, conflicts_with_all = ["window", "learning_rate", "sparsity", "resume"])]
    tune: bool,
    /// Take the evidence L̄ as known from this truth or model
    #[arg(help_heading = PAPER, long, value_name = "TRUTH", conflicts_with = "resume")]
    evidence: Option<PathBuf>,
    /// Start from the weights of this model instead of uniform ones
    #[arg(help_heading = PAPER, long, value_name = "MODEL", conflicts_with = "resume")]
    initial: Option<PathBuf>,
    /// Save the state of the learner here now and then, at the end, and on Ctrl-C
    #[arg(help_heading = PAPER, long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Continue from a checkpoint, on the same beliefs or longer ones
    #[arg(help_heading = PAPER, long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Write the squared error against --truth as CSV step,error
    #[arg(help_heading = PAPER, long, value_name = "FILE", requires = "truth")]
    trace: Option<PathBuf>,
    /// Steps between two rows of the trace [default: at most 2000 rows]
    #[arg(help_heading = PAPER, long, value_name = "STEPS", requires = "trace", value_parser = clap::value_parser!(u64).range(1..))]
    trace_every: Option<u64>,
    /// The truth for --trace
    #[arg(help_heading = PAPER, long, value_name = "TRUTH", requires = "trace")]
    truth: Option<PathBuf>,
    /// μ is multiplied by this after each batch; the scripts have 0.9996 for one network [default: 1]
    #[arg(help_heading = RELEASED, long, value_name = "FACTOR", allow_negative_numbers = true)]
    decay: Option<f64>,
    /// Of the random first weights [default: 45]
    #[arg(help_heading = RELEASED, long, value_name = "SEED")]
    seed: Option<u64>,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MethodName {
    /// The regression behind the paper's learner, solved at once: exact from a few dozen steps where it can be
    Whitened,
    /// For noise and silence: beliefs are hidden behind posts, and found together with the network
    StateSpace,
    /// The paper's stochastic gradient
    Gsl,
    /// The authors' released Twitter scripts, slips included, to check what was published
    AsReleased,
}

/// Says what the door did to the beliefs, and what filling their gaps means.
fn mind(
    beliefs: &LoadedBeliefs,
    filled: &FilledPanel<'_>,
    method: MethodName,
    terminal: &Terminal,
    warnings: &mut Vec<String>,
) {
    // Only certificates care how finely beliefs were written.
    let coarse = beliefs.grain.warning().filter(|_| method == MethodName::Whitened);
    coarse.into_iter().chain(filled.warning.clone()).for_each(|text| terminal.keep(warnings, text));
}

/// A number of steps.
fn whole(steps: f64) -> String {
    if steps < 1e6 { format!("{steps:.0}") } else { number(steps) }
}

fn parse_precision(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok().filter(|value| *value > 0.0 && *value < 1.0);
    value.ok_or_else(|| "wanted a number above 0 and below 1".into())
}

/// How sure the weights are that are estimates.
#[derive(Debug, Serialize)]
struct Estimates {
    /// Listeners whose weights are.
    listeners: usize,
    /// Root mean square standard error of a weight, before the constraint.
    standard_error: f64,
    /// What was asked for, and about how many steps it would take.
    precision: f64,
    steps_needed: f64,
    /// Worst condition number of what weights were solved from.
    condition: Option<f64>,
}

impl Estimates {
    fn of(model: &Model, precision: f64) -> Option<Self> {
        let columns = || model.diagnostics.columns.iter().filter(|column| column.status == Status::Statistical);
        let errors: Vec<f64> = columns().filter_map(|column| column.weight_error).collect();
        let mean = errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64;
        let steps = model.diagnostics.steps? as f64;
        (!errors.is_empty()).then(|| Estimates {
            listeners: errors.len(),
            standard_error: mean.sqrt(),
            precision,
            steps_needed: (steps * mean / (precision * precision)).ceil(),
            condition: columns().filter_map(|column| column.condition).max_by(f64::total_cmp),
        })
    }
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Summary {
    verdict: Verdict,
    method: String,
    agents: usize,
    hypotheses: usize,
    steps: usize,
    adaptation: f64,
    reference: String,
    truth: Option<String>,
    agreement: Option<f64>,
    #[serde(flatten)]
    settings: Map<String, Value>,
    certified: usize,
    identified: usize,
    column_sum_spread: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimates: Option<Estimates>,
    #[serde(skip_serializing_if = "Option::is_none")]
    smoothing: Option<Smoothing>,
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    top: Vec<Top>,
    model: String,
}

#[derive(Debug, Serialize)]
struct Top {
    agent: String,
    share: Option<f64>,
    centrality: f64,
    informativeness: f64,
}

impl Learn {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<(), CliError> {
        self.check_method(self.method)?;
        self.check_paths()?;
        let mut warnings = Vec::new();
        if matches!(self.method, None | Some(MethodName::StateSpace)) {
            self.fit.check(self.graph.is_some())?;
        }
        // What can be wrong with the options of a method that was named is said before a long file is read.
        let resumed = self.resume.as_deref().map(paper::read_checkpoint).transpose()?;
        let paper = match self.method {
            Some(MethodName::Gsl) => Some(self.paper_params(resumed.as_ref())?),
            _ => None,
        };
        let released = match self.method {
            Some(MethodName::AsReleased) => Some(self.released_params()?),
            _ => None,
        };
        self.whitened_params()?;
        let beliefs = self.read(terminal, &mut warnings)?;
        let method = self.method_for(&beliefs.panel);
        self.check_method(Some(method))?;
        let (mut model, settings, trace) = match method {
            MethodName::Gsl => {
                let params = match paper {
                    Some(params) => params,
                    None => self.paper_params(resumed.as_ref())?,
                };
                let filled = fit::fill(&beliefs.panel);
                mind(&beliefs, &filled, method, terminal, &mut warnings);
                let learned = self.paper(&filled.panel, &params, resumed, &mut warnings, terminal)?;
                (learned.model, learned.settings, learned.trace)
            }
            MethodName::AsReleased => {
                let params = match released {
                    Some(params) => params,
                    None => self.released_params()?,
                };
                let filled = fit::fill(&beliefs.panel);
                mind(&beliefs, &filled, method, terminal, &mut warnings);
                let alive = terminal.spinner("learning as released");
                let model = as_released(&filled.panel, &params).map_err(CliError::about(&self.beliefs))?;
                drop(alive);
                (model, Map::new(), None)
            }
            MethodName::StateSpace => {
                let support = self.support(&beliefs.panel)?;
                let common = self.fit.groups(beliefs.panel.roster(), terminal)?;
                let params = StateSpaceParams { support, common, ..self.fit.params() };
                let method = Method::StateSpace(params);
                let model = terminal
                    .watched(Some(QUICKER), |progress| fit::fit(&beliefs.panel, &method, progress))
                    .map_err(CliError::about(&self.beliefs))?;
                let mut settings = Map::new();
                let selection = model.diagnostics.smoothing.as_ref().and_then(|smoothing| smoothing.selection);
                if let Some(selection) = selection {
                    settings.insert("choice".into(), selection.to_string().into());
                }
                (model, settings, None)
            }
            MethodName::Whitened => {
                let filled = fit::fill(&beliefs.panel);
                mind(&beliefs, &filled, method, terminal, &mut warnings);
                let model = self.whitened(&filled, terminal)?;
                let mut settings = Map::new();
                if self.tracks() {
                    settings.insert("changes".into(), model.track.changes.len().into());
                }
                (model, settings, None)
            }
        };
        model.diagnostics.warnings.iter().for_each(|warning| terminal.warn(warning));
        warnings.append(&mut model.diagnostics.warnings);
        model.diagnostics.warnings = warnings;
        write_model(&self.out, &model)?;
        if let Some(trace) = trace {
            trace.commit()?;
        }
        self.print(&model, settings, terminal)
    }

    /// No option is given to a method that has no use for it.
    fn check_method(&self, method: Option<MethodName>) -> Result<(), CliError> {
        use MethodName::{AsReleased, Gsl, StateSpace, Whitened};
        let options: [(bool, &str, &[MethodName]); 24] = [
            (self.graph.is_some(), "--graph", &[Whitened, StateSpace, Gsl]),
            (self.fit.constraint.is_some(), "--constraint", &[Whitened, StateSpace, Gsl]),
            (self.fit.ridge.is_some(), "--ridge", &[Whitened, StateSpace]),
            (self.fit.weights.is_some(), "--weights", &[StateSpace]),
            (self.fit.shrinkage.is_some(), "--shrinkage", &[StateSpace]),
            (self.fit.rounds.is_some(), "--rounds", &[StateSpace]),
            (self.fit.common.is_some(), "--common", &[StateSpace]),
            (self.forget.is_some(), "--forget", &[Whitened]),
            (self.recent.is_some(), "--recent", &[Whitened]),
            (self.follow, "--follow", &[Whitened]),
            (self.window.is_some(), "--window", &[Gsl]),
            (self.learning_rate.is_some(), "--learning-rate", &[Gsl, AsReleased]),
            (self.batch.is_some(), "--batch", &[Gsl, AsReleased]),
            (self.sparsity.is_some(), "--sparsity", &[Gsl, AsReleased]),
            (self.passes.is_some(), "--passes", &[Gsl, AsReleased]),
            (self.tune, "--tune", &[Gsl]),
            (self.evidence.is_some(), "--evidence", &[Gsl]),
            (self.initial.is_some(), "--initial", &[Gsl]),
            (self.checkpoint.is_some(), "--checkpoint", &[Gsl]),
            (self.resume.is_some(), "--resume", &[Gsl]),
            (self.trace.is_some(), "--trace", &[Gsl]),
            (self.trace_every.is_some(), "--trace-every", &[Gsl]),
            (self.decay.is_some(), "--decay", &[AsReleased]),
            (self.seed.is_some(), "--seed", &[AsReleased]),
        ];
        // Without a name the beliefs choose between two of them.
        let allowed = method.map_or(vec![Whitened, StateSpace], |method| vec![method]);
        let foreign =
            options.iter().find(|(given, _, methods)| *given && !methods.iter().any(|method| allowed.contains(method)));
        let Some((_, option, methods)) = foreign else { return Ok(()) };
        let name =
            |method: &MethodName| method.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
        let names: Vec<String> = methods.iter().map(name).collect();
        Err(CliError::usage(
            format!("{option} belongs to --method {}", names.join(" or ")),
            format!("leave it out, or choose that method: --method {} has no use for it", name(&allowed[0])),
        ))
    }

    fn released_params(&self) -> Result<ReleasedParams, CliError> {
        let Some(adaptation) = self.number_for_adaptation() else {
            return Err(CliError::usage(
                "--method as-released cannot estimate δ: it needs a number for --adaptation",
                "the authors' scripts use --adaptation 0.0001",
            ));
        };
        let released = ReleasedParams::default();
        let params = ReleasedParams {
            adaptation,
            learning_rate: self.learning_rate.unwrap_or(released.learning_rate),
            decay: self.decay.unwrap_or(released.decay),
            sparsity: self.sparsity.unwrap_or(released.sparsity),
            batch: self.batch.unwrap_or(released.batch),
            passes: self.passes.unwrap_or(released.passes),
            seed: self.seed.unwrap_or(released.seed),
            ..released
        };
        params.check()?;
        Ok(params)
    }

    /// The method that was named; otherwise the one that fits the options, and then the beliefs.
    fn method_for(&self, panel: &Panel) -> MethodName {
        match self.method {
            Some(method) => method,
            None if self.fit.of_state_space() => MethodName::StateSpace,
            None if self.tracks() || panel.is_complete() => MethodName::Whitened,
            None => MethodName::StateSpace,
        }
    }

    fn whitened_params(&self) -> Result<WhitenedParams, CliError> {
        let params = WhitenedParams {
            adaptation: self.number_for_adaptation(),
            constraint: self.fit.constraint.map_or(Constraint::Simplex, Constraint::from),
            ridge: self.fit.ridge.unwrap_or(0.0),
            ..WhitenedParams::default()
        };
        params.check()?;
        self.memory().check()?;
        Ok(params)
    }

    fn whitened(&self, filled: &FilledPanel<'_>, terminal: &Terminal) -> Result<Model, CliError> {
        let mut params = self.whitened_params()?;
        params.support = self.support(&filled.panel)?;
        if self.tracks() {
            return self.tracked(filled, params, terminal);
        }
        terminal.watched(None, |_| fit::whitened(filled, &params)).map_err(CliError::about(&self.beliefs))
    }

    fn memory(&self) -> Memory {
        match (self.forget, self.recent) {
            (Some(factor), _) => Memory::Forget(factor),
            (None, Some(steps)) => Memory::Recent(steps),
            (None, None) => Memory::All,
        }
    }

    /// Whether the network may change on the way.
    fn tracks(&self) -> bool {
        self.follow || self.forget.is_some() || self.recent.is_some()
    }

    /// Goes through the beliefs frame by frame, and says what changes as soon as it is noticed.
    fn tracked(
        &self,
        filled: &FilledPanel<'_>,
        params: WhitenedParams,
        terminal: &Terminal,
    ) -> Result<Model, CliError> {
        let panel = &filled.panel;
        let params = TrackParams { whitened: params, memory: self.memory(), window: None };
        let mut tracker = Tracker::new(panel.roster().clone(), params)?;
        let mut progress = terminal.bar("following", panel.steps() as u64);
        let mut silent = filled.silent.chunks_exact(panel.agents());
        for (step, frame) in panel.cells().chunks_exact(panel.width()).enumerate() {
            let silent = silent.next().unwrap_or(&[]);
            if let Some(change) = tracker.push_partly(frame, silent).map_err(CliError::about(&self.beliefs))? {
                self.tell(&change, panel, terminal)?;
            }
            progress.at(step as u64 + 1);
        }
        drop(progress);
        while let Some(change) = tracker.rest() {
            self.tell(&change, panel, terminal)?;
        }
        let mut model = fit::tracked(filled, &tracker).map_err(CliError::about(&self.beliefs))?;
        name_times(&mut model, panel.times());
        Ok(model)
    }

    fn tell(&self, change: &Change, panel: &Panel, terminal: &Terminal) -> Result<(), CliError> {
        if !self.follow {
            return Ok(());
        }
        let time = |step: usize| match panel.times() {
            Times::Steps(steps) => Value::from(steps[step]),
            Times::Instants(_) => Value::from(show_time(panel.times(), step)),
        };
        let mut line = serde_json::json!({
            "time": time(change.step),
            "kind": change.kind.name(),
            "listeners": panel.roster().names(&change.listeners),
            "since": time(change.since),
        });
        if let Some(truth) = change.truth {
            line["truth"] = panel.roster().hypotheses()[truth].clone().into();
        }
        terminal.result(&line.to_string())
    }

    /// Nothing is learned for an output that cannot be written, and no file is both read and written.
    fn check_paths(&self) -> Result<(), CliError> {
        let outputs = [Some(&self.out), self.trace.as_ref(), self.checkpoint.as_ref()];
        let inputs = [
            Some(&self.beliefs),
            self.graph.as_ref(),
            self.evidence.as_ref(),
            self.initial.as_ref(),
            self.truth.as_ref(),
        ];
        check(inputs.into_iter().flatten(), outputs.into_iter().flatten())
    }

    fn number_for_adaptation(&self) -> Option<f64> {
        self.fit.number_for_adaptation()
    }

    /// Reads the beliefs and says what had to be done to them.
    fn read(&self, terminal: &Terminal, warnings: &mut Vec<String>) -> Result<LoadedBeliefs, CliError> {
        terminal.remark(&format!("reading {}", self.beliefs.display()));
        let alive = terminal.spinner("reading");
        let beliefs = read_beliefs(&self.beliefs, self.log_ratios)?;
        drop(alive);
        beliefs.raised().into_iter().for_each(|text| terminal.keep(warnings, text));
        Ok(beliefs)
    }

    /// The speakers each listener may hear, where a graph says so.
    fn support(&self, panel: &Panel) -> Result<Option<Vec<Vec<usize>>>, CliError> {
        let Some(path) = &self.graph else { return Ok(None) };
        Ok(Some(read_edges(path)?.graph(panel.roster())?.speakers().to_vec()))
    }

    fn print(&self, model: &Model, settings: Map<String, Value>, terminal: &Terminal) -> Result<(), CliError> {
        let mut top = Vec::new();
        if model.combination.agents() <= RANKED_AGENTS {
            let found = influence(model)?;
            top.extend(found.ranking().into_iter().take(5).map(|agent| Top {
                agent: model.roster.agents()[agent].clone(),
                share: found.share.as_ref().map(|share| share[agent]),
                centrality: found.centrality.values[agent],
                informativeness: found.informativeness[agent],
            }));
        }
        let columns =
            |status: Status| model.diagnostics.columns.iter().filter(|column| column.status == status).count();
        let summary = Summary {
            verdict: Verdict::new(model, None),
            method: model.method.name().to_owned(),
            agents: model.roster.agents().len(),
            hypotheses: model.roster.hypotheses().len(),
            steps: model.diagnostics.steps.unwrap_or(0),
            adaptation: model.adaptation,
            reference: model.roster.reference().to_owned(),
            truth: model.truth.map(|truth| model.roster.hypotheses()[truth.hypothesis].clone()),
            agreement: model.truth.map(|truth| truth.agreement),
            settings,
            certified: columns(Status::Certified),
            identified: columns(Status::Identified),
            column_sum_spread: model.diagnostics.column_sum_spread,
            // The state-space learner's errors do not fall as 1/√T while silence hides what was believed.
            estimates: Estimates::of(model, self.precision).filter(|_| model.diagnostics.smoothing.is_none()),
            smoothing: model.diagnostics.smoothing.clone(),
            warnings: model.diagnostics.warnings.clone(),
            top,
            model: self.out.display().to_string(),
        };
        if self.follow {
            // Standard output belongs to the changes.
            terminal.remark(&wrapped(&summary.text()));
            return Ok(());
        }
        match self.format {
            Format::Json => terminal.json(&summary),
            Format::Csv => terminal.result(&summary.csv()),
            Format::Table => terminal.text(&summary.text()),
        }
    }
}

impl Summary {
    fn text(&self) -> String {
        let mut text = format!("{}\n\n", self.verdict);
        let setting = |key: &str| self.settings.get(key).and_then(Value::as_f64).map(number);
        let settings = match (setting("window"), setting("learning_rate")) {
            (Some(window), Some(rate)) => format!(", M = {window}, μ = {rate}"),
            _ => String::new(),
        };
        text.push_str(&format!(
            "{} and {} hypotheses over {}, learned by {} (δ = {}{settings}).\n",
            count(self.agents, "agent"),
            self.hypotheses,
            count(self.steps, "step"),
            self.method,
            number(self.adaptation),
        ));
        if let Some(choice) = self.settings.get("choice").and_then(Value::as_str) {
            text.push_str(&format!("Weights: {choice}.\n"));
        }
        if let Some(smoothing) = &self.smoothing {
            let noise: Vec<String> =
                smoothing.noise.iter().enumerate().map(|(ratio, row)| number(row[ratio].sqrt())).collect();
            text.push_str(&format!(
                "A single post shows a log-belief with noise of standard deviation {}; {} rounds, {}.\n",
                noise.join(", "),
                smoothing.rounds,
                if smoothing.converged { "settled" } else { "not settled" }
            ));
        }
        if ["whitened", "tracked"].contains(&self.method.as_str()) {
            text.push_str(&format!(
                "Listeners whose weights are certified: {}, identified: {}, statistical: {}.\n",
                self.certified,
                self.identified,
                self.agents - self.certified - self.identified
            ));
        }
        if let Some(changes) = self.settings.get("changes").and_then(Value::as_u64) {
            text.push_str(&format!("Noticed on the way: {}.\n", count(changes as usize, "change")));
        }
        if let (Some(truth), Some(agreement)) = (&self.truth, self.agreement) {
            text.push_str(&format!(
                "The network settles on {truth:?}; {} of the agents agree. Reference: {:?}.\n",
                percent(agreement),
                self.reference
            ));
        }
        if let Some(spread) = self.column_sum_spread {
            let sums = "Weights given by a listener should sum to the same for all";
            text.push_str(&format!("{sums}; as estimated they differ by up to {}.\n", number(spread)));
        }
        if let Some(estimates) = &self.estimates {
            let condition = estimates
                .condition
                .map_or(String::new(), |worst| format!("; worst condition number {}", number(worst)));
            text.push_str(&format!(
                "Estimated weights have a standard error of about {} before the constraint; for {} about {} steps would be needed{condition}.\n",
                number(estimates.standard_error),
                estimates.precision,
                whole(estimates.steps_needed)
            ));
        }
        if !self.top.is_empty() {
            let rows = self.top.iter().enumerate().map(|(position, top)| {
                let share = top.share.map_or("–".into(), percent);
                let numbers = [share, number(top.centrality), number(top.informativeness)];
                [(position + 1).to_string(), short(&top.agent)].into_iter().chain(numbers).collect()
            });
            text.push_str(&format!("\n{}", table(&["", "agent", "share", "centrality", "inform."], 2, rows.collect())));
        }
        text.push_str(&format!("\nModel: {}. Next: headwater rank {}\n", self.model, self.model));
        text
    }

    fn csv(&self) -> String {
        let optional = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let mut rows = vec![
            ("supported".to_owned(), self.verdict.supported().to_string()),
            ("verdict".to_owned(), self.verdict.to_string()),
            ("method".to_owned(), self.method.clone()),
            ("agents".to_owned(), self.agents.to_string()),
            ("hypotheses".to_owned(), self.hypotheses.to_string()),
            ("steps".to_owned(), self.steps.to_string()),
            ("adaptation".to_owned(), self.adaptation.to_string()),
            ("reference".to_owned(), self.reference.clone()),
            ("truth".to_owned(), self.truth.clone().unwrap_or_default()),
            ("agreement".to_owned(), optional(self.agreement)),
            ("certified".to_owned(), self.certified.to_string()),
            ("identified".to_owned(), self.identified.to_string()),
        ];
        rows.extend(self.settings.iter().map(|(key, value)| (key.clone(), value.to_string())));
        rows.push(("model".to_owned(), self.model.clone()));
        csv(&["key", "value"], rows.into_iter().map(|(key, value)| vec![key, value]).collect())
    }
}
