//! A folder from which torrents are added: each file with the extension `torrent` or `magnet` that is put
//! there.
//!
//! A `.magnet` file has one magnet link on each line. A file is taken when it has not changed for two
//! seconds, and then gets `.added` at the end of its name, as Transmission names it; one that is no torrent
//! and has not changed for half a minute is reported, and gets `.invalid`. Files whose names begin with a
//! dot, and empty ones, are left alone: programs reserve names by them. The torrent is on disk before its
//! file is renamed, and one that is there already is not added again, so a crash in between loses nothing.

mod candidates;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hawser_file::Stamp;
use hawser_magnet::{MAX_LINK_BYTES, Magnet};
use hawser_torrent::Metainfo;
use hawser_torrent::metainfo::MAX_METAINFO_BYTES;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use self::candidates::{Candidates, Judgement};
use crate::client::{Client, NewTorrent, Source};
use crate::error::ClientError;
use crate::torrents::Merged;

/// Time between looks into the folder. Changes are not reported by every file system, as by those of
/// networks.
const SCAN_INTERVAL: Duration = Duration::from_secs(1);
/// What the name of a file ends with whose torrents were added.
const ADDED: &str = "added";
/// What the name of a file ends with that is no torrent.
const INVALID: &str = "invalid";
/// Most magnet links of a file.
const MAX_LINKS: usize = 100;

/// What a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Torrent,
    Magnet,
}

impl Kind {
    /// By the extension of the file, of either case; `None` for a file that is left alone.
    fn of(name: &OsStr) -> Option<Self> {
        if name.as_encoded_bytes().starts_with(b".") {
            return None;
        }
        let extension = Path::new(name).extension()?;
        let is = |wanted: &str| extension.eq_ignore_ascii_case(wanted);
        match () {
            () if is("torrent") => Some(Self::Torrent),
            () if is("magnet") => Some(Self::Magnet),
            () => None,
        }
    }

    /// Longest file of this kind, in bytes.
    fn max_bytes(self) -> usize {
        match self {
            Self::Torrent => MAX_METAINFO_BYTES,
            Self::Magnet => MAX_LINKS * (MAX_LINK_BYTES + 1),
        }
    }
}

/// Why nothing is added from a file.
#[derive(Debug)]
enum Fault {
    /// It has changed since it was looked at.
    Changed,
    /// It cannot be read.
    Unreadable(io::Error),
    /// It is no torrent, or not yet.
    Unparsable(String),
}

/// Adds torrents from a folder until `stop`.
pub(crate) async fn watch(folder: PathBuf, client: Client, stop: CancellationToken) {
    let mut tick = interval(SCAN_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut watched = WatchFolder::new(folder, client);
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            _ = tick.tick() => {}
        }
        // A file is added whole: what the daemon is asked is not taken back.
        watched.scan(&stop).await;
    }
}

struct WatchFolder {
    folder: PathBuf,
    client: Client,
    files: Candidates<Stamp>,
    began: Instant,
    /// Whether the folder could be read at the last look, so that it is reported once that it cannot.
    is_readable: bool,
}

impl WatchFolder {
    fn new(folder: PathBuf, client: Client) -> Self {
        Self {
            folder,
            client,
            files: Candidates::default(),
            began: Instant::now(),
            is_readable: true,
        }
    }

    /// Looks into the folder, and adds what is whole.
    async fn scan(&mut self, stop: &CancellationToken) {
        let folder = self.folder.clone();
        let listed = tokio::task::spawn_blocking(move || list(&folder)).await;
        let listed = listed.map_err(io::Error::other).flatten();
        let was_readable = std::mem::replace(&mut self.is_readable, listed.is_ok());
        let found = match listed {
            Ok(found) => found,
            Err(error) => {
                if was_readable {
                    tracing::warn!(
                        "cannot read the watched folder {:?}: {error}; nothing is added from it until that is \
                         possible",
                        self.folder
                    );
                }
                return;
            }
        };
        for name in self.files.observe(found, self.began.elapsed()) {
            if stop.is_cancelled() {
                return;
            }
            self.take(&name).await;
        }
    }

