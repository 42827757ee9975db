//! A file of a torrent, read while it is fetched.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hawser_torrent::{Metainfo, Phase, Pieces, Progress, Window, part_name};
use thiserror::Error;
use tokio::sync::watch;

use crate::error::ClientError;
use crate::torrents::Status;
use crate::view::View;
use crate::windows::{OpenWindow, Windows};

/// Most bytes that are read at a time, and kept for a reader.
const CHUNK: u64 = 256 << 10;
/// Bytes before all others from the place on that is read, and at least [`WINDOW_PIECES`] pieces.
const WINDOW: u64 = 8 << 20;
const WINDOW_PIECES: u64 = 4;

/// Why a file cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The torrent cannot be looked at.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The files of the torrent are not known.
    #[error(
        "the files are not known before the metadata of the magnet link is: start the torrent first"
    )]
    NoMetadata,
    /// The torrent has no such file.
    #[error("there is no file with index {index}: the torrent has {count} files, from index 0 on")]
    NoFile {
        /// The index.
        index: usize,
        /// How many files there are, padding included.
        count: usize,
    },
    /// The file is not fetched.
    #[error("the file is not downloaded: choose it first")]
    NotWanted,
    /// The torrent does not run, and is not complete.
    #[error("the torrent is {0} and not complete: start it, and ask again once it runs")]
    NotRunning(&'static str),
    /// The torrent ended while its file was read.
    #[error("the torrent was stopped or has failed before these bytes were there")]
    Ended,
    /// The file cannot be read from disk.
    #[error("cannot read {path}: {source}")]
    Disk {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// A file of a torrent that can be read.
#[derive(Debug)]
pub struct FileStream {
    path: PathBuf,
    index: usize,
    length: u64,
    /// Where it begins in the content.
    start: u64,
    pieces: Pieces,
    /// The download, and the place that is reported to it as the one being read; `None` if the download is
    /// complete.
    fetched: Option<Fetched>,
}

#[derive(Debug)]
struct Fetched {
    progress: watch::Receiver<Progress>,
    windows: watch::Sender<Windows>,
}

impl FileStream {
    pub(crate) fn new(
        view: &View,
        metainfo: &Metainfo,
        index: usize,
        windows: Option<watch::Sender<Windows>>,
    ) -> Result<Self, StreamError> {
        let count = metainfo.files.len();
        let file = metainfo.files.get(index).filter(|file| !file.padding);
        let file = file.ok_or(StreamError::NoFile { index, count })?;
        if !view.record.settings.files.wish(index).is_wanted {
            return Err(StreamError::NotWanted);
        }
        let download = view.live.as_ref().and_then(|live| live.download.clone());
        let is_stable = matches!(
            view.status,
            Status::Stopped | Status::Finished | Status::Queued | Status::Seeding
        );
        let fetched = match (download, windows) {
            _ if view.record.dates.completed.is_some() && is_stable => None,
            (Some(progress), Some(windows)) => Some(Fetched { progress, windows }),
            _ => return Err(StreamError::NotRunning(view.status.name())),
        };
        Ok(Self {
            path: view.record.folder.join(&file.path),
            index,
            length: file.length,
            start: metainfo.files[..index].iter().map(|file| file.length).sum(),
            pieces: metainfo.pieces,
            fetched,
        })
    }

    /// Its name, if that is text.
    pub fn name(&self) -> Option<&str> {
        self.path.file_name()?.to_str()
    }

    /// Bytes of the file.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Reads these bytes of it, which are cut to those that it has. They are fetched first from now on, and as
    /// long as the reader is there.
    pub fn read(self, bytes: Range<u64>) -> FileReader {
        let at = bytes.start.min(self.length);
        let (end, file) = (bytes.end.clamp(at, self.length), self);
        let window = file.window(at, end);
        let fetched = file.fetched.as_ref();
        let window_open = fetched.filter(|_| at < end);
        let open = window_open.map(|it| OpenWindow::open(it.windows.clone(), window));
        FileReader {
            at,
            end,
            window,
            open,
            disk: None,
            file,
        }
    }

    /// What is fetched first for a reader at `at` that reads up to `end`.
    fn window(&self, at: u64, end: u64) -> Window {
        let least = WINDOW_PIECES * u64::from(self.pieces.length);
        Window {
            file: self.index,
            offset: at,
            length: WINDOW.max(least).min(end - at),
        }
    }
}

/// Bytes of a file, one part after another. Dropping it ends the reading: nothing is kept for it.
#[derive(Debug)]
pub struct FileReader {
    file: FileStream,
    at: u64,
    end: u64,
    window: Window,
    /// Has the window fetched first; `None` if all is there.
    open: Option<OpenWindow>,
    /// The file on disk, once something was read.
    disk: Option<Arc<File>>,
}

impl FileReader {
    /// The next bytes, 256 KiB at most, once they are verified; `None` at the end.
    ///
    /// # Errors
    /// [`StreamError::Ended`] or [`StreamError::Disk`].
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, StreamError> {
        if self.at >= self.end {
            return Ok(None);
        }
        self.advance();
        let mut until = self.end.min(self.at + CHUNK);
        if let Some(fetched) = &mut self.file.fetched {
            let (pieces, start) = (self.file.pieces, self.file.start);
            let verified = |progress: &Progress| {
                let map = &progress.files.pieces;
                verified_until(start + self.at..start + until, pieces, |it| map.has(it))
            };
            let has_some = |progress: &Progress| {
                progress.phase != Phase::Checking && verified(progress) > start + self.at
            };
            let there = fetched.progress.wait_for(has_some).await;
            until = there
                .map(|progress| verified(&progress))
                .map_err(|_| StreamError::Ended)?
                - start;
        }
        let bytes = self.load(until).await?;
        self.at = until;
        Ok(Some(bytes))
    }

    /// Moves the window to where it is read, in steps: each costs a look at all pieces.
    fn advance(&mut self) {
        let Some(open) = &self.open else {
            return;
        };
        if self.at >= self.window.offset + self.window.length / 2 {
            let window = self.file.window(self.at, self.end);
            if window.offset + window.length > self.window.offset + self.window.length {
                self.window = window;
                open.advance(window);
            }
        }
    }

    /// Reads the bytes up to `until` from the disk.
    async fn load(&mut self, until: u64) -> Result<Vec<u8>, StreamError> {
        let (path, disk) = (self.file.path.clone(), self.disk.clone());
        let (at, length) = (self.at, (until - self.at) as usize);
        let read = move || {
            let disk = match disk {
                Some(disk) => disk,
                None => Arc::new(open(&path)?),
            };
            let mut bytes = vec![0; length];
            disk.read_exact_at(&mut bytes, at)?;
            Ok::<_, io::Error>((disk, bytes))
        };
        let read = tokio::task::spawn_blocking(read).await;
        let (disk, bytes) = read
            .unwrap_or_else(|error| Err(io::Error::other(error)))
            .map_err(|source| StreamError::Disk {
                path: self.file.path.clone(),
                source,
            })?;
        self.disk = Some(disk);
        Ok(bytes)
    }
}

/// Opens a file by its name, or by that which it has while it is not complete.
fn open(path: &Path) -> io::Result<File> {
    let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    match (File::open(path), part_name(path)) {
        (Err(error), Some(partial)) if is_missing(&error) => match File::open(partial) {
            // It may have been completed in between.
            Err(error) if is_missing(&error) => File::open(path),
            opened => opened,
        },
        (opened, _) => opened,
    }
}

/// Up to where `bytes` of the content can be read: the beginning of the first piece that is not verified, or
/// their end.
fn verified_until(bytes: Range<u64>, pieces: Pieces, has: impl Fn(u32) -> bool) -> u64 {
    let mut all = pieces.overlapping(&bytes);
    match all.find(|piece| !has(*piece)) {
        Some(missing) => pieces.start(missing).max(bytes.start),
        None => bytes.end,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Exactly the verified bytes from the beginning on are read.
        #[test]
        fn no_byte_of_a_missing_piece_is_read(
            length in 1u32..20,
            verified in proptest::collection::vec(any::<bool>(), 1..20),
            from in 0u64..200,
            count in 1u64..200,
        ) {
            let total = u64::from(length) * verified.len() as u64;
            let (from, pieces) = (from % total, Pieces { length, total });
            let until = (from + count).min(total);
            let has = |piece: u32| verified[piece as usize];
            let read = verified_until(from..until, pieces, has);
            let is_there = |byte: &u64| has((byte / u64::from(length)) as u32);
            let expected = (from..until).take_while(is_there).count() as u64;
            prop_assert_eq!(read, from + expected);
        }
    }
}
