//! The terminal on standard error: lines at its end that are redrawn in place, and all other output
//! above them. All output to the terminal must go through here.
//!
//! While lines are shown, the cursor rests at the start of the first one. A terminal that rewraps
//! its text when it is resized keeps the cursor at its character, so the next drawing begins at the
//! right place whatever the widths were.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use console::Term;

use crate::format;
use crate::paint::moves_cursor;

/// Shortest time between two drawings.
const DRAW_EVERY: Duration = Duration::from_millis(50);

/// Erases from the cursor's line to the end of the screen (ECMA-48, ED).
const ERASE_BELOW: &str = "\r\x1b[J";

/// The lines drawn now, as wide as they are; empty when there are none.
static DRAWN: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn drawn() -> MutexGuard<'static, Vec<String>> {
    DRAWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lines at the end of the terminal, until this is dropped. A program may have only one at a time.
#[derive(Debug)]
pub struct Live {
    due: Instant,
}

impl Live {
    /// `None` if standard error is not a terminal whose cursor can be moved.
    pub fn start() -> Option<Self> {
        let able = io::stderr().is_terminal() && moves_cursor();
        able.then(|| Self {
            due: Instant::now(),
        })
    }

    /// Replaces the lines by those that `lines` makes for a number of columns. Does nothing shortly
    /// after another drawing.
    pub fn draw(&mut self, lines: impl FnOnce(usize) -> Vec<String>) {
        let now = Instant::now();
        if now < self.due {
            return;
        }
        self.due = now + DRAW_EVERY;
        let mut drawn = drawn();
        *drawn = lines(size().1);
        write(&block(&drawn, size()));
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        clear();
    }
}

/// A progress bar for work on this machine, such as hashing, if there is a terminal.
#[derive(Debug)]
pub struct Work {
    name: &'static str,
    begun: Instant,
    live: Option<Live>,
}

impl Work {
    /// Begins work of that name; dropping it removes its bar.
    pub fn begin(name: &'static str) -> Self {
        Self {
            name,
            begun: Instant::now(),
            live: Live::start(),
        }
    }

    /// Shows that `done` of `total` bytes are complete.
    pub fn show(&mut self, done: u64, total: u64) {
        let Self { name, begun, live } = self;
        let Some(live) = live else {
            return;
        };
        let seconds = begun.elapsed().as_secs_f64().max(1e-3);
        live.draw(|columns| {
            let each_second = format::bytes((done as f64 / seconds) as u64);
            let tail = format!("{}  {each_second}/s", format::share(done, total));
            vec![format::bar(name, done, total, &tail, columns)]
        });
    }
}

/// Removes the lines that are shown.
pub fn clear() {
    let mut drawn = drawn();
    if !drawn.is_empty() {
        drawn.clear();
        write(ERASE_BELOW);
    }
}

/// Runs `print`, which prints whole lines on the terminal, above the live lines.
pub fn above<T>(print: impl FnOnce() -> T) -> T {
    let drawn = drawn();
    if drawn.is_empty() {
        return print();
    }
    write(ERASE_BELOW);
    let printed = print();
    write(&block(&drawn, size()));
    printed
}

/// The writer of log records.
#[derive(Debug)]
pub struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        // A record arrives in one piece, and ends its line.
        above(|| io::stderr().write_all(record))?;
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Rows and columns of the terminal, queried each time because it may have been resized.
fn size() -> (usize, usize) {
    let (rows, columns) = Term::stderr().size();
    (rows.into(), columns.into())
}

/// Writes in one call, so that a terminal never shows a part of the text.
fn write(text: &str) {
    // A failure to print cannot be reported.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// The text that draws these lines from the cursor on and leaves the cursor where it was.
fn block(lines: &[String], (rows, columns): (usize, usize)) -> String {
    // One row is left free, or the terminal would scroll; and one column, or it would wrap.
    let room = rows.saturating_sub(1).max(1);
    let mut text = "\r".to_owned();
    let mut put = |line: &str| {
        let line = console::truncate_str(line, columns.saturating_sub(1), "…");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line}\x1b[K");
    };
    let fitting = match lines.len() > room {
        true => room - 1,
        false => lines.len(),
    };
    lines.iter().take(fitting).for_each(|line| put(line));
    if fitting < lines.len() {
        put(&format!("  and {} more", lines.len() - fitting));
    }
    let height = fitting + usize::from(fitting < lines.len());
    // The rows below belong to an earlier drawing.
    let _ = write!(text, "\x1b[J");
    if height > 0 {
        let _ = write!(text, "\x1b[{height}A");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(lines: usize, rows: usize) -> Vec<String> {
        let lines: Vec<String> = (0..lines).map(|n| format!("line {n} ab日本")).collect();
        let block = block(&lines, (rows, 10));
        let (text, up) = block.rsplit_once("\x1b[J").unwrap();
        let shown: Vec<String> = text
            .lines()
            .map(|line| line.replace("\x1b[K", ""))
            .collect();
        assert_eq!(up, format!("\x1b[{}A", shown.len()));
        shown
    }

    #[test]
    fn a_line_is_shorter_than_the_terminal_is_wide() {
        assert_eq!(shown(1, 24), ["\rline 0 a…"]);
        let wide = block(&["日本日本日本".to_owned()], (24, 10));
        assert!(wide.starts_with("\r日本日本…\x1b[K"), "{wide:?}");
    }

    #[test]
    fn lines_that_do_not_fit_are_counted() {
        assert_eq!(shown(5, 6).len(), 5);
        let cut = shown(5, 5);
        assert_eq!(cut.len(), 4);
        assert_eq!(cut[3], "  and 2 …");
    }
}
