//! Models as `.npz`: arrays as NumPy reads them, the rest as JSON in a text array.

use super::Parts;
use super::document::Document;
use crate::Error;
use crate::limit::{Expansion, check_hypotheses};
use crate::npy::{self, NpyHeader, NpyType};
use headwater::combination::Columns;
use headwater::model::Innovation;
use headwater::{Combination, Evidence, Model};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// Bytes of arrays, and of the text, that are always read; a model is stored without compression.
const ALWAYS_READ: u64 = 32 << 20;
const ALWAYS_READ_TEXT: u64 = 8 << 20;

/// Beyond that: unpacked bytes per byte of the file.
const MOST_EXPANSION: u64 = 16;

pub(super) fn read_npz(mut reader: impl Read + Seek, path: &Path) -> Result<(Document, Parts), Error> {
    let size = reader.seek(SeekFrom::End(0)).map_err(Error::io(path, "cannot read"))?;
    let broken = |error: &dyn std::fmt::Display| {
        Error::file(path, format!("is not a whole .npz file ({error}); write it again"))
    };
    let archive = ZipArchive::new(reader).map_err(|error| broken(&error))?;
    let mut archive = Members { archive, size, unpacked: Expansion::new(size).with_limit(ALWAYS_READ, MOST_EXPANSION) };
    let text = read_text(&mut archive, path)?;
    let document: Document = serde_json::from_str(&text)
        .map_err(|error| Error::file(path, format!("its \"meta\" is not a model's: {error}")))?;
    check_hypotheses(path, document.hypotheses.len())?;
    let (agents, ratios) = (document.agents.len(), document.hypotheses.len().saturating_sub(1));
    let dense = read_array(&mut archive, path, "combination", &[agents, agents], true)?;
    let combination = match dense {
        Some(columns) => Some(Combination::from_columns(columns, agents).map_err(Error::data(path))?),
        None => read_sparse(&mut archive, path, agents)?,
    };
    let evidence = match read_array(&mut archive, path, "evidence", &[agents, ratios], false)? {
        Some(rows) => Some(Evidence::from_rows(rows, agents, ratios).map_err(Error::data(path))?),
        None => None,
    };
    let innovation = match read_array(&mut archive, path, "innovation", &[agents, ratios, ratios], false)? {
        Some(cells) => Some(Innovation::from_cells(cells, agents, ratios).map_err(Error::data(path))?),
        None => None,
    };
    Ok((document, Parts { combination, evidence, innovation }))
}

/// The arrays of an archive, and how much has been read of them.
struct Members<R> {
    archive: ZipArchive<R>,
    size: u64,
    unpacked: Expansion,
}

