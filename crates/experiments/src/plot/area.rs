//! What all figures are drawn with: documents, colours, texts, dashes.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::error::{During, ExperimentError};

/// Colours that people with any colour vision can distinguish and that stand out on white: those of
/// Okabe and Ito (2008) without yellow. Further lines repeat them, with marks.
pub const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];
/// Colour of axes, ceilings and small print.
pub const GREY: RGBColor = RGBColor(90, 90, 90);
/// Colour of the grid.
pub const PALE: RGBColor = RGBColor(225, 225, 225);
/// Colour of a time that is marked.
pub const SHADE: RGBColor = RGBColor(243, 243, 243);
/// Length of a dash of a ceiling, and of the gap after it, in pixels.
pub const CEILING: (i32, i32) = (8, 5);
/// The same of a paper's values.
pub const PAPER: (i32, i32) = (2, 4);
/// Begin and end of the signs of a legend, in pixels from its left.
pub const SIGN: (i32, i32) = (4, 28);

/// Half the height of a bar, in pixels.
pub const HALF_BAR: i32 = 7;

/// All colours of figures.
#[cfg(test)]
pub fn colours() -> impl Iterator<Item = RGBColor> {
    COLOURS.into_iter().chain([GREY, PALE, SHADE, BLACK, WHITE])
}

/// Whether something was drawn.
pub type Drawn = Result<(), Box<dyn Error>>;
/// A part of a picture.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// An SVG document of that many pixels.
pub fn svg(
    size: (u32, u32),
    draw: impl FnOnce(&Area<'_>) -> Drawn,
) -> Result<String, ExperimentError> {
    let mut text = String::new();
    let document = |text: &mut String| -> Result<(), Box<dyn Error>> {
        let area = SVGBackend::with_string(text, size).into_drawing_area();
        area.fill(&WHITE)?;
        draw(&area)?;
        Ok(area.present()?)
    };
    document(&mut text).during("drawing the figure")?;
    Ok(text)
}

/// Writes a text that begins or ends at a place.
pub fn text(
    area: &Area<'_>,
    at: (i32, i32),
    (size, colour): (i32, RGBColor),
    side: HPos,
    text: &str,
) -> Drawn {
    let font = ("sans-serif", size).into_font().color(&colour);
    let style = font.pos(Pos::new(side, VPos::Center));
    Ok(area.draw(&Text::new(text, at, style))?)
}

/// Draws a horizontal bar around a height.
pub fn bar(area: &Area<'_>, y: i32, (from, to): (i32, i32), style: ShapeStyle) -> Drawn {
    let corners = [(from, y - HALF_BAR), (to, y + HALF_BAR)];
    Ok(area.draw(&Rectangle::new(corners, style))?)
}

/// Draws a line from the smallest to the largest value over a bar.
pub fn range(area: &Area<'_>, y: i32, (from, to): (i32, i32)) -> Drawn {
    let style = BLACK.stroke_width(1);
    Ok(area.draw(&PathElement::new([(from, y), (to, y)], style))?)
}

/// Draws the sign of a line in a legend.
pub fn sign(area: &Area<'_>, y: i32, style: ShapeStyle) -> Drawn {
    Ok(area.draw(&PathElement::new([(SIGN.0, y), (SIGN.1, y)], style))?)
}

/// Draws the sign of a dashed line in a legend.
pub fn dashed_sign(area: &Area<'_>, y: i32, (length, gap): (i32, i32), style: ShapeStyle) -> Drawn {
    for x in (SIGN.0..SIGN.1).step_by((length + gap) as usize) {
        let ends = [(x, y), ((x + length).min(SIGN.1), y)];
        area.draw(&PathElement::new(ends, style))?;
    }
    Ok(())
}
