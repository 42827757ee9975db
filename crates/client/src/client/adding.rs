//! Torrents added, or given what is new of them where they are there already.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hawser_magnet::Magnet;
use hawser_torrent::{InfoHash, Metainfo, PeerAddr};
use tokio::sync::oneshot;

use super::Client;
use crate::content;
use crate::error::ClientError;
use crate::fetch::{Cookies, fetch_metainfo};
use crate::owner::{AddFailure, Addition, Request};
use crate::record::{Announcement, Dates, Origin, Pending, Record, Totals, cut_name};
use crate::runner::link_peers;
use crate::settings::Settings;
use crate::torrents::{CommandError, Merged};
use crate::trackers::{Tiers, of_link};

/// A torrent to add.
#[derive(Debug, Clone)]
pub struct NewTorrent {
    /// What it is added from.
    pub source: Source,
    /// The folder for its content, an absolute path; `None` for the one of the client.
    pub folder: Option<PathBuf>,
    /// Whether it is to run when it is its turn; as users have set for all that are added when `None`.
    pub started: Option<bool>,
    /// Its labels.
    pub labels: Vec<String>,
    /// Peers to ask, besides those that are found.
    pub peers: Vec<PeerAddr>,
    /// When its seeding ends, how fast it sends and receives, and which files are downloaded.
    pub settings: Settings,
}

impl NewTorrent {
    /// From this source, with defaults for all else.
    pub fn new(source: Source) -> Self {
        Self {
            source,
            folder: None,
            started: None,
            labels: Vec::new(),
            peers: Vec::new(),
            settings: Settings::default(),
        }
    }
}

/// What a torrent is added from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The bytes of a `.torrent` file, not checked.
    Metainfo(Vec<u8>),
    /// A magnet link (BEP 9), not checked.
    Magnet(String),
    /// A URL of HTTP or HTTPS, from which the `.torrent` file is fetched.
    Url {
        /// The URL, not checked.
        url: String,
        /// Cookies for its host, if any.
        cookies: Option<Cookies>,
    },
}

/// A torrent that was added, or was there before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedTorrent {
    /// Its info-hash.
    pub info_hash: InfoHash,
    /// What it was given of what was to be added, if it was there before; all else of it stayed as it is.
    pub merged: Option<Merged>,
}

/// What an addition gives to a torrent that is there already.
#[derive(Default)]
struct Named {
    peers: Vec<PeerAddr>,
    trackers: Tiers,
    /// The link that it is added by, which may name peers by their hosts.
    magnet: Option<Magnet>,
}

impl Client {
    /// Waits until a torrent is not being removed.
    async fn until_removed(&self, info_hash: InfoHash) -> Result<(), ClientError> {
        let mut changes = self.changes();
        loop {
            changes.borrow_and_update();
            match self.view(info_hash).await {
                Ok(view) if matches!(view.record.pending, Some(Pending::Remove { .. })) => {}
                Ok(_) | Err(ClientError::Refused(CommandError::Unknown(_))) => return Ok(()),
                Err(error) => return Err(error),
            }
            let changed = changes.changed().await;
            changed.map_err(|_| ClientError::Stopping)?;
        }
    }

    /// Adds a torrent. It is on disk when this returns. One that is there already is given the peers that
    /// are named and that it does not have, and, unless it is private (BEP 27), the trackers; one that is being
    /// removed is added when it is gone.
    ///
    /// # Errors
    /// [`ClientError`]; nothing is added, unless it is [`ClientError::NotSaved`].
    pub async fn add(&self, mut new: NewTorrent) -> Result<AddedTorrent, ClientError> {
        // Kept until the file is parsed.
        let mut _place = None;
        if let Source::Url { url, cookies } = &new.source {
            let place = Arc::clone(&self.fetches).acquire_owned().await;
            _place = Some(place.map_err(|_| ClientError::Stopping)?);
            new.source = Source::Metainfo(fetch_metainfo(&self.http, url, cookies.as_ref()).await?);
        }
        let bounds = self.bounds().await?;
        let folder = new.folder.clone();
        let folder = folder.unwrap_or_else(|| self.download_dir_of(&bounds));
        new.started.get_or_insert(bounds.all.queue.starts_added);
        let incomplete = bounds.all.incomplete;
        // Parsing a large file takes a while.
        let read =
            tokio::task::spawn_blocking(move || addition(new, folder, incomplete.in_force()));
        let read = read.await;
        let (addition, named) = read.map_err(|error| ClientError::Invalid(error.to_string()))??;
        let info_hash = addition.record.info_hash;
        self.until_removed(info_hash).await?;
        // One that was removed may be added again with other trackers.
        self.metainfos().remove(info_hash);
        let (reply, replied) = oneshot::channel();
        // The caller may have gone.
        let reply = Box::new(move |outcome| drop(reply.send(outcome)));
        self.ask(Request::Add(Box::new(addition), reply)).await?;
        let merged = match replied.await.map_err(|_| ClientError::Stopping)? {
            Ok(()) => None,
            Err(AddFailure::Refused(CommandError::Duplicate(_))) => {
                Some(self.merge(info_hash, named).await?)
            }
            Err(AddFailure::Refused(error)) => return Err(error.into()),
            Err(AddFailure::NotSaved(error)) => return Err(ClientError::NotSaved(error)),
        };
        Ok(AddedTorrent { info_hash, merged })
    }

