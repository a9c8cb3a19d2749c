//! Tables for a terminal, and as CSV.

use super::text::{FIXED, width, wrapped_at};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use headwater::words::shown;
use headwater_files::CsvText;
use std::collections::{BTreeSet, HashMap};
use textwrap::core::display_width;

/// Columns that a name keeps when it is cut.
const SHORTEST_NAME: usize = 12;

/// Stands for a space inside a name in a cell: a name is one word. Printed as a space.
const JOINT: char = '\u{a0}';

/// A name as a cell of a table, or as a part of one: it is never broken, and cut only where a table would not fit.
pub(crate) fn name_cell(name: &str) -> String {
    shown(name).replace(' ', &JOINT.to_string())
}

/// A table; the first `texts` columns are text, the rest numbers. Where it is wider than the terminal, cells of several words
/// are wrapped between words, and if that is not enough the longest words of text are cut. To be printed by
/// [`super::Terminal::text`], or through [`super::wrapped`], which leaves its lines as they are.
pub(crate) fn table(header: &[&str], texts: usize, rows: Vec<Vec<String>>) -> String {
    table_at(header, texts, rows, width())
}

fn table_at(header: &[&str], texts: usize, rows: Vec<Vec<String>>, width: usize) -> String {
    // A line end inside a name would start a row of its own.
    let rows = rows.into_iter().map(|row| row.iter().map(|cell| shown(cell).into_owned()).collect());
    let header = header.iter().map(|cell| shown(cell).into_owned()).collect();
    let mut lines: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
    let widths = column_widths(&lines, texts, width);
    for (column, &width) in widths.iter().enumerate() {
        if column < texts {
            cut_column(&mut lines, column, width);
        }
        for cell in lines.iter_mut().filter_map(|line| line.get_mut(column)) {
            *cell = folded(cell, width);
        }
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let mut lines = lines.into_iter();
    table.set_header(lines.next().unwrap_or_default());
    table.add_rows(lines);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 1));
        if index >= texts {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| format!("{FIXED}{}\n", line.trim_end().replace(JOINT, " "))).collect()
}

/// The width of every column: that of its longest cell where all fit, otherwise the widest columns are made narrower, down to
/// their longest word, then columns of text down to [`SHORTEST_NAME`].
fn column_widths(lines: &[Vec<String>], texts: usize, width: usize) -> Vec<usize> {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let largest = |column: usize, measure: fn(&str) -> usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| measure(cell)).max().unwrap_or(0)
    };
    let longest_word = |cell: &str| cell.split(' ').map(display_width).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..columns).map(|column| largest(column, display_width)).collect();
    let words: Vec<usize> = (0..columns).map(|column| largest(column, longest_word)).collect();
    let names =
        (0..columns).map(|column| if column < texts { words[column].min(SHORTEST_NAME) } else { words[column] });
    // One space after every column but the last.
    let space = width.saturating_sub(columns.saturating_sub(1));
    for floors in [words.clone(), names.collect()] {
        while widths.iter().sum::<usize>() > space {
            let narrower = (0..columns).filter(|&column| widths[column] > floors[column]);
            let Some(widest) = narrower.max_by_key(|&column| widths[column]) else { break };
            widths[widest] -= 1;
        }
    }
    widths
}

/// Cuts the words of a column that are longer than its width: at their end, or in the middle where two would look the same.
fn cut_column(lines: &mut [Vec<String>], column: usize, width: usize) {
    let mut cells: HashMap<String, BTreeSet<String>> = HashMap::new();
    let words = || lines.iter().filter_map(|line| line.get(column)).flat_map(|cell| cell.split(' '));
    for word in words().filter(|word| display_width(word) > width) {
        cells.entry(cut(word, width, false)).or_default().insert(word.to_owned());
    }
    let alike = |word: &str| cells.get(&cut(word, width, false)).is_some_and(|words| words.len() > 1);
    let one = |word: &str| match display_width(word) > width {
        true => cut(word, width, alike(word)),
        false => word.to_owned(),
    };
    for cell in lines.iter_mut().filter_map(|line| line.get_mut(column)) {
        *cell = cell.split(' ').map(one).collect::<Vec<_>>().join(" ");
    }
}

/// The start of a word, or its start and its end, with … for the rest.
fn cut(word: &str, width: usize, middle: bool) -> String {
    let space = width.saturating_sub(1);
    let end = if middle { space / 2 } else { 0 };
    let (start, tail) = (fitting(word.chars(), space - end), fitting(word.chars().rev(), end));
    start.into_iter().chain(['…']).chain(tail.into_iter().rev()).collect()
}

