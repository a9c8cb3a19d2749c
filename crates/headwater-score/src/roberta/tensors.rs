//! Weights on disk: `model.safetensors` or `pytorch_model.bin` in, one tensor at a time as f32 out.
//!
//! Tensors are read one by one, so that a checkpoint is never twice in memory. The header of a safetensors file is read and
//! checked by the crate `safetensors`; pickles are read here, because a crate that unpickles would have to be trusted.

use super::pickle;
use crate::Error;
use safetensors::Dtype;
use safetensors::tensor::Metadata;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Element types that can become f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    F64,
    F32,
    F16,
    Bf16,
}

impl Element {
    fn size(self) -> usize {
        match self {
            Element::F64 => 8,
            Element::F32 => 4,
            Element::F16 | Element::Bf16 => 2,
        }
    }

    fn decode(self, bytes: &[u8]) -> Vec<f32> {
        let chunks = bytes.chunks_exact(self.size());
        match self {
            Element::F64 => chunks
                .map(|bytes| {
                    let mut eight = [0; 8];
                    eight.copy_from_slice(bytes);
                    f64::from_le_bytes(eight) as f32
                })
                .collect(),
            Element::F32 => chunks.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
            Element::F16 => chunks.map(|b| half(u16::from_le_bytes([b[0], b[1]]))).collect(),
            Element::Bf16 => {
                chunks.map(|b| f32::from_bits(u32::from(u16::from_le_bytes([b[0], b[1]])) << 16)).collect()
            }
        }
    }
}

/// An IEEE half as f32; exact.
fn half(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f32::from(bits & 0x3ff);
    match exponent {
        0 => sign * fraction * 2.0_f32.powi(-24),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        _ => sign * (1.0 + fraction / 1024.0) * 2.0_f32.powi(exponent - 15),
    }
}

/// Where a tensor is.
#[derive(Debug, Clone)]
struct TensorPlace {
    shape: Vec<usize>,
    element: Result<Element, String>,
    /// Name of the storage in the archive; empty when the file itself holds the bytes.
    storage: Rc<str>,
    /// First byte in the storage or file.
    start: u64,
}

/// Bytes of a checkpoint, wherever they are.
pub trait CheckpointBytes: Read + Seek {}

impl<R: Read + Seek> CheckpointBytes for R {}

/// An open checkpoint: the names and shapes of its tensors, each of which is read when it is asked for.
///
/// Nothing in a checkpoint is trusted: sizes are checked against the length of the file before memory is taken for them.
///
/// ```
/// use headwater_score::roberta::ModelCheckpoint;
/// let header = br#"{"w": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}}"#;
/// let mut file = (header.len() as u64).to_le_bytes().to_vec();
/// file.extend_from_slice(header);
/// file.extend([1.5_f32, -2.0].iter().flat_map(|number| number.to_le_bytes()));
/// let mut checkpoint = ModelCheckpoint::from_safetensors(std::io::Cursor::new(file), "x.safetensors".as_ref())?;
/// assert_eq!(checkpoint.tensors().collect::<Vec<_>>(), [("w", &[1, 2][..])]);
/// assert_eq!(checkpoint.tensor("w")?, [1.5, -2.0]);
/// # Ok::<(), headwater_score::Error>(())
/// ```
pub struct ModelCheckpoint {
    path: PathBuf,
    source: CheckpointFile,
    /// Bytes of the file.
    size: u64,
    places: BTreeMap<Rc<str>, TensorPlace>,
}

enum CheckpointFile {
    Plain(Box<dyn CheckpointBytes>),
    Archive { archive: zip::ZipArchive<Box<dyn CheckpointBytes>>, prefix: String },
}

/// A header longer than this is no header.
const LONGEST_HEADER: u64 = 100 << 20;

/// All tensors together may take so many times the bytes of the file: two names may share a storage.
const MOST_SHARED: u64 = 2;

impl ModelCheckpoint {
    /// Opens `model.safetensors`, else `pytorch_model.bin`.
    pub(super) fn open(folder: &Path) -> Result<ModelCheckpoint, Error> {
        let safe = folder.join("model.safetensors");
        let torch = folder.join("pytorch_model.bin");
        for (path, read) in [(&safe, Self::from_safetensors as fn(_, &Path) -> _), (&torch, Self::from_torch)] {
            if path.is_file() {
                let file = File::open(path).map_err(|error| Error::model(path, format!("cannot be read: {error}")))?;
                return read(BufReader::new(file), path);
            }
        }
        let sharded = ["model.safetensors.index.json", "pytorch_model.bin.index.json"];
        let problem = if sharded.iter().any(|name| folder.join(name).exists()) {
            "its weights are in several files; save the model as one model.safetensors"
        } else {
            "has no weights: model.safetensors or pytorch_model.bin is needed"
        };
        Err(Error::model(folder, problem))
    }

