//! The state of the subflows that the path managers ordered.

use std::collections::HashMap;

use hawser_manager::SubflowId;
use hawser_path::Fingerprint;
use tokio::task::AbortHandle;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialed {
    pub to: Peer,
    pub subflow: SubflowId,
    pub path: Fingerprint,
}

/// The state of a subflow.
#[derive(Debug)]
pub(super) enum Subflow {
    Dialing(AbortHandle),
    Open(ConnId),
}

/// The subflows that have not ended, to all peers.
#[derive(Debug, Default)]
pub(super) struct Subflows(HashMap<(Peer, SubflowId), Subflow>);

impl Subflows {
    pub fn insert(&mut self, peer: Peer, id: SubflowId, subflow: Subflow) {
        self.0.insert((peer, id), subflow);
    }

    pub fn remove(&mut self, peer: Peer, id: SubflowId) -> Option<Subflow> {
        self.0.remove(&(peer, id))
    }

    /// The connection of a subflow, if it is open.
    pub fn conn(&self, peer: Peer, id: SubflowId) -> Option<ConnId> {
        match self.0.get(&(peer, id))? {
            Subflow::Open(conn) => Some(*conn),
            Subflow::Dialing(_) => None,
        }
    }

    /// Forgets the subflows to a peer that has left, and aborts their dials.
    pub fn leave(&mut self, peer: Peer) {
        for (_, subflow) in self.0.extract_if(|(of, _), _| *of == peer) {
            if let Subflow::Dialing(task) = subflow {
                task.abort();
            }
        }
    }
}
