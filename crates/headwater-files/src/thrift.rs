//! Structures in Thrift's compact encoding, as far as the readers of Parquet files look into them before the Parquet crate does:
//! sizes of pages, how deeply the schema is nested, and whether every field has the type that it should have.
//!
//! The Parquet crate reads a field that it knows by its number alone, whatever type is stated, passes over an element of a list of
//! flags without reading a byte, and makes room for as many groups of rows as are stated. A few bytes can so state an endless loop,
//! or more memory than there is. What is accepted here has the stated types, no lists of flags and no maps, and at least a byte for
//! every element: the crate then reads it as it is read here.

use std::io::Read;

/// Nested structures within a skipped field; real ones have three levels.
const DEEPEST_FIELD: usize = 8;

/// Types of fields, by their number in the structure.
pub(crate) type FieldShapes = &'static [(i64, FieldShape)];

/// Type of a field or of the elements of a list.
#[derive(Debug)]
pub(crate) enum FieldShape {
    Flag,
    Byte,
    Short,
    Int,
    Long,
    Double,
    Bytes,
    List(&'static FieldShape),
    Structure(FieldShapes),
}

impl FieldShape {
    /// Whether a field of this number for a type has it.
    fn is(&self, kind: u8) -> bool {
        match self {
            FieldShape::Flag => kind == 1 || kind == 2,
            FieldShape::Byte => kind == 3,
            FieldShape::Short => kind == 4,
            FieldShape::Int => kind == 5,
            FieldShape::Long => kind == 6,
            FieldShape::Double => kind == 7,
            FieldShape::Bytes => kind == 8,
            FieldShape::List(_) => kind == 9,
            FieldShape::Structure(_) => kind == 12,
        }
    }
}

/// Fields of the headers of data pages, dictionaries, and data pages of the second version; their statistics.
const DATA_PAGE: FieldShapes = &[
    (1, FieldShape::Int),
    (2, FieldShape::Int),
    (3, FieldShape::Int),
    (4, FieldShape::Int),
    (5, FieldShape::Structure(STATISTICS)),
];
const DICTIONARY_PAGE: FieldShapes = &[(1, FieldShape::Int), (2, FieldShape::Int), (3, FieldShape::Flag)];
const SECOND_DATA_PAGE: FieldShapes = &[
    (1, FieldShape::Int),
    (2, FieldShape::Int),
    (3, FieldShape::Int),
    (4, FieldShape::Int),
    (5, FieldShape::Int),
    (6, FieldShape::Int),
    (7, FieldShape::Flag),
    (8, FieldShape::Structure(STATISTICS)),
];
pub(crate) const STATISTICS: FieldShapes = &[
    (1, FieldShape::Bytes),
    (2, FieldShape::Bytes),
    (3, FieldShape::Long),
    (4, FieldShape::Long),
    (5, FieldShape::Bytes),
    (6, FieldShape::Bytes),
    (7, FieldShape::Flag),
    (8, FieldShape::Flag),
];

/// What the header of a page states.
pub(crate) struct PageSizes {
    /// Bytes of the page as it is stored.
    pub(crate) packed: u64,
    /// Bytes of the page when it is decompressed.
    pub(crate) whole: u64,
    /// Values of the page, nulls included; those of dictionaries as well.
    pub(crate) values: u64,
}

/// What a schema states.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SchemaShape {
    /// Levels of nested columns; those of a plain table have one.
    pub(crate) depth: usize,
    /// Bytes of memory for the full names of all columns and groups, each with the names of the groups that it is in.
    pub(crate) paths: u64,
}

/// What a part of a full name costs beyond its bytes.
const PART_COST: u64 = 64;

/// Reads structures, and counts what it has read.
pub(crate) struct ThriftReader<R> {
    from: R,
    /// What is read, for messages.
    what: &'static str,
    taken: u64,
}

