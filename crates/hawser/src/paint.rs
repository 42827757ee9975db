//! Colours, where it is a terminal that reads.

use std::{fmt, io::IsTerminal};

/// Puts colours around text, or none.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// Colours on a terminal, unless they are not wanted: `no_color` or the variable `NO_COLOR`.
    pub fn new(no_color: bool) -> Paint {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Paint {
            on: !no_color && !set("NO_COLOR") && !dumb && std::io::stdout().is_terminal(),
        }
    }

    /// No colours.
    #[cfg(test)]
    pub fn none() -> Paint {
        Paint { on: false }
    }

    /// A heading.
    pub fn header(self, text: impl fmt::Display) -> String {
        self.wrap(90, text)
    }

    /// What a value is.
    pub fn key(self, text: impl fmt::Display) -> String {
        self.wrap(96, text)
    }

    /// A sign between two ASes.
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

    /// `code` is a foreground colour of ECMA-48.
    fn wrap(self, code: u8, text: impl fmt::Display) -> String {
        match self.on {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_string(),
        }
    }
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
