//! How a command ends badly: the message, the cure where we know it, the exit code.

use headwater::Error as Core;
use headwater_files::Error as Files;
use headwater_posts::Error as Posts;
use std::path::Path;

/// Why a command stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The data cannot be used: exit 1.
    Data { message: String, hint: Option<String> },
    /// Wrong usage: exit 2.
    Usage { message: String, hint: Option<String> },
    /// Ctrl-C: exit 130.
    Interrupted { remark: Option<String> },
    /// Nobody reads what we print any more: not our problem.
    ClosedPipe,
}

impl Failure {
    pub(crate) fn data(message: impl Into<String>) -> Self {
        Failure::Data { message: message.into(), hint: None }
    }

    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Failure::Usage { message: message.into(), hint: Some(hint.into()) }
    }

    /// Names the file an error of the library concerns.
    pub(crate) fn about(path: &Path) -> impl Fn(Core) -> Failure {
        let path = path.to_owned();
        move |error| Failure::Data { message: format!("{}: {error}", path.display()), hint: hint(&error) }
    }

    #[expect(clippy::print_stderr, reason = "this is where errors are printed")]
    pub(crate) fn report(self) -> i32 {
        let (message, hint, code) = match self {
            Failure::Data { message, hint } => (message, hint, 1),
            Failure::Usage { message, hint } => (message, hint, 2),
            Failure::Interrupted { remark } => ("interrupted".to_owned(), remark, 130),
            Failure::ClosedPipe => return 0,
        };
        eprintln!("error: {message}");
        if let Some(hint) = hint {
            eprintln!("hint: {hint}");
        }
        code
    }
}

impl From<Core> for Failure {
    fn from(error: Core) -> Self {
        let (message, hint) = (error.to_string(), hint(&error));
        match error {
            // A number that is out of its range was given as an option.
            Core::Parameter { .. } => Failure::Usage { message, hint },
            _ => Failure::Data { message, hint },
        }
    }
}

impl From<Files> for Failure {
    fn from(error: Files) -> Self {
        let hint = match &error {
            Files::Data { source, .. } => hint(source),
            Files::Io { .. } => Some("check the path and its permissions".to_owned()),
            _ => None,
        };
        Failure::Data { message: error.to_string(), hint }
    }
}

impl From<Posts> for Failure {
    fn from(error: Posts) -> Self {
        let hint = match &error {
            Posts::Model { .. } => Some(
                "a model's folder holds config.json, model.safetensors and tokenizer.json, as published".to_owned(),
            ),
            Posts::Hub { .. } => Some("without the hub, give --model a folder".to_owned()),
            _ => None,
        };
        Failure::Data { message: error.to_string(), hint }
    }
}

fn hint(error: &Core) -> Option<String> {
    match error {
        Core::NotReady { .. } => Some(
            "give beliefs over more time steps; with --method gsl a window M and a batch W need M+1+W of them"
                .to_owned(),
        ),
        Core::Diverged { bound, .. } => {
            Some(format!("use --learning-rate {:.2e} or less, or let --tune choose", bound / 10.0))
        }
        Core::NeverSpeaks { .. } => Some("remove these agents from the file, or add their beliefs".to_owned()),
        _ => None,
    }
}
