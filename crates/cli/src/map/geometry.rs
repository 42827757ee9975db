//! Points, boxes and lines on a page; y grows downwards.

use std::fmt;

/// A point, or a vector.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
}

impl Point {
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y }
    }

    pub fn add(self, other: Self) -> Self {
        Self::new(self.x + other.x, self.y + other.y)
    }

    pub fn sub(self, other: Self) -> Self {
        Self::new(self.x - other.x, self.y - other.y)
    }

    pub fn times(self, factor: f64) -> Self {
        Self::new(self.x * factor, self.y * factor)
    }

    pub fn length(self) -> f64 {
        self.x.hypot(self.y)
    }

    /// The vector of length one in the same direction; to the right for a zero vector.
    pub fn unit(self) -> Self {
        match self.length() {
            l if l > 1e-9 => self.times(1.0 / l),
            _ => Self::new(1.0, 0.0),
        }
    }

    /// The vector turned by 90 degrees.
    pub fn turned(self) -> Self {
        Self::new(-self.y, self.x)
    }

    /// On which side of the line from `a` to `b` the point is.
    fn side(self, a: Self, b: Self) -> f64 {
        (b.x - a.x) * (self.y - a.y) - (b.y - a.y) * (self.x - a.x)
    }
}

/// In SVG's format, to a tenth of a pixel.
impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1},{:.1}", self.x, self.y)
    }
}

/// Whether two segments cross at a point that is not an end of either.
pub fn cross(a: Point, b: Point, c: Point, d: Point) -> bool {
    c.side(a, b) * d.side(a, b) < 0.0 && a.side(c, d) * b.side(c, d) < 0.0
}

/// A rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rect {
    /// The upper left corner.
    pub low: Point,
    /// The lower right corner.
    pub high: Point,
}

impl Rect {
    pub fn around(centre: Point, width: f64, height: f64) -> Self {
        let half = Point::new(width / 2.0, height / 2.0);
        Self {
            low: centre.sub(half),
            high: centre.add(half),
        }
    }

    pub fn centre(self) -> Point {
        self.low.add(self.high).times(0.5)
    }

    /// Width and height.
    pub fn size(self) -> Point {
        self.high.sub(self.low)
    }

    /// The smallest rectangle that contains both.
    pub fn both(self, other: Self) -> Self {
        let (low, high) = (other.low, other.high);
        Self {
            low: Point::new(self.low.x.min(low.x), self.low.y.min(low.y)),
            high: Point::new(self.high.x.max(high.x), self.high.y.max(high.y)),
        }
    }

    /// The rectangle grown by `by` on every side.
    pub fn grown(self, by: f64) -> Self {
        let by = Point::new(by, by);
        Self {
            low: self.low.sub(by),
            high: self.high.add(by),
        }
    }

    /// Whether a point is inside, not on the border.
    fn holds(self, place: Point) -> bool {
        let (low, high) = (self.low, self.high);
        place.x > low.x && place.x < high.x && place.y > low.y && place.y < high.y
    }

    /// The area that two rectangles have in common.
    pub fn overlap(self, other: Self) -> f64 {
        let width = self.high.x.min(other.high.x) - self.low.x.max(other.low.x);
        let height = self.high.y.min(other.high.y) - self.low.y.max(other.low.y);
        width.max(0.0) * height.max(0.0)
    }

    /// The share of a segment that is inside (Liang and Barsky).
    pub fn covers(self, a: Point, b: Point) -> f64 {
        let (low, high) = (self.low, self.high);
        let beside = (a.x < low.x && b.x < low.x) || (a.x > high.x && b.x > high.x);
        let above_or_below = (a.y < low.y && b.y < low.y) || (a.y > high.y && b.y > high.y);
        // Nearly all segments that a map asks for.
        if beside || above_or_below {
            return 0.0;
        }
        let line = b.sub(a);
        let (mut from, mut to) = (0.0f64, 1.0f64);
        for (length, low, high) in [
            (line.x, self.low.x - a.x, self.high.x - a.x),
            (line.y, self.low.y - a.y, self.high.y - a.y),
        ] {
            if length.abs() < 1e-9 {
                if low > 0.0 || high < 0.0 {
                    return 0.0;
                }
                continue;
            }
            let (one, other) = (low / length, high / length);
            from = from.max(one.min(other));
            to = to.min(one.max(other));
        }
        (to - from).max(0.0)
    }
}

/// A curve from one point to another, bent towards a third (quadratic Bézier).
#[derive(Debug, Clone, Copy)]
pub struct Curve {
    pub from: Point,
    pub bend: Point,
    pub to: Point,
}

impl Curve {
    /// The point at a share of the curve, 0 to 1.
    pub fn at(&self, t: f64) -> Point {
        let one = self.from.times((1.0 - t).powi(2));
        let two = self.bend.times(2.0 * t * (1.0 - t));
        one.add(two).add(self.to.times(t.powi(2)))
    }

    /// The share of the curve at which it leaves the box in which it begins.
    pub fn leaves(&self, from: Rect) -> f64 {
        let mut shares = (0..=200).map(|step| f64::from(step) / 200.0);
        let outside = shares.find(|&share| !from.holds(self.at(share)));
        outside.unwrap_or(0.0)
    }

    /// The curve moved by a vector.
    pub fn moved(&self, by: Point) -> Self {
        let [from, bend, to] = [self.from, self.bend, self.to].map(|at| at.add(by));
        Self { from, bend, to }
    }

    /// The curve from the other end.
    pub fn reversed(&self) -> Self {
        Self {
            from: self.to,
            bend: self.bend,
            to: self.from,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_cross_only_between_their_ends() {
        let p = Point::new;
        assert!(cross(p(0.0, 0.0), p(2.0, 2.0), p(0.0, 2.0), p(2.0, 0.0)));
        assert!(!cross(p(0.0, 0.0), p(2.0, 2.0), p(0.0, 0.0), p(2.0, 0.0)));
        assert!(!cross(p(0.0, 0.0), p(1.0, 0.0), p(0.0, 1.0), p(1.0, 1.0)));
    }

    #[test]
    fn a_box_covers_the_part_of_a_line_inside() {
        let rect = Rect::around(Point::new(5.0, 0.0), 5.0, 2.0);
        let line = |y| rect.covers(Point::new(0.0, y), Point::new(10.0, y));
        assert!((line(0.0) - 0.5).abs() < 1e-9);
        assert_eq!(line(3.0), 0.0);
        assert_eq!(rect.overlap(rect.grown(1.0)), 10.0);
    }

    #[test]
    fn a_curve_is_the_same_from_both_ends() {
        let curve = Curve {
            from: Point::new(0.0, 0.0),
            bend: Point::new(5.0, 4.0),
            to: Point::new(10.0, 0.0),
        };
        assert_eq!(curve.at(0.5), Point::new(5.0, 2.0));
        assert!(curve.at(0.25).sub(curve.reversed().at(0.75)).length() < 1e-9);
        let home = Rect::around(curve.from, 4.0, 40.0);
        assert!((curve.at(curve.leaves(home)).x - 2.0).abs() < 0.1);
    }
}
