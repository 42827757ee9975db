//! Colours for text on a terminal.

use std::fmt;
use std::io::{self, IsTerminal};

/// Adds colours to text, unless they are off.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// Colours for standard output, unless `no_color` or the environment turns them off.
    pub fn new(no_color: bool) -> Self {
        Self {
            on: !no_color && io::stdout().is_terminal() && wanted(),
        }
    }

    /// Colours for standard error.
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

    /// Whether colours are on.
    pub fn is_on(self) -> bool {
        self.on
    }

    /// A heading.
    pub fn header(self, text: impl fmt::Display) -> String {
        self.wrap(90, text)
    }

    /// The key of a value.
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

    /// A good state.
    pub fn good(self, text: impl fmt::Display) -> String {
        self.wrap(32, text)
    }

    /// A bad state.
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

/// Whether the environment allows colours: `NO_COLOR` (no-color.org) and `CLICOLOR=0` turn them
/// off.
fn wanted() -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let off = std::env::var_os("CLICOLOR").is_some_and(|value| value == "0");
    !no_color && !off && moves_cursor()
}

/// Whether the terminal understands control sequences, according to `TERM`.
pub fn moves_cursor() -> bool {
    std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_added_only_if_they_are_on() {
        assert_eq!(Paint { on: true }.good("up"), "\x1b[32mup\x1b[0m");
        assert_eq!(Paint { on: false }.good("up"), "up");
    }
}