impl<R: Read> ThriftReader<R> {
    /// `what` is named in messages.
    pub(crate) fn new(from: R, what: &'static str) -> Self {
        ThriftReader { from, what, taken: 0 }
    }

    /// Bytes read so far.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Sizes in the header of a page. The whole header is read.
    pub(crate) fn page_sizes(&mut self) -> Result<PageSizes, String> {
        let (mut packed, mut whole, mut values) = (None, None, 0_u64);
        let mut id = 0;
        while let Some((next, kind)) = self.field(id)? {
            id = next;
            match (id, kind) {
                (2, 5) => whole = Some(self.size()?),
                (3, 5) => packed = Some(self.size()?),
                // Data page, dictionary page and the second version of the data page; the first field is the number of values.
                (5, 12) => values = values.saturating_add(self.first_number(DATA_PAGE)?),
                (7, 12) => values = values.saturating_add(self.first_number(DICTIONARY_PAGE)?),
                (8, 12) => values = values.saturating_add(self.first_number(SECOND_DATA_PAGE)?),
                (1 | 4, 5) | (6, 12) => self.skip(kind, 0)?,
                (1..=8, _) => return Err(self.damaged()),
                _ => self.skip(kind, 0)?,
            }
        }
        let (Some(packed), Some(whole)) = (packed, whole) else { return Err(self.damaged()) };
        Ok(PageSizes { packed, whole, values })
    }

    /// The tree of columns in the footer of a file. Reading ends with the schema, or at the first element deeper than `most`.
    pub(crate) fn schema(&mut self, most: usize) -> Result<SchemaShape, String> {
        let mut shape = SchemaShape { depth: 0, paths: 0 };
        let mut id = 0;
        while let Some((next, kind)) = self.field(id)? {
            id = next;
            if (id, kind) != (2, 9) {
                self.skip(kind, 0)?;
                continue;
            }
            let (count, kind) = self.list()?;
            // Children that are still to come and the bytes of the path, for every open group. The root is in no path.
            let mut open: Vec<(u64, u64)> = Vec::new();
            for _ in 0..count {
                if kind != 12 {
                    return Err(self.damaged());
                }
                while open.last().is_some_and(|(children, _)| *children == 0) {
                    open.pop();
                }
                shape.depth = shape.depth.max(open.len());
                if shape.depth > most {
                    break;
                }
                let (name, children) = self.schema_element()?;
                let path = open.last().map_or(0, |(_, path)| path.saturating_add(name).saturating_add(PART_COST));
                shape.paths = shape.paths.saturating_add(path);
                if let Some((children, _)) = open.last_mut() {
                    *children -= 1;
                }
                open.push((children, path));
            }
            break;
        }
        Ok(shape)
    }

    /// Length of the name of an element of a schema, and how many children it states.
    fn schema_element(&mut self) -> Result<(u64, u64), String> {
        let (mut id, mut name, mut children) = (0, 0, 0);
        while let Some((next, kind)) = self.field(id)? {
            id = next;
            match (id, kind) {
                (4, 8) => {
                    name = self.unsigned()?;
                    self.pass(name)?;
                }
                (5, 5) => children = self.size()?,
                _ => self.skip(kind, 0)?,
            }
        }
        Ok((name, children))
    }

    /// The number in the first field of a structure, which is read whole; 0 without.
    fn first_number(&mut self, known: FieldShapes) -> Result<u64, String> {
        let (mut id, mut number) = (0, 0);
        while let Some((next, kind)) = self.field(id)? {
            id = next;
            match (id, kind) {
                (1, 5) => number = self.size()?,
                _ => self.known_field(known, id, kind)?,
            }
        }
        Ok(number)
    }

    /// Reads a whole structure, in which fields with these numbers must have these types.
    pub(crate) fn structure(&mut self, known: FieldShapes) -> Result<(), String> {
        let mut id = 0;
        while let Some((next, kind)) = self.field(id)? {
            id = next;
            self.known_field(known, id, kind)?;
        }
        Ok(())
    }

