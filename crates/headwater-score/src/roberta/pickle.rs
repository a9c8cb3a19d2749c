//! Checkpoints of torch: the pickle of a state dictionary in, names and places of tensors out.
//!
//! A pickle is a program that may call anything. This reader knows only what a state dictionary needs: plain values,
//! ordered dictionaries, and tensors over storages. Any other call is refused by name and nothing is ever executed.
//!
//! Values that a pickle recalls are shared and not copied, containers are nested at most [`DEEPEST`] deep, and names and shapes
//! have limits, so that memory and time are proportional to the length of the pickle.

use std::collections::HashMap;
use std::rc::Rc;

/// Containers within containers; a state dictionary has five levels.
const DEEPEST: u8 = 32;

/// Bytes of a text; names of tensors have a hundred.
const LONGEST_TEXT: usize = 4096;

/// Dimensions of a tensor.
const MOST_DIMENSIONS: usize = 8;

/// A tensor as the pickle describes it: part of a storage.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Piece {
    /// `FloatStorage` and the like.
    pub(super) kind: Rc<str>,
    /// Name of the storage.
    pub(super) storage: Rc<str>,
    /// First element.
    pub(super) offset: usize,
    pub(super) shape: Vec<usize>,
    pub(super) strides: Vec<usize>,
}

/// Names of tensors and where they are.
pub(super) type Pieces = Vec<(Rc<str>, Rc<Piece>)>;

#[derive(Debug, Clone)]
enum Value {
    Mark,
    Nothing,
    Int(i64),
    Text(Rc<str>),
    /// Containers know how deep they are nested.
    List(Vec<Value>, u8),
    Tuple(Rc<[Value]>, u8),
    Dict(Vec<(Value, Value)>, u8),
    Global(Rc<str>),
    Storage {
        kind: Rc<str>,
        key: Rc<str>,
    },
    Tensor(Rc<Piece>),
}

impl Value {
    fn depth(&self) -> u8 {
        match self {
            Value::List(_, depth) | Value::Tuple(_, depth) | Value::Dict(_, depth) => *depth,
            _ => 0,
        }
    }
}

/// The depth of a container of these values.
fn depth_around<'a>(values: impl IntoIterator<Item = &'a Value>) -> Result<u8, String> {
    let depth = 1 + values.into_iter().map(Value::depth).max().unwrap_or(0);
    if depth > DEEPEST {
        return Err(format!("its pickle nests values more than {DEEPEST} deep; a state dictionary does not"));
    }
    Ok(depth)
}

fn tuple(values: Vec<Value>) -> Result<Value, String> {
    let depth = depth_around(&values)?;
    Ok(Value::Tuple(values.into(), depth))
}

/// Reads one pickle; returns its tensors and the number of bytes it took. `Err` says what was met.
pub(super) fn state_dict(bytes: &[u8]) -> Result<(Pieces, usize), String> {
    let (value, taken) = PickleReader::new(bytes).run()?;
    let Value::Dict(entries, _) = value else {
        return Err("holds no state dictionary".to_owned());
    };
    let mut found = Vec::new();
    collect(entries, &mut found);
    if found.is_empty() {
        return Err("its state dictionary has no tensors".to_owned());
    }
    Ok((found, taken))
}

/// Trainers wrap the dictionary in another one, under `state_dict` or `model`.
fn collect(entries: Vec<(Value, Value)>, found: &mut Pieces) {
    for (key, value) in entries {
        match (key, value) {
            (Value::Text(name), Value::Tensor(piece)) => found.push((name, piece)),
            (Value::Text(name), Value::Dict(inner, _)) if matches!(&*name, "state_dict" | "model") => {
                collect(inner, found);
            }
            _ => {}
        }
    }
}

/// Skips one pickle of plain values: the preamble of the old format.
pub(super) fn skip(bytes: &[u8]) -> Result<usize, String> {
    PickleReader::new(bytes).run().map(|(_, taken)| taken)
}

/// Reads a pickled list of texts: the storages of the old format, in order.
pub(super) fn texts(bytes: &[u8]) -> Result<(Vec<Rc<str>>, usize), String> {
    let (value, taken) = PickleReader::new(bytes).run()?;
    let Value::List(items, _) = value else { return Err("has no list of storages".to_owned()) };
    let texts = items.into_iter().map(|item| match item {
        Value::Text(text) => Ok(text),
        _ => Err("names a storage by something that is not text".to_owned()),
    });
    Ok((texts.collect::<Result<_, _>>()?, taken))
}

