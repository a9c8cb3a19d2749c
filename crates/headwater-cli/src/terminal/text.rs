//! Text for a terminal: wrapped at spaces, without control characters, words quoted for a shell.

use headwater::words::{acts, shown};
use std::borrow::Cow;
use std::io::IsTerminal;
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

/// Columns of a terminal where they are not known, and of lines of prose at most.
const WIDTH: usize = 80;

/// Columns of a terminal too narrow to be taken seriously.
const NARROWEST: usize = 20;

/// Begins a line that is not wrapped; not printed.
pub(super) const FIXED: char = '\u{2060}';

/// Columns of the terminal: the variable COLUMNS, those of the terminal, or 80.
pub(super) fn width() -> usize {
    let told =
        std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok()).filter(|&columns| columns > 0);
    let width = told.unwrap_or_else(|| if std::io::stdout().is_terminal() { textwrap::termwidth() } else { WIDTH });
    width.max(NARROWEST)
}

/// Wraps lines of prose at spaces; words that are longer than a line, and lines of a [`table`](super::table()) or of [`command_line`], are kept whole.
pub(crate) fn wrapped(text: &str) -> String {
    wrapped_at(text, width().min(WIDTH))
}

/// A command to copy, on a line of its own that is not wrapped.
pub(crate) fn command_line(command: &str) -> String {
    format!("{FIXED}  {command}\n")
}

pub(super) fn wrapped_at(text: &str, width: usize) -> String {
    let options = Options::new(width)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
        .break_words(false);
    let line = |line: &str| match line.strip_prefix(FIXED) {
        Some(line) => line.to_owned() + "\n",
        None => textwrap::fill(line, &options) + "\n",
    };
    text.lines().map(line).collect()
}

/// A text whose control characters do nothing to a terminal: they are shown as escapes. Line ends stay; those of names are
/// escaped by [`shown`] before the names become part of a text.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(|character| acts(character) && character != '\n') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.split('\n').map(shown).collect::<Vec<_>>().join("\n"))
}

/// A word as a shell reads it.
pub(crate) fn shell_quoted(word: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "_-+=:,./@%".contains(character);
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(plain) {
        return word.to_owned();
    }
    if word.contains(acts) {
        // As bash, zsh and ksh read it, on one line.
        let one = |character: char| match character {
            '\n' => "\\n".to_owned(),
            '\'' | '\\' => format!("\\{character}"),
            character if acts(character) => format!("\\u{:04x}", u32::from(character)),
            character => character.to_string(),
        };
        return format!("$'{}'", word.chars().map(one).collect::<String>());
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_wrapped_and_tables_are_not_touched() {
        let prose = "word ".repeat(40);
        assert!(wrapped(prose.trim_end()).lines().all(|line| line.chars().count() <= 80));
        for line in ["  agent  share", "1 0     38.6%", " x", &"-".repeat(80), &"a-b".repeat(40)] {
            assert_eq!(wrapped(line), format!("{line}\n"));
        }
        assert_eq!(wrapped("a\n\nb"), "a\n\nb\n");
        // A character of two columns counts twice.
        assert_eq!(wrapped(&["名前"; 17].join(" ")), format!("{}\n名前\n", ["名前"; 16].join(" ")));
    }

    #[test]
    fn commands_are_not_wrapped() {
        let command = format!("headwater explain '{}' --what-if remove", "a b ".repeat(40));
        let text = wrapped(&format!("Next:\n{}after\n", command_line(&command)));
        assert_eq!(text, format!("Next:\n  {command}\nafter\n"));
    }

    #[test]
    fn control_characters_are_shown() {
        assert_eq!(escaped("a\u{1b}[2Jb\u{9b}\r\t\nc\u{202e}"), "a\\u{1b}[2Jb\\u{9b}\\r\\t\nc\\u{202e}");
        let isolates = ["\u{2066}", "\u{2067}", "\u{2068}", "\u{2069}"];
        assert_eq!(isolates.map(escaped), ["\\u{2066}", "\\u{2067}", "\\u{2068}", "\\u{2069}"]);
        assert_eq!(escaped("名前 – ok\n"), "名前 – ok\n");
    }

    #[test]
    fn names_are_quoted_for_a_shell() {
        for (word, quoted) in [("ann", "ann"), ("", "''"), ("-x", "'-x'"), ("a b", "'a b'"), ("$(x)", "'$(x)'")] {
            assert_eq!(shell_quoted(word), quoted);
        }
        assert_eq!(shell_quoted("a\nb'\\\u{1b}\u{202e}"), r"$'a\nb\'\\\u001b\u202e'");
        assert_eq!(shell_quoted("';touch pwned;'"), ["'", "'\\''", ";touch pwned;", "'\\''", "'"].concat());
    }
}
