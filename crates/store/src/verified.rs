//! What was verified of a download, kept in a small file from one run to the next, so that content which
//! has not changed since is not hashed again.
//!
//! The file has a bit for each range, and the state of each file of the content: its length, the time of its
//! last change, its inode. A range counts as verified at the next start if its bit is set and all files
//! that it is in are in the state that is kept. All others are hashed. A write sets the time of its file, so
//! after a crash the files that were written to since are hashed, and what was right in them is found.
//!
//! The order of steps is what makes that safe: a range is written, then hashed, then its bit is taken, then
//! its file is synced, then the state of the file is read, and then the bit is written. Bits of ranges are
//! never set for content that may not be on disk.

#[cfg(test)]
mod tests;

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use digest::Digest;

use crate::error::StoreError;
use crate::files::Files;
use crate::layout::Layout;
use crate::range::Ranges;
use crate::stamp::{Stamp, Stamps};

/// What a file begins with.
const MAGIC: &[u8] = b"hawser verified 1\n";
/// Bytes of the state of one file.
const STAMP_BYTES: usize = 33;
/// Permissions of the file: for its owner only.
const MODE: u32 = 0o600;
/// Times of files advance in steps of the kernel's timer, at most this long: a change by another program
/// that follows in the same step does not show.
const TIME_STEP: Duration = Duration::from_millis(20);

/// What was verified of a download, and in which state its files were then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// A bit for each range, the high bit of the first byte for the first one.
    bits: Vec<u8>,
    /// The state of each entry's file; `None` for padding, and where nothing is known.
    stamps: Vec<Option<Stamp>>,
}

impl Verified {
    /// With these ranges of files in these states.
    fn new(count: u32, stamps: Stamps, is_verified: impl Fn(u32) -> bool) -> Self {
        let mut bits = vec![0; (count as usize).div_ceil(8)];
        for index in (0..count).filter(|index| is_verified(*index)) {
            bits[index as usize / 8] |= 0x80 >> (index % 8);
        }
        let stamps = stamps.0;
        Self { bits, stamps }
    }

    /// Whether a range was verified; `false` past the end. Its file may have changed since.
    pub fn has(&self, index: u32) -> bool {
        let byte = self.bits.get(index as usize / 8);
        byte.is_some_and(|byte| byte & (0x80 >> (index % 8)) != 0)
    }

    /// The ranges that were verified and are in files which have not changed since.
    pub(crate) fn unchanged(&self, files: &Files, ranges: &impl Ranges) -> Vec<bool> {
        let now = files.stamps();
        let is_same: Vec<bool> = now
            .0
            .iter()
            .zip(&self.stamps)
            .map(|(now, then)| match (now, then) {
                (Some(now), Some(then)) => now.is_unchanged(then),
                _ => false,
            })
            .collect();
        let is_unchanged = |index: u32| {
            let mut spans = files.layout().spans_on_disk(ranges.range(index));
            self.has(index) && spans.all(|span| is_same[span.entry])
        };
        (0..ranges.count()).map(is_unchanged).collect()
    }

    fn encode<D: Digest>(&self, mark: &[u8], count: u32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length::<D>(mark, count, self.stamps.len()));
        bytes.extend(MAGIC);
        bytes.push(mark.len() as u8);
        bytes.extend(mark);
        bytes.extend(count.to_be_bytes());
        bytes.extend((self.stamps.len() as u64).to_be_bytes());
        bytes.extend(&self.bits);
        for stamp in &self.stamps {
            bytes.extend(stamp.map_or([0; STAMP_BYTES], Stamp::encode));
        }
        bytes.extend(D::digest(&bytes));
        bytes
    }

    /// Reads what [`Self::encode`] wrote of a download with this mark and these numbers of ranges and entries; `None` if
    /// these are others, or a byte is damaged.
    fn decode<D: Digest>(bytes: &[u8], mark: &[u8], count: u32, entries: usize) -> Option<Self> {
        if bytes.len() != length::<D>(mark, count, entries) {
            return None;
        }
        let (body, hash) = bytes.split_at(bytes.len().checked_sub(<D as Digest>::output_size())?);
        if D::digest(body).as_slice() != hash {
            return None;
        }
        let rest = body.strip_prefix(MAGIC)?;
        let (length, rest) = rest.split_first()?;
        let (found, rest) = rest.split_at_checked(usize::from(*length))?;
        let rest = rest.strip_prefix(&count.to_be_bytes()[..])?;
        let rest = rest.strip_prefix(&(entries as u64).to_be_bytes()[..])?;
        let (bits, stamps) = rest.split_at_checked((count as usize).div_ceil(8))?;
        if found != mark {
            return None;
        }
        let stamps = stamps.chunks_exact(STAMP_BYTES).map(Stamp::decode);
        Some(Self {
            bits: bits.to_vec(),
            stamps: stamps.collect(),
        })
    }
}

