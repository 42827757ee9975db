//! What the tasks of a torrent report to its owner.

use hawser_manager::Failure;
use hawser_store::{DiskEvent, Hash};

use super::remotes::{Dialed, Offered, RemoteId};
use super::uploads::{DialedBack, Downloader};
use crate::address::PeerAddr;
use crate::close::{CloseCode, Closed};
use crate::metainfo::Metainfo;
use crate::peer::{Gone, Inputs, Session};
use crate::picker::ConnId;
use crate::transport::Transport;

/// What happens.
pub(super) enum Event<T: Transport> {
    Offers {
        remote: RemoteId,
        paths: Offered<T::Path>,
        trouble: Option<String>,
    },
    Incoming(T::Connection),
    Dialed {
        dialed: Dialed,
        result: Result<Session<T::Connection>, DialError>,
    },
    /// What is offered to a downloader.
    OffersBack {
        downloader: Downloader,
        paths: Offered<T::Path>,
    },
    DialedBack {
        dialed: DialedBack,
        result: Result<Session<T::Connection>, DialError>,
    },
    Accepted(Result<Session<T::Connection>, (PeerAddr, Gone)>),
    Input(ConnId, Inputs),
    Gone(ConnId, Gone),
    Disk(DiskEvent<Hash<Metainfo>>),
    NoMoreIncoming,
}

/// Why dialing came to nothing.
pub(super) enum DialError {
    NotConnected(String),
    Handshake(Gone),
}

impl DialError {
    /// The class for the path manager, and a text for people.
    pub fn failure(self) -> (Failure, String) {
        match self {
            Self::NotConnected(reason) => (Failure::Failed, reason),
            Self::Handshake(Gone::Closed(Closed { code, text })) => match code {
                CloseCode::PathRefused => (Failure::Refused, text),
                _ => (Failure::Failed, text),
            },
            Self::Handshake(gone) => (Failure::Rejected, gone.to_string()),
        }
    }
}
