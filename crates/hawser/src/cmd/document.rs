//! Small files that a command's arguments name.

use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::path::Path;

/// Far more than a policy or a table has.
const MOST_BYTES: u64 = 1 << 20;

/// Reads a text of at most 1 MiB.
pub fn read(file: &Path) -> Result<String, Error> {
    let mut text = String::new();
    // One byte more tells a file that is too long from one that just fits, whatever size a device
    // or a pipe claims to have.
    let mut limited = File::open(file)?.take(MOST_BYTES + 1);
    limited.read_to_string(&mut text)?;
    match text.len() as u64 > MOST_BYTES {
        true => Err(Error::new(ErrorKind::FileTooLarge, "longer than 1 MiB")),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("text");
        for (more, fits) in [(0, true), (1, false)] {
            let text = "a".repeat(MOST_BYTES as usize + more);
            std::fs::write(&file, &text).unwrap();
            assert_eq!(read(&file).ok().as_ref(), fits.then_some(&text));
        }
        let endless = read(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(endless.to_string(), "longer than 1 MiB");
    }
}