struct PickleReader<'a> {
    bytes: &'a [u8],
    at: usize,
    stack: Vec<Value>,
    memo: HashMap<u32, Value>,
}

impl<'a> PickleReader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        PickleReader { bytes, at: 0, stack: Vec::new(), memo: HashMap::new() }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| "its pickle ends too early".to_owned())?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn size(&mut self, bytes: usize) -> Result<usize, String> {
        let taken = self.take(bytes)?;
        Ok(taken.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    }

    fn text(&mut self, length: usize) -> Result<Value, String> {
        if length > LONGEST_TEXT {
            return Err(format!("its pickle holds a text of {length} bytes; at most {LONGEST_TEXT} are read"));
        }
        match std::str::from_utf8(self.take(length)?) {
            Ok(text) => Ok(Value::Text(text.into())),
            Err(_) => Err("its pickle holds text that is not UTF-8".to_owned()),
        }
    }

    fn line(&mut self) -> Result<&'a str, String> {
        let rest = &self.bytes[self.at..];
        let rest = &rest[..rest.len().min(LONGEST_TEXT)];
        let end = rest.iter().position(|byte| *byte == b'\n').ok_or("its pickle ends too early")?;
        let line = std::str::from_utf8(self.take(end)?).map_err(|_| "its pickle holds text that is not UTF-8")?;
        self.take(1)?;
        Ok(line)
    }

    fn pop(&mut self) -> Result<Value, String> {
        self.stack.pop().ok_or_else(|| "its pickle takes more values than it made".to_owned())
    }

    fn last(&mut self, count: usize) -> Result<Vec<Value>, String> {
        let from = self.stack.len().checked_sub(count).ok_or("its pickle takes more values than it made")?;
        Ok(self.stack.split_off(from))
    }

    fn since_mark(&mut self) -> Result<Vec<Value>, String> {
        let mark = self.stack.iter().rposition(|value| matches!(value, Value::Mark));
        let values = self.stack.split_off(mark.ok_or("its pickle takes more values than it made")? + 1);
        self.stack.pop();
        Ok(values)
    }

    fn remember(&mut self, slot: u32) -> Result<(), String> {
        let value = match self.stack.last() {
            // Containers are filled after they are remembered, so a copy would be stale: see `recall`.
            Some(Value::Dict(..) | Value::List(..)) => Value::Mark,
            Some(value) => value.clone(),
            None => return Err("its pickle takes more values than it made".to_owned()),
        };
        self.memo.insert(slot, value);
        Ok(())
    }

    fn recall(&mut self, slot: u32) -> Result<(), String> {
        match self.memo.get(&slot) {
            Some(Value::Mark) => Err("its pickle shares a container; a plain state dictionary does not".to_owned()),
            Some(value) => {
                let value = value.clone();
                self.stack.push(value);
                Ok(())
            }
            None => Err("its pickle recalls a value that it did not keep".to_owned()),
        }
    }

    fn extend(&mut self, values: Vec<Value>) -> Result<(), String> {
        let around = depth_around(&values)?;
        match self.stack.last_mut() {
            Some(Value::List(list, depth)) => {
                list.extend(values);
                *depth = around.max(*depth);
            }
            Some(Value::Dict(entries, depth)) => {
                let mut values = values.into_iter();
                while let (Some(key), Some(value)) = (values.next(), values.next()) {
                    entries.push((key, value));
                }
                *depth = around.max(*depth);
            }
            _ => return Err("its pickle fills something that is not a container".to_owned()),
        }
        Ok(())
    }

    fn run(mut self) -> Result<(Value, usize), String> {
        loop {
            match self.take(1)?[0] {
                0x80 => self.take(1).map(drop)?,                 // PROTO
                0x95 => self.take(8).map(drop)?,                 // FRAME
                b'(' => self.stack.push(Value::Mark),            // MARK
                b'}' => self.stack.push(Value::Dict(vec![], 1)), // EMPTY_DICT
                b']' => self.stack.push(Value::List(vec![], 1)), // EMPTY_LIST
                b')' => self.stack.push(tuple(vec![])?),         // EMPTY_TUPLE
                b'N' => self.stack.push(Value::Nothing),         // NONE
                0x88 => self.stack.push(Value::Int(1)),          // NEWTRUE
                0x89 => self.stack.push(Value::Int(0)),          // NEWFALSE
                b'J' => {
                    let size = self.size(4)? as u32;
                    self.stack.push(Value::Int(i64::from(size as i32)));
                }
                b'K' => {
                    let size = self.size(1)?;
                    self.stack.push(Value::Int(size as i64));
                }
                b'M' => {
                    let size = self.size(2)?;
                    self.stack.push(Value::Int(size as i64));
                }
                0x8a => {
                    // LONG1; one of more than eight bytes is the old format's magic number, which nobody uses.
                    let length = self.size(1)?;
                    let bytes = self.take(length)?;
                    let negative = bytes.last().is_some_and(|byte| *byte >= 128);
                    let start = if negative { -1_i64 } else { 0 };
                    let value = bytes.iter().take(8).rev().fold(start, |sum, byte| sum << 8 | i64::from(*byte));
                    self.stack.push(Value::Int(value));
                }
                b'G' => {
                    // A number no tensor needs.
                    self.take(8)?;
                    self.stack.push(Value::Nothing);
                }
                b'X' | b'T' => {
                    let length = self.size(4)?;
                    let text = self.text(length)?;
                    self.stack.push(text);
                }
                0x8c | b'U' => {
                    let length = self.size(1)?;
                    let text = self.text(length)?;
                    self.stack.push(text);
                }
                b'q' => {
                    let slot = self.size(1)? as u32;
                    self.remember(slot)?;
                }
                b'r' => {
                    let slot = self.size(4)? as u32;
                    self.remember(slot)?;
                }
                0x94 => {
                    let slot = self.memo.len() as u32;
                    self.remember(slot)?;
                }
                b'h' => {
                    let slot = self.size(1)? as u32;
                    self.recall(slot)?;
                }
                b'j' => {
                    let slot = self.size(4)? as u32;
                    self.recall(slot)?;
                }
                b't' => {
                    let values = self.since_mark()?;
                    self.stack.push(tuple(values)?);
                }
                code @ 0x85..=0x87 => {
                    let values = self.last(usize::from(code - 0x84))?;
                    self.stack.push(tuple(values)?);
                }
                b's' => {
                    let pair = self.last(2)?;
                    self.extend(pair)?;
                }
                b'a' => {
                    let item = self.last(1)?;
                    self.extend(item)?;
                }
                b'u' | b'e' => {
                    let values = self.since_mark()?;
                    self.extend(values)?;
                }
                b'c' => {
                    let name = format!("{}.{}", self.line()?, self.line()?);
                    self.stack.push(Value::Global(known(&name)?));
                }
                0x93 => {
                    let names = self.last(2)?;
                    let [Value::Text(module), Value::Text(name)] = &names[..] else {
                        return Err("its pickle calls something without a name".to_owned());
                    };
                    self.stack.push(Value::Global(known(&format!("{module}.{name}"))?));
                }
                b'Q' => {
                    let id = self.pop()?;
                    self.stack.push(storage(&id)?);
                }
                b'R' => {
                    let arguments = self.pop()?;
                    let function = self.pop()?;
                    self.stack.push(call(&function, &arguments)?);
                }
                b'b' => {
                    // The state of a dictionary is torch's own bookkeeping (versions of modules).
                    self.pop()?;
                }
                b'0' => self.pop().map(drop)?,
                b'.' => {
                    let taken = self.at;
                    return Ok((self.pop()?, taken));
                }
                code => {
                    return Err(format!(
                        "its pickle has the instruction 0x{code:02x}, which a state dictionary has not"
                    ));
                }
            }
        }
    }
}

