//! The footer of a Parquet file: the types of all fields that the Parquet crate knows.
//!
//! From `parquet.thrift`, as the crate reads it. A field that is missing here would be read by the crate whatever type it states.

use crate::thrift::FieldShape::{Byte, Bytes, Double, Flag, Int, List, Long, Short, Structure};
use crate::thrift::{FieldShapes, STATISTICS};

/// Structures without fields.
const EMPTY: FieldShapes = &[];

const TIME_UNIT: FieldShapes = &[(1, Structure(EMPTY)), (2, Structure(EMPTY)), (3, Structure(EMPTY))];

const DECIMAL: FieldShapes = &[(1, Int), (2, Int)];

const TIME: FieldShapes = &[(1, Flag), (2, Structure(TIME_UNIT))];

const INTEGER: FieldShapes = &[(1, Byte), (2, Flag)];

const VARIANT: FieldShapes = &[(1, Byte)];

/// Geometry has the first field of geography.
const GEOGRAPHY: FieldShapes = &[(1, Bytes), (2, Int)];

const LOGICAL_TYPE: FieldShapes = &[
    (1, Structure(EMPTY)),
    (2, Structure(EMPTY)),
    (3, Structure(EMPTY)),
    (4, Structure(EMPTY)),
    (5, Structure(DECIMAL)),
    (6, Structure(EMPTY)),
    (7, Structure(TIME)),
    (8, Structure(TIME)),
    (10, Structure(INTEGER)),
    (11, Structure(EMPTY)),
    (12, Structure(EMPTY)),
    (13, Structure(EMPTY)),
    (14, Structure(EMPTY)),
    (15, Structure(EMPTY)),
    (16, Structure(VARIANT)),
    (17, Structure(GEOGRAPHY)),
    (18, Structure(GEOGRAPHY)),
];

const SCHEMA_ELEMENT: FieldShapes = &[
    (1, Int),
    (2, Int),
    (3, Int),
    (4, Bytes),
    (5, Int),
    (6, Int),
    (7, Int),
    (8, Int),
    (9, Int),
    (10, Structure(LOGICAL_TYPE)),
];

const KEY_VALUE: FieldShapes = &[(1, Bytes), (2, Bytes)];

const ENCODING_STATISTICS: FieldShapes = &[(1, Int), (2, Int), (3, Int)];

const SIZE_STATISTICS: FieldShapes = &[(1, Long), (2, List(&Long)), (3, List(&Long))];

const BOUNDING_BOX: FieldShapes =
    &[(1, Double), (2, Double), (3, Double), (4, Double), (5, Double), (6, Double), (7, Double), (8, Double)];

const GEOSPATIAL_STATISTICS: FieldShapes = &[(1, Structure(BOUNDING_BOX)), (2, List(&Int))];

const COLUMN_METADATA: FieldShapes = &[
    (1, Int),
    (2, List(&Int)),
    (3, List(&Bytes)),
    (4, Int),
    (5, Long),
    (6, Long),
    (7, Long),
    (8, List(&Structure(KEY_VALUE))),
    (9, Long),
    (10, Long),
    (11, Long),
    (12, Structure(STATISTICS)),
    (13, List(&Structure(ENCODING_STATISTICS))),
    (14, Long),
    (15, Int),
    (16, Structure(SIZE_STATISTICS)),
    (17, Structure(GEOSPATIAL_STATISTICS)),
];

const COLUMN_CHUNK: FieldShapes =
    &[(1, Bytes), (2, Long), (3, Structure(COLUMN_METADATA)), (4, Long), (5, Int), (6, Long), (7, Int), (9, Bytes)];

const SORTING_COLUMN: FieldShapes = &[(1, Int), (2, Flag), (3, Flag)];

const ROW_GROUP: FieldShapes = &[
    (1, List(&Structure(COLUMN_CHUNK))),
    (2, Long),
    (3, Long),
    (4, List(&Structure(SORTING_COLUMN))),
    (5, Long),
    (6, Long),
    (7, Short),
];

const COLUMN_ORDER: FieldShapes = &[(1, Structure(EMPTY))];

/// The whole footer.
pub(crate) const FOOTER: FieldShapes = &[
    (1, Int),
    (2, List(&Structure(SCHEMA_ELEMENT))),
    (3, Long),
    (4, List(&Structure(ROW_GROUP))),
    (5, List(&Structure(KEY_VALUE))),
    (6, Bytes),
    (7, List(&Structure(COLUMN_ORDER))),
    (9, Bytes),
];
