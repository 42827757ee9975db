//! The subflows that the path managers ordered.

use std::collections::HashMap;

use hawser_manager::SubflowId;
use hawser_path::Fingerprint;

use super::remotes::RemoteId;
use super::uploads::Downloader;
use crate::picker::ConnId;

/// A peer with paths that a path manager decides on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Peer {
    /// A peer that is dialed to download from it.
    Remote(RemoteId),
    /// A peer that downloads over paths chosen here.
    Downloader(Downloader),
}

/// A subflow that was dialed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Dialed {
    pub to: Peer,
    pub subflow: SubflowId,
    pub path: Fingerprint,
}

/// The connections of the subflows that are open, to all peers.
#[derive(Debug, Default)]
pub(super) struct Subflows(HashMap<(Peer, SubflowId), ConnId>);

impl Subflows {
    pub fn insert(&mut self, peer: Peer, id: SubflowId, conn: ConnId) {
        self.0.insert((peer, id), conn);
    }

    pub fn remove(&mut self, peer: Peer, id: SubflowId) -> Option<ConnId> {
        self.0.remove(&(peer, id))
    }

    /// The connection of a subflow, if it is open.
    pub fn conn(&self, peer: Peer, id: SubflowId) -> Option<ConnId> {
        self.0.get(&(peer, id)).copied()
    }

    /// Forgets the subflows to a peer that has left.
    pub fn leave(&mut self, peer: Peer) {
        self.0.retain(|(of, _), _| *of != peer);
    }
}
