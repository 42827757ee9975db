//! What all connections of a torrent share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use hawser_store::{Account, Budget, Files, Watch};

use crate::bitfield::Bitfield;
use crate::metainfo::Metainfo;
use crate::pieces::Pieces;
use crate::wire::{Handshake, PeerId};

/// What all connections of a torrent share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub files: Arc<Files>,
    pub pieces: Pieces,
    /// What is verified, so what peers may ask for.
    pub verified: RwLock<Bitfield>,
    /// Whether there are pieces to fetch.
    pub fetching: AtomicBool,
    /// Watches over the files, once they are served and not written.
    pub content: OnceLock<Arc<Watch<Metainfo>>>,
    /// Bounds the blocks that wait for the disk, and the reads from it for peers.
    pub account: Account,
    pub ours: Handshake,
}

impl Shared {
    /// Of a torrent of which `verified` is in `files`.
    pub fn new(metainfo: &Metainfo, files: Arc<Files>, verified: Bitfield) -> Self {
        Self {
            files,
            pieces: metainfo.pieces(),
            fetching: AtomicBool::new(!verified.is_full()),
            verified: RwLock::new(verified),
            content: OnceLock::new(),
            account: Budget::of_process().join(),
            ours: Handshake {
                info_hash: metainfo.info_hash(),
                peer_id: PeerId::random(),
                extended: true,
            },
        }
    }

    /// What peers may ask for now.
    pub fn offered(&self) -> Bitfield {
        let verified = self.verified.read();
        verified.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether there are pieces to fetch.
    pub fn fetches(&self) -> bool {
        self.fetching.load(Ordering::Relaxed)
    }
}