/// The first characters that fit into so many columns.
fn fitting(characters: impl Iterator<Item = char>, space: usize) -> Vec<char> {
    let mut taken = 0;
    let fits = |character: &char| {
        taken += display_width(character.encode_utf8(&mut [0; 4]));
        taken <= space
    };
    characters.take_while(fits).collect()
}

/// A cell with line ends between words, so that no line is longer than the width.
fn folded(cell: &str, width: usize) -> String {
    if display_width(cell) <= width { cell.to_owned() } else { wrapped_at(cell, width).trim_end().to_owned() }
}

/// Rows as CSV text, quoted where needed; no header line where the header is empty.
pub(crate) fn csv(header: &[&str], rows: Vec<Vec<String>>, text: CsvText) -> String {
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    let mut written = if header.is_empty() { Ok(()) } else { writer.write_record(header) };
    for row in rows {
        let cells = row.iter().map(|cell| text.cell(cell).into_owned());
        written = written.and_then(|()| writer.write_record(cells));
    }
    written.expect("memory takes rows of any length");
    let bytes = writer.into_inner().expect("memory can be flushed");
    String::from_utf8(bytes).expect("cells are text")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table as printed.
    fn printed(header: &[&str], texts: usize, rows: &[&[&str]], width: usize) -> String {
        let rows = rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect();
        wrapped_at(&table_at(header, texts, rows, width), 80)
    }

    #[test]
    fn tables_fit_a_terminal() {
        let rows: [&[&str]; 2] = [&[&"a".repeat(100), "1"], &[&"名前".repeat(30), "2"]];
        for width in [20, 40, 80] {
            let text = printed(&["name", "value"], 1, &rows, width);
            assert!(text.lines().all(|line| display_width(line) <= width), "{text}");
            assert_eq!(text.lines().count(), 3, "{text}");
        }
        // As wide as the terminal is.
        assert!(printed(&["name", "value"], 1, &rows, 200).contains(&"a".repeat(100)));
    }

    #[test]
    fn words_are_not_broken() {
        let prose = "some words of prose ".repeat(6);
        let rows: [&[&str]; 2] = [&["a_name_of_twenty_cha", &prose, "12.3%"], &["b", &prose, "1%"]];
        let text = printed(&["name", "meaning", "value"], 2, &rows, 80);
        assert!(text.contains("a_name_of_twenty_cha") && text.contains("12.3%"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        // A name of two words beside one of a single word.
        let (ann, feather) = (name_cell("Ann Feather"), name_cell("Bartholomew_Feather"));
        let numbers = "1234567";
        let rows: [&[&str]; 2] = [&["1", &ann, numbers, numbers], &["2", &feather, numbers, numbers]];
        let text = printed(&["", "agent", "share", "origin"], 2, &rows, 38);
        assert!(text.contains("1 Ann Feather         1234567 1234567\n"), "{text}");
        assert!(text.contains("2 Bartholomew_Feather 1234567 1234567\n"), "{text}");
        let text = printed(&["", "agent", "share", "origin"], 2, &rows, 34);
        assert!(text.contains("2 Bartholomew_Fea… 1234567 1234567\n"), "{text}");
    }

    #[test]
    fn tables_are_not_wrapped_again() {
        let number = "1".repeat(30);
        let rows: [&[&str]; 1] = [&["a_name_that_is_not_short", &number, &number, &number]];
        let text = printed(&["name", "one", "two", "three"], 1, &rows, 80);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains(&format!("a_name_that… {number} {number} {number}\n")), "{text}");
    }

    #[test]
    fn names_that_are_cut_differ() {
        let rows: [&[&str]; 3] =
            [&["a_very_long_name_of_one"], &["a_very_long_name_of_two"], &["another_very_long_name"]];
        let text = printed(&["name"], 1, &rows, 20);
        assert_eq!(text, "name\na_very_lon…me_of_one\na_very_lon…me_of_two\nanother_very_long_n…\n");
        assert_eq!([cut("名前名前", 4, false), cut("名前名前", 6, true)], ["名…", "名…前"]);
    }

    #[test]
    fn control_characters_in_cells_are_shown() {
        assert!(table(&["name"], 1, vec![vec!["a\nb\u{7}".into()]]).contains("a\\nb\\u{7}"));
    }

    #[test]
    fn csv_is_quoted_where_needed() {
        assert_eq!(csv(&["a"], vec![vec!["x,\"y\"".into()]], CsvText::default()), "a\n\"x,\"\"y\"\"\"\n");
        assert_eq!(
            csv(&[], vec![vec!["two\nlines".into(), " x'y".into()]], CsvText::default()),
            "\"two\nlines\", x'y\n"
        );
    }
}