    /// Reads the header of a safetensors file; `path` names it in messages.
    ///
    /// # Errors
    /// [`Error::Model`] where the header is damaged or states more than the file holds.
    pub fn from_safetensors(mut file: impl CheckpointBytes + 'static, path: &Path) -> Result<ModelCheckpoint, Error> {
        let unreadable = |error: std::io::Error| Error::model(path, format!("cannot be read: {error}"));
        let size = length(&mut file).map_err(unreadable)?;
        let mut length = [0; 8];
        file.read_exact(&mut length).map_err(|_| Error::model(path, "is too short to be a safetensors file"))?;
        let length = u64::from_le_bytes(length);
        if length > LONGEST_HEADER || length.saturating_add(8) > size {
            return Err(Error::model(path, "is not a safetensors file: its header is longer than the file"));
        }
        let mut header = vec![0; length as usize];
        file.read_exact(&mut header).map_err(unreadable)?;
        // Reading it checks that the tensors follow each other and have the sizes of their shapes.
        let metadata: Metadata = serde_json::from_slice(&header)
            .map_err(|error| Error::model(path, format!("is not a safetensors file: its header is wrong: {error}")))?;
        let missing = (length + 8).saturating_add(metadata.data_len() as u64).saturating_sub(size);
        if missing > 0 {
            return Err(Error::model(path, format!("lacks {missing} bytes; the file may be cut short")));
        }
        let mut places = BTreeMap::new();
        for (name, info) in metadata.tensors() {
            let element = match info.dtype {
                Dtype::F64 => Ok(Element::F64),
                Dtype::F32 => Ok(Element::F32),
                Dtype::F16 => Ok(Element::F16),
                Dtype::BF16 => Ok(Element::Bf16),
                other => Err(format!("{other:?}")),
            };
            let (shape, start) = (info.shape.clone(), length + 8 + info.data_offsets.0 as u64);
            places.insert(name.into(), TensorPlace { shape, element, storage: "".into(), start });
        }
        Ok(ModelCheckpoint { path: path.to_owned(), source: CheckpointFile::Plain(Box::new(file)), size, places })
    }

    /// Reads the pickle of a torch checkpoint, of either format; `path` names it in messages.
    ///
    /// # Errors
    /// [`Error::Model`] where it is damaged, or is more than a dictionary of tensors.
    pub fn from_torch(mut file: impl CheckpointBytes + 'static, path: &Path) -> Result<ModelCheckpoint, Error> {
        let unreadable = |error: std::io::Error| Error::model(path, format!("cannot be read: {error}"));
        let size = length(&mut file).map_err(unreadable)?;
        let mut start = [0; 4];
        file.read_exact(&mut start).map_err(|_| Error::model(path, "is too short to be a checkpoint"))?;
        file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        match start {
            [b'P', b'K', ..] => Self::torch_archive(path, Box::new(file), size),
            [0x80, ..] => Self::torch_stream(path, Box::new(file), size),
            _ => Err(Error::model(
                path,
                "is not a torch checkpoint; if it is a pointer of a large-file store, fetch the file",
            )),
        }
    }

    /// Since torch 1.6: a zip archive with `data.pkl` and one file per storage.
    fn torch_archive(path: &Path, file: Box<dyn CheckpointBytes>, size: u64) -> Result<ModelCheckpoint, Error> {
        let wrong = |problem: String| Error::model(path, problem);
        let mut archive =
            zip::ZipArchive::new(file).map_err(|error| wrong(format!("is not a torch checkpoint: {error}")))?;
        let pickled = archive.file_names().find(|name| name.ends_with("/data.pkl")).map(str::to_owned);
        let pickled = pickled.ok_or_else(|| wrong("is not a torch checkpoint: no data.pkl inside".to_owned()))?;
        let member = archive.by_name(&pickled).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        if member.compression() != zip::CompressionMethod::Stored {
            return Err(wrong(COMPRESSED.to_owned()));
        }
        let mut bytes = Vec::new();
        member
            .take(LONGEST_HEADER.min(size))
            .read_to_end(&mut bytes)
            .map_err(|error| wrong(format!("cannot be read: {error}")))?;
        let (pieces, _) = pickle::state_dict(&bytes).map_err(wrong)?;
        let prefix = pickled.trim_end_matches("data.pkl").to_owned() + "data/";
        let places = pieces.into_iter().map(|(name, piece)| place(name, &piece, 0)).collect();
        Ok(ModelCheckpoint { path: path.to_owned(), source: CheckpointFile::Archive { archive, prefix }, size, places })
    }