/// The length in bytes of the file of a download.
fn length<D: Digest>(mark: &[u8], count: u32, entries: usize) -> usize {
    let head = MAGIC.len() + 1 + mark.len() + 4 + 8;
    let bits = (count as usize).div_ceil(8);
    head + bits + entries.saturating_mul(STAMP_BYTES) + <D as Digest>::output_size()
}

impl Stamp {
    /// Whether the content is as it was, as far as the file system tells. Devices may get other numbers.
    fn is_unchanged(&self, then: &Self) -> bool {
        self.length == then.length
            && self.modified == then.modified
            && self.identity.1 == then.identity.1
    }

    fn encode(self) -> [u8; STAMP_BYTES] {
        let mut bytes = [0; STAMP_BYTES];
        bytes[0] = 1;
        bytes[1..9].copy_from_slice(&self.length.to_be_bytes());
        bytes[9..17].copy_from_slice(&self.modified.0.to_be_bytes());
        bytes[17..25].copy_from_slice(&self.modified.1.to_be_bytes());
        bytes[25..33].copy_from_slice(&self.identity.1.to_be_bytes());
        bytes
    }

    /// The stamp in [`STAMP_BYTES`] bytes; `None` if there is none.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| {
            let bytes = bytes.get(at..at + 8)?;
            Some(u64::from_be_bytes(bytes.try_into().ok()?))
        };
        (*bytes.first()? == 1).then_some(())?;
        Some(Self {
            length: number(1)?,
            modified: (number(9)?.cast_signed(), number(17)?.cast_signed()),
            // The device is not compared.
            identity: (0, number(25)?),
        })
    }
}

/// The file that keeps what was verified of a download.
#[derive(Debug, Clone)]
pub struct VerifiedFile {
    path: PathBuf,
    /// Identifies the download, at most 255 bytes.
    mark: Vec<u8>,
}

impl VerifiedFile {
    /// The file at `path`, of the download with a mark of at most 255 bytes.
    pub fn new(path: PathBuf, mut mark: Vec<u8>) -> Self {
        mark.truncate(usize::from(u8::MAX));
        Self { path, mark }
    }

    /// What it has of the download; `None` if there is nothing, or it is damaged or of another version, so
    /// that everything is to be hashed.
    pub fn read<R: Ranges>(&self, layout: &Layout, ranges: &R) -> Option<Verified> {
        match self.load(layout, ranges) {
            Ok(Some(verified)) => Some(verified),
            Ok(None) => {
                let path = self.path.display();
                tracing::warn!(%path, "not a record of this download: all content is verified again");
                None
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "all content is verified again");
                None
            }
        }
    }

    /// As [`Self::read`], to show it, without a word in the log.
    pub fn look<R: Ranges>(&self, layout: &Layout, ranges: &R) -> Option<Verified> {
        self.load(layout, ranges).ok().flatten()
    }

    /// What it has of the download; `None` if it is damaged or of another version.
    fn load<R: Ranges>(&self, layout: &Layout, ranges: &R) -> io::Result<Option<Verified>> {
        let (count, entries) = (ranges.count(), layout.entries.len());
        let most = length::<R::Hasher>(&self.mark, count, entries) as u64;
        let mut bytes = Vec::new();
        // One more byte shows that it is too long.
        File::open(&self.path)?
            .take(most + 1)
            .read_to_end(&mut bytes)?;
        Ok(Verified::decode::<R::Hasher>(
            &bytes, &self.mark, count, entries,
        ))
    }

    /// Removes it, so that everything is hashed at the next start.
    ///
    /// # Errors
    /// If it is there and cannot be removed.
    pub fn remove(&self) -> Result<(), StoreError> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(StoreError::io("remove", &self.path, error))
            }
            _ => Ok(()),
        }
    }

    fn write(&self, bytes: &[u8]) -> Result<(), StoreError> {
        let written = hawser_file::write(&self.path, bytes, MODE);
        written.map_err(|error| StoreError::io("write", &self.path, error))
    }
}

