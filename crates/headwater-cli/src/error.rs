//! Errors of commands: message, hint where one is known, exit code.

use crate::terminal::{say, shell_quoted};
use headwater::Error as Core;
use headwater::evaluate::graph_test::Untestable;
use headwater_files::Error as Files;
use headwater_report::Error as Shown;
use headwater_reproduce::Error as Replicated;
use std::io::ErrorKind;
use std::path::Path;

/// Why a command stopped.
#[derive(Debug)]
#[expect(missing_docs, reason = "message, hint and kind explain themselves")]
pub enum CliError {
    /// The data cannot be used: exit 1.
    Data { message: String, hint: Option<String> },
    /// A file cannot be read or written: exit 1.
    File { message: String, hint: Option<String>, kind: ErrorKind },
    /// Wrong usage: exit 2.
    Usage { message: String, hint: Option<String> },
    /// Ctrl-C: exit 130.
    Interrupted { remark: Option<String> },
    /// The reader of standard output has closed it: exit 0.
    ClosedPipe,
}

impl CliError {
    pub(crate) fn data(message: impl Into<String>) -> Self {
        CliError::Data { message: message.into(), hint: None }
    }

    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        CliError::Usage { message: message.into(), hint: Some(hint.into()) }
    }

    /// The same in other words.
    pub(crate) fn map_text(mut self, other: impl Fn(&str) -> String) -> Self {
        if let CliError::Data { message, hint }
        | CliError::File { message, hint, .. }
        | CliError::Usage { message, hint } = &mut self
        {
            *message = other(message);
            *hint = hint.as_deref().map(other);
        }
        self
    }

    /// Names the file an error of the library concerns.
    pub(crate) fn about(path: &Path) -> impl Fn(Core) -> CliError {
        let path = path.to_owned();
        move |error| match error {
            Core::Stopped => error.into(),
            _ => CliError::Data { message: format!("{}: {error}", path.display()), hint: hint(&error) },
        }
    }

    /// The same of an error of the paper's learner.
    pub(crate) fn about_gsl(path: &Path) -> impl Fn(Core) -> CliError {
        let path = path.to_owned();
        move |error| {
            let error_of = CliError::about(&path)(error.clone());
            match (error, error_of) {
                (Core::NotReady { .. }, CliError::Data { message, .. }) => CliError::Data {
                    message,
                    hint: Some("use beliefs over more time steps; --method gsl needs at least M+1+W steps for window M (--window) and batch W (--batch)".to_owned()),
                },
                (_, other) => other,
            }
        }
    }

    pub(crate) fn report(self) -> i32 {
        let code = match self {
            CliError::Data { .. } | CliError::File { .. } => 1,
            CliError::Usage { .. } => 2,
            CliError::Interrupted { .. } => 130,
            CliError::ClosedPipe => return 0,
        };
        say(&format!("error: {self}"));
        code
    }
}

/// The message, and on a second line the hint where one is known.
impl std::fmt::Display for CliError {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (message, hint) = match self {
            CliError::Data { message, hint }
            | CliError::File { message, hint, .. }
            | CliError::Usage { message, hint } => (message.as_str(), hint),
            CliError::Interrupted { remark } => ("interrupted", remark),
            CliError::ClosedPipe => ("standard output was closed", &None),
        };
        write!(to, "{message}")?;
        hint.iter().try_for_each(|hint| write!(to, "\nhint: {hint}"))
    }
}

impl From<Core> for CliError {
    fn from(error: Core) -> Self {
        let (message, hint) = (error.to_string(), hint(&error));
        match error {
            // A parameter out of its range was given as an option.
            Core::Parameter { .. } => CliError::Usage { message, hint },
            Core::Stopped => CliError::Interrupted { remark: None },
            _ => CliError::Data { message, hint },
        }
    }
}

impl From<Files> for CliError {
    fn from(error: Files) -> Self {
        if let Files::Data { source: Core::Stopped, .. } = error {
            return Core::Stopped.into();
        }
        let hint = match &error {
            Files::Data { source, .. } => hint(source),
            Files::Io { source, .. } => Some(cure(source).to_owned()),
            Files::NoFolder { folder, .. } => {
                Some(format!("create it with: mkdir -p {}", shell_quoted(&folder.display().to_string())))
            }
            Files::NoEdgeAmongAgents { .. } => {
                Some("source and target are names as in the column agent of the beliefs".to_owned())
            }
            Files::NoGroupMembers { .. } => {
                Some("give agent,group with names as in the beliefs or posts, or omit the groups".to_owned())
            }
            _ => None,
        };
        let message = error.to_string();
        match error {
            Files::Io { source, .. } => CliError::File { message, hint, kind: source.kind() },
            Files::NoFolder { .. } => CliError::File { message, hint, kind: ErrorKind::NotFound },
            _ => CliError::Data { message, hint },
        }
    }
}

impl From<Shown> for CliError {
    fn from(error: Shown) -> Self {
        match error {
            Shown::Model(error) => error.into(),
            Shown::Files(error) => error.into(),
            Shown::ExportFormat { .. } => {
                CliError::usage(error.to_string(), "use .gexf, .graphml, .csv, .parquet or .json")
            }
            error => CliError::data(error.to_string()),
        }
    }
}

impl From<Replicated> for CliError {
    fn from(error: Replicated) -> Self {
        match error {
            Replicated::Core(error) => error.into(),
            Replicated::Files(error) => error.into(),
            Replicated::Posts(error) => error.into(),
            Replicated::Score(error) => error.into(),
            Replicated::Report(error) => error.into(),
            error => CliError::data(error.to_string()),
        }
    }
}

/// What to do about an error of the operating system.
pub(crate) fn cure(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::StorageFull => "free disk space, or write to another disk",
        std::io::ErrorKind::FileTooLarge => {
            "the system limits the size of files: see ulimit -f, or write to another disk"
        }
        std::io::ErrorKind::InvalidFilename => "choose a shorter name",
        std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::InvalidData => {
            "the file is truncated: download or copy it again"
        }
        _ => "check the path and its permissions",
    }
}

/// What would make data testable.
fn untestable_cure(reason: &Untestable) -> &'static str {
    match reason {
        Untestable::NoEdges { .. } => "give edges between accounts that post often, or beliefs in longer time bins",
        Untestable::TooFewAccounts { .. } => "give beliefs of more accounts, or in longer time bins",
        Untestable::NoChange | Untestable::NoContrast => {
            "check that the beliefs differ between accounts and change over time"
        }
        Untestable::TooFewSteps { .. } => "give beliefs over more time steps, or in shorter time bins",
        Untestable::EverybodyLinked => "give a graph in which accounts follow some of the others, not all",
        _ => "give beliefs over more time steps, or a graph with more than one followed account",
    }
}

pub(crate) fn hint(error: &Core) -> Option<String> {
    match error {
        Core::NotReady { .. } => Some("use beliefs over more time steps".to_owned()),
        Core::Diverged { bound, .. } => Some(format!("use --learning-rate {:.2e} or less, or --tune", bound / 10.0)),
        Core::TooLarge { .. } => {
            Some("leave out accounts that speak rarely (--min-posts), or take longer bins (--bin)".to_owned())
        }
        Core::Untestable(reason) => Some(untestable_cure(reason).to_owned()),
        Core::Absent { .. } => Some("use --method state-space, or remove these agents from the beliefs".to_owned()),
        Core::NeverSpeaks { .. } => Some("remove these agents from the file, or add beliefs of theirs".to_owned()),
        _ => None,
    }
}
