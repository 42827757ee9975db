//! Events that the tasks of a torrent report to its owner.

use std::sync::Arc;

use hawser_address::PeerAddr;
use hawser_store::{DiskEvent, Hash};

use tokio::sync::oneshot;

use super::subflow::Peer;
use super::web_runs::WebEvent;
use crate::error::SelectError;
use crate::metainfo::Metainfo;
use crate::peer::{Gone, Inputs, Session};
use crate::picker::ConnId;
use crate::selection::Selection;
use crate::source::PeerSource;
use crate::transport::{Connection, Transport};
use crate::web::{RunId, SeedId};

/// An event reported to the owner.
pub(super) enum Event<T: Transport> {
    /// The paths offered to a peer now; if there are none, `trouble` may say why.
    Offers {
        to: Peer,
        paths: Arc<Vec<T::Path>>,
        trouble: Option<String>,
    },
    /// Peers were found.
    Found(Vec<PeerAddr>, PeerSource),
    Incoming(Arc<dyn Connection>),
    /// The handshake over the connection with this number that a peer opened is over; `None` if it failed.
    Accepted(u64, Option<Session>),
    Input(ConnId, Inputs),
    Gone(ConnId, Gone),
    Disk(DiskEvent<Hash<Metainfo>>),
    /// A run of a web seed has brought something, or has ended.
    Web(SeedId, RunId, WebEvent),
    /// Files were selected on disk.
    Selected(Selection, oneshot::Sender<Result<(), SelectError>>),
    /// So many peers may be connected.
    MaxPeers(usize),
    /// The served files were checked for changes.
    Scanned,
    NoMoreIncoming,
}

/// The outcome of a dial.
pub(super) type DialResult = Result<Session, Gone>;
