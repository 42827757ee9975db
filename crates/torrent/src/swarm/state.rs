//! The state of a torrent at work, by concern.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_manager::{PathOptions, SelectBy};
use hawser_store::Disk;
use tokio::sync::mpsc;

use super::blame::Blame;
use super::connections::Connections;
use super::event::Event;
use super::net::Net;
use super::remotes::Remotes;
use super::subflow::Subflows;
use super::tally::{Reporter, Tally};
use super::uploads::Uploads;
use crate::error::DownloadError;
use crate::limits::Seeding;
use crate::metainfo::Metainfo;
use crate::peer::Shared;
use crate::picker::Picker;
use crate::transport::Transport;

/// The state of a torrent at work. Its one task alone decides what is requested over which
/// connection, what is dialed and what is dropped.
pub(crate) struct Swarm<T: Transport> {
    /// Which side chooses paths. A downloader lets uploaders know whether they may.
    pub(super) select_by: SelectBy,
    /// How the paths to each SCION peer are chosen and used.
    pub(super) paths: PathOptions,
    /// Time without progress, and without a peer to wait for, after which a download ends; `None`
    /// while it only serves.
    pub(super) give_up_after: Option<Duration>,
    pub(super) metainfo: Arc<Metainfo>,
    /// What the connections share.
    pub(super) shared: Arc<Shared>,
    pub(super) net: Net<T>,
    /// What the tasks report.
    pub(super) inbox: mpsc::Receiver<Event<T>>,
    pub(super) picker: Picker,
    pub(super) disk: Disk,
    pub(super) remotes: Remotes<T::Path>,
    pub(super) conns: Connections,
    pub(super) subflows: Subflows,
    /// The peers that download from here over paths that are chosen here.
    pub(super) uploads: Uploads<T::Path>,
    pub(super) blame: Blame,
    pub(super) reporter: Reporter,
    pub(super) tally: Tally,
    /// Since everything is verified, where others go on being served.
    pub(super) seeding: Option<Seeding>,
    /// When there last was progress, or reason to wait for it.
    pub(super) alive_at: Instant,
    /// Why it is to end although the goal is not reached.
    pub(super) failure: Option<DownloadError>,
}
