//! Tables as text: bytes in, rows of cells out (RFC 4180).
//!
//! Cells may hold line ends, delimiters and doubled quotes; the delimiter is a comma, semicolon, tab or bar, whichever
//! the first line has most of. A row with another number of cells than the header is bad, and the next may be fine.
//!
//! A quote that belongs to the text but opens a cell joins rows to one: up to the next such quote, or to the end. Such
//! rows are told from posts of several lines by what their lines hold, and every one of them is bad.

use super::record::RowError;
use super::{
    BadRow, ByteStream, ColumnNames, LONGEST_RECORD, RawRecord, RecordPlace, RecordValue, RowProblem, is_time,
};
use crate::Error;
use csv::{ByteRecord, ErrorKind, Reader, ReaderBuilder, StringRecord, Terminator};
use headwater_files::restored_cell;
use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// What is said of a row that is not text.
const NOT_UTF_8: &str = "is not UTF-8 text";

/// The delimiter of a table that begins like this.
pub(crate) fn delimiter(head: &[u8]) -> u8 {
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0), (b'|', 0)];
    let mut quoted = false;
    for byte in head {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted => break,
            _ if quoted => {}
            _ => counts.iter_mut().filter(|(delimiter, _)| delimiter == byte).for_each(|(_, count)| *count += 1),
        }
    }
    // The first of the largest, so that a single column is read with commas.
    let most = counts.iter().map(|(_, count)| *count).max();
    counts.iter().find(|(_, count)| Some(*count) == most).map_or(b',', |(delimiter, _)| *delimiter)
}

/// Refuses to read further when one row does not end, and knows whether a quote is open.
struct Patient {
    from: ByteStream,
    left: usize,
    quotes: Quotes,
    /// Whether there is no more.
    ended: bool,
}

/// Follows the quotes of a table byte by byte.
struct Quotes {
    delimiter: u8,
    state: Quoted,
    /// The line at hand, and that on which the latest quote was opened.
    line: u64,
    opened: u64,
}

/// Where in a cell we are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoted {
    /// At its start.
    Start,
    /// In a cell without quotes, or after its closing quote.
    Plain,
    /// Between quotes.
    Inside,
    /// At a quote that closes the cell or is the first of two.
    Closing,
}

impl Quotes {
    fn follow(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            let outside = self.state != Quoted::Inside;
            self.state = match (self.state, byte) {
                (Quoted::Start, b'"') => {
                    self.opened = self.line;
                    Quoted::Inside
                }
                (Quoted::Closing, b'"') => Quoted::Inside,
                (Quoted::Inside, b'"') => Quoted::Closing,
                (Quoted::Inside, _) => Quoted::Inside,
                (_, byte) if outside && (byte == self.delimiter || byte == b'\n' || byte == b'\r') => Quoted::Start,
                _ => Quoted::Plain,
            };
            self.line += u64::from(byte == b'\n');
        }
    }
}

/// How [`Patient`] says so through an `io::Error`.
#[derive(Debug, thiserror::Error)]
#[error("a row does not end")]
struct Endless;

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            return Err(std::io::Error::other(Endless));
        }
        let count = self.from.read(into)?;
        self.left = self.left.saturating_sub(count);
        self.quotes.follow(&into[..count]);
        self.ended |= count == 0;
        Ok(count)
    }
}

/// A table being read.
pub struct CsvTable {
    reader: Reader<Patient>,
    columns: Arc<ColumnNames>,
    file: Arc<Path>,
    record: ByteRecord,
    delimiter: u8,
    /// Lines of rows that a quote has joined to the row before, and the line of that quote.
    waiting: VecDeque<u64>,
    opened: u64,
    /// Whether lines end in CR LF. The reader splits at LF, and we take the CR off: it would lose count of the lines.
    returns: bool,
    /// Whether the table is one of ours: the apostrophes before text that a spreadsheet would run are taken off.
    scored: bool,
}

/// The columns that scoring adds to a table.
const SCORES: [&str; 4] = ["negative", "neutral", "positive", "score"];

/// A row as it was before it was written for spreadsheets.
fn restored(cells: StringRecord) -> StringRecord {
    if cells.iter().all(|cell| restored_cell(cell) == cell) { cells } else { cells.iter().map(restored_cell).collect() }
}

