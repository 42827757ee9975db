//! The state of a torrent at work, by concern.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::blame::Blame;
use super::connections::Connections;
use super::dialing::Dialing;
use super::event::Event;
use super::fetching::Fetching;
use super::net::Net;
use super::tally::{Reporter, Tally};
use super::uploads::Uploads;
use super::web_runs::Web;
use crate::error::DownloadError;
use crate::limits::Seeding;
use crate::metainfo::Metainfo;
use crate::peer::Shared;
use crate::transport::Transport;

/// The state of a torrent at work. Its one task alone decides what is requested over which
/// connection, what is dialed and what is dropped.
pub(crate) struct Swarm<T: Transport> {
    pub(super) metainfo: Arc<Metainfo>,
    /// State shared by the connections.
    pub(super) shared: Arc<Shared>,
    pub(super) net: Net<T>,
    /// Events reported by the tasks.
    pub(super) inbox: mpsc::Receiver<Event<T>>,
    /// Whether peers were told that this side never gets the pieces that it lacks (BEP 21).
    pub(super) announced_final: bool,
    /// What is requested, and what becomes of it.
    pub(super) fetching: Fetching,
    /// The peers that are dialed, and over which paths.
    pub(super) dialing: Dialing<T>,
    pub(super) conns: Connections,
    /// Which peers are served, and over which paths.
    pub(super) uploads: Uploads<T::Path>,
    pub(super) blame: Blame,
    pub(super) reporter: Reporter,
    pub(super) tally: Tally,
    /// Set once everything is verified and seeding begins.
    pub(super) seeding: Option<Seeding>,
    /// The web servers that have the content.
    pub(super) web: Web,
    pub(super) ending: Ending,
}

/// When a torrent must end although its goal is not reached.
#[derive(Debug)]
pub(super) struct Ending {
    /// Time without progress, and without a peer worth waiting for, after which a download ends;
    /// `None` while it only serves.
    pub give_up_after: Option<Duration>,
    /// Time for which a complete peer that chokes this side is worth waiting for.
    pub choked_patience: Duration,
    /// Whether peers that are not listed are expected to connect.
    pub awaits_peers: bool,
    /// Whether peers are found while it runs, from peers and by [`Swarm::find_peers`].
    pub finds_peers: bool,
    /// Whether peers are told of each other.
    pub exchanges_peers: bool,
    /// When there last was progress or a reason to wait for it.
    pub alive_at: Instant,
    /// Why it must end.
    pub failure: Option<DownloadError>,
}

impl Ending {
    /// A torrent that only serves.
    pub fn new(now: Instant) -> Self {
        Self {
            give_up_after: None,
            choked_patience: Duration::ZERO,
            awaits_peers: false,
            finds_peers: false,
            exchanges_peers: false,
            alive_at: now,
            failure: None,
        }
    }
}
