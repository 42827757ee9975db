//! The mark of an unfinished download on its files: before the first piece is whole, nothing else
//! tells them from files that happen to be there under the same names.

use rustix::io::Errno;

use super::{Files, StorageError};
use crate::metainfo::InfoHash;

/// The extended attribute (xattr(7)) that holds the info-hash of the torrent.
const NAME: &str = "user.hawser.download";

/// What the mark of a file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// It is an unfinished download of this torrent.
    Own,
    /// It is not.
    Other,
    /// The file system keeps no marks.
    Unknown,
}

impl Files {
    /// Marks a file as an unfinished download of a torrent, where the file system can.
    pub(super) fn mark(file: &std::fs::File, info_hash: &InfoHash) {
        let flags = rustix::fs::XattrFlags::empty();
        if let Err(errno) = rustix::fs::fsetxattr(file, NAME, &info_hash.0, flags) {
            // A file that holds no verified piece is then refused when the download goes on.
            tracing::debug!(%errno, "cannot mark an unfinished download");
        }
    }

    /// Reads the mark of an entry.
    pub(super) fn mark_of(&self, entry: usize, torrent: &InfoHash) -> Result<Mark, StorageError> {
        let file = self.open_apart(entry)?;
        let mut marked = [0; 20];
        Ok(match rustix::fs::fgetxattr(&file, NAME, &mut marked[..]) {
            Ok(20) if marked == torrent.0 => Mark::Own,
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Mark::Unknown,
            Ok(_) | Err(_) => Mark::Other,
        })
    }

    /// Whether an entry has a mark.
    #[cfg(test)]
    pub fn is_marked(&self, entry: usize) -> bool {
        let file = self.open_apart(entry);
        file.is_ok_and(|file| rustix::fs::fgetxattr(&file, NAME, &mut [0; 20][..]).is_ok())
    }

    /// Takes the marks off: the download is done.
    pub fn unmark(&self) {
        for entry in self.on_disk() {
            // A file without a mark is as wanted, and one that keeps it is none the worse.
            if let Ok(file) = self.open_apart(entry) {
                let _ = rustix::fs::fremovexattr(&file, NAME);
            }
        }
    }
}
