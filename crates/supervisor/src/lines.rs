//! What a process writes, by lines.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

/// Longest line that is passed on, in bytes; the rest of a longer one is left out.
const MAX_LINE: usize = 4000;
/// Most bytes that are read at once, so that a process that writes without end does not keep its
/// supervisor from all else.
const MAX_READ: usize = 64 << 10;

/// The lines that a process writes to a pipe.
#[derive(Debug)]
pub(crate) struct Lines {
    pipe: OwnedFd,
    /// What has come of the current line, up to [`MAX_LINE`].
    line: Vec<u8>,
    /// Whether the current line has begun.
    has_begun: bool,
    last: Option<String>,
}

/// Whether there is more to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// There may be.
    Unread,
    /// Not now.
    Empty,
    /// Never: the pipe is closed.
    Closed,
}

impl Lines {
    /// Reads from a pipe.
    pub fn new(pipe: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        Ok(Self {
            pipe,
            line: Vec::new(),
            has_begun: false,
            last: None,
        })
    }

    /// Passes the lines that have come on, without waiting for more.
    pub fn read(&mut self, mut pass_on: impl FnMut(String)) -> Rest {
        let mut buffer = [0; 4096];
        let mut left = MAX_READ;
        while left > 0 {
            let length = match rustix::io::read(&self.pipe, &mut buffer) {
                Ok(0) => {
                    self.end(&mut pass_on);
                    return Rest::Closed;
                }
                Ok(length) => length,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Rest::Empty,
                // A pipe has no other errors; nothing can be read after one.
                Err(_) => return Rest::Closed,
            };
            left = left.saturating_sub(length);
            for &byte in &buffer[..length] {
                self.has_begun = true;
                match byte {
                    b'\n' => self.end(&mut pass_on),
                    _ if self.line.len() < MAX_LINE => self.line.push(byte),
                    _ => {}
                }
            }
        }
        Rest::Unread
    }

    /// Ends the current line, if one has begun.
    pub fn end(&mut self, mut pass_on: impl FnMut(String)) {
        if std::mem::take(&mut self.has_begun) {
            let line = String::from_utf8_lossy(&self.line);
            let line = line.strip_suffix('\r').unwrap_or(&line).to_owned();
            self.line.clear();
            self.last = Some(line.clone());
            pass_on(line);
        }
    }

    /// The last line that has ended.
    pub fn last(self) -> Option<String> {
        self.last
    }
}

impl AsFd for Lines {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn lines_come_whole_and_are_bounded() {
        let (pipe, mut writer) = io::pipe().unwrap();
        let mut lines = Lines::new(pipe.into()).unwrap();
        let mut read = || {
            let mut all = Vec::new();
            let rest = lines.read(|line| all.push(line));
            (all, rest)
        };
        assert_eq!(read(), (vec![], Rest::Empty));
        writer.write_all(b"one\r\n\ntw").unwrap();
        let one = vec!["one".to_owned(), String::new()];
        assert_eq!(read(), (one, Rest::Empty));
        writer.write_all(b"o\n\xff").unwrap();
        assert_eq!(read(), (vec!["two".to_owned()], Rest::Empty));
        let long = vec![b'x'; MAX_LINE + 1];
        writer.write_all(&long).unwrap();
        drop(writer);
        let (last, rest) = read();
        assert_eq!(rest, Rest::Closed);
        assert_eq!(last[0].chars().count(), MAX_LINE);
        assert!(last[0].starts_with('\u{fffd}'));
        assert_eq!(lines.last(), Some(last[0].clone()));
    }

    #[test]
    fn a_flood_is_read_in_parts() {
        let (pipe, mut writer) = io::pipe().unwrap();
        rustix::pipe::fcntl_setpipe_size(&writer, 2 * MAX_READ).unwrap();
        writer.write_all(&[b'\n'; MAX_READ + 1]).unwrap();
        let mut lines = Lines::new(pipe.into()).unwrap();
        let mut count = 0;
        assert_eq!(lines.read(|_| count += 1), Rest::Unread);
        assert_eq!(lines.read(|_| count += 1), Rest::Empty);
        assert_eq!(count, MAX_READ + 1);
    }
}
