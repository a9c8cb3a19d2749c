//! The paper's learner on a file: parameters, tuning, the learning loop with trace and checkpoints.

use super::LearnArgs;
use crate::error::CliError;
use crate::interrupt::{self, Polling};
use crate::terminal::{Terminal, count, number, table};
use headwater::fit;
use headwater::learn::forecast::Forecast;
use headwater::learn::gsl::{Constraint, Gsl, GslParams};
use headwater::{Model, Panel};
use headwater_files::{AtomicFile, read_known};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Rows of a trace by default.
const TRACE_ROWS: usize = 2000;

/// Frames between two checks of the clock and of Ctrl-C.
const FRAMES_PER_CHECK: usize = 4096;

/// Time between two checkpoints.
const CHECKPOINT_PERIOD: Duration = Duration::from_secs(30);

const CHECKPOINT_FORMAT: &str = "headwater-checkpoint/1";

/// The saved state of a learner, with its forecasts so far.
#[derive(Serialize, Deserialize)]
pub(super) struct Checkpoint {
    format: String,
    learner: Gsl,
    forecast: Forecast,
}

/// The model, its settings for the summary, and a trace to be committed with it.
pub(super) struct Learned {
    pub(super) model: Model,
    pub(super) settings: Map<String, Value>,
    pub(super) trace: Option<AtomicFile>,
}

