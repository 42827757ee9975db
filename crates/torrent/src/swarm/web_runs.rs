//! The web seeds of a torrent at work, and what the tasks of their runs report.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use bytes::Bytes;
use hawser_http_client::HttpClient;
use hawser_store::Reservation;
use sha2::{Digest, Sha256};
use tokio::task::AbortHandle;

use super::connections::Connections;
use crate::metainfo::Metainfo;
use crate::picker::{ConnId, Picker};
use crate::web::{Failure, RunId, WebSeeds};
use crate::wire::Request;

/// The web seeds of a torrent, and the tasks of their runs.
#[derive(Default)]
pub(super) struct Web {
    pub seeds: WebSeeds,
    pub client: HttpClient,
    pub runs: HashMap<RunId, Running>,
    /// Whether something has happened since they were last asked.
    pub is_changed: bool,
}

/// A run that is fetched.
pub(super) struct Running {
    pub task: AbortHandle,
    /// How many of its blocks are still wanted.
    pub left: Arc<AtomicUsize>,
}

/// What the task of a run reports.
#[derive(Debug)]
pub(super) enum WebEvent {
    Block {
        /// The connection that the web seed is to the picker.
        conn: ConnId,
        request: Request,
        data: Bytes,
        /// Held until the block is on disk.
        room: Reservation,
    },
    Ended(Result<(), Failure>),
}

impl Web {
    /// The web seeds that a torrent names.
    pub fn new(
        metainfo: &Metainfo,
        picker: &mut Picker,
        conns: &mut Connections,
        now: Instant,
    ) -> Self {
        let name = |url: &str| (conns.new_id(), conns.group(key(url)));
        Self {
            seeds: WebSeeds::new(metainfo, picker, name, now),
            is_changed: true,
            ..Self::default()
        }
    }
}

/// The key of a web seed, for its turns and as a sender. The hashed text cannot be that of a
/// certificate.
pub(super) fn key(url: &str) -> [u8; 32] {
    Sha256::digest(format!("hawser web seed {url}")).into()
}