    /// Before torch 1.6: four pickles, a pickled list of storages, then each storage with its length.
    fn torch_stream(path: &Path, mut file: Box<dyn CheckpointBytes>, size: u64) -> Result<ModelCheckpoint, Error> {
        let wrong = |problem: String| Error::model(path, problem);
        let unreadable = |error: std::io::Error| Error::model(path, format!("cannot be read: {error}"));
        // The pickles come first and are small against this.
        let mut head = Vec::new();
        (&mut file).take(4 << 20).read_to_end(&mut head).map_err(unreadable)?;
        let mut at = 0;
        for _ in 0..3 {
            at += pickle::skip(&head[at..]).map_err(wrong)?;
        }
        let (pieces, taken) = pickle::state_dict(&head[at..]).map_err(wrong)?;
        at += taken;
        let (keys, taken) = pickle::texts(&head[at..]).map_err(wrong)?;
        at += taken;
        let kinds: HashMap<&str, &str> = pieces.iter().map(|(_, piece)| (&*piece.storage, &*piece.kind)).collect();
        let mut starts: HashMap<Rc<str>, u64> = HashMap::new();
        let mut next = at as u64;
        for key in keys {
            let bytes = match kinds.get(&*key).copied() {
                Some("DoubleStorage" | "LongStorage") => 8,
                Some("FloatStorage" | "IntStorage") => 4,
                Some("HalfStorage" | "BFloat16Storage" | "ShortStorage") => 2,
                Some("ByteStorage" | "BoolStorage" | "CharStorage") => 1,
                _ => return Err(wrong(format!("has a storage {key:?} of unknown type"))),
            };
            let mut count = [0; 8];
            file.seek(SeekFrom::Start(next)).map_err(unreadable)?;
            file.read_exact(&mut count).map_err(|_| wrong("ends too early".to_owned()))?;
            starts.insert(key, next + 8);
            next = u64::from_le_bytes(count)
                .checked_mul(bytes)
                .and_then(|bytes| bytes.checked_add(next + 8))
                .filter(|next| *next <= size)
                .ok_or_else(|| wrong("has a storage that is longer than the file; it may be cut short".to_owned()))?;
        }
        let places = pieces
            .into_iter()
            .map(|(name, piece)| {
                let start = starts.get(&piece.storage).copied().unwrap_or(u64::MAX);
                let (name, place) = place(name, &piece, start);
                (name, TensorPlace { storage: "".into(), ..place })
            })
            .collect();
        Ok(ModelCheckpoint { path: path.to_owned(), source: CheckpointFile::Plain(file), size, places })
    }

    /// What is wrong with the tensors that the model needs: all at once, so that one look suffices.
    pub(super) fn check(&self, wanted: &[(String, Vec<usize>)]) -> Result<(), Error> {
        let (mut problems, mut needed) = (Vec::new(), 0_u64);
        for (name, shape) in wanted {
            match self.places.get(name.as_str()) {
                None => problems.push(format!("{name} is missing")),
                Some(place) if place.shape != *shape => {
                    problems.push(format!("{name} has shape {:?}, config.json says {shape:?}", place.shape));
                }
                Some(TensorPlace { element: Err(kind), .. }) => {
                    problems.push(format!("{name} has elements of type {kind}; floating point is needed"));
                }
                Some(TensorPlace { element: Ok(element), .. }) => {
                    needed = needed.saturating_add(bytes(shape, *element))
                }
            }
        }
        if needed > self.size.saturating_mul(MOST_SHARED) {
            problems.push(format!("its tensors take {needed} bytes, and the file has {}", self.size));
        }
        if problems.is_empty() {
            return Ok(());
        }
        const SHOWN: usize = 4;
        let more = problems.len().saturating_sub(SHOWN);
        problems.truncate(SHOWN);
        let mut text = problems.join("; ");
        if more > 0 {
            text += &format!("; and {more} more");
        }
        Err(Error::model(&self.path, text))
    }

