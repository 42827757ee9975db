//! Colours and numbers of figures.

use plotters::style::RGBColor;
#[cfg(test)]
use plotters::style::{BLACK, WHITE};

/// Colours that people with any colour vision tell apart and that stand out on white: those of
/// Okabe and Ito (2008) without yellow. Further lines have them again, with marks.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];
/// Axes, ceilings and small print.
pub const GREY: RGBColor = RGBColor(90, 90, 90);
/// The grid.
pub const PALE: RGBColor = RGBColor(225, 225, 225);
/// The time in which cross traffic flows.
pub const SHADE: RGBColor = RGBColor(243, 243, 243);

/// Every colour of a figure.
#[cfg(test)]
pub fn colours() -> impl Iterator<Item = RGBColor> {
    COLOURS.into_iter().chain([GREY, PALE, SHADE, BLACK, WHITE])
}

/// How a line looks.
#[derive(Clone, Copy)]
pub struct Look {
    /// Its colour.
    pub colour: RGBColor,
    /// Whether its points are marked.
    pub marked: bool,
}

impl Look {
    /// That of the line at an index.
    pub fn of(index: usize) -> Self {
        Self {
            colour: COLOURS[index % COLOURS.len()],
            marked: index >= COLOURS.len(),
        }
    }
}

/// A value with three digits.
pub fn number(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}
