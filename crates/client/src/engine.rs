//! What all torrents share: sockets, the client of trackers, and how a record becomes options.

use std::time::{Duration, Instant};

use hawser_address::ScionAddr;
use hawser_discovery::{Client as TrackerClient, Trackers};
use hawser_torrent::{
    DownloadOptions, InfoHash, Network, PeerAddr, SeedLimits, SelectBy, Session, new_peer_id,
};
use hawser_tracker::{AnnounceOptions, Announcer, Identity, Stats};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::settings::{RateLimits, Settings};

/// What all torrents of a host share.
pub struct Engine {
    pub(crate) session: Session,
    /// For magnet links, whose metadata is fetched over connections that this side opens.
    pub(crate) network: Network,
    trackers: TrackerClient,
    /// At which IP port and SCION address peers can connect.
    port: u16,
    scion: Option<ScionAddr>,
}

impl Engine {
    /// Over the sockets of `network`, which is for these torrents alone, and with a client of trackers.
    /// Trackers are told the port at which IP peers can connect, 0 for none, and the SCION address.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new(
        network: Network,
        trackers: TrackerClient,
        port: u16,
        scion: Option<ScionAddr>,
    ) -> Self {
        Self {
            session: Session::new(network.clone()),
            network,
            trackers,
            port,
            scion,
        }
    }

    /// Sets how fast all torrents together send and receive, from now on.
    pub(crate) fn set_limits(&self, limits: RateLimits) {
        self.session.set_limits(limits.into());
    }

    /// Has trackers asked for peers of a torrent, which go to `sink`, until `stop`.
    pub(crate) fn announce(
        &self,
        info_hash: InfoHash,
        tiers: &[Vec<String>],
        stats: watch::Receiver<Stats>,
        sink: mpsc::Sender<Vec<PeerAddr>>,
        stop: &CancellationToken,
    ) -> Trackers {
        let mut rng = fastrand::Rng::new();
        let identity = Identity {
            info_hash: info_hash.0,
            peer_id: new_peer_id(),
            port: self.port,
            key: rng.u32(..),
            scion: self.scion,
        };
        let options = AnnounceOptions::default();
        let announcer = Announcer::new(identity, tiers, options, rng, Instant::now());
        Trackers::spawn(self.trackers.clone(), announcer, stats, sink, stop)
    }
}

/// The options of a torrent with `count` files, padding included, that runs with these settings.
pub(crate) fn options(settings: &Settings, count: usize) -> DownloadOptions {
    DownloadOptions {
        select_by: SelectBy::Uploader,
        // A torrent of a daemon waits for peers as long as it is not stopped.
        give_up_after: Duration::MAX,
        awaits_peers: true,
        finds_peers: true,
        // When seeding ends is decided over all runs, not by the engine, which knows the present one.
        seed: Some(SeedLimits::default()),
        limits: settings.rates.into(),
        files: settings.files.selection(count),
        ..DownloadOptions::default()
    }
}

/// The options of a torrent that is verified only.
pub(crate) fn verify_options(settings: &Settings, count: usize) -> DownloadOptions {
    DownloadOptions {
        finds_peers: false,
        seed: None,
        ..options(settings, count)
    }
}
