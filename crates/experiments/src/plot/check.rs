//! Checks of drawn figures.

use std::collections::BTreeSet;

use plotters::style::RGBColor;

use super::area;

/// One element of a document: its name, its attributes, and its text.
pub type Element<'a> = (&'a str, Vec<(&'a str, &'a str)>, &'a str);

/// The elements of a document.
pub fn elements(svg: &str) -> Vec<Element<'_>> {
    let mut elements = Vec::new();
    for part in svg.split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap();
        if tag.starts_with(['/', '?', '!']) {
            continue;
        }
        let (name, rest) = tag.split_once(' ').unwrap_or((tag, ""));
        let mut attributes = Vec::new();
        let mut rest = rest.trim_end_matches('/').trim();
        while let Some((key, after)) = rest.split_once("=\"") {
            let (value, after) = after.split_once('"').unwrap();
            attributes.push((key.trim(), value));
            rest = after;
        }
        elements.push((name, attributes, text.trim()));
    }
    elements
}

/// Checks that all colours are those of the palette.
pub fn assert_palette(svg: &str) {
    let palette: BTreeSet<String> = area::colours()
        .map(|RGBColor(r, g, b)| format!("#{r:02X}{g:02X}{b:02X}"))
        .collect();
    for (_, attributes, _) in elements(svg) {
        let painted = attributes.iter();
        for (_, colour) in painted.filter(|(key, _)| ["stroke", "fill"].contains(key)) {
            assert!(palette.contains(*colour) || *colour == "none", "{colour}");
        }
    }
}

/// Checks that no text leaves a picture of `width` and `height` pixels.
pub fn assert_texts_fit(svg: &str, (width, height): (u32, u32)) {
    for (name, attributes, text) in elements(svg) {
        if name != "text" || text.is_empty() {
            continue;
        }
        let of = |wanted: &str| {
            let found = attributes.iter().find(|(key, _)| *key == wanted);
            found.map(|(_, value)| *value)
        };
        let number = |key| of(key).unwrap().parse::<f64>().unwrap();
        // A letter is about six tenths as wide as it is high; upright text is slightly wider.
        let long = text.chars().count() as f64 * number("font-size") * 0.6;
        let turned = of("transform").is_some();
        let long = if turned { 0.0 } else { long };
        let left = match of("text-anchor").unwrap_or("start") {
            "middle" => number("x") - long / 2.0,
            "end" => number("x") - long,
            _ => number("x"),
        };
        assert!(left >= 0.0 && left + long <= f64::from(width), "{text}");
        let y = number("y");
        assert!(y >= 0.0 && y <= f64::from(height), "{text}");
    }
}
