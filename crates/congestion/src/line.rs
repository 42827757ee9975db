//! A straight line through points, by least squares.

/// Sums over the points.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Line {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

/// How steep a line is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Slope {
    pub(crate) value: f64,
    /// The standard error of the value.
    pub(crate) error: f64,
}

impl Line {
    /// Adds a point. For the sums to be exact, points should be near (0, 0).
    pub(crate) fn add(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
        self.yy += y * y;
    }

    /// The slope, where at least three points with different `x` determine it.
    pub(crate) fn slope(&self) -> Option<Slope> {
        let n = self.count;
        let xx = self.xx - self.x * self.x / n;
        if n < 3.0 || xx <= f64::EPSILON * self.xx {
            return None;
        }
        let xy = self.xy - self.x * self.y / n;
        let yy = self.yy - self.y * self.y / n;
        let value = xy / xx;
        let residual = (yy - value * xy).max(0.0) / (n - 2.0);
        Some(Slope {
            value,
            error: (residual / xx).sqrt(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(points: &[(f64, f64)]) -> Option<Slope> {
        let mut line = Line::default();
        points.iter().for_each(|&(x, y)| line.add(x, y));
        line.slope()
    }

    #[test]
    fn a_line_has_the_slope_of_its_points() {
        let exact = through(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]).unwrap();
        assert_eq!(
            exact,
            Slope {
                value: 2.0,
                error: 0.0
            }
        );
        // By hand: the residuals are -1/6, 1/3, -1/6, their squares sum to 1/6.
        let off = through(&[(0.0, 0.0), (1.0, 1.0), (2.0, 1.0)]).unwrap();
        assert!((off.value - 0.5).abs() < 1e-12);
        assert!((off.error - (1.0f64 / 12.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn two_points_or_one_place_make_no_slope() {
        assert_eq!(through(&[]), None);
        assert_eq!(through(&[(0.0, 1.0), (1.0, 3.0)]), None);
        assert_eq!(through(&[(0.5, 1.0), (0.5, 3.0), (0.5, 2.0)]), None);
    }
}
