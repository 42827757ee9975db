//! Colours, if a terminal shows the text.

use std::fmt;
use std::io::{self, IsTerminal};

/// Puts colours around text, or none.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// Colours on standard output, unless `no_color` or the environment says otherwise.
    pub fn new(no_color: bool) -> Self {
        Self {
            on: !no_color && io::stdout().is_terminal() && wanted(),
        }
    }

    /// The same on standard error.
    pub fn stderr() -> Self {
        Self {
            on: io::stderr().is_terminal() && wanted(),
        }
    }

    /// No colours.
    #[cfg(test)]
    pub fn none() -> Self {
        Self { on: false }
    }

    /// Whether there are any.
    pub fn is_on(self) -> bool {
        self.on
    }

    /// A heading.
    pub fn header(self, text: impl fmt::Display) -> String {
        self.wrap(90, text)
    }

    /// What a value is.
    pub fn key(self, text: impl fmt::Display) -> String {
        self.wrap(96, text)
    }

    /// The sign of a link between two ASes.
    pub fn link(self, text: impl fmt::Display) -> String {
        self.wrap(95, text)
    }

    /// The number of an interface.
    pub fn interface(self, text: impl fmt::Display) -> String {
        self.wrap(33, text)
    }

    /// Good news.
    pub fn good(self, text: impl fmt::Display) -> String {
        self.wrap(32, text)
    }

    /// Bad news.
    pub fn bad(self, text: impl fmt::Display) -> String {
        self.wrap(31, text)
    }

    /// Less important text.
    pub fn faint(self, text: impl fmt::Display) -> String {
        self.wrap(2, text)
    }

    /// `code` is a rendition of ECMA-48 (SGR).
    fn wrap(self, code: u8, text: impl fmt::Display) -> String {
        match self.on {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_string(),
        }
    }
}

/// Whether the environment lets a terminal have colours: `NO_COLOR` (no-color.org) and `CLICOLOR=0`
/// say no.
fn wanted() -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let off = std::env::var_os("CLICOLOR").is_some_and(|value| value == "0");
    !no_color && !off && moves_cursor()
}

/// Whether the terminal understands control sequences, as `TERM` says.
pub fn moves_cursor() -> bool {
    std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_come_only_where_wanted() {
        assert_eq!(Paint { on: true }.good("up"), "\x1b[32mup\x1b[0m");
        assert_eq!(Paint { on: false }.good("up"), "up");
    }
}
