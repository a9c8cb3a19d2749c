//! Serialisation of small matrices without loss, for learners that are saved and loaded again.

use faer::Mat;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(super) fn serialize<S: Serializer>(matrix: &Mat<f64>, to: S) -> Result<S::Ok, S::Error> {
    let cells: Vec<f64> = (0..matrix.ncols()).flat_map(|column| matrix.col_as_slice(column).to_vec()).collect();
    (matrix.nrows(), matrix.ncols(), cells).serialize(to)
}

pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Mat<f64>, D::Error> {
    let (rows, columns, cells): (usize, usize, Vec<f64>) = Deserialize::deserialize(from)?;
    if rows.checked_mul(columns) != Some(cells.len()) {
        return Err(D::Error::custom(format!("{} cells found, {rows}×{columns} expected", cells.len())));
    }
    Ok(Mat::from_fn(rows, columns, |row, column| cells[column * rows + row]))
}