impl CsvTable {
    /// Reads the header.
    pub fn new(from: ByteStream, file: Arc<Path>, delimiter: u8) -> Result<Self, Error> {
        let quotes = Quotes { delimiter, state: Quoted::Start, line: 1, opened: 0 };
        let mut reader = ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(false)
            .flexible(true)
            .terminator(Terminator::Any(b'\n'))
            .buffer_capacity(1 << 18)
            .from_reader(Patient { from, left: LONGEST_RECORD, quotes, ended: false });
        let mut record = ByteRecord::new();
        reader.read_byte_record(&mut record).map_err(|error| broken(error, &file, 1))?;
        let returns = strip_return(&mut record);
        let header =
            StringRecord::from_byte_record(record.clone()).map_err(|_| Error::Encoding { path: file.to_path_buf() })?;
        let names: Vec<String> = header.iter().map(|name| name.trim().to_owned()).collect();
        let columns = Arc::new(ColumnNames::new(names));
        if let Some(twice) = columns.repeated() {
            let problem = format!("the column {twice:?} is named twice; keep one");
            return Err(Error::Line { path: file.to_path_buf(), line: 1, problem });
        }
        let scored = columns.names().windows(SCORES.len()).any(|names| names == SCORES);
        Ok(CsvTable { reader, columns, file, record, delimiter, waiting: VecDeque::new(), opened: 0, returns, scored })
    }

    /// The file and its columns.
    pub fn header(&self) -> (&Arc<Path>, &Arc<ColumnNames>) {
        (&self.file, &self.columns)
    }

    /// The next row.
    #[expect(clippy::should_implement_trait, reason = "as Records::next")]
    pub fn next(&mut self) -> Result<Option<Result<RawRecord, BadRow>>, Error> {
        if let Some(line) = self.waiting.pop_front() {
            let reason = format!("is part of a cell, because of a quote on line {}; mend that", self.opened);
            return Ok(Some(Err(BadRow::new(RecordPlace { file: self.file.clone(), line }, reason))));
        }
        let (line, several) = loop {
            self.reader.get_mut().left = LONGEST_RECORD;
            let before = self.reader.position().line();
            if !self.reader.read_byte_record(&mut self.record).map_err(|error| broken(error, &self.file, before))? {
                return Ok(None);
            }
            if self.returns {
                strip_return(&mut self.record);
            }
            // An empty line; the reader steps over those that end in LF only.
            if self.record.as_slice().is_empty() && self.record.len() == 1 && self.columns.names().len() > 1 {
                continue;
            }
            // Empty lines may stand before the row, so its first line is counted back from its last.
            let inside = self.record.as_slice().iter().filter(|byte| **byte == b'\n').count() as u64;
            let first = self.reader.position().line() - inside;
            break (if first > before { first - 1 } else { first }, inside > 0);
        };
        let place = RecordPlace { file: self.file.clone(), line };
        let others =
            if several { joined(&self.record, self.delimiter, self.columns.names().len()) } else { Vec::new() };
        let Patient { quotes, ended, .. } = self.reader.get_ref();
        // Reading runs ahead of the rows: a quote left open at the end belongs to the row that holds its line.
        if *ended && quotes.state == Quoted::Inside && quotes.opened >= line {
            let lines = quotes.line - quotes.opened;
            self.opened = quotes.opened;
            let opened = self.opened;
            self.waiting.extend(others.iter().map(|offset| line + offset).filter(|line| *line > opened));
            let place = RecordPlace { line: opened, ..place };
            let reason = format!(
                "a quote is opened here and never closed, so the {lines} lines up to the end of the file are one cell; close it, or double it if it belongs to the text"
            );
            return Ok(Some(Err(BadRow::new(place, reason))));
        }
        if let Some(last) = others.last() {
            self.opened = line;
            self.waiting.extend(others.iter().map(|offset| line + offset));
            let reason = format!(
                "a quote opened here is closed by one on line {} only, and what is between them looks like rows; close it here, or double it if it belongs to the text",
                line + last
            );
            return Ok(Some(Err(BadRow::new(place, reason))));
        }
        let (met, wanted) = (self.record.len(), self.columns.names().len());
        if met != wanted {
            let reason = format!("has {met} cells where the header has {wanted}; quote cells that hold delimiters");
            return Ok(Some(Err(BadRow::new(place, reason))));
        }
        Ok(Some(match StringRecord::from_byte_record(std::mem::take(&mut self.record)) {
            Ok(cells) => {
                let cells = if self.scored { restored(cells) } else { cells };
                Ok(RawRecord { place, row: RecordValue::Cells(self.columns.clone(), cells) })
            }
            Err(_) => Err(BadRow::with(place, RowError::new(RowProblem::Encoding, NOT_UTF_8))),
        }))
    }
}

