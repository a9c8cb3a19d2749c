//! The page: claim by claim, what the paper says and what was found, with the figures.

use super::{Experiment, Headline};
use crate::error::CliError;
use crate::output::{create, write};
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "# Replication

What the paper *Discovering Influencers in Opinion Formation over Social Graphs* says, claim by claim, beside what the authors'
released files hold, what its formulas give when followed to the letter, what the authors' released procedure gives, and what
our learner gives on the same data. Written by `headwater reproduce`, not by hand; where we had to choose, `docs/reference/paper-notes.md`
says what and why. A dash means that there is nothing to compare.

";

/// Writes the page, and the figures it shows into a folder of its name beside it.
pub(super) fn write_page(path: &Path, out: &Path, headlines: &[(&Experiment, Headline)]) -> Result<(), CliError> {
    let stem = path.file_stem().map_or("replication".into(), |stem| stem.to_string_lossy().into_owned());
    let above = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    // Beside the figures the page may point at them; elsewhere it takes them along.
    let beside = above.canonicalize().ok() == out.canonicalize().ok();
    let mut text = HEAD.to_owned();
    let quick = headlines.iter().any(|(_, found)| found.settings["quick"] == true);
    let names: Vec<&str> = headlines.iter().map(|(experiment, _)| experiment.name).collect();
    let _ = writeln!(
        text,
        "Experiments: {}. {}\n",
        names.join(", "),
        if quick {
            "**This page holds results of a quick run, with few seeds.**"
        } else {
            "Command: `headwater reproduce --out DIR`."
        }
    );
    summary(&mut text, headlines);
    for (experiment, found) in headlines {
        let _ = writeln!(text, "## {}\n", experiment.title);
        for figure in &found.figures {
            let link = if beside {
                format!("{}/{}.svg", experiment.name, figure.stem)
            } else {
                let folder = above.join(&stem);
                create(&folder)?;
                let drawn = out.join(experiment.name).join(format!("{}.svg", figure.stem));
                let name = match figure.stem == experiment.name {
                    true => format!("{}.svg", figure.stem),
                    false => format!("{}-{}.svg", experiment.name, figure.stem),
                };
                let bytes = std::fs::read(&drawn)
                    .map_err(|error| CliError::data(format!("{}: cannot read: {error}", drawn.display())))?;
                write(&folder.join(&name), &bytes)?;
                format!("{stem}/{name}")
            };
            let _ = writeln!(text, "![{}]({link})\n\n*{}*\n", figure.stem, figure.caption);
        }
        text.push_str("| the paper says | the authors' files hold | the paper's formula | as released | our learner | standing | why |\n|---|---|---|---|---|---|---|\n");
        for claim in &found.claims {
            let cells = [&claim.paper, &claim.authors, &claim.formula, &claim.released, &claim.ours];
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            let _ = writeln!(text, "| {} | **{}** | {} |", cells.join(" | "), claim.standing.words(), claim.why);
        }
        text.push('\n');
    }
    Ok(write(path, text.as_bytes())?)
}

/// How many claims stand how, and what does not hold.
fn summary(text: &mut String, headlines: &[(&Experiment, Headline)]) {
    use super::Standing::{Agreed, InPart, NotReproduced};
    let count = |standing| {
        headlines.iter().flat_map(|(_, found)| &found.claims).filter(|claim| claim.standing == standing).count()
    };
    let _ = writeln!(
        text,
        "{} claims agreed, {} agreed in part, {} not reproduced.\n",
        count(Agreed),
        count(InPart),
        count(NotReproduced)
    );
}