fn known(name: &str) -> Result<Rc<str>, String> {
    let harmless =
        matches!(
            name,
            "collections.OrderedDict" | "torch._utils._rebuild_tensor_v2" | "torch._utils._rebuild_parameter"
        ) || name.strip_prefix("torch.").is_some_and(|kind| kind.ends_with("Storage") && !kind.contains('.'));
    if harmless {
        return Ok(name.into());
    }
    Err(format!("its pickle wants to call {name}; only tensors are read, nothing is executed"))
}

/// ('storage', kind, key, device, size[, view])
fn storage(id: &Value) -> Result<Value, String> {
    if let Value::Tuple(parts, _) = id
        && let [Value::Text(what), Value::Global(kind), Value::Text(key), ..] = &parts[..]
        && **what == *"storage"
    {
        let view = parts.get(5).is_some_and(|view| !matches!(view, Value::Nothing));
        if !view {
            let kind = kind.strip_prefix("torch.").unwrap_or(kind).into();
            return Ok(Value::Storage { kind, key: key.clone() });
        }
    }
    Err("its pickle refers to something that is not a storage".to_owned())
}

fn call(function: &Value, arguments: &Value) -> Result<Value, String> {
    let (Value::Global(name), Value::Tuple(arguments, _)) = (function, arguments) else {
        return Err("its pickle calls something that is not a function".to_owned());
    };
    match (&**name, &arguments[..]) {
        ("collections.OrderedDict", []) => Ok(Value::Dict(vec![], 1)),
        ("torch._utils._rebuild_parameter", [tensor @ Value::Tensor(_), ..]) => Ok(tensor.clone()),
        ("torch._utils._rebuild_tensor_v2", [storage, offset, shape, strides, ..]) => {
            match (storage, size(offset), sizes(shape), sizes(strides)) {
                (Value::Storage { kind, key }, Some(offset), Some(shape), Some(strides))
                    if shape.len() == strides.len() =>
                {
                    let (kind, storage) = (kind.clone(), key.clone());
                    Ok(Value::Tensor(Rc::new(Piece { kind, storage, offset, shape, strides })))
                }
                _ => Err("its pickle describes a tensor in an unknown way".to_owned()),
            }
        }
        _ => Err(format!("its pickle calls {name} in an unknown way")),
    }
}

