//! `headwater learn`: beliefs in, a model out.

mod paper;
mod summary;

use crate::error::CliError;
use crate::fit_args::{FitArgs, QUICKER, on_graph, read_graph};
use crate::numbers_args::NumbersArgs;
use crate::output::check;
use crate::terminal::{Format, Terminal, count, wrapped};
use clap::{Args, ValueEnum};
use headwater::fit::{self, FilledPanel};
use headwater::learn::gsl::Constraint;
use headwater::learn::posterior::SamplingParams;
use headwater::learn::released::{ReleasedParams, as_released};
use headwater::learn::state_space::StateSpaceParams;
use headwater::learn::track::{Memory, TrackParams, Tracker};
use headwater::learn::whitened::WhitenedParams;
use headwater::model::DetectedChange;
use headwater::panel::Times;
use headwater::{Method, Model, Panel};
use headwater_files::{LoadedBeliefs, name_times, show_time, write_model};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use summary::LearnSummary;

/// Headings of `--help`, below the options all methods share.
const WHITENED: &str = "Whitened";
const PAPER: &str = "Paper's learner (gsl)";
const RELEASED: &str = "Authors' scripts (as-released), with learning rate, batch, sparsity and passes";

/// Learns a network from beliefs: who listens to whom, and how well informed each agent is
#[derive(Debug, Args)]
#[command(
    after_help = "Example: headwater learn world/beliefs.parquet --out model.json\n         headwater learn world/beliefs.parquet --out model.json --method gsl --adaptation 0.05 --window 50"
)]
pub(crate) struct LearnArgs {
    /// Beliefs: .csv, .parquet or .npy; - is CSV on standard input. Several files are episodes, one each
    #[arg(required = true)]
    beliefs: Vec<PathBuf>,
    /// Model file to write: .json, or .npz, which is smaller and faster
    #[arg(long, value_name = "MODEL")]
    out: PathBuf,
    /// Learning method [default: whitened for complete beliefs, state-space for beliefs with silence]
    #[arg(long, value_enum)]
    method: Option<MethodName>,
    #[command(flatten)]
    numbers: NumbersArgs,
    /// Restrict weights to these edges and self-weights: CSV source,target
    #[arg(long, value_name = "EDGES", conflicts_with = "resume")]
    graph: Option<PathBuf>,
    #[command(flatten)]
    fit: FitArgs,
    /// Target standard error of a weight, for the estimate of the steps needed
    #[arg(help_heading = WHITENED, long, value_name = "ERROR", default_value_t = 0.01, value_parser = parse_precision)]
    precision: f64,
    /// Track a changing network; statistical estimates weight a step λ times as much as the step after it
    #[arg(help_heading = WHITENED, long, value_name = "λ", allow_negative_numbers = true, conflicts_with = "recent")]
    forget: Option<f64>,
    /// Track a changing network; statistical estimates use only this many recent steps
    #[arg(help_heading = WHITENED, long, value_name = "STEPS")]
    recent: Option<usize>,
    /// Track a changing network, and print a JSON line at each change: time, kind, listeners
    #[arg(help_heading = WHITENED, long)]
    follow: bool,
    /// M, window of the running means in steps [default: 50]
    #[arg(help_heading = PAPER, long, value_name = "M")]
    window: Option<usize>,
    /// μ, step size of the gradient updates [default: 0.1]
    #[arg(help_heading = PAPER, long, value_name = "μ", allow_negative_numbers = true)]
    learning_rate: Option<f64>,
    /// W, steps averaged per update [default: 1]
    #[arg(help_heading = PAPER, long, value_name = "W")]
    batch: Option<usize>,
    /// α, L1 penalty of the weights [default: 0]
    #[arg(help_heading = PAPER, long, value_name = "α", allow_negative_numbers = true)]
    sparsity: Option<f64>,
    /// P, passes over the beliefs [default: 1]
    #[arg(help_heading = PAPER, long, value_name = "P")]
    passes: Option<usize>,
    /// Choose M, μ and α by the forecast error on the last fifth of the steps
    #[arg(help_heading = PAPER, long, conflicts_with_all = ["window", "learning_rate", "sparsity", "resume"])]
    tune: bool,
    /// Take the evidence L̄ from this truth or model instead of estimating it
    #[arg(help_heading = PAPER, long, value_name = "TRUTH", conflicts_with = "resume")]
    evidence: Option<PathBuf>,
    /// Start from the weights of this model instead of uniform ones
    #[arg(help_heading = PAPER, long, value_name = "MODEL", conflicts_with = "resume")]
    initial: Option<PathBuf>,
    /// Save the state of the learner here every 30 seconds, at the end, and on Ctrl-C
    #[arg(help_heading = PAPER, long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Continue from a checkpoint, with the same beliefs or a continuation of them
    #[arg(help_heading = PAPER, long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Write the squared error of the weights against --truth as CSV step,error
    #[arg(help_heading = PAPER, long, value_name = "FILE", requires = "truth")]
    trace: Option<PathBuf>,
    /// Steps between two rows of the trace [default: at most 2000 rows]
    #[arg(help_heading = PAPER, long, value_name = "STEPS", requires = "trace", value_parser = clap::value_parser!(u64).range(1..))]
    trace_every: Option<u64>,
    /// The truth for --trace
    #[arg(help_heading = PAPER, long, value_name = "TRUTH", requires = "trace")]
    truth: Option<PathBuf>,
    /// Factor of μ after each batch; the scripts use 0.9996 for one network [default: 1]
    #[arg(help_heading = RELEASED, long, value_name = "FACTOR", allow_negative_numbers = true)]
    decay: Option<f64>,
    /// Seed of the chains of the posterior [default: 21], or of the initial weights of as-released [default: 45]
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MethodName {
    /// Feasible generalised least squares: exact from a few dozen steps where the data allow it
    Whitened,
    /// For noise and silence: a Kalman smoother estimates the beliefs together with the network
    StateSpace,
    /// The paper's algorithm (graph social learning), stochastic gradient descent
    Gsl,
    /// The authors' released Twitter scripts with their deviations from the paper, to check published results
    AsReleased,
}

/// Warns of rounded beliefs and of silence that was filled.
fn warn_of_input(
    beliefs: &LoadedBeliefs,
    filled: &FilledPanel<'_>,
    method: MethodName,
    terminal: &Terminal,
    warnings: &mut Vec<String>,
) {
    // Rounding matters for certificates only.
    let coarse = beliefs.grain.warning().filter(|_| method == MethodName::Whitened);
    coarse.into_iter().chain(filled.warning.clone()).for_each(|text| terminal.keep(warnings, text));
}

fn parse_precision(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok().filter(|value| *value > 0.0 && *value < 1.0);
    value.ok_or_else(|| "must be a number between 0 and 1, exclusive".into())
}

impl LearnArgs {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<(), CliError> {
        self.check_method(self.method)?;
        self.check_paths()?;
        let mut warnings = Vec::new();
        if matches!(self.method, None | Some(MethodName::StateSpace)) {
            self.fit.check(self.graph.is_some())?;
        }
        // Options of a named method are checked before a long file is read.
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
        let (agents, steps) = (count(beliefs.panel.agents(), "agent"), count(beliefs.panel.steps(), "step"));
        let within = match beliefs.panel.episodes().count() {
            1 => String::new(),
            episodes => format!(" in {}", count(episodes, "episode")),
        };
        terminal.remark(&format!("learning from {agents} over {steps}{within}"));
        let (mut model, settings, trace) = match method {
            MethodName::Gsl => {
                let params = match paper {
                    Some(params) => params,
                    None => self.paper_params(resumed.as_ref())?,
                };
                let filled = fit::fill(&beliefs.panel);
                warn_of_input(&beliefs, &filled, method, terminal, &mut warnings);
                let learned = self.paper(&filled.panel, &params, resumed, &mut warnings, terminal)?;
                (learned.model, learned.settings, learned.trace)
            }
            MethodName::AsReleased => {
                let params = match released {
                    Some(params) => params,
                    None => self.released_params()?,
                };
                let filled = fit::fill(&beliefs.panel);
                warn_of_input(&beliefs, &filled, method, terminal, &mut warnings);
                let alive = terminal.spinner("learning as released");
                let model = as_released(&filled.panel, &params).map_err(CliError::about(self.source()))?;
                drop(alive);
                (model, Map::new(), None)
            }
            MethodName::StateSpace => {
                let support = self.support(&beliefs.panel, terminal)?;
                let common = self.fit.groups(beliefs.panel.roster(), terminal)?;
                let seed = self.seed.unwrap_or(SamplingParams::default().seed);
                let params = StateSpaceParams { support, common, ..self.fit.params(seed) };
                terminal.limit_sampling(self.fit.minutes, true);
                let method = Method::StateSpace(params);
                let model = terminal
                    .watched((!self.fit.sketch).then_some(QUICKER), |progress| {
                        fit::fit(&beliefs.panel, &method, progress)
                    })
                    .map_err(CliError::about(self.source()))?;
                let mut settings = Map::new();
                let selection = model.diagnostics.smoothing.as_ref().and_then(|smoothing| smoothing.selection);
                if let Some(selection) = selection {
                    settings.insert("choice".into(), selection.to_string().into());
                }
                (model, settings, None)
            }
            MethodName::Whitened => {
                let filled = fit::fill(&beliefs.panel);
                warn_of_input(&beliefs, &filled, method, terminal, &mut warnings);
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

    /// Refuses options that the method does not use.
    fn check_method(&self, method: Option<MethodName>) -> Result<(), CliError> {
        use MethodName::{AsReleased, Gsl, StateSpace, Whitened};
        let options: [(bool, &str, &[MethodName]); 28] = [
            (self.graph.is_some(), "--graph", &[Whitened, StateSpace, Gsl]),
            (self.fit.constraint.is_some(), "--constraint", &[Whitened, StateSpace, Gsl]),
            (self.fit.ridge.is_some(), "--ridge", &[Whitened, StateSpace]),
            (self.fit.weights.is_some(), "--weights", &[StateSpace]),
            (self.fit.shrinkage.is_some(), "--shrinkage", &[StateSpace]),
            (self.fit.rounds.is_some(), "--rounds", &[StateSpace]),
            (self.fit.common.is_some(), "--common", &[StateSpace]),
            (self.fit.fit.is_some(), "--fit", &[StateSpace]),
            (self.fit.draws.is_some(), "--draws", &[StateSpace]),
            (self.fit.chains.is_some(), "--chains", &[StateSpace]),
            (self.fit.minutes.is_some(), "--minutes", &[StateSpace]),
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
            (self.seed.is_some(), "--seed", &[AsReleased, StateSpace]),
        ];
        // Without a named method the beliefs decide between these two.
        let allowed = method.map_or(vec![Whitened, StateSpace], |method| vec![method]);
        let foreign =
            options.iter().find(|(given, _, methods)| *given && !methods.iter().any(|method| allowed.contains(method)));
        let Some((_, option, methods)) = foreign else { return Ok(()) };
        let name =
            |method: &MethodName| method.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
        let names: Vec<String> = methods.iter().map(name).collect();
        Err(CliError::usage(
            format!("{option} is an option of --method {}", names.join(" or ")),
            format!("leave it out, or choose that method: --method {} does not use it", name(&allowed[0])),
        ))
    }

    fn released_params(&self) -> Result<ReleasedParams, CliError> {
        let Some(adaptation) = self.number_for_adaptation() else {
            return Err(CliError::usage(
                "--method as-released cannot estimate δ and needs a number for --adaptation",
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

    /// The named method; otherwise the one that the options, then the beliefs, require.
    fn method_for(&self, panel: &Panel) -> MethodName {
        match self.method {
            Some(method) => method,
            None if self.fit.has_state_space_option() => MethodName::StateSpace,
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
        params.support = self.support(&filled.panel, terminal)?;
        if self.tracks() {
            return self.tracked(filled, params, terminal);
        }
        terminal.watched(None, |_| fit::whitened(filled, &params)).map_err(CliError::about(self.source()))
    }

    fn memory(&self) -> Memory {
        match (self.forget, self.recent) {
            (Some(factor), _) => Memory::Forget(factor),
            (None, Some(steps)) => Memory::Recent(steps),
            (None, None) => Memory::All,
        }
    }

    /// Whether changes of the network are tracked.
    fn tracks(&self) -> bool {
        self.follow || self.forget.is_some() || self.recent.is_some()
    }

    /// Learns frame by frame, and reports changes as they are detected.
    fn tracked(
        &self,
        filled: &FilledPanel<'_>,
        params: WhitenedParams,
        terminal: &Terminal,
    ) -> Result<Model, CliError> {
        let panel = &filled.panel;
        fit::one_series(panel).map_err(CliError::about(self.source()))?;
        let params = TrackParams { whitened: params, memory: self.memory(), window: None };
        let mut tracker = Tracker::new(panel.roster().clone(), params)?;
        let mut progress = terminal.bar("tracking", panel.steps() as u64);
        for step in 0..panel.steps() {
            let update = tracker.observe(&filled.frame(step)?).map_err(CliError::about(self.source()))?;
            for change in &update.changes {
                self.tell(change, panel, terminal)?;
            }
            progress.at(step as u64 + 1);
        }
        drop(progress);
        for change in tracker.flush() {
            self.tell(&change, panel, terminal)?;
        }
        let mut model = fit::tracked(filled, &tracker).map_err(CliError::about(self.source()))?;
        name_times(&mut model, panel.times());
        Ok(model)
    }

    fn tell(&self, change: &DetectedChange, panel: &Panel, terminal: &Terminal) -> Result<(), CliError> {
        if !self.follow {
            return Ok(());
        }
        let time = |step: usize| match panel.times() {
            Times::Steps(steps) => Value::from(steps[step]),
            Times::Instants { .. } => Value::from(show_time(panel.times(), step)),
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

    /// Checks before learning that the outputs can be written, and that no file is both read and written.
    fn check_paths(&self) -> Result<(), CliError> {
        let outputs = [Some(&self.out), self.trace.as_ref(), self.checkpoint.as_ref()];
        let inputs = [self.graph.as_ref(), self.evidence.as_ref(), self.initial.as_ref(), self.truth.as_ref()];
        check(inputs.into_iter().flatten().chain(&self.beliefs), outputs.into_iter().flatten())
    }

    fn number_for_adaptation(&self) -> Option<f64> {
        self.fit.number_for_adaptation()
    }

    /// The beliefs file that messages name: the first.
    fn source(&self) -> &Path {
        &self.beliefs[0]
    }

    /// Reads the beliefs, and warns where they had to be changed.
    fn read(&self, terminal: &Terminal, warnings: &mut Vec<String>) -> Result<LoadedBeliefs, CliError> {
        let names: Vec<String> = self.beliefs.iter().map(|path| path.display().to_string()).collect();
        terminal.remark(&format!("reading {}", names.join(", ")));
        let alive = terminal.spinner("reading");
        let mut beliefs = self.numbers.read(&self.beliefs)?;
        drop(alive);
        beliefs.raised().into_iter().for_each(|text| terminal.keep(warnings, text));
        let Some(graph) = &self.graph else { return Ok(beliefs) };
        let (panel, warning) = on_graph(beliefs.panel, graph)?;
        warning.into_iter().for_each(|text| terminal.keep(warnings, text));
        beliefs.panel = panel;
        Ok(beliefs)
    }

    /// The speakers each listener may listen to, where a graph is given.
    fn support(&self, panel: &Panel, terminal: &Terminal) -> Result<Option<Vec<Vec<usize>>>, CliError> {
        let Some(path) = &self.graph else { return Ok(None) };
        Ok(Some(read_graph(path, panel.roster(), terminal)?.speakers().to_vec()))
    }

    fn print(&self, model: &Model, settings: Map<String, Value>, terminal: &Terminal) -> Result<(), CliError> {
        let summary = LearnSummary::new(model, settings, self.precision, &self.out)?;
        if self.follow {
            // Standard output holds the changes only.
            terminal.remark(&wrapped(&summary.text()));
            return Ok(());
        }
        match self.format {
            Format::Json => terminal.json(&summary),
            Format::Csv => terminal.result(&summary.csv(terminal.csv_text())),
            Format::Table => terminal.text(&summary.text()),
        }
    }
}
