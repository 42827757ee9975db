//! State shared by all connections of a torrent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use hawser_store::{Account, Budget, Files, Watch};

use crate::bitfield::Bitfield;
use crate::metainfo::{InfoHash, Metainfo, Version};
use crate::pieces::Pieces;
use crate::rate::Rates;
use crate::wire::{Handshake, PeerId};

/// State shared by all connections of a torrent.
#[derive(Debug)]
pub(crate) struct Shared {
    pub files: Arc<Files>,
    pub pieces: Pieces,
    /// Whether peers may request the last piece with padding behind it, as in version 2 alone.
    is_padded: bool,
    /// Pieces that peers may request: all that are verified.
    offered: RwLock<Bitfield>,
    /// Whether there are pieces to fetch.
    pub fetching: AtomicBool,
    /// Whether peers are told of no piece at first (BEP 16).
    pub is_super: AtomicBool,
    /// Watches the files once they are only read.
    pub content: OnceLock<Arc<Watch<Metainfo>>>,
    /// Bounds the blocks that wait for the disk, and the reads from disk for peers.
    pub account: Account,
    /// How fast blocks may be sent and received.
    pub rates: Arc<Rates>,
    /// The handshake that this side sends, but for [whether it has a node](Self::handshake) of the DHT.
    pub ours: Handshake,
    /// Whether this side has a node of the DHT, for the peers of this torrent.
    has_dht_node: AtomicBool,
    is_private: bool,
    /// The info-hashes that name the torrent.
    pub info_hashes: Arc<[InfoHash]>,
}

impl Shared {
    /// For a torrent whose pieces `verified` are in `files`, and which keeps to `rates`.
    pub fn new(
        metainfo: &Metainfo,
        files: Arc<Files>,
        verified: Bitfield,
        rates: Arc<Rates>,
    ) -> Self {
        Self {
            files,
            pieces: metainfo.pieces,
            is_padded: metainfo.version() == Version::Two,
            fetching: AtomicBool::new(!verified.is_full()),
            offered: RwLock::new(verified),
            is_super: AtomicBool::new(false),
            content: OnceLock::new(),
            rates,
            account: Budget::of_process().join(),
            ours: Handshake {
                info_hash: metainfo.info_hash,
                peer_id: PeerId::random(),
                extended: true,
                dht: false,
                version_two: metainfo.layers().is_some(),
            },
            has_dht_node: AtomicBool::new(false),
            is_private: metainfo.private,
            info_hashes: metainfo.wire_hashes(),
        }
    }

    /// Sets whether peers that connect from now on are told that this side has a node of the DHT. Those of a
    /// private torrent never are (BEP 27).
    pub fn set_dht_node(&self, has_node: bool) {
        let is_told = has_node && !self.is_private;
        self.has_dht_node.store(is_told, Ordering::Relaxed);
    }

    /// Whether peers are told that this side has a node of the DHT.
    pub fn has_dht_node(&self) -> bool {
        self.has_dht_node.load(Ordering::Relaxed)
    }

    /// The handshake that this side sends now.
    pub fn handshake(&self) -> Handshake {
        Handshake {
            dht: self.has_dht_node(),
            ..self.ours
        }
    }

    /// Bytes of a piece that peers may request; 0 past the last.
    pub fn requestable(&self, piece: u32) -> u32 {
        match self.is_padded && piece < self.pieces.count() {
            true => self.pieces.length,
            false => self.pieces.size(piece),
        }
    }

    /// The pieces that peers may request now.
    pub fn offered(&self) -> Bitfield {
        self.read().clone()
    }

    /// The pieces that a new peer is told of.
    pub fn announced(&self) -> Bitfield {
        match self.is_super.load(Ordering::Relaxed) {
            true => Bitfield::empty(self.pieces.count()),
            false => self.offered(),
        }
    }

    /// Whether peers may request a piece now.
    pub fn offers(&self, piece: u32) -> bool {
        self.read().has(piece)
    }

    /// Sets whether peers may request a piece.
    pub fn offer(&self, piece: u32, is_offered: bool) {
        let mut offered = self.offered.write().unwrap_or_else(PoisonError::into_inner);
        match is_offered {
            true => offered.set(piece),
            false => offered.clear(piece),
        };
    }

    fn read(&self) -> RwLockReadGuard<'_, Bitfield> {
        self.offered.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the pieces that are not offered now never will be: nothing is fetched, and no file
    /// that has changed is being verified again. Peers would leave a super-seeder that said so.
    pub fn is_final(&self) -> bool {
        let content = self.content.get();
        let is_super = self.is_super.load(Ordering::Relaxed);
        !is_super && !self.fetches() && content.is_none_or(|content| !content.is_verifying())
    }

    /// Whether there are pieces to fetch.
    pub fn fetches(&self) -> bool {
        self.fetching.load(Ordering::Relaxed)
    }
}