/// A time in fewer characters may be any number.
const SHORTEST_TIME: usize = "20240501".len();

/// The lines of a row after its first, counted from it, if these look like rows of their own: as many cells as the
/// header and a time in the same column. Empty for a row as it should be, whatever its cells hold.
///
/// Between two stray quotes there is no other quote, so that a line there is a row if it is anything. Half of the lines
/// must fit, because there may be bad rows among them; a post of several lines has none that does, unless it quotes such
/// a table.
fn joined(record: &ByteRecord, delimiter: u8, wanted: usize) -> Vec<u64> {
    let time = |cell: &[u8]| {
        let text = std::str::from_utf8(cell).ok().map(str::trim).filter(|text| text.len() >= SHORTEST_TIME);
        text.is_some_and(is_time)
    };
    let (mut offset, mut others, mut fitting) = (0, Vec::new(), 0);
    let mut times: Vec<usize> = Vec::new();
    let mut line: Vec<&[u8]> = Vec::new();
    // Whether it still may be several rows.
    let mut end = |line: &mut Vec<&[u8]>, last: bool| {
        // The quote that closes may open a cell that holds delimiters.
        let fits = line.len() == wanted || (last && record.len() > wanted && line.len() > wanted);
        if offset == 0 {
            if fits {
                times.extend((0..wanted).filter(|column| time(line[*column])));
            }
        } else if line.iter().any(|cell| !cell.iter().all(u8::is_ascii_whitespace)) {
            others.push(offset);
            fitting += usize::from(fits && times.iter().any(|column| time(line[*column])));
        }
        offset += 1;
        line.clear();
        !times.is_empty()
    };
    for cell in record {
        let several = cell.contains(&b'\n');
        for (number, part) in cell.split(|byte| *byte == b'\n').enumerate() {
            if number > 0 && !end(&mut line, false) {
                return Vec::new();
            }
            // One too many says enough.
            let space = (wanted + 1).saturating_sub(line.len());
            // The delimiters of any other cell stand between quotes.
            let within = |byte: &u8| several && *byte == delimiter;
            line.extend(part.split(within).take(space));
        }
    }
    end(&mut line, true);
    if fitting > 0 && 2 * fitting >= others.len() { others } else { Vec::new() }
}

/// Takes a CR off the end of a row.
fn strip_return(record: &mut ByteRecord) -> bool {
    let Some(last) = record.len().checked_sub(1) else { return false };
    let Some(stripped) = record[last].strip_suffix(b"\r").map(<[u8]>::to_vec) else { return false };
    record.truncate(last);
    record.push_field(&stripped);
    true
}

