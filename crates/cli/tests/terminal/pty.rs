//! A program in a pseudo-terminal.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Longest wait for an event that must happen.
const PATIENCE: Duration = Duration::from_secs(300);

/// A program with its output on a terminal.
pub struct Terminal {
    master: OwnedFd,
    child: Child,
    output: Receiver<Vec<u8>>,
    screen: avt::Terminal,
    /// Bytes that are not yet shown, because their drawing is not complete.
    pending: Vec<u8>,
    /// All bytes that were written.
    pub written: Vec<u8>,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Terminal {
    /// Starts the program with all of its output on a terminal of this size.
    pub fn start(mut command: Command, columns: u16, rows: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let side = OpenOptions::new()
            .read(true)
            .write(true)
            .open(name.to_str().unwrap())
            .unwrap();
        set_size(&master, columns, rows);
        command.stdout(side.try_clone().unwrap()).stderr(side);
        command.stdin(std::process::Stdio::null());
        let child = command.spawn().unwrap();
        // The command keeps the terminal's other end open, and with it the output.
        drop(command);
        let mut reader = File::from(master.try_clone().unwrap());
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // An error means that all programs at the other end have ended.
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            master,
            child,
            output,
            screen: avt::Terminal::with_scrollback(columns.into(), rows.into(), None).unwrap(),
            pending: Vec::new(),
            written: Vec::new(),
        }
    }

    /// Resizes the terminal, as a person does with the mouse.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        set_size(&self.master, columns, rows);
        self.screen.resize(columns.into(), rows.into());
    }

    /// The rows of the screen up to the last that is not empty, after those that have scrolled off
    /// its top.
    pub fn rows(&self) -> Vec<String> {
        let rows = self.screen.screen().all_lines().map(|line| line.text());
        let mut rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    /// Calls `frame` with the rows after each drawing, until it returns true.
    pub fn until(&mut self, what: &str, mut frame: impl FnMut(&[String]) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            while let Some(end) = end_of_drawing(&self.pending) {
                let text: Vec<u8> = self.pending.drain(..end).collect();
                self.screen.feed([std::str::from_utf8(&text).unwrap()]);
                if frame(&self.rows()) {
                    return;
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => {
                    self.written.extend(&bytes);
                    self.pending.extend(&bytes);
                }
                Err(error) => panic!("{what}: {error}: {:#?}", self.rows()),
            }
        }
    }

    /// Shows all output until the program ends, and calls `frame` as [`Terminal::until`] does.
    pub fn end(&mut self, mut frame: impl FnMut(&[String])) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            while let Some(end) = end_of_drawing(&self.pending) {
                let text: Vec<u8> = self.pending.drain(..end).collect();
                self.screen.feed([std::str::from_utf8(&text).unwrap()]);
                frame(&self.rows());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => {
                    self.written.extend(&bytes);
                    self.pending.extend(&bytes);
                }
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                Err(error) => panic!("no end: {error}: {:#?}", self.rows()),
            }
        }
        let rest = std::mem::take(&mut self.pending);
        self.screen.feed([std::str::from_utf8(&rest).unwrap()]);
        self.child.wait().unwrap()
    }
}

fn set_size(master: &OwnedFd, columns: u16, rows: u16) {
    let size = Winsize {
        ws_col: columns,
        ws_row: rows,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(master, size).unwrap();
}

/// The end of the first drawing, where the cursor moves up again: `ESC [ n A`.
fn end_of_drawing(bytes: &[u8]) -> Option<usize> {
    (0..bytes.len()).find_map(|at| {
        let rest = bytes[at..].strip_prefix(b"\x1b[")?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (digits > 0 && rest.get(digits) == Some(&b'A')).then_some(at + 2 + digits + 1)
    })
}

/// The rows with every number as `#`, every run of spaces as one, and one unit of bytes for all.
pub fn masked(rows: &[String]) -> Vec<String> {
    let mask = |row: &String| {
        let indent = row.len() - row.trim_start().len();
        let mut text = " ".repeat(indent);
        let mut last = ' ';
        for c in row.trim_start().chars() {
            let c = if c.is_ascii_digit() { '#' } else { c };
            // 12.5 is one number.
            let within = last == '#' && (c == '#' || c == '.');
            let space = c == ' ' && last == ' ';
            if !within && !space {
                text.push(c);
                last = c;
            }
        }
        text.replace("KiB", "MiB")
    };
    rows.iter().map(mask).collect()
}
