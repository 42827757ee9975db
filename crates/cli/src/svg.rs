//! SVG documents, written line by line.

use std::fmt::{Arguments, Write};

/// The elements of a picture.
#[derive(Default)]
pub struct Svg(pub String);

impl Svg {
    /// Adds a line.
    pub fn line(&mut self, line: Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{line}");
    }

    /// Adds a text with a style class.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let text = escaped(text);
        self.line(format_args!(
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{text}</text>"#
        ));
    }

    /// The document with the elements, on white, with a style sheet; sizes in pixels.
    pub fn document(self, width: f64, height: f64, style: &str) -> String {
        let mut document = Self::default();
        document.line(format_args!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}">"#
        ));
        document.line(format_args!("<style>{style}</style>"));
        document.line(format_args!(
            r##"<rect width="100%" height="100%" fill="#ffffff"/>"##
        ));
        document.line(format_args!("{}</svg>", self.0));
        document.0
    }
}

/// Text escaped for XML; characters that XML does not allow are left out.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => escaped.push(c),
        }
    }
    escaped
}