    /// Reads a field, whose type must be that of its number where that is known.
    fn known_field(&mut self, known: FieldShapes, id: i64, kind: u8) -> Result<(), String> {
        match known.iter().find(|(number, _)| *number == id) {
            Some((_, shape)) => self.value(shape, kind),
            None => self.skip(kind, 0),
        }
    }

    /// Reads a value that must have this type.
    fn value(&mut self, shape: &FieldShape, kind: u8) -> Result<(), String> {
        if !shape.is(kind) {
            return Err(self.damaged());
        }
        match shape {
            FieldShape::List(of) => {
                let (count, kind) = self.list()?;
                (0..count).try_for_each(|_| self.value(of, kind))
            }
            FieldShape::Structure(fields) => self.structure(fields),
            _ => self.skip(kind, 0),
        }
    }

    fn damaged(&self) -> String {
        format!("{} is damaged", self.what)
    }

    fn ends(&self) -> String {
        format!("it ends within {}", self.what)
    }

    fn byte(&mut self) -> Result<u8, String> {
        let mut byte = [0];
        self.from.read_exact(&mut byte).map_err(|_| self.ends())?;
        self.taken += 1;
        Ok(byte[0])
    }

    fn unsigned(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.damaged())
    }

    fn number(&mut self) -> Result<i64, String> {
        let value = self.unsigned()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A number that is not negative.
    fn size(&mut self) -> Result<u64, String> {
        let number = self.number()?;
        u64::try_from(number).map_err(|_| self.damaged())
    }

    /// Number and type of the next field; `None` at the end of the structure.
    fn field(&mut self, before: i64) -> Result<Option<(i64, u8)>, String> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        let id = if head >> 4 == 0 { self.number()? } else { before + i64::from(head >> 4) };
        // Numbers of fields have sixteen bits: others are cut by some readers, and refused by others.
        match i16::try_from(id) {
            Ok(id) => Ok(Some((id.into(), head & 0xf))),
            Err(_) => Err(self.damaged()),
        }
    }

    /// Number and type of the elements of a list that begins here.
    fn list(&mut self) -> Result<(u64, u8), String> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.unsigned()? } else { u64::from(head >> 4) };
        Ok((count, head & 0xf))
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Result<(), String> {
        if depth > DEEPEST_FIELD {
            return Err(self.damaged());
        }
        match kind {
            1 | 2 => Ok(()),
            3 => self.byte().map(drop),
            4..=6 => self.unsigned().map(drop),
            7 => self.pass(8),
            8 => {
                let length = self.unsigned()?;
                self.pass(length)
            }
            9 | 10 => {
                let (count, kind) = self.list()?;
                if count > 0 && matches!(kind, 1 | 2) {
                    return Err(self.damaged());
                }
                // An element takes a byte at least, so that the end of the file ends the loop.
                (0..count).try_for_each(|_| self.skip(kind, depth + 1))
            }
            12 => {
                let mut id = 0;
                while let Some((next, kind)) = self.field(id)? {
                    id = next;
                    self.skip(kind, depth + 1)?;
                }
                Ok(())
            }
            _ => Err(self.damaged()),
        }
    }

    fn pass(&mut self, count: u64) -> Result<(), String> {
        let passed = std::io::copy(&mut (&mut self.from).take(count), &mut std::io::sink());
        match passed {
            Ok(passed) if passed == count => {
                self.taken += count;
                Ok(())
            }
            _ => Err(self.ends()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_a_page_by_hand() {
        // type 0, decompressed 300, stored 20, then a data page of 1000 values with encoding 3.
        let header = [0x15, 0x00, 0x15, 0xd8, 0x04, 0x15, 0x28, 0x2c, 0x15, 0xd0, 0x0f, 0x15, 0x06, 0x00, 0x00];
        let mut reader = ThriftReader::new(&header[..], "a header");
        let sizes = reader.page_sizes().unwrap();
        assert_eq!((sizes.packed, sizes.whole, sizes.values, reader.taken()), (20, 300, 1000, 15));
        let cut = ThriftReader::new(&header[..14], "a header").page_sizes().err();
        assert_eq!(cut.as_deref(), Some("it ends within a header"));
        // A negative number of values.
        let negative = [0x15, 0x00, 0x15, 0x02, 0x15, 0x02, 0x2c, 0x15, 0x01, 0x00, 0x00];
        assert_eq!(
            ThriftReader::new(&negative[..], "a header").page_sizes().err().as_deref(),
            Some("a header is damaged")
        );
    }

    #[test]
    fn fields_of_other_types_lists_of_flags_and_maps_are_refused() {
        const KNOWN: FieldShapes = &[(1, FieldShape::Int), (2, FieldShape::List(&FieldShape::Long))];
        let read = |bytes: &[u8]| ThriftReader::new(bytes, "a footer").structure(KNOWN);
        // 5; [1, 2]; an unknown structure with a flag; an unknown list of two lists of one text each.
        let good =
            [0x15, 0x0a, 0x19, 0x26, 0x02, 0x04, 0x1c, 0x11, 0x00, 0x19, 0x29, 0x18, 1, b'x', 0x18, 1, b'y', 0x00];
        assert_eq!(read(&good), Ok(()));
        // A number as a text, which hides two bytes from a reader that goes by types; a list of other elements.
        for bad in [&[0x18, 0x02, 0x02, 0x00, 0x00][..], &[0x29, 0x15, 0x02, 0x00], &[0x29, 0x11, 0x01, 0x00]] {
            assert_eq!(read(bad).unwrap_err(), "a footer is damaged");
        }
        // Unknown fields: a list of 2^31 - 1 flags, one of three, a map of flags, a number of a field beyond 16 bits.
        for bad in [
            &[0x39, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07, 0x00][..],
            &[0x39, 0x32, 0x01, 0x01, 0x01, 0x00],
            &[0x3b, 0xff, 0xff, 0xff, 0xff, 0x07, 0x11, 0x00],
            &[0x05, 0x82, 0x80, 0x08, 0x00, 0x00],
        ] {
            assert_eq!(read(bad).unwrap_err(), "a footer is damaged");
        }
        let header = |first: &[u8]| {
            let rest = [0x15, 0x02, 0x15, 0x02, 0x2c, 0x15, 0x02, 0x00, 0x00];
            ThriftReader::new(&[first, &rest].concat()[..], "a header").page_sizes().map(|sizes| sizes.values)
        };
        assert_eq!(header(&[0x15, 0x00]), Ok(1));
        assert_eq!(header(&[0x18, 0x00]).unwrap_err(), "a header is damaged");
    }

    #[test]
    fn shape_of_a_schema_by_hand() {
        // Every element has a name of one letter.
        let element = |children: u8| match children {
            0 => vec![0x48, 1, b'x', 0],
            children => vec![0x48, 1, b'x', 0x15, 2 * children, 0],
        };
        let shape = |elements: &[u8]| {
            let parts: Vec<u8> = elements.iter().flat_map(|&children| element(children)).collect();
            let footer = [&[0x15, 0x02, 0x19, (elements.len() as u8) << 4 | 12][..], &parts, &[0x00]].concat();
            let shape = ThriftReader::new(&footer[..], "its footer").schema(10).unwrap();
            (shape.depth, shape.paths / (PART_COST + 1))
        };
        // A table of two columns; a structure of one column and a column; the same the other way round.
        assert_eq!(shape(&[2, 0, 0]), (1, 2));
        assert_eq!(shape(&[2, 1, 0, 0]), (2, 4));
        assert_eq!(shape(&[2, 0, 1, 0]), (2, 4));
        assert_eq!(shape(&[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]), (10, 55));
        assert_eq!(shape(&[1; 14]), (11, 55), "reading ends beyond the limit");
        assert!(ThriftReader::new(&[0x15][..], "its footer").schema(10).is_err());
    }
}
