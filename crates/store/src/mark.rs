//! The mark of an unfinished download on its files: before the first range is complete, only the
//! mark distinguishes them from other files with the same names.

use std::fs::File;

use rustix::io::Errno;

/// The extended attribute (xattr(7)) that holds the mark.
const NAME: &str = "user.hawser.download";

/// Identifies a download. Other downloads into the same files have other marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark(Vec<u8>);

impl Mark {
    pub fn new(name: Vec<u8>) -> Self {
        Self(name)
    }

    /// Marks a file, if the file system supports it.
    pub fn put_on(&self, file: &File) {
        let flags = rustix::fs::XattrFlags::empty();
        if let Err(errno) = rustix::fs::fsetxattr(file, NAME, &self.0, flags) {
            // A file without a verified range is then refused when the download is resumed.
            tracing::debug!(%errno, "cannot mark an unfinished download");
        }
    }

    /// Whether the mark is on a file; `None` if the file system does not support marks.
    pub fn is_on(&self, file: &File) -> Option<bool> {
        // A longer mark than this one does not fit (ERANGE).
        let mut found = vec![0; self.0.len()];
        let length = rustix::fs::fgetxattr(file, NAME, &mut found[..]);
        self.compare(length.map(|length| &found[..length]))
    }

    fn compare(&self, found: Result<&[u8], Errno>) -> Option<bool> {
        match found {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => None,
            found => Some(found.is_ok_and(|found| found == self.0)),
        }
    }

    /// Removes the mark of any download from a file.
    pub fn take_off(file: &File) {
        // Fails on a file without a mark, which is fine; a mark that stays does no harm.
        let _ = rustix::fs::fremovexattr(file, NAME);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Other programs may have set the attribute to any value.
        #[test]
        fn only_the_same_bytes_are_the_same_mark(
            own in proptest::collection::vec(any::<u8>(), 1..40),
            found in proptest::collection::vec(any::<u8>(), 0..80),
            is_same: bool,
        ) {
            let mark = Mark::new(own.clone());
            let found = if is_same { own.clone() } else { found };
            let file = tempfile::tempfile().unwrap();
            let flags = rustix::fs::XattrFlags::empty();
            let set = rustix::fs::fsetxattr(&file, NAME, &found, flags);
            let expected = match (set, found == own) {
                // The file system may not support marks.
                (Err(_), _) => None,
                (Ok(()), true) => Some(true),
                (Ok(()), false) => Some(false),
            };
            prop_assert_eq!(mark.is_on(&file), expected);
            prop_assert_eq!(mark.compare(Ok(&found)), Some(found == own));
        }
    }

    #[test]
    fn a_mark_can_be_removed() {
        let file = tempfile::tempfile().unwrap();
        let mark = Mark::new(vec![7; 20]);
        mark.put_on(&file);
        Mark::take_off(&file);
        assert_ne!(mark.is_on(&file), Some(true));
        for errno in [Errno::OPNOTSUPP, Errno::NOSYS] {
            assert_eq!(mark.compare(Err(errno)), None);
        }
        for errno in [Errno::RANGE, Errno::NODATA, Errno::ACCESS] {
            assert_eq!(mark.compare(Err(errno)), Some(false));
        }
    }
}
