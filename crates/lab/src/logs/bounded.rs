//! A log of bounded size.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fd::AsFd;

/// Maximum size of a log in bytes; the previous file, with earlier lines, has the same maximum. It
/// is small because the logs of root's labs are in `/run`, which is in memory.
pub const LOG_LIMIT: u64 = 512 << 10;

/// The environment variable with the name of the file to which a lab's process writes standard
/// error.
pub(crate) const LOG_FILE: &str = "HAWSER_LOG_FILE";

/// Standard error of a process of a lab, which is a file. A full file is renamed to `FILE.1`, which
/// replaces the previous one, and a new file is started.
#[derive(Debug)]
pub struct BoundedLog {
    path: PathBuf,
    file: File,
    length: u64,
    limit: u64,
    /// Whether `file` is standard error, to which panics are printed too.
    is_stderr: bool,
}

impl BoundedLog {
    /// The log of this process; `None` if it is not a process of a lab.
    pub fn of_this_process() -> Option<Self> {
        let path = PathBuf::from(std::env::var_os(LOG_FILE)?);
        let mut log = Self::open(&path, LOG_LIMIT).ok()?;
        log.is_stderr = true;
        Some(log)
    }

    fn open(path: &Path, limit: u64) -> io::Result<Self> {
        let file = append(path)?;
        Ok(Self {
            path: path.to_owned(),
            length: file.metadata()?.len(),
            file,
            limit,
            is_stderr: false,
        })
    }

    fn begin_anew(&mut self) -> io::Result<()> {
        // The length is reset even if the rest fails: it would fail again, and is tried only once
        // per full file.
        self.length = 0;
        std::fs::rename(&self.path, aside(&self.path))?;
        self.file = append(&self.path)?;
        if self.is_stderr {
            rustix::stdio::dup2_stderr(self.file.as_fd())?;
        }
        Ok(())
    }
}

impl Write for BoundedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.length > 0 && self.length + bytes.len() as u64 > self.limit {
            // This fails only while the lab's folder is being removed.
            let _ = self.begin_anew();
        }
        let written = self.file.write(bytes)?;
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// The name that a full log is renamed to.
pub(super) fn aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_take_at_most_twice_their_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = BoundedLog::open(&path, 100).unwrap();
        for n in 0..1000 {
            log.write_all(format!("line {n}\n").as_bytes()).unwrap();
            let files = std::fs::read_dir(folder.path()).unwrap();
            let lengths = files.map(|file| file.unwrap().metadata().unwrap().len());
            assert!(lengths.sum::<u64>() <= 200);
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.ends_with("line 999\n"), "{text}");
        let before = std::fs::read_to_string(aside(&path)).unwrap();
        assert!(before.len() > 80 && before.ends_with('\n'), "{before}");

        // A restarted process continues the log of the previous one.
        let mut again = BoundedLog::open(&path, 100).unwrap();
        assert_eq!(again.length, text.len() as u64);
        again.write_all(b"line 1000\n").unwrap();
        let all = before + &text + "line 1000\n";
        let kept = std::fs::read_to_string(aside(&path)).unwrap()
            + &std::fs::read_to_string(&path).unwrap();
        assert!(all.ends_with(&kept));
    }
}
