//! A network as files: the ending of the name chooses the format, and the files appear whole or not at all.

use super::{ExportNetwork, csv, gexf, graphml, json, parquet};
use crate::Error;
use headwater_files::{AtomicFile, CsvText};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A format that a network is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportFormat {
    /// GEXF 1.3: `.gexf`.
    Gexf,
    /// GraphML: `.graphml`.
    GraphMl,
    /// Two tables, edges and agents: `.csv`.
    Csv,
    /// The same, typed: `.parquet`.
    Parquet,
    /// Node-link JSON: `.json`.
    Json,
}

impl ExportFormat {
    /// The format that the ending of a file name asks for.
    ///
    /// ```
    /// use headwater_report::export::ExportFormat;
    /// use std::path::Path;
    /// assert_eq!(ExportFormat::from_path(Path::new("net.GEXF"))?, ExportFormat::Gexf);
    /// assert!(ExportFormat::from_path(Path::new("net.docx")).is_err());
    /// # Ok::<(), headwater_report::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ExportFormat`] for any other ending.
    pub fn from_path(path: &Path) -> Result<Self, Error> {
        let ending = path.extension().map(OsStr::to_ascii_lowercase).unwrap_or_default();
        match ending.to_str() {
            Some("gexf") => Ok(ExportFormat::Gexf),
            Some("graphml") => Ok(ExportFormat::GraphMl),
            Some("csv") => Ok(ExportFormat::Csv),
            Some("parquet") => Ok(ExportFormat::Parquet),
            Some("json") => Ok(ExportFormat::Json),
            _ => Err(Error::ExportFormat { path: path.to_owned() }),
        }
    }
}

/// The files that an export to `path` makes, in the order in which they take their names: tables have the agents beside the
/// edges, `net.csv` has `net.nodes.csv`.
///
/// # Errors
/// [`Error::ExportFormat`] where the ending is that of no format.
pub fn export_files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    Ok(match ExportFormat::from_path(path)? {
        ExportFormat::Csv | ExportFormat::Parquet => {
            let ending = path.extension().unwrap_or_default().to_string_lossy();
            vec![path.with_extension(format!("nodes.{ending}")), path.to_owned()]
        }
        _ => vec![path.to_owned()],
    })
}

/// Writes a network in the format of the ending of `path`; `reader` is the program that will read JSON, `text` how text is written
/// into CSV. Returns the number of
/// characters in names that XML does not allow.
///
/// # Errors
/// [`Error::ExportFormat`], [`Error::Files`] where a file cannot be created, [`Error::Write`].
pub fn write_files(path: &Path, network: &ExportNetwork, reader: json::Reader, text: CsvText) -> Result<usize, Error> {
    let files = export_files(path)?;
    let mut drafts = files.iter().map(|file| AtomicFile::create(file)).collect::<Result<Vec<AtomicFile>, _>>()?;
    let written = write(ExportFormat::from_path(path)?, network, (reader, text), &mut drafts);
    let replaced = written.map_err(|source| Error::Write { path: path.to_owned(), source })?;
    // The file that was asked for takes its name last: where it is, the other is too. If one cannot, those before it go.
    for (position, draft) in drafts.into_iter().enumerate() {
        if let Err(error) = draft.commit() {
            files[..position].iter().for_each(|file| drop(std::fs::remove_file(file)));
            return Err(error.into());
        }
    }
    Ok(replaced)
}

fn write(
    format: ExportFormat,
    network: &ExportNetwork,
    (reader, text): (json::Reader, CsvText),
    drafts: &mut [AtomicFile],
) -> Result<usize, std::io::Error> {
    match (format, drafts) {
        (ExportFormat::Gexf, [draft]) => return gexf::write(network, draft),
        (ExportFormat::GraphMl, [draft]) => return graphml::write(network, draft),
        (ExportFormat::Csv, [nodes, edges]) => {
            csv::nodes(network, text, nodes)?;
            csv::edges(network, text, edges)?;
        }
        (ExportFormat::Parquet, [nodes, edges]) => {
            parquet::nodes(network, nodes)?;
            parquet::edges(network, edges)?;
        }
        (ExportFormat::Json, [draft]) => json::write(network, reader, draft)?,
        _ => unreachable!("tables have two files, the others one"),
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::super::network::tests::hostile;
    use super::*;

    #[test]
    fn tables_have_two_files_and_nothing_is_left_of_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let names = |folder: &Path| {
            let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
            names.sort();
            names
        };
        for ending in ["gexf", "graphml", "csv", "parquet", "json"] {
            let path = folder.path().join(ending).join(format!("net.{ending}"));
            assert!(
                matches!(write_files(&path, &hostile(), json::Reader::D3, CsvText::default()), Err(Error::Files(_))),
                "no folder"
            );
            std::fs::create_dir(path.parent().unwrap()).unwrap();
            write_files(&path, &hostile(), json::Reader::D3, CsvText::default()).unwrap();
            let wanted = match ending {
                "csv" => vec![format!("net.{ending}"), format!("net.nodes.{ending}")],
                "parquet" => vec![format!("net.nodes.{ending}"), format!("net.{ending}")],
                _ => vec![format!("net.{ending}")],
            };
            assert_eq!(names(path.parent().unwrap()), wanted);
        }
        // The edges cannot take the name of a folder: the agents go as well.
        let taken = folder.path().join("taken");
        std::fs::create_dir_all(taken.join("net.csv")).unwrap();
        assert!(write_files(&taken.join("net.csv"), &hostile(), json::Reader::D3, CsvText::default()).is_err());
        assert_eq!(names(&taken), ["net.csv"]);
    }
}