fn broken(error: csv::Error, file: &Path, line: u64) -> Error {
    let path = file.to_path_buf();
    match error.into_kind() {
        ErrorKind::Io(source) if source.get_ref().is_some_and(|inner| inner.is::<Endless>()) => {
            let problem = format!(
                "the row does not end within {} MB; a quote is opened there and never closed",
                LONGEST_RECORD >> 20
            );
            Error::Line { path, line, problem }
        }
        ErrorKind::Io(source) => Error::io(&path, "cannot read")(source),
        other => Error::Line { path, line, problem: format!("{other:?}") },
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::*;
    use proptest::prelude::*;

    fn rows(content: &[u8]) -> Vec<Result<Vec<String>, String>> {
        let rows = read("t.csv", content).unwrap().into_iter();
        let cells = |record: RawRecord| match record.row {
            RecordValue::Cells(_, cells) => cells.iter().map(str::to_owned).collect(),
            RecordValue::Json(_) => unreachable!("a table"),
        };
        rows.map(|row| row.map(cells)).collect()
    }

    #[test]
    fn delimiters_are_found_outside_quotes() {
        assert_eq!(delimiter(b"user;time;text\n1,2,3,4,5"), b';');
        assert_eq!(delimiter(b"\"a;b;c\",d\n"), b',');
        assert_eq!(delimiter(b"user\ttime\ttext, really\n"), b'\t');
        assert_eq!(delimiter(b"user"), b',');
    }

    #[test]
    fn a_quote_left_open_at_the_end_is_named_where_it_was_opened() {
        let all = rows(b"a,b\n1,\"two\nlines\"\n2,5\" disk\n3,\"open\n4,x\n5,y\n");
        assert_eq!(all[0], Ok(vec!["1".to_owned(), "two\nlines".to_owned()]));
        assert_eq!(all[1], Ok(vec!["2".to_owned(), "5\" disk".to_owned()]));
        let told = all[2].as_ref().unwrap_err();
        assert!(told.starts_with("t.csv, line 5: a quote is opened here") && told.contains("the 3 lines"), "{told}");
        assert_eq!(all.len(), 3);
        // Closed with the last byte, it is none.
        assert_eq!(rows(b"a,b\n1,\"x\"\"\"")[0], Ok(vec!["1".to_owned(), "x\"".to_owned()]));
    }

    /// Lines of the bad rows, and the good ones.
    fn sorted(content: &str) -> (Vec<u64>, Vec<Vec<String>>) {
        let (mut bad, mut good) = (Vec::new(), Vec::new());
        for row in rows(content.as_bytes()) {
            match row {
                Ok(cells) => good.push(cells),
                Err(told) => bad.push(told.split("line ").nth(1).unwrap().split(':').next().unwrap().parse().unwrap()),
            }
        }
        (bad, good)
    }

    #[test]
    fn two_stray_quotes_lose_no_row_without_a_word() {
        let text = "user,time,text\nzoe,2024-05-01,x\nann,2024-05-01,\"Never\nbob,2024-05-01,fine\n\ncat,no\neve,2024-05-02,\"No way\nzoe,2024-05-03,y\n";
        let all = rows(text.as_bytes());
        let told: Vec<&String> = all.iter().filter_map(|row| row.as_ref().err()).collect();
        assert!(told[0].starts_with("t.csv, line 3: a quote opened here is closed by one on line 7 only"), "{told:?}");
        assert_eq!(told[1], "t.csv, line 4: is part of a cell, because of a quote on line 3; mend that");
        assert_eq!(sorted(text).0, [3, 4, 6, 7]);
        assert_eq!(sorted(text).1.len(), 2);
        // The second is that of an ordinary cell with delimiters in it, or stands within one.
        for last in [
            "eve,2024-05-02,\"No, no, no\"",
            "eve,2024-05-02,he said \"no\"",
            "eve,2024-05-02,\"two",
            "\"eve\",2024-05-02,x",
        ] {
            let (bad, good) =
                sorted(&format!("user,time,text\r\nann,2024-05-01,\"Never\r\nbob,2024-05-01,x\r\n{last}\r\n"));
            assert_eq!((bad, good.len()), (vec![2, 3, 4], 0), "{last}");
        }
        // Whatever the order of the columns; and tabs.
        for text in [
            "text\ttime\tuser\n\"Never\t1611100000\tann\na, b\t1611100001\tbob\n\"No way\t1611100002\teve\n",
            "time|text|user\n2024-05-01|\"Never|ann\n2024-05-01|x|bob\n2024-05-01|\"No way|eve\n",
        ] {
            assert_eq!(sorted(text), (vec![2, 3, 4], vec![]), "{text}");
        }
        // Never closed at all: the rows behind it count, too.
        assert_eq!(sorted("user,time,text\na,2024-05-01,\"Never\nb,2024-05-01,x\nc,2024-05-01,y\n").0, [2, 3, 4]);
    }

    #[test]
    fn a_long_cell_of_many_lines_is_looked_at_once() {
        // Were the first line gone through again for every other, this would take an hour.
        let long =
            format!("user,time,text\nann,2024-05-01,\"{}{}\"\n", "x".repeat(4 << 20), "\n,,,,,,,,".repeat(400_000));
        let (bad, good) = sorted(&long);
        assert_eq!((bad.len(), good.len()), (0, 1));
    }

    #[test]
    fn posts_of_several_lines_are_no_stray_quotes() {
        for text in [
            "user,time,text\nann,2024-05-01,\"one\ntwo\"\nbob,2024-05-01,\"one,\n2,3\n4, 5, 6\n2024-05-01\"\n",
            "user,time,text\nann,2024-05-01,\"Votes:\nyes,12,no\nno,7,yes\"\nbob,2024-05-01,x\n",
            "text,user,time\n\"one\ntwo\",ann,2024-05-01\n\"a, b, c\nd\",bob,2024-05-02\n",
            "time,text,user\n2024-05-01,\"one, two\nthree, four\",ann\n2024-05-01,\"one, two\n7, four\",ann\n",
            "id,text\n1,\"one\n2,two\"\n3,\"x\n4,y\"\n",
        ] {
            let (bad, good) = sorted(text);
            assert_eq!((bad, good.len()), (vec![], 2), "{text}");
        }
    }

    #[test]
    fn quotes_line_ends_and_odd_rows() {
        let all = rows(b"a,b\r\n\"x\"\"y\",\"1\n\n2\"\r\n\r\nonly\r\n1,2,3\r\n\xff,1\r\nlast,row");
        let told: Vec<&str> = all.iter().filter_map(|row| row.as_ref().err().map(String::as_str)).collect();
        assert_eq!(all[0], Ok(vec!["x\"y".to_owned(), "1\n\n2".to_owned()]));
        assert_eq!(all[4], Ok(vec!["last".to_owned(), "row".to_owned()]));
        assert!(told[0].starts_with("t.csv, line 6: has 1 cells"), "{told:?}");
        assert!(told[1].starts_with("t.csv, line 7: has 3 cells"), "{told:?}");
        assert_eq!(told[2], "t.csv, line 8: is not UTF-8 text");
    }

    #[test]
    fn a_quote_that_is_never_closed_ends_the_reading_in_bounded_memory() {
        let head = b"a,b\n1,2\n3,\"open".to_vec();
        let endless: ByteStream = Box::new(std::io::Cursor::new(head).chain(std::io::repeat(b'x')));
        let mut table = CsvTable::new(endless, Arc::from(Path::new("t.csv")), b',').unwrap();
        assert!(table.next().unwrap().unwrap().is_ok());
        assert!(table.next().unwrap_err().to_string().starts_with("t.csv, line 3: the row does not end"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            rows_in in prop::collection::vec(prop::collection::vec("[a-z,;\"\r\n\t é😀]{0,8}", 3), 0..20),
            delimiter in prop::sample::select(vec![b',', b';', b'\t', b'|']),
        ) {
            let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(Vec::new());
            writer.write_record(["user", "time", "text"]).unwrap();
            for row in &rows_in {
                writer.write_record(row).unwrap();
            }
            let read_back: Vec<Vec<String>> =
                rows(&writer.into_inner().unwrap()).into_iter().map(Result::unwrap).collect();
            prop_assert_eq!(read_back, rows_in);
        }

        #[test]
        fn posts_of_several_lines_are_read_whole(
            texts in prop::collection::vec("[a-c,;0-9:\"\n -]{0,40}", 1..20),
            order in prop::sample::select(vec![[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1]]),
        ) {
            let mut writer = csv::Writer::from_writer(Vec::new());
            writer.write_record(order.map(|column| ["user", "time", "text"][column])).unwrap();
            let rows_in: Vec<[String; 3]> = texts.iter().map(|text| {
                let cells = ["ann", "2024-05-01T12:00:00Z", text];
                order.map(|column| cells[column].to_owned())
            }).collect();
            rows_in.iter().for_each(|row| writer.write_record(row).unwrap());
            let read_back: Vec<Vec<String>> =
                rows(&writer.into_inner().unwrap()).into_iter().map(Result::unwrap).collect();
            prop_assert_eq!(read_back, rows_in);
        }
    }
}
