//! What the lines of a figure mean, beside it.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::figure::Figure;
use super::style::{GREY, Look, SHADE, number};

/// Height of a line of text, in pixels.
const ROW: i32 = 19;
/// Letters of small print that fit.
const LETTERS: usize = 29;
/// Where text begins.
const TEXT: i32 = 36;

/// Draws the legend of `figure` from the top of `area` down.
pub fn draw(
    figure: &Figure,
    area: &DrawingArea<SVGBackend<'_>, Shift>,
) -> Result<(), Box<dyn Error>> {
    let anchor = Pos::new(HPos::Left, VPos::Center);
    let font = |size: i32| ("sans-serif", size).into_font();
    let mut y = ROW / 2;
    let put = |y: i32, size: i32, colour: RGBColor, text: &str| {
        area.draw(&Text::new(
            text.to_owned(),
            (TEXT, y),
            font(size).color(&colour).pos(anchor),
        ))
    };
    let stroke = |y: i32, style: ShapeStyle| area.draw(&PathElement::new([(4, y), (28, y)], style));
    let dashes = |y: i32, length: i32, gap: i32, style: ShapeStyle| {
        let mut x = 4;
        while x < 28 {
            area.draw(&PathElement::new(
                [(x, y), ((x + length).min(28), y)],
                style,
            ))?;
            x += length + gap;
        }
        Ok::<(), DrawingAreaErrorKind<_>>(())
    };
    for (index, line) in figure.lines.iter().enumerate() {
        let Look { colour, marked } = Look::of(index);
        let band = Rectangle::new([(4, y - 6), (28, y + 6)], colour.mix(0.18).filled());
        area.draw(&band)?;
        stroke(y, colour.stroke_width(2))?;
        if marked {
            area.draw(&Circle::new((16, y), 3, colour.filled()))?;
        }
        put(y, 13, BLACK, &line.name)?;
        y += ROW;
        if let Some(paper) = line.paper {
            let beyond = match figure.reaches(paper) {
                true => {
                    dashes(y, 2, 4, colour.stroke_width(2))?;
                    ""
                }
                false => ", beyond the scale",
            };
            put(
                y,
                12,
                GREY,
                &format!("paper: {} Mbit/s{beyond}", number(paper)),
            )?;
            y += ROW;
        }
    }
    y += ROW / 2;
    put(
        y,
        12,
        GREY,
        &match figure.runs {
            1 => "line: the only run".to_owned(),
            runs => format!("line: mean of {runs} runs"),
        },
    )?;
    y += ROW;
    if figure.runs > 1 {
        put(y, 12, GREY, "band: standard deviation")?;
        y += ROW;
    }
    let ceilings = figure.ceilings();
    if !ceilings.is_empty() {
        y += ROW / 2;
        put(y, 12, GREY, "ceilings (Mbit/s):")?;
        y += ROW;
    }
    for (ceiling, names) in ceilings {
        dashes(y, 8, 5, GREY.stroke_width(1))?;
        let text = format!("{} of {}", number(ceiling), names.join(", "));
        put(y, 12, GREY, &cut(&text))?;
        y += ROW;
    }
    if figure.window.is_some() {
        let shade = Rectangle::new([(4, y - 6), (28, y + 6)], SHADE.filled());
        area.draw(&shade)?;
        put(y, 12, GREY, "cross traffic flows")?;
    }
    Ok(())
}

/// Text cut to the letters that fit.
fn cut(text: &str) -> String {
    match text.chars().count() > LETTERS {
        true => text.chars().take(LETTERS - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}