    /// Gives a torrent that is there already what an addition names.
    async fn merge(&self, info_hash: InfoHash, mut named: Named) -> Result<Merged, ClientError> {
        if let Some(magnet) = &named.magnet {
            named.peers.extend(link_peers(magnet).await);
        }
        let view = self.view(info_hash).await?;
        let metainfo = self.metainfo(&view).await?;
        if metainfo.as_ref().is_some_and(|it| it.private) {
            named.trackers.clear();
        }
        let has = view.record.named_trackers(metainfo.as_deref());
        let has = has.unwrap_or_default();
        self.change(move |all| all.merge(info_hash, &named.peers, &has, &named.trackers))
            .await
    }
}

/// What is kept of a new torrent, whose content is to be in this folder, and before it is complete in another one; and
/// what one that is there already gets of it.
fn addition(
    new: NewTorrent,
    folder: PathBuf,
    incomplete: Option<&Path>,
) -> Result<(Addition, Named), ClientError> {
    let invalid = |error: &dyn std::fmt::Display| ClientError::Invalid(error.to_string());
    let added = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    let mut record = Record {
        info_hash: InfoHash([0; 20]),
        name: String::new(),
        origin: Origin::Metainfo,
        size: None,
        folder,
        started: new.started.unwrap_or(true),
        outcome: None,
        labels: new.labels,
        settings: new.settings,
        rank: 0,
        peers: new.peers,
        dates: Dates {
            added: added.map_or(0, |added| added.as_secs()),
            ..Dates::default()
        },
        totals: Totals::default(),
        pending: None,
        rechecks: false,
        announcement: Announcement::None,
    };
    let mut named = Named {
        peers: record.peers.clone(),
        ..Named::default()
    };
    let metainfo = match new.source {
        Source::Metainfo(bytes) => {
            let metainfo = Metainfo::parse(&bytes).map_err(|error| invalid(&error))?;
            record.info_hash = metainfo.info_hash;
            record.name.clone_from(&metainfo.name);
            record.size = Some(metainfo.pieces.total);
            let files = record.settings.files.selection(metainfo.files.len());
            files.check(&metainfo).map_err(|error| invalid(&error))?;
            if !content::is_there(&metainfo, &record.folder) {
                record.begin_in(incomplete);
            }
            named.trackers = metainfo.sources.trackers;
            Some(bytes)
        }
        Source::Url { .. } => return Err(invalid(&"a URL must be fetched first")),
        Source::Magnet(link) => {
            let magnet: Magnet = link.parse().map_err(|error| invalid(&error))?;
            // Of a torrent of version 2, the first 20 bytes are the info-hash on the wire (BEP 52).
            let v2 = || magnet.info_hashes.v2?.first_chunk::<20>().copied();
            let hash = magnet.info_hashes.v1.or_else(v2);
            let none = || invalid(&"the magnet link names no torrent");
            record.info_hash = InfoHash(hash.ok_or_else(none)?);
            record.name = magnet
                .name
                .clone()
                .unwrap_or_else(|| record.info_hash.to_string());
            record.origin = Origin::Magnet(link);
            record.begin_in(incomplete);
            named.trackers = of_link(&magnet);
            named.magnet = Some(magnet);
            None
        }
    };
    cut_name(&mut record.name);
    Ok((Addition { record, metainfo }, named))
}