fn read_text(members: &mut Members<impl Read + Seek>, path: &Path) -> Result<String, Error> {
    let broken = |problem: String| Error::file(path, format!("\"meta\": {problem}"));
    let mut limit = Expansion::new(members.size).with_limit(ALWAYS_READ_TEXT, MOST_EXPANSION);
    let mut member = members.archive.by_name("meta.npy").map_err(|error| broken(error.to_string()))?;
    let header = NpyHeader::read(&mut member, path)?;
    let NpyType::Text(length) = header.kind else { return Err(broken("is not text".into())) };
    let wanted = length.saturating_mul(4) as u64;
    limit.add(wanted).map_err(|error| broken(error.to_string()))?;
    let mut bytes = Vec::new();
    (&mut member).take(wanted + 1).read_to_end(&mut bytes).map_err(|error| broken(error.to_string()))?;
    if bytes.len() as u64 != wanted || !header.shape.is_empty() {
        return Err(broken("is not one whole text".into()));
    }
    let character = |bytes: &[u8]| {
        let bytes: [u8; 4] = bytes.try_into().ok()?;
        char::from_u32(if header.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    };
    let text: Option<String> = bytes.chunks_exact(4).map(character).collect();
    text.map(|text| text.trim_end_matches('\0').to_owned()).ok_or_else(|| broken("is not Unicode".into()))
}

/// One array in row order, or in column order when `columns`; `None` when the file does not hold it.
fn read_array(
    members: &mut Members<impl Read + Seek>,
    path: &Path,
    name: &str,
    shape: &[usize],
    columns: bool,
) -> Result<Option<Vec<f64>>, Error> {
    let Members { archive, unpacked, .. } = members;
    let Ok(mut member) = archive.by_name(&format!("{name}.npy")) else { return Ok(None) };
    let header = NpyHeader::read(&mut member, path)?;
    let broken = |problem: String| Error::file(path, format!("array {name:?} {problem}"));
    // A shape of zeros asks for whatever length the one side has.
    let fits = if shape == [0] { header.shape.len() == 1 } else { header.shape == shape };
    if !fits {
        return Err(broken(format!("has shape {:?}; expected {shape:?}", header.shape)));
    }
    if matches!(header.kind, NpyType::Text(_)) || header.bytes().is_none_or(|bytes| bytes as u64 > member.size()) {
        return Err(broken("is truncated, or not numbers".into()));
    }
    let count = header.shape.iter().product();
    let numbers = header
        .count_floats(&mut member, count, |bytes| unpacked.add(bytes).map_err(|error| error.to_string()))
        .map_err(broken)?;
    if header.fortran == columns || shape.len() < 2 {
        return Ok(Some(numbers));
    }
    // Only matrices are ever stored the other way round.
    let [rows, others @ ..] = shape else { return Ok(Some(numbers)) };
    let others: usize = others.iter().product();
    if shape.len() > 2 {
        return Err(broken("is in Fortran order; save it in C order".into()));
    }
    let turned = (0..count).map(|cell| {
        if columns {
            numbers[cell % rows * others + cell / rows]
        } else {
            numbers[cell % others * rows + cell / others]
        }
    });
    Ok(Some(turned.collect()))
}

fn read_sparse(
    archive: &mut Members<impl Read + Seek>,
    path: &Path,
    agents: usize,
) -> Result<Option<Combination>, Error> {
    let Some(starts) = read_array(archive, path, "combination_indptr", &[agents + 1], false)? else { return Ok(None) };
    let broken = || Error::file(path, "its sparse combination is damaged; expected CSC arrays, column = listener");
    let speakers = read_array(archive, path, "combination_indices", &[0], false)?.ok_or_else(broken)?;
    let weights = read_array(archive, path, "combination_data", &[0], false)?.ok_or_else(broken)?;
    let sound = starts.windows(2).all(|pair| pair[0] <= pair[1])
        && starts.first() == Some(&0.0)
        && starts.last() == Some(&(weights.len() as f64))
        && speakers.len() == weights.len()
        && starts.iter().chain(&speakers).all(|index| *index >= 0.0 && index.fract() == 0.0);
    if !sound {
        return Err(broken());
    }
    let mut triplets = Vec::with_capacity(weights.len());
    for listener in 0..agents {
        for entry in starts[listener] as usize..starts[listener + 1] as usize {
            triplets.push((speakers[entry] as usize, listener, weights[entry]));
        }
    }
    Combination::from_triplets(triplets, agents).map(Some).map_err(Error::data(path))
}

pub(super) fn write_npz<W: Write + Seek>(
    to: W,
    path: &Path,
    document: &Document,
    model: &Model,
    combination: &Combination,
) -> Result<W, Error> {
    let broken = |error: &dyn std::fmt::Display| Error::file(path, format!("cannot write: {error}"));
    let mut archive = ZipWriter::new(to);
    let mut array = |name: &str, header: &NpyHeader, body: &mut dyn FnMut(&mut dyn Write) -> std::io::Result<()>| {
        let large = header.bytes().is_none_or(|bytes| bytes > 0xF000_0000);
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(large);
        archive.start_file(format!("{name}.npy"), options).map_err(|error| broken(&error))?;
        header.write(&mut archive).and_then(|()| body(&mut archive)).map_err(|error| broken(&error))
    };
    let floats = |numbers: &[f64], to: &mut dyn Write| npy::write_floats(&mut { to }, numbers);
    let agents = combination.agents();
    match (combination.dense(), combination.sparse()) {
        (Some(columns), _) => {
            let header = NpyHeader::new(NpyType::Float64, true, &[agents, agents]);
            array("combination", &header, &mut |to| floats(columns, to))?;
        }
        (None, Some(Columns { starts, speakers, weights })) => {
            let header = NpyHeader::new(NpyType::Float64, false, &[weights.len()]);
            array("combination_data", &header, &mut |to| floats(weights, to))?;
            for (name, list) in [("combination_indices", speakers), ("combination_indptr", starts)] {
                let header = NpyHeader::new(NpyType::Int64, false, &[list.len()]);
                array(name, &header, &mut |to| {
                    let bytes: Vec<u8> = list.iter().flat_map(|index| (*index as i64).to_le_bytes()).collect();
                    to.write_all(&bytes)
                })?;
            }
        }
        (None, None) => unreachable!("a matrix is dense or sparse"),
    }
    let ratios = model.evidence.ratios();
    let rows: Vec<f64> = (0..agents).flat_map(|agent| model.evidence.agent(agent).to_vec()).collect();
    let header = NpyHeader::new(NpyType::Float64, false, &[agents, ratios]);
    array("evidence", &header, &mut |to| floats(&rows, to))?;
    if let Some(innovation) = &model.innovation {
        let header = NpyHeader::new(NpyType::Float64, false, &[agents, ratios, ratios]);
        array("innovation", &header, &mut |to| floats(innovation.cells(), to))?;
    }
    let text = serde_json::to_string(document).map_err(|error| broken(&error))?;
    let characters: Vec<u8> = text.chars().flat_map(|character| u32::from(character).to_le_bytes()).collect();
    let header = NpyHeader::new(NpyType::Text(characters.len() / 4), false, &[]);
    array("meta", &header, &mut |to| to.write_all(&characters))?;
    archive.finish().map_err(|error| broken(&error))
}