    /// Names and shapes of the tensors, by name.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &[usize])> {
        self.places.iter().map(|(name, place)| (&**name, &place.shape[..]))
    }

    /// One tensor, row by row.
    ///
    /// # Errors
    /// [`Error::Model`] where it is not there, not of floating point, not finite, or longer than the file.
    pub fn tensor(&mut self, name: &str) -> Result<Vec<f32>, Error> {
        let path = self.path.clone();
        let wrong = |problem: String| Error::model(&path, problem);
        let place = self.places.get(name).ok_or_else(|| wrong(format!("{name} is missing")))?;
        let element = place.element.clone().map_err(|kind| wrong(format!("{name} has elements of type {kind}")))?;
        let needed = bytes(&place.shape, element);
        if needed > self.size {
            return Err(wrong(format!(
                "{name} takes {needed} bytes, and the file has {}; it may be cut short",
                self.size
            )));
        }
        let mut bytes = vec![0; needed as usize];
        let filled = match &mut self.source {
            CheckpointFile::Plain(file) => file
                .seek(SeekFrom::Start(place.start))
                .and_then(|_| file.read_exact(&mut bytes))
                .map_err(|e| e.to_string()),
            CheckpointFile::Archive { archive, prefix } => archive
                .by_name(&format!("{prefix}{}", place.storage))
                .map_err(|error| error.to_string())
                .and_then(|mut entry| {
                    if entry.compression() != zip::CompressionMethod::Stored {
                        return Err(COMPRESSED.to_owned());
                    }
                    std::io::copy(&mut (&mut entry).take(place.start), &mut std::io::sink())
                        .and_then(|_| entry.read_exact(&mut bytes))
                        .map_err(|error| error.to_string())
                }),
        };
        filled.map_err(|error| wrong(format!("{name} cannot be read: {error}; the file may be cut short")))?;
        let values = element.decode(&bytes);
        if values.iter().any(|value| !value.is_finite()) {
            return Err(wrong(format!("{name} holds numbers that are not finite")));
        }
        Ok(values)
    }
}

/// What torch never does, and a checkpoint that becomes a thousand times larger has to.
const COMPRESSED: &str =
    "is compressed, which torch does not do; save the model again with torch.save or as model.safetensors";

/// Bytes of a file, which is left at its start.
fn length(file: &mut impl Seek) -> std::io::Result<u64> {
    let length = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    Ok(length)
}

/// Bytes of a tensor in its file.
fn bytes(shape: &[usize], element: Element) -> u64 {
    shape.iter().fold(element.size() as u64, |bytes, side| bytes.saturating_mul(*side as u64))
}

fn place(name: Rc<str>, piece: &pickle::Piece, start: u64) -> (Rc<str>, TensorPlace) {
    let mut element = match &*piece.kind {
        "DoubleStorage" => Ok(Element::F64),
        "FloatStorage" => Ok(Element::F32),
        "HalfStorage" => Ok(Element::F16),
        "BFloat16Storage" => Ok(Element::Bf16),
        other => Err(other.to_owned()),
    };
    let mut expected = 1;
    let contiguous = piece.shape.iter().zip(&piece.strides).rev().all(|(size, stride)| {
        let right = *size == 1 || *stride == expected;
        expected = expected.saturating_mul(*size);
        right
    });
    if !contiguous {
        element = Err("a transposed view".to_owned());
    }
    let size = element.as_ref().map_or(0, |element| element.size());
    let start = start.saturating_add((piece.offset as u64).saturating_mul(size as u64));
    (name, TensorPlace { shape: piece.shape.clone(), element, storage: piece.storage.clone(), start })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_is_exact() {
        let shown = [0x0000, 0x3c00, 0xc000, 0x7bff, 0x0001, 0x3555].map(half);
        assert_eq!(shown, [0.0, 1.0, -2.0, 65504.0, 5.960_464_5e-8, 0.333_251_95]);
        assert!(half(0x7c00).is_infinite() && half(0x7c01).is_nan());
        assert_eq!(Element::Bf16.decode(&[0x80, 0x3f]), [1.0]);
        assert_eq!(Element::F64.decode(&1.5_f64.to_le_bytes()), [1.5]);
    }
}
