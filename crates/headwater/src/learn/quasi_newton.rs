//! Minimisation of a smooth function of a few hundred variables by the BFGS method.
//!
//! In: a function with its gradient, and a starting point. Out: a point whose value is not larger.

use faer::{Mat, MatRef};

/// Gradient, relative to the value, at which the search ends.
const FLAT: f64 = 1e-10;

/// Largest number of halvings of a step.
const HALVINGS: usize = 30;

/// Share of the linear decrease that a step must achieve (Armijo condition).
const DELIVERED: f64 = 1e-4;

/// Longest first step, in any coordinate.
const FIRST_STEP: f64 = 0.5;

/// The best point after at most so many steps.
pub(crate) fn minimise(function: impl Fn(&[f64]) -> (f64, Vec<f64>), start: Vec<f64>, steps: usize) -> Vec<f64> {
    let size = start.len();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut x = start;
    let (mut value, mut gradient) = function(&x);
    let mut inverse = Mat::<f64>::identity(size, size);
    let mut fresh = true;
    for _ in 0..steps {
        let largest = gradient.iter().fold(0.0f64, |most, slope| most.max(slope.abs()));
        if largest <= FLAT * (1.0 + value.abs()) {
            break;
        }
        if fresh {
            let scale = (FIRST_STEP / largest).min(1.0);
            inverse = Mat::from_fn(size, size, |row, column| if row == column { scale } else { 0.0 });
        }
        let product = &inverse * MatRef::from_column_major_slice(&gradient, size, 1);
        let direction: Vec<f64> = product.col_as_slice(0).iter().map(|value| -value).collect();
        let slope = dot(&direction, &gradient);
        if slope >= 0.0 {
            if fresh {
                break;
            }
            fresh = true;
            continue;
        }
        let mut length = 1.0;
        let mut better = None;
        for _ in 0..HALVINGS {
            let next: Vec<f64> = x.iter().zip(&direction).map(|(x, d)| x + length * d).collect();
            let (tried, next_gradient) = function(&next);
            if tried <= value + DELIVERED * length * slope {
                better = Some((next, tried, next_gradient));
                break;
            }
            length *= 0.5;
        }
        let Some((next, next_value, next_gradient)) = better else {
            if fresh {
                break;
            }
            fresh = true;
            continue;
        };
        let moved: Vec<f64> = next.iter().zip(&x).map(|(a, b)| a - b).collect();
        let bent: Vec<f64> = next_gradient.iter().zip(&gradient).map(|(a, b)| a - b).collect();
        let curvature = dot(&moved, &bent);
        if curvature > 1e-14 * dot(&bent, &bent).sqrt() * dot(&moved, &moved).sqrt() {
            if fresh {
                // The scale of the first curvature met is the best guess for all directions.
                let scale = curvature / dot(&bent, &bent);
                inverse = Mat::from_fn(size, size, |row, column| if row == column { scale } else { 0.0 });
            }
            let product = &inverse * MatRef::from_column_major_slice(&bent, size, 1);
            let turned = product.col_as_slice(0);
            let factor = (1.0 + dot(&bent, turned) / curvature) / curvature;
            for column in 0..size {
                for row in 0..size {
                    inverse[(row, column)] += factor * moved[row] * moved[column]
                        - (turned[row] * moved[column] + moved[row] * turned[column]) / curvature;
                }
            }
            fresh = false;
        }
        (x, value, gradient) = (next, next_value, next_gradient);
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_banana_valley_is_followed_to_its_end() {
        let valley = |x: &[f64]| {
            let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
            (a * a + 100.0 * b * b, vec![-2.0 * a - 400.0 * x[0] * b, 200.0 * b])
        };
        let found = minimise(valley, vec![-1.2, 1.0], 200);
        assert!(found.iter().all(|value| (value - 1.0).abs() < 1e-6), "{found:?}");
        let few = minimise(valley, vec![-1.2, 1.0], 3);
        assert!(valley(&few).0 < valley(&[-1.2, 1.0]).0);
    }
}
