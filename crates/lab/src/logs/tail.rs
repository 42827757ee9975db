//! Reading a log that grows and is renamed when it is full.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::bounded::aside;

/// Maximum length of a line in bytes; a longer one is returned in parts.
const MAX_LINE_LENGTH: usize = 64 << 10;

/// A reader of one log, from its beginning.
#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    file: Option<File>,
    /// The beginning of an incomplete line.
    part: Vec<u8>,
    /// The time of the last line that had one.
    time: String,
}

impl Tail {
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            // The file with earlier lines, which usually does not exist.
            file: File::open(aside(path)).ok(),
            part: Vec::new(),
            time: String::new(),
        }
    }

    /// The lines that were written since the last call, each with its time.
    pub fn read(&mut self) -> io::Result<Vec<(String, String)>> {
        let mut bytes = std::mem::take(&mut self.part);
        loop {
            if let Some(file) = &mut self.file {
                file.read_to_end(&mut bytes)?;
            }
            let there = match File::open(&self.path) {
                // The file has not been created yet, or has just been renamed.
                Err(e) if e.kind() == ErrorKind::NotFound => break,
                opened => opened?,
            };
            match &mut self.file {
                // The same file, which may have been truncated.
                Some(file) if same(file, &there)? => {
                    if file.stream_position()? > there.metadata()?.len() {
                        file.seek(SeekFrom::Start(0))?;
                        continue;
                    }
                    break;
                }
                // Another file: first read the lines written to the old one since the last read.
                Some(file) => {
                    file.read_to_end(&mut bytes)?;
                    self.file = Some(there);
                }
                None => self.file = Some(there),
            }
        }
        Ok(self.lines(bytes))
    }

    fn lines(&mut self, bytes: Vec<u8>) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            if !line.ends_with(b"\n") && line.len() < MAX_LINE_LENGTH {
                self.part = line.to_vec();
                break;
            }
            for piece in line.chunks(MAX_LINE_LENGTH) {
                let text = String::from_utf8_lossy(piece);
                let text = text.trim_end_matches(['\n', '\r']);
                if let Some(time) = time_of(text) {
                    self.time = time.to_owned();
                }
                lines.push((self.time.clone(), text.to_owned()));
            }
        }
        lines
    }
}

fn same(one: &File, other: &File) -> io::Result<bool> {
    let id = |file: &File| file.metadata().map(|m| (m.dev(), m.ino()));
    Ok(id(one)? == id(other)?)
}

/// The time at the beginning of a line, in the format of `tracing`: `2026-01-31T12:34:56.123456Z`.
/// All times have the same length, so that they can be compared as text.
fn time_of(line: &str) -> Option<&str> {
    const SHAPE: &[u8] = b"dddd-dd-ddTdd:dd:dd.ddddddZ";
    let time = line.get(..SHAPE.len())?;
    let fits = time.bytes().zip(SHAPE).all(|(byte, shape)| match shape {
        b'd' => byte.is_ascii_digit(),
        other => byte == *other,
    });
    fits.then_some(time)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn texts(tail: &mut Tail) -> Vec<String> {
        let lines = tail.read().unwrap();
        lines.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn a_log_is_followed_after_it_is_renamed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let append = |text: &str| {
            let mut options = File::options();
            let mut file = options.create(true).append(true).open(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        let mut tail = Tail::new(&path);
        assert!(texts(&mut tail).is_empty());
        append("one\nhal");
        assert_eq!(texts(&mut tail), ["one"]);
        append("f\n");
        assert_eq!(texts(&mut tail), ["half"]);
        append("last\n");
        std::fs::rename(&path, aside(&path)).unwrap();
        append("new\n");
        assert_eq!(texts(&mut tail), ["last", "new"]);
        std::fs::write(&path, "x\n").unwrap();
        assert_eq!(texts(&mut tail), ["x"]);
        // A new reader gets all lines that still exist.
        assert_eq!(texts(&mut Tail::new(&path)), ["one", "half", "last", "x"]);
    }

    #[test]
    fn lines_without_a_time_have_that_of_the_previous_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let time = "2026-01-31T12:34:56.123456Z";
        std::fs::write(&path, format!("panic\n{time}  INFO a\n  b\n")).unwrap();
        let lines = Tail::new(&path).read().unwrap();
        let times: Vec<_> = lines.iter().map(|(time, _)| time.as_str()).collect();
        assert_eq!(times, ["", time, time]);
    }

    proptest! {
        #[test]
        fn reading_any_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("log");
            std::fs::write(&path, &bytes).unwrap();
            let lines = Tail::new(&path).read().unwrap();
            let ends = bytes.iter().filter(|b| **b == b'\n').count();
            prop_assert_eq!(lines.len(), ends);
        }
    }
}
