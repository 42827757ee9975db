//! Serving a torrent to whoever connects.

use std::path::PathBuf;

use hawser_quic::Endpoint;
use thiserror::Error;
use tokio::sync::watch;

use crate::metainfo::Metainfo;
use crate::progress::SeedProgress;

/// A seeder at work. Dropping it stops it.
pub struct Seed {}

/// Why content cannot be seeded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SeedError {
    /// The endpoint is closed.
    #[error("the endpoint is closed")]
    EndpointClosed,
}

impl Seed {
    /// Verifies `content` (the file, or the folder of a torrent of several files) against the
    /// torrent, calling `checked` with bytes hashed and bytes in all, then serves every peer that
    /// connects to `endpoint`.
    ///
    /// # Errors
    /// When the content is not there or does not match the torrent.
    pub async fn start(
        _metainfo: Metainfo,
        _content: PathBuf,
        _endpoint: Endpoint,
        _checked: impl FnMut(u64, u64) + Send + 'static,
    ) -> Result<Seed, SeedError> {
        unimplemented!()
    }

    /// How it is doing, about ten times a second.
    pub fn progress(&self) -> watch::Receiver<SeedProgress> {
        unimplemented!()
    }

    /// Closes all connections and ends; the endpoint stays open.
    pub async fn stop(self) {
        unimplemented!()
    }

    /// Runs until the endpoint closes or reading the content fails.
    ///
    /// # Errors
    /// What ended it.
    pub async fn wait(&mut self) -> Result<(), SeedError> {
        unimplemented!()
    }
}
