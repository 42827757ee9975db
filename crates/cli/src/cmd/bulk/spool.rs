//! Content between standard input or output and a transfer, on disk meanwhile: its length must be
//! known before it is sent, and it must be verified before it is printed.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::failure::{Doing, Failure};

/// The name of standard input at the destination, if that has no other.
const STDIN: &str = "stdin";

/// A private folder for temporary files (`TMPDIR`), removed when it is dropped.
#[derive(Debug)]
pub struct Spool(PathBuf);

impl Spool {
    /// Makes an empty folder.
    pub fn new() -> Result<Self, Failure> {
        let name = format!("hawser-{:016x}", fastrand::u64(..));
        let path = std::env::temp_dir().join(name);
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.doing(format_args!("making the folder {}", path.display()))?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Reads standard input to its end into a file; its path.
    pub fn read_stdin(&self) -> Result<PathBuf, Failure> {
        let path = self.0.join(STDIN);
        let copied = File::create_new(&path)
            .and_then(|mut file| io::copy(&mut io::stdin().lock(), &mut file));
        copied.doing(format_args!("reading standard input to {}", path.display()))?;
        Ok(path)
    }

    /// Prints the only file.
    pub fn print(&self) -> Result<(), Failure> {
        let listed = fs::read_dir(&self.0).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let listed = listed.doing(format_args!("reading {}", self.0.display()))?;
        let one = match &listed[..] {
            [] => return Err(Failure::job("no file was received")),
            [one] if one.file_type().is_ok_and(|kind| kind.is_file()) => one,
            _ => {
                let text = "--stdout takes one file, and more or a folder was sent";
                return Err(Failure::job(text));
            }
        };
        let printed =
            File::open(one.path()).and_then(|mut file| io::copy(&mut file, &mut io::stdout()));
        match printed {
            // The reader has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            printed => printed.map(drop).doing("writing to standard output"),
        }
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        // What stays is in a folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_behind() {
        let spool = Spool::new().unwrap();
        let path = spool.path().to_owned();
        assert!(spool.print().is_err());
        fs::write(path.join("one"), "").unwrap();
        spool.print().unwrap();
        fs::create_dir(path.join("two")).unwrap();
        assert!(spool.print().is_err());
        drop(spool);
        assert!(!path.exists());
    }
}
