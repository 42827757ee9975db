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
use crate::requests::Requests;
use crate::transport::Transport;

/// The state of a torrent at work. Its one task alone decides what is requested over which
/// connection, what is dialed and what is dropped.
pub(crate) struct Swarm<T: Transport> {
    /// Which side chooses paths. A downloader announces to uploaders whether they may.
    pub(super) select_by: SelectBy,
    /// How the paths to each SCION peer are chosen and used.
    pub(super) paths: PathOptions,
    /// Time without progress, and without a peer worth waiting for, after which a download ends;
    /// `None` while it only serves.
    pub(super) give_up_after: Option<Duration>,
    /// Whether peers that are not listed are expected to connect.
    pub(super) awaits_peers: bool,
    /// Whether peers were told that this side never gets the pieces that it lacks (BEP 21).
    pub(super) announced_final: bool,
    pub(super) metainfo: Arc<Metainfo>,
    /// State shared by the connections.
    pub(super) shared: Arc<Shared>,
    pub(super) net: Net<T>,
    /// Events reported by the tasks.
    pub(super) inbox: mpsc::Receiver<Event<T>>,
    pub(super) picker: Picker,
    /// How many blocks are requested over which connection.
    pub(super) requests: Requests,
    pub(super) disk: Disk,
    /// Pieces verified and not announced to peers yet.
    pub(super) unannounced: Vec<u32>,
    pub(super) remotes: Remotes<T::Path>,
    pub(super) conns: Connections,
    pub(super) subflows: Subflows,
    /// Peers that download from here over paths chosen here.
    pub(super) uploads: Uploads<T::Path>,
    pub(super) blame: Blame,
    pub(super) reporter: Reporter,
    pub(super) tally: Tally,
    /// Set once everything is verified and seeding begins.
    pub(super) seeding: Option<Seeding>,
    /// When there last was progress or a reason to wait for it.
    pub(super) alive_at: Instant,
    /// Why it must end although the goal is not reached.
    pub(super) failure: Option<DownloadError>,
}
