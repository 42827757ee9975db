//! Printing: the reader may have closed the pipe, and text may come from a peer.

use std::fmt;
use std::io::{ErrorKind, Write};

use console::Term;

use crate::{format, screen};

/// Prints a line on standard output, like `println!`. If the reader, such as `head`, closed it, the
/// program ends without a message.
macro_rules! outln {
    ($($arg:tt)*) => { $crate::out::out(format_args!("{}\n", format_args!($($arg)*))) };
}

/// Prints a line on standard error, like `eprintln!`; if it is closed, the line is lost.
macro_rules! errln {
    ($($arg:tt)*) => { $crate::out::err(format_args!("{}\n", format_args!($($arg)*))) };
}

pub(crate) use errln;
pub(crate) use outln;

/// Writes to standard output, above the live lines: both may be on one terminal.
pub fn out(text: fmt::Arguments<'_>) {
    if let Err(error) = screen::above(|| std::io::stdout().write_fmt(text)) {
        screen::clear();
        if error.kind() == ErrorKind::BrokenPipe {
            std::process::exit(0);
        }
        errln!("hawser: cannot print: {error}");
        std::process::exit(1);
    }
}

/// Prints a line on standard output, broken between words if a terminal is too narrow for it.
pub fn outwrapped(line: &str, indent: usize) {
    let term = Term::stdout();
    let columns = match term.is_term() {
        true => term.size().1.into(),
        false => usize::MAX,
    };
    for line in format::wrapped(line, columns, indent) {
        outln!("{line}");
    }
}

/// Writes to standard error, above the live lines.
pub fn err(text: fmt::Arguments<'_>) {
    // A failure to print cannot be reported.
    let _ = screen::above(|| std::io::stderr().write_fmt(text));
}

/// Text of a peer or a torrent, such as a file's name, with control characters written as escapes,
/// because they would move a terminal's cursor or change its colours.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            plain.extend(c.escape_default());
        } else {
            plain.push(c);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(plain("a\x1b[31mx\n"), "a\\u{1b}[31mx\\n");
        assert_eq!(plain("Übung 1.txt"), "Übung 1.txt");
    }
}
