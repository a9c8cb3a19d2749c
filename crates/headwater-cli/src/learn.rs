//! `headwater learn`: beliefs in, a model out.

use crate::failure::Failure;
use crate::interrupt::{self, Polling};
use crate::rank::judged;
use crate::screen::{Format, Screen, count, csv, number, percent, short, table};
use clap::{Args, ValueEnum};
use headwater::confidence::{self, Forecast, Verdict};
use headwater::learn::gsl::{self, Constraint, Gsl, GslParams};
use headwater::{Model, Panel, influence};
use headwater_files::{Draft, Edges, read_beliefs, read_edges, read_known, write_model};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Up to this many agents the ranking is shown along with the model.
const RANKED_AGENTS: usize = 1000;

/// Rows of a trace unless asked otherwise.
const TRACE_ROWS: usize = 2000;

/// Frames between two looks at the clock and at Ctrl-C.
const FRAMES_PER_LOOK: usize = 4096;

/// Time between two checkpoints.
const CHECKPOINT_PERIOD: Duration = Duration::from_secs(30);

const CHECKPOINT_FORMAT: &str = "headwater-checkpoint/1";

/// Learns who listens to whom, and how well informed each one is, from public beliefs
#[derive(Debug, Args)]
#[command(
    after_help = "Example: headwater learn world/beliefs.parquet --out model.json --method gsl --adaptation 0.05 --window 50"
)]
pub(crate) struct Learn {
    /// Beliefs: .csv, .parquet or .npy; - is CSV on standard input
    beliefs: PathBuf,
    /// Where to write the model: .json, or .npz, which is compact and fast
    #[arg(long, value_name = "MODEL")]
    out: PathBuf,
    /// The learner
    #[arg(long, value_enum, default_value = "gsl")]
    method: MethodName,
    /// The numbers are log-ratios log ψ(θ_0)/ψ(θ_j) instead of probabilities
    #[arg(long)]
    log_ratios: bool,
    /// δ, the weight of private evidence in a belief: a number, or auto where the method can estimate it
    #[arg(long, value_name = "auto|δ", value_parser = parse_adaptation, allow_hyphen_values = true)]
    adaptation: Option<Adaptation>,
    /// Only these edges (and self-weights) may be non-zero: CSV source,target
    #[arg(long, value_name = "EDGES")]
    graph: Option<PathBuf>,
    /// What the weights a listener gives must satisfy [default: free for gsl]
    #[arg(long, value_enum)]
    constraint: Option<ConstraintName>,
    /// M, steps in the running means [default: 50]
    #[arg(long, value_name = "M")]
    window: Option<usize>,
    /// μ [default: 0.1]
    #[arg(long, value_name = "μ", allow_negative_numbers = true)]
    learning_rate: Option<f64>,
    /// W, steps averaged into one update [default: 1]
    #[arg(long, value_name = "W")]
    batch: Option<usize>,
    /// α, pulls small weights to zero [default: 0]
    #[arg(long, value_name = "α", allow_negative_numbers = true)]
    sparsity: Option<f64>,
    /// How often to go through the beliefs [default: 1]
    #[arg(long, value_name = "P")]
    passes: Option<usize>,
    /// Choose M, μ and α by the forecast error on the last fifth of the steps
    #[arg(long, conflicts_with_all = ["window", "learning_rate", "sparsity", "resume"])]
    tune: bool,
    /// Take the evidence L̄ as known from this truth or model
    #[arg(long, value_name = "TRUTH", conflicts_with = "resume")]
    evidence: Option<PathBuf>,
    /// Start from the weights of this model instead of uniform ones
    #[arg(long, value_name = "MODEL", conflicts_with = "resume")]
    initial: Option<PathBuf>,
    /// Save the state of the learner here now and then, at the end, and on Ctrl-C
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Continue from a checkpoint, on the same beliefs or longer ones
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Write the squared error against --truth as CSV step,error
    #[arg(long, value_name = "FILE", requires = "truth")]
    trace: Option<PathBuf>,
    /// Steps between two rows of the trace [default: at most 2000 rows]
    #[arg(long, value_name = "STEPS", requires = "trace", value_parser = clap::value_parser!(u64).range(1..))]
    trace_every: Option<u64>,
    /// The truth for --trace
    #[arg(long, value_name = "TRUTH", requires = "trace")]
    truth: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MethodName {
    /// The paper's stochastic gradient
    Gsl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ConstraintName {
    /// Not negative, and summing to one
    Simplex,
    /// Anything, as in the paper
    Free,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Adaptation {
    Auto,
    Value(f64),
}

fn parse_adaptation(text: &str) -> Result<Adaptation, String> {
    if text == "auto" {
        return Ok(Adaptation::Auto);
    }
    text.parse().map(Adaptation::Value).map_err(|_| "wanted a number, or auto".into())
}

/// A learner at rest, with the forecasts it has made.
#[derive(Serialize, Deserialize)]
struct Checkpoint {
    format: String,
    learner: Gsl,
    forecast: Forecast,
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Summary {
    verdict: Verdict,
    method: &'static str,
    agents: usize,
    hypotheses: usize,
    steps: usize,
    adaptation: f64,
    reference: String,
    truth: Option<String>,
    agreement: Option<f64>,
    window: usize,
    learning_rate: f64,
    batch: usize,
    sparsity: f64,
    passes: usize,
    stability_bound: f64,
    column_sum_spread: Option<f64>,
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
    pub(crate) fn run(self, screen: &mut Screen) -> Result<(), Failure> {
        let MethodName::Gsl = self.method;
        let resumed = self.resume.as_deref().map(read_checkpoint).transpose()?;
        let base = self.params(resumed.as_ref())?;
        // Wrong parameters are said before a long file is read.
        Gsl::new(headwater::Roster::numbered(2, 2)?, base.clone())?;
        let mut warnings = Vec::new();
        let panel = self.panel(screen, &mut warnings)?;
        let params = if self.tune { self.tuned(&panel, &base, screen)? } else { base };
        let bound = gsl::stability_bound(&panel, &params, self.evidence.is_some())?;
        if params.learning_rate > bound {
            warnings.push(format!(
                "learning rate {} is beyond the stability bound 2/((1−δ)²λ_max) = {}: the weights may grow without end",
                number(params.learning_rate),
                number(bound)
            ));
        }
        warnings.iter().for_each(|warning| screen.warn(warning));
        let (learner, mut forecast) = self.learn(&panel, self.learner(&panel, &params)?, resumed, screen)?;
        if params.passes > 1 {
            // Several passes leave nothing unseen, so the skill takes a second fit.
            screen.remark("measuring the forecast skill on the last fifth of the steps");
            forecast = gsl::held_out(&panel, self.learner(&panel, &params)?).unwrap_or_default();
        }
        let mut model = learner.finish(&panel, confidence::skill(&panel, &forecast))?;
        model.diagnostics.warnings = warnings;
        write_model(&self.out, &model)?;
        self.print(&model, &params, bound, screen)
    }

    fn params(&self, resumed: Option<&Checkpoint>) -> Result<GslParams, Failure> {
        let adaptation = match (self.adaptation, resumed) {
            (Some(Adaptation::Value(value)), _) => value,
            (None, Some(checkpoint)) => checkpoint.learner.params().adaptation,
            (None | Some(Adaptation::Auto), _) => {
                return Err(Failure::usage(
                    "--method gsl cannot estimate δ: it needs a number for --adaptation",
                    "the paper's simulations use --adaptation 0.05, its posts --adaptation 0.0001",
                ));
            }
        };
        let kept = resumed.map_or_else(GslParams::default, |checkpoint| checkpoint.learner.params().clone());
        let params = GslParams {
            adaptation,
            window: self.window.unwrap_or(kept.window),
            learning_rate: self.learning_rate.unwrap_or(kept.learning_rate),
            batch: self.batch.unwrap_or(kept.batch),
            sparsity: self.sparsity.unwrap_or(kept.sparsity),
            passes: self.passes.unwrap_or(kept.passes),
            constraint: match self.constraint {
                None => kept.constraint,
                Some(ConstraintName::Free) => Constraint::Free,
                Some(ConstraintName::Simplex) => Constraint::Simplex,
            },
        };
        if resumed.is_some_and(|checkpoint| *checkpoint.learner.params() != params) {
            return Err(Failure::usage(
                "the options differ from those the checkpoint was made with",
                format!("leave them out: --resume keeps them (it was made with {kept:?})"),
            ));
        }
        Ok(params)
    }

    /// Reads the beliefs and says what had to be done to them.
    fn panel(&self, screen: &Screen, warnings: &mut Vec<String>) -> Result<Panel, Failure> {
        screen.remark(&format!("reading {}", self.beliefs.display()));
        let beliefs = read_beliefs(&self.beliefs, self.log_ratios)?;
        if beliefs.zeros > 0 {
            warnings
                .push(format!("{} of {} probabilities were 0 and were raised to 1e-12", beliefs.zeros, beliefs.cells));
        }
        let (steps, agents) = (beliefs.panel.steps(), beliefs.panel.agents());
        let (panel, filled) = beliefs.panel.carry_forward();
        if filled > 0 {
            warnings.push(format!(
                "{filled} of {} beliefs are missing ({}); gsl repeats an agent's last opinion, which makes quiet agents look stubborn",
                steps * agents,
                percent(filled as f64 / (steps * agents) as f64)
            ));
        }
        Ok(panel)
    }

    fn learner(&self, panel: &Panel, params: &GslParams) -> Result<Gsl, Failure> {
        let mut learner = Gsl::new(panel.roster().clone(), params.clone())?;
        if let Some(path) = &self.graph {
            learner = learner.within(support(&read_edges(path)?, panel)?)?;
        }
        if let Some(path) = &self.initial {
            let initial = read_known(path)?.aligned(panel.roster())?.combination;
            learner = learner.starting_from(&initial.ok_or_else(|| lacks(path, "combination"))?)?;
        }
        if let Some(path) = &self.evidence {
            let evidence = read_known(path)?.aligned(panel.roster())?.evidence;
            learner = learner.knowing(evidence.ok_or_else(|| lacks(path, "evidence"))?)?;
        }
        Ok(learner)
    }

    /// Tries settings on the first four fifths of the beliefs and keeps the one that forecasts the rest best: window
    /// and learning rate first, then sparsity.
    fn tuned(&self, panel: &Panel, base: &GslParams, screen: &Screen) -> Result<GslParams, Failure> {
        let mut tried = self.try_out(panel, &gsl::candidates(panel, base, self.evidence.is_some())?, screen);
        let Some((best, _)) = tried.first() else {
            return Err(Failure::data("no setting could be tried: the beliefs are too short to hold out a fifth"));
        };
        tried.extend(self.try_out(panel, &gsl::sparser(best, panel.agents()), screen));
        tried.sort_by(|a, b| a.1.total_cmp(&b.1));
        let rows = tried.iter().take(5).map(|(params, error)| {
            let settings = [params.window.to_string(), number(params.learning_rate), number(params.sparsity)];
            settings.into_iter().chain([number(error / tried[0].1)]).collect()
        });
        let shown = table(&["window", "learning rate", "sparsity", "error / best"], 0, rows.collect());
        screen.remark(&format!("tuned over {}; the best five:\n{shown}", count(tried.len(), "setting")));
        Ok(tried.swap_remove(0).0)
    }

    /// Held-out error of each setting that can be learned at all, best first.
    fn try_out(&self, panel: &Panel, candidates: &[GslParams], screen: &Screen) -> Vec<(GslParams, f64)> {
        let mut progress = screen.progress("tuning", candidates.len() as u64);
        let error = |params: &GslParams| {
            let learner = self.learner(panel, params).ok()?;
            gsl::held_out(panel, learner).ok().map(|forecast| forecast.error)
        };
        let mut tried = Vec::new();
        for few in candidates.chunks(rayon::current_num_threads()) {
            let errors: Vec<Option<f64>> = few.par_iter().map(error).collect();
            tried.extend(few.iter().cloned().zip(errors).filter_map(|(params, error)| Some((params, error?))));
            progress.at(tried.len() as u64);
        }
        tried.sort_by(|a, b| a.1.total_cmp(&b.1));
        tried
    }

    fn learn(
        &self,
        panel: &Panel,
        fresh: Gsl,
        resumed: Option<Checkpoint>,
        screen: &Screen,
    ) -> Result<(Gsl, Forecast), Failure> {
        let mut forecast = Forecast { from: panel.steps() / 2, ..Forecast::default() };
        let mut learner = fresh;
        if let Some(checkpoint) = resumed {
            if !checkpoint.learner.remembers(panel) {
                return Err(Failure::Data {
                    message: "the checkpoint was made on other beliefs than these".into(),
                    hint: Some("resume with the file it was started on, or one that continues it".into()),
                });
            }
            (learner, forecast) = (checkpoint.learner, checkpoint.forecast);
        }
        let mut trace = self.trace.as_deref().map(|path| self.open_trace(path, panel)).transpose()?;
        let total = panel.steps() * learner.params().passes;
        let every = self.trace_every.map_or(total.div_ceil(TRACE_ROWS), |every| every as usize);
        let limit = if trace.is_some() { every.min(FRAMES_PER_LOOK) } else { FRAMES_PER_LOOK };
        let polling = self.checkpoint.as_ref().map(|_| Polling::new());
        let mut progress = screen.progress("learning", total as u64);
        let mut saved = Instant::now();
        let mut next_row = 0;
        while let Some(step) = learner.advance(panel, limit)? {
            forecast.add(&step.forecast);
            let done = step.pass * panel.steps() + step.seen;
            progress.at(done as u64);
            if let Some((draft, truth)) = &mut trace
                && (done > next_row || done == total)
            {
                writeln!(draft, "{},{}", done - 1, learner.distance(truth))
                    .map_err(|error| Failure::data(format!("{}: cannot write: {error}", draft.path().display())))?;
                next_row = done - 1 + every;
            }
            if let Some(path) = &self.checkpoint {
                let stop = interrupt::requested();
                if stop || saved.elapsed() > CHECKPOINT_PERIOD {
                    write_checkpoint(path, &learner, &forecast)?;
                    saved = Instant::now();
                }
                if stop {
                    let remark = format!("continue with --resume {}", path.display());
                    return Err(Failure::Interrupted { remark: Some(remark) });
                }
            }
        }
        drop(polling);
        if let Some(path) = &self.checkpoint {
            write_checkpoint(path, &learner, &forecast)?;
        }
        if let Some((draft, _)) = trace {
            draft.commit()?;
        }
        Ok((learner, forecast))
    }

    fn open_trace(&self, path: &Path, panel: &Panel) -> Result<(Draft, Vec<f64>), Failure> {
        let truth =
            self.truth.as_ref().ok_or_else(|| Failure::usage("--trace needs --truth", "give the truth.json"))?;
        let known = read_known(truth)?.aligned(panel.roster())?;
        let combination = known.combination.ok_or_else(|| lacks(truth, "combination"))?;
        let mut draft = Draft::create(path)?;
        writeln!(draft, "step,error")
            .map_err(|error| Failure::data(format!("{}: cannot write: {error}", path.display())))?;
        Ok((draft, combination.to_columns()))
    }

    fn print(&self, model: &Model, params: &GslParams, bound: f64, screen: &mut Screen) -> Result<(), Failure> {
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
        let summary = Summary {
            verdict: judged(model),
            method: model.method.name(),
            agents: model.roster.agents().len(),
            hypotheses: model.roster.hypotheses().len(),
            steps: model.diagnostics.steps.unwrap_or(0),
            adaptation: model.adaptation,
            reference: model.roster.reference().to_owned(),
            truth: model.truth.map(|truth| model.roster.hypotheses()[truth.hypothesis].clone()),
            agreement: model.truth.map(|truth| truth.agreement),
            window: params.window,
            learning_rate: params.learning_rate,
            batch: params.batch,
            sparsity: params.sparsity,
            passes: params.passes,
            stability_bound: bound,
            column_sum_spread: model.diagnostics.column_sum_spread,
            warnings: model.diagnostics.warnings.clone(),
            top,
            model: self.out.display().to_string(),
        };
        match self.format {
            Format::Json => screen.json(&summary),
            Format::Csv => screen.result(&summary.csv()),
            Format::Table => screen.result(&summary.text()),
        }
    }
}

impl Summary {
    fn text(&self) -> String {
        let mut text = format!("{}\n\n", self.verdict.text);
        text.push_str(&format!(
            "{} and {} hypotheses over {}, learned by {} (δ = {}, M = {}, μ = {}).\n",
            count(self.agents, "agent"),
            self.hypotheses,
            count(self.steps, "step"),
            self.method,
            number(self.adaptation),
            self.window,
            number(self.learning_rate)
        ));
        if let (Some(truth), Some(agreement)) = (&self.truth, self.agreement) {
            text.push_str(&format!(
                "The network settles on {truth:?}; {} of the agents agree. Reference: {:?}.\n",
                percent(agreement),
                self.reference
            ));
        }
        if let Some(spread) = self.column_sum_spread {
            let sums = "Weights given by a listener should sum to 1";
            text.push_str(&format!("{sums}; across listeners the sums differ by up to {}.\n", number(spread)));
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
        let rows = [
            ("supported", self.verdict.supported.to_string()),
            ("verdict", self.verdict.text.clone()),
            ("method", self.method.to_owned()),
            ("agents", self.agents.to_string()),
            ("hypotheses", self.hypotheses.to_string()),
            ("steps", self.steps.to_string()),
            ("adaptation", self.adaptation.to_string()),
            ("reference", self.reference.clone()),
            ("truth", self.truth.clone().unwrap_or_default()),
            ("agreement", self.agreement.map_or(String::new(), |agreement| agreement.to_string())),
            ("window", self.window.to_string()),
            ("learning_rate", self.learning_rate.to_string()),
            ("batch", self.batch.to_string()),
            ("sparsity", self.sparsity.to_string()),
            ("passes", self.passes.to_string()),
            ("stability_bound", self.stability_bound.to_string()),
            ("model", self.model.clone()),
        ];
        csv(&["key", "value"], rows.into_iter().map(|(key, value)| vec![key.to_owned(), value]).collect())
    }
}

fn lacks(path: &Path, key: &str) -> Failure {
    Failure::data(format!("{}: has no {key:?}", path.display()))
}

fn support(edges: &Edges, panel: &Panel) -> Result<Vec<Vec<usize>>, Failure> {
    Ok(edges.graph(panel.roster())?.speakers().to_vec())
}

fn read_checkpoint(path: &Path) -> Result<Checkpoint, Failure> {
    let say = |problem: String| Failure::data(format!("{}: {problem}", path.display()));
    let file = std::fs::File::open(path).map_err(|error| say(format!("cannot read: {error}")))?;
    let checkpoint: Checkpoint = serde_json::from_reader(std::io::BufReader::new(file))
        .map_err(|error| say(format!("is not a checkpoint of this program: {error}")))?;
    if checkpoint.format != CHECKPOINT_FORMAT {
        return Err(say(format!("has format {:?}; this program reads {CHECKPOINT_FORMAT:?}", checkpoint.format)));
    }
    Ok(checkpoint)
}

fn write_checkpoint(path: &Path, learner: &Gsl, forecast: &Forecast) -> Result<(), Failure> {
    let checkpoint = Checkpoint { format: CHECKPOINT_FORMAT.into(), learner: learner.clone(), forecast: *forecast };
    let mut draft = Draft::create(path)?;
    serde_json::to_writer(&mut draft, &checkpoint)
        .map_err(|error| Failure::data(format!("{}: cannot write: {error}", path.display())))?;
    Ok(draft.commit()?)
}