impl LearnArgs {
    pub(super) fn paper_params(&self, resumed: Option<&Checkpoint>) -> Result<GslParams, CliError> {
        let adaptation = match (self.number_for_adaptation(), resumed) {
            (Some(value), _) => value,
            (None, Some(checkpoint)) if self.fit.adaptation.is_none() => checkpoint.learner.params().adaptation,
            (None, _) => {
                return Err(CliError::usage(
                    "--method gsl cannot estimate δ and needs a number for --adaptation",
                    "the paper uses --adaptation 0.05 for simulations and --adaptation 0.0001 for posts",
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
            constraint: self.fit.constraint.map_or(kept.constraint, Constraint::from),
            ..GslParams::default()
        };
        if resumed.is_some_and(|checkpoint| *checkpoint.learner.params() != params) {
            return Err(CliError::usage(
                "the options differ from those the checkpoint was made with",
                format!("leave them out: --resume uses those of the checkpoint ({kept:?})"),
            ));
        }
        // Checked before a long file is read.
        params.check()?;
        Ok(params)
    }

    pub(super) fn paper(
        &self,
        panel: &Panel,
        params: &GslParams,
        resumed: Option<Checkpoint>,
        warnings: &mut Vec<String>,
        terminal: &Terminal,
    ) -> Result<Learned, CliError> {
        let about = CliError::about_gsl(self.source());
        let (mut learner, mut forecast) = match resumed {
            Some(checkpoint) => continued(checkpoint, panel)?,
            None => (self.learner(panel, params, terminal)?, Forecast::default()),
        };
        if self.tune {
            learner = tuned(&learner, panel, terminal).map_err(&about)?;
        }
        let params = learner.params().clone();
        let (bound, warning) = fit::stability(panel, &learner).map_err(&about)?;
        // Shown before the long part.
        warning.into_iter().for_each(|warning| terminal.keep(warnings, warning));
        let trace = self.go_through(panel, &mut learner, &mut forecast, terminal)?;
        let model = terminal.watched(None, |_| fit::finish(panel, learner, forecast, bound)).map_err(&about)?;
        let settings = json!({
            "window": params.window,
            "learning_rate": params.learning_rate,
            "batch": params.batch,
            "sparsity": params.sparsity,
            "passes": params.passes,
            "stability_bound": bound,
        });
        let settings = settings.as_object().cloned().unwrap_or_default();
        Ok(Learned { model, settings, trace })
    }

    fn learner(&self, panel: &Panel, params: &GslParams, terminal: &Terminal) -> Result<Gsl, CliError> {
        let mut learner = Gsl::new(panel.roster().clone(), params.clone())?;
        if let Some(support) = self.support(panel, terminal)? {
            learner = learner.within(support)?;
        }
        let known = |path: &Path| read_known(path)?.aligned(panel.roster()).map_err(CliError::about(path));
        if let Some(path) = &self.initial {
            let initial = known(path)?.combination.ok_or_else(|| lacks(path, "combination"))?;
            learner = learner.starting_from(&initial)?;
        }
        if let Some(path) = &self.evidence {
            learner = learner.knowing(known(path)?.evidence.ok_or_else(|| lacks(path, "evidence"))?)?;
        }
        Ok(learner)
    }

    /// Learns to the end of the last pass; returns the complete trace, not yet committed.
    fn go_through(
        &self,
        panel: &Panel,
        learner: &mut Gsl,
        forecast: &mut Forecast,
        terminal: &Terminal,
    ) -> Result<Option<AtomicFile>, CliError> {
        let mut trace = self.trace.as_deref().map(|path| self.open_trace(path, panel)).transpose()?;
        let total = panel.steps() * learner.params().passes;
        let every = self.trace_every.map_or(total.div_ceil(TRACE_ROWS), |every| every as usize);
        let limit = if trace.is_some() { every.min(FRAMES_PER_CHECK) } else { FRAMES_PER_CHECK };
        let polling = self.checkpoint.as_ref().map(|_| Polling::new());
        let mut progress = terminal.bar("learning", total as u64);
        let mut saved = Instant::now();
        let mut next_row = 0;
        while let Some(step) = learner.advance(panel, limit).map_err(CliError::about_gsl(self.source()))? {
            forecast.add(&step.forecast);
            let done = step.pass * panel.steps() + step.seen;
            progress.at(done as u64);
            if let Some((draft, truth)) = &mut trace
                && (done > next_row || done == total)
            {
                writeln!(draft, "{},{}", done - 1, learner.distance(truth)).map_err(cannot_write(draft.path()))?;
                next_row = done - 1 + every;
            }
            let Some(path) = &self.checkpoint else { continue };
            let stop = interrupt::requested();
            if stop || saved.elapsed() > CHECKPOINT_PERIOD {
                write_checkpoint(path, learner, forecast)?;
                saved = Instant::now();
            }
            if stop {
                let remark = format!("continue with --resume {}", path.display());
                return Err(CliError::Interrupted { remark: Some(remark) });
            }
        }
        drop(polling);
        if let Some(path) = &self.checkpoint {
            write_checkpoint(path, learner, forecast)?;
        }
        Ok(trace.map(|(draft, _)| draft))
    }

    fn open_trace(&self, path: &Path, panel: &Panel) -> Result<(AtomicFile, Vec<f64>), CliError> {
        let truth = self
            .truth
            .as_ref()
            .ok_or_else(|| CliError::usage("--trace needs --truth", "name the truth.json of the simulation"))?;
        let known = read_known(truth)?.aligned(panel.roster()).map_err(CliError::about(truth))?;
        let combination = known.combination.ok_or_else(|| lacks(truth, "combination"))?;
        let mut draft = AtomicFile::create(path)?;
        writeln!(draft, "step,error").map_err(cannot_write(path))?;
        Ok((draft, combination.to_columns()))
    }
}

/// A learner restored from a checkpoint. Forecasts are evaluated over the second half of the beliefs; they restart where the
/// learner stopped before that half because the beliefs have grown.
fn continued(checkpoint: Checkpoint, panel: &Panel) -> Result<(Gsl, Forecast), CliError> {
    if !checkpoint.learner.remembers(panel) {
        return Err(CliError::Data {
            message: "the checkpoint was made with other beliefs".into(),
            hint: Some("resume with the same beliefs, or a continuation of them".into()),
        });
    }
    let (seen, _) = checkpoint.learner.position();
    let forecast = if seen <= panel.steps() / 2 { Forecast::default() } else { checkpoint.forecast };
    Ok((checkpoint.learner, forecast))
}

/// A learner with the parameters of the smallest forecast error; lists the best five.
fn tuned(learner: &Gsl, panel: &Panel, terminal: &Terminal) -> Result<Gsl, headwater::Error> {
    let mut tried = terminal.watched(None, |_| fit::tune(panel, learner))?;
    let rows = tried.iter().take(5).map(|(params, error)| {
        let settings = [params.window.to_string(), number(params.learning_rate), number(params.sparsity)];
        settings.into_iter().chain([number(error / tried[0].1)]).collect()
    });
    let shown = table(&["window", "learning rate", "sparsity", "error / best"], 0, rows.collect());
    terminal.remark(&format!(
        "tuned over {}; the five with the smallest forecast error:\n{shown}",
        count(tried.len(), "setting")
    ));
    learner.afresh(tried.swap_remove(0).0)
}

fn lacks(path: &Path, key: &str) -> CliError {
    CliError::data(format!("{}: has no {key:?}", path.display()))
}

fn cannot_write(path: &Path) -> impl FnOnce(std::io::Error) -> CliError {
    let path = path.to_owned();
    move |error| CliError::data(format!("{}: cannot write: {error}", path.display()))
}

pub(super) fn read_checkpoint(path: &Path) -> Result<Checkpoint, CliError> {
    let say = |problem: String| CliError::data(format!("{}: {problem}", path.display()));
    let file = std::fs::File::open(path).map_err(|error| say(format!("cannot read: {error}")))?;
    let checkpoint: Checkpoint = serde_json::from_reader(std::io::BufReader::new(file))
        .map_err(|error| say(format!("is not a Headwater checkpoint: {error}")))?;
    if checkpoint.format != CHECKPOINT_FORMAT {
        return Err(say(format!("has format {:?}; this program reads {CHECKPOINT_FORMAT:?}", checkpoint.format)));
    }
    if !checkpoint.learner.is_sound() {
        return Err(say("is damaged: its parts are inconsistent".into()));
    }
    Ok(checkpoint)
}

fn write_checkpoint(path: &Path, learner: &Gsl, forecast: &Forecast) -> Result<(), CliError> {
    /// What [`Checkpoint`] reads back, without a copy of the learner.
    #[derive(Serialize)]
    struct Borrowed<'a> {
        format: &'a str,
        learner: &'a Gsl,
        forecast: &'a Forecast,
    }
    let mut draft = AtomicFile::create(path)?;
    serde_json::to_writer(&mut draft, &Borrowed { format: CHECKPOINT_FORMAT, learner, forecast })
        .map_err(|error| CliError::data(format!("{}: cannot write: {error}", path.display())))?;
    Ok(draft.commit()?)
}
