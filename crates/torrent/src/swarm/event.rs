//! What the tasks of a torrent report to its owner.

use std::sync::Arc;

use hawser_store::{DiskEvent, Hash};

use super::subflow::{Dialed, Peer};
use crate::metainfo::Metainfo;
use crate::peer::{Gone, Inputs, Session};
use crate::picker::ConnId;
use crate::transport::{Connection, Transport};

/// What happens.
pub(super) enum Event<T: Transport> {
    /// What is offered to a peer now, and why nothing is.
    Offers {
        to: Peer,
        paths: Arc<Vec<T::Path>>,
        trouble: Option<String>,
    },
    Incoming(Arc<dyn Connection>),
    Dialed {
        dialed: Dialed,
        result: DialResult,
    },
    /// The handshake with a peer that connected is over; `None` if it came to nothing.
    Accepted(Option<Session>),
    Input(ConnId, Inputs),
    Gone(ConnId, Gone),
    Disk(DiskEvent<Hash<Metainfo>>),
    NoMoreIncoming,
}

/// What a dial comes to.
pub(super) type DialResult = Result<Session, Gone>;
