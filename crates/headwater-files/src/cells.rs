//! Cells of CSV files that people open in a spreadsheet, which runs a cell that begins like a formula.
//!
//! An account may call itself `=HYPERLINK(…)`. [`CsvText::Neutralised`] puts an apostrophe before such a text, which a
//! spreadsheet shows as text. Numbers stay as they are. What was neutralised is restored exactly when one of our files is
//! read again: texts that begin with apostrophes and then like a formula get one more.

use std::borrow::Cow;

/// What spreadsheets take for the beginning of a formula, or skip before one.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// The character before a neutralised text.
const MARK: char = '\'';

/// How text is written into the cells of a CSV file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CsvText {
    /// Text that a spreadsheet would run as a formula begins with an apostrophe.
    #[default]
    Neutralised,
    /// Text as it is.
    Raw,
}

impl CsvText {
    /// A text as the content of a cell.
    ///
    /// ```
    /// use headwater_files::CsvText;
    /// assert_eq!(CsvText::Neutralised.cell("=1+1"), "'=1+1");
    /// assert_eq!(CsvText::Neutralised.cell("-1.5"), "-1.5");
    /// assert_eq!(CsvText::Raw.cell("=1+1"), "=1+1");
    /// ```
    pub fn cell(self, text: &str) -> Cow<'_, str> {
        match self == CsvText::Neutralised && is_formula(text.trim_start_matches(MARK)) && !is_number(text) {
            true => Cow::Owned(format!("{MARK}{text}")),
            false => Cow::Borrowed(text),
        }
    }
}

/// The text that a neutralised cell was made of; other texts as they are.
///
/// ```
/// use headwater_files::{CsvText, restored_cell};
/// for text in ["-x", "'-x", "''=x", "'tis", "-1", "x", "", "'"] {
///     assert_eq!(restored_cell(&CsvText::Neutralised.cell(text)), text);
/// }
/// ```
pub fn restored_cell(cell: &str) -> &str {
    match cell.strip_prefix(MARK) {
        Some(text) if is_formula(text.trim_start_matches(MARK)) && !is_number(text) => text,
        _ => cell,
    }
}

/// Whether no text of a column would be run as a formula, so that apostrophes in it may be marks of ours.
pub(crate) fn may_be_neutralised<'a>(mut texts: impl Iterator<Item = &'a str>) -> bool {
    texts.all(|text| !is_formula(text) || is_number(text))
}

fn is_formula(text: &str) -> bool {
    text.starts_with(FORMULA)
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_begins_like_a_formula_is_changed() {
        for text in ["=1+1", "+x", "-x", "@x", "\t=1", "\r=1", "＝1", "-1+1", "'-x", "'-1"] {
            assert_eq!(CsvText::Neutralised.cell(text), format!("'{text}"), "{text:?}");
            assert_eq!(CsvText::Raw.cell(text), text);
        }
        for text in ["x=1", "a-b", "'tis", "-1", "+41", "-1.5e-7", "", "'", "#x"] {
            assert_eq!(CsvText::Neutralised.cell(text), text);
        }
    }

    #[test]
    fn a_file_with_a_bare_formula_is_not_one_of_ours() {
        assert!(may_be_neutralised(["'-x", "ann", "-5"].into_iter()));
        assert!(!may_be_neutralised(["'-x", "-y"].into_iter()));
    }

    #[test]
    fn every_text_is_restored() {
        let alphabet = ['-', '\'', '=', '@', '1', 'a', '\t', '\r', '.'];
        let mut texts = vec![String::new()];
        for length in 0..5 {
            let longest: Vec<String> = texts.iter().filter(|text| text.chars().count() == length).cloned().collect();
            texts.extend(longest.iter().flat_map(|text| alphabet.map(|character| format!("{text}{character}"))));
        }
        for text in texts {
            let cell = CsvText::Neutralised.cell(&text);
            assert_eq!(restored_cell(&cell), text);
            assert!(!is_formula(&cell) || is_number(&cell), "{text:?}");
        }
    }
}