    /// Adds the torrents of a file.
    async fn take(&mut self, name: &OsString) {
        let path = self.folder.join(name);
        let now = self.began.elapsed();
        let read = path.clone();
        let read = tokio::task::spawn_blocking(move || read_sources(&read)).await;
        let read = read.unwrap_or_else(|panic| Err(Fault::Unreadable(io::Error::other(panic))));
        let sources = match read {
            Ok(sources) => sources,
            Err(Fault::Changed) => return,
            Err(Fault::Unreadable(error)) => return self.refuse(name, &path, &error, now),
            Err(Fault::Unparsable(reason)) => return self.reject(name, path, &reason, now).await,
        };
        for source in sources {
            match self.client.add(NewTorrent::new(source)).await {
                Ok(added) => {
                    let hash = added.info_hash;
                    match added.merged {
                        None => tracing::info!("{path:?}: the torrent {hash} is added"),
                        Some(Merged { peers, trackers }) => tracing::info!(
                            "{path:?}: the torrent {hash} is there already, and was given {peers} peers and \
                             {trackers} trackers"
                        ),
                    }
                }
                Err(ClientError::Invalid(reason)) => {
                    return self.reject(name, path, &reason, now).await;
                }
                Err(error) => return self.refuse(name, &path, &error, now),
            }
        }
        self.rename(name, path, ADDED).await;
    }

    /// The daemon cannot take a file for now.
    fn refuse(
        &mut self,
        name: &OsString,
        path: &Path,
        error: &dyn std::fmt::Display,
        now: Duration,
    ) {
        if self.files.on_refused(name, now) {
            tracing::warn!("{path:?} is not added yet: {error}; it is tried again");
        }
    }

    /// A file is no torrent.
    async fn reject(&mut self, name: &OsString, path: PathBuf, reason: &str, now: Duration) {
        if self.files.on_unparsable(name, now) == Judgement::Invalid {
            tracing::warn!("{path:?} is not added, and is renamed to .{INVALID}: {reason}");
            self.rename(name, path, INVALID).await;
        }
    }

    /// Renames a file of which nothing more is to be done.
    async fn rename(&mut self, name: &OsString, path: PathBuf, extension: &str) {
        self.files.on_done(name);
        let mut to = path.clone().into_os_string();
        to.push(".");
        to.push(extension);
        let from = path.clone();
        let renamed = tokio::task::spawn_blocking(move || fs::rename(from, to)).await;
        if let Err(error) = renamed.map_err(io::Error::other).flatten() {
            tracing::warn!(
                "cannot rename {path:?} to .{extension}: {error}; remove it, or it is read again at the next \
                 start"
            );
        }
    }
}

/// The files of a folder from which torrents may be added, each with its state.
fn list(folder: &Path) -> io::Result<Vec<(OsString, Stamp)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if Kind::of(&name).is_none() {
            continue;
        }
        let path = folder.join(&name);
        // One that is gone meanwhile is no file.
        let is_file = path
            .metadata()
            .is_ok_and(|found| found.is_file() && found.len() > 0);
        if let Some(stamp) = Stamp::of(&path).filter(|_| is_file) {
            found.push((name, stamp));
        }
    }
    // Of more files than are observed at once, the same ones each time.
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

/// What a file has.
fn read_sources(path: &Path) -> Result<Vec<Source>, Fault> {
    let kind = path.file_name().and_then(Kind::of).ok_or(Fault::Changed)?;
    let before = Stamp::of(path).ok_or(Fault::Changed)?;
    let mut bytes = Vec::new();
    // One more byte shows that it is too long.
    let limit = kind.max_bytes() as u64 + 1;
    let read = File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes));
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Fault::Changed),
        Err(error) => return Err(Fault::Unreadable(error)),
        Ok(_) if Stamp::of(path) != Some(before) => return Err(Fault::Changed),
        Ok(_) => {}
    }
    if bytes.len() > kind.max_bytes() {
        let text = format!("it is longer than {} bytes", kind.max_bytes());
        return Err(Fault::Unparsable(text));
    }
    match kind {
        Kind::Torrent => match Metainfo::parse(&bytes) {
            Ok(_) => Ok(vec![Source::Metainfo(bytes)]),
            Err(error) => Err(Fault::Unparsable(error.to_string())),
        },
        Kind::Magnet => {
            let links = parse_links(&bytes).map_err(Fault::Unparsable)?;
            Ok(links.into_iter().map(Source::Magnet).collect())
        }
    }
}

/// Reads magnet links, one on each line; empty lines do not count. All must be valid.
fn parse_links(bytes: &[u8]) -> Result<Vec<String>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut links = Vec::new();
    for line in lines {
        if links.len() == MAX_LINKS {
            return Err(format!("it has more than {MAX_LINKS} magnet links"));
        }
        let magnet: Result<Magnet, _> = line.parse();
        magnet.map_err(|error| error.to_string())?;
        links.push(line.to_owned());
    }
    match links.is_empty() {
        true => Err("it has no magnet link".to_owned()),
        false => Ok(links),
    }
}

#[cfg(test)]
mod tests;