/// Writes what was verified of a download to its file.
#[derive(Debug)]
pub struct Recorder<R: Ranges> {
    file: VerifiedFile,
    files: Arc<Files>,
    ranges: Arc<R>,
    /// What is in the file, or would be if it could have been written.
    last: Verified,
    is_written: bool,
}

impl<R: Ranges> Recorder<R> {
    /// For files that were opened in the states `stamps`, and of which these ranges were verified then. They are in
    /// `file` already if it `is_written`.
    pub fn new(
        file: VerifiedFile,
        files: Arc<Files>,
        ranges: Arc<R>,
        stamps: Stamps,
        is_verified: impl Fn(u32) -> bool,
        is_written: bool,
    ) -> Self {
        let last = Verified::new(ranges.count(), stamps, is_verified);
        Self {
            file,
            files,
            ranges,
            last,
            is_written,
        }
    }

    /// Writes which ranges are verified, unless the file has that already. All of them must be written to
    /// the files. Waits for the disk.
    ///
    /// # Errors
    /// If a file cannot be synced, or the record not written: it is then as it was, and less is trusted at the
    /// next start.
    pub fn record(&mut self, is_verified: impl Fn(u32) -> bool) -> Result<(), StoreError> {
        let count = self.ranges.count();
        let mut next = Verified::new(count, Stamps(self.last.stamps.clone()), is_verified);
        // From here on, what is written to a file makes its state a new one.
        let written = self.files.take_written();
        if self.is_written && written.is_empty() && next.bits == self.last.bits {
            return Ok(());
        }
        let mut synced = self.sync(&written, &mut next);
        if !self.is_written {
            // What was there before may have been written by a program that was killed.
            synced = synced.and_then(|()| self.sync_all());
        }
        let body = synced.map(|()| next.encode::<R::Hasher>(&self.file.mark, count));
        if let Err(error) = body.and_then(|bytes| self.file.write(&bytes)) {
            self.files.put_written(&written);
            return Err(error);
        }
        (self.last, self.is_written) = (next, true);
        Ok(())
    }

    /// Syncs files that were written to, and reads their states then.
    fn sync(&self, written: &[usize], next: &mut Verified) -> Result<(), StoreError> {
        let mut newest: Option<SystemTime> = None;
        for entry in written {
            // Of one that was removed nothing is trusted.
            let synced = self.files.sync(*entry)?;
            let modified = synced.as_ref().and_then(|it| it.modified().ok());
            newest = newest.max(modified);
            next.stamps[*entry] = synced.map(Stamp::from);
        }
        let age = newest.map(|newest| newest.elapsed().unwrap_or_default());
        if let Some(rest) = age.and_then(|age| TIME_STEP.checked_sub(age)) {
            std::thread::sleep(rest);
        }
        Ok(())
    }

    fn sync_all(&self) -> Result<(), StoreError> {
        for (entry, _) in self.files.layout().on_disk() {
            self.files.sync(entry)?;
        }
        Ok(())
    }
}

impl Files {
    /// Has the file of an entry on disk, and returns its state then; `None` if there is none.
    fn sync(&self, entry: usize) -> Result<Option<Metadata>, StoreError> {
        let file = match self.open(entry) {
            Err(error) if error.is_not_found() => return Ok(None),
            file => file?,
        };
        let synced = file.sync_all().and_then(|()| file.metadata());
        let failed = |error| StoreError::io("sync", &self.path_of(entry), error);
        synced.map(Some).map_err(failed)
    }
}