fn size(value: &Value) -> Option<usize> {
    match value {
        Value::Int(size) => usize::try_from(*size).ok(),
        _ => None,
    }
}

fn sizes(value: &Value) -> Option<Vec<usize>> {
    match value {
        Value::Tuple(items, _) if items.len() <= MOST_DIMENSIONS => items.iter().map(size).collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_executed() {
        // cos\nsystem\n(S'echo'\ntR. is the classic; the name alone is refused.
        let error = state_dict(b"\x80\x02cos\nsystem\nq\x00X\x04\x00\x00\x00echo\x85R.").unwrap_err();
        assert!(error.contains("os.system"), "{error}");
        let error = state_dict(b"\x80\x02ctorch.nn\nevilStorage\n.").unwrap_err();
        assert!(error.contains("torch.nn.evilStorage"), "{error}");
    }

    #[test]
    fn broken_pickles_are_refused() {
        for bytes in
            [&b""[..], b"\x80", b"(", b"t.", b"R.", b"u.", b"}.", b"K\x01.", b"h\x00.", b"X\xff\xff\xff\xff", b"\xff"]
        {
            assert!(state_dict(bytes).is_err(), "{bytes:?}");
        }
        // A dictionary that holds itself.
        assert!(state_dict(b"}q\x00X\x01\x00\x00\x00ah\x00s.").unwrap_err().contains("shares a container"));
    }

    #[test]
    fn nested_tuples_and_lists_are_refused() {
        let deep = [b"\x80\x02)".to_vec(), b"\x85".repeat(2_000_000), b".".to_vec()].concat();
        assert!(state_dict(&deep).unwrap_err().contains("more than 32 deep"));
        let lists = [b"\x80\x02".to_vec(), b"]".repeat(1_000_000), b"a".repeat(999_999), b".".to_vec()].concat();
        assert!(state_dict(&lists).unwrap_err().contains("more than 32 deep"));
    }

    #[test]
    fn recalled_values_are_not_copied() {
        // Every round doubles what the memo holds: forty of them would be a million million texts.
        let laughs = |rounds: usize| {
            let rounds = b"h\0h\0\x86q\0".repeat(rounds);
            [b"\x80\x02X\x01\0\0\0aq\0".to_vec(), rounds, b".".to_vec()].concat()
        };
        assert!(state_dict(&laughs(30)).unwrap_err().contains("holds no state dictionary"));
        assert!(state_dict(&laughs(40)).unwrap_err().contains("deep"));
        // A text of 4096 bytes, recalled half a million times.
        let text = [b"X\0\x10\0\0".to_vec(), vec![b'a'; 4096], b"q\0".to_vec()].concat();
        let copies = [b"\x80\x02".to_vec(), text, b"h\0".repeat(500_000), b".".to_vec()].concat();
        assert!(state_dict(&copies).unwrap_err().contains("holds no state dictionary"));
        let long = [&b"\x80\x02X\x01\x10\0\0"[..], &[b'a'; 5000]].concat();
        assert!(state_dict(&long).unwrap_err().contains("a text of 4097 bytes"));
    }
}
