//! What all torrents share: sockets, how peers are found, and how a record becomes options.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hawser_discovery::PeerFinder;
use hawser_torrent::{
    DownloadOptions, FileOptions, Network, OuterLimits, RateGroup, SeedLimits, SelectBy, Session,
};
use tokio::sync::watch;

use crate::completion;
use crate::error::RunError;
use crate::groups::Groups;
use crate::network::NetworkSettings;
use crate::port_mapping::PortMapping;
use crate::settings::{RateLimits, Settings};
use crate::ways::{WayOpeners, Ways};

/// What all torrents of a host share.
pub struct Engine {
    pub(crate) session: Session,
    /// The bandwidth groups by name. The lock is held for single calls.
    groups: Mutex<BTreeMap<String, RateGroup>>,
    /// For magnet links, whose metadata is fetched over connections that this side opens.
    pub(crate) network: Network,
    /// How peers are found.
    ways: Ways,
    /// Whether peers name others, unless users have set that.
    exchanges_peers: bool,
    pub(crate) storage: FileOptions,
    pub(crate) port_mapping: Option<watch::Receiver<PortMapping>>,
    pub(crate) on_complete: Option<Arc<Path>>,
}

impl Engine {
    /// Over the sockets of `network`, which is for these torrents alone. Peers are found by `finder`, and by
    /// peers, which name others.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new(network: Network, finder: PeerFinder) -> Self {
        Self {
            session: Session::new(network.clone()),
            groups: Mutex::default(),
            network,
            // As programs for Transmission expect of the trackers that they add, each in a tier of its own.
            ways: Ways::new(finder.with_all_tiers()),
            exchanges_peers: true,
            storage: FileOptions::default(),
            port_mapping: None,
            on_complete: None,
        }
    }

    /// Sets whether peers name others to each other (BEP 11), unless a torrent is private, or users set it.
    pub fn with_exchange(mut self, exchanges_peers: bool) -> Self {
        self.exchanges_peers = exchanges_peers;
        self
    }

    /// Sets what opens the ways to find peers that the finder does not have, when they are switched on.
    pub fn with_openers(mut self, openers: WayOpeners) -> Self {
        self.ways.set_openers(openers);
        self
    }

    /// How peers are found.
    pub(crate) fn finder(&self) -> &PeerFinder {
        &self.ways.finder
    }

    /// Sets how the files of all torrents are put on disk.
    pub fn with_storage(mut self, storage: FileOptions) -> Self {
        self.storage = storage;
        self
    }

    /// Shows what there is of the mapping of the port of IP peers.
    pub fn with_port_mapping(mut self, state: watch::Receiver<PortMapping>) -> Self {
        self.port_mapping = Some(state);
        self
    }

    /// Sets the program that is run for each torrent whose download is complete, an absolute path.
    ///
    /// # Errors
    /// [`RunError::OnComplete`], if it cannot be run.
    pub fn with_on_complete(mut self, program: &Path) -> Result<Self, RunError> {
        completion::check(program).map_err(|source| RunError::OnComplete {
            program: program.to_owned(),
            source,
        })?;
        self.on_complete = Some(program.into());
        Ok(self)
    }

    /// Opens the ways to find peers that this change switches on, if they are not there.
    ///
    /// # Errors
    /// Why one cannot be opened.
    pub(crate) fn open_ways(&self, change: &NetworkSettings) -> Result<(), String> {
        self.ways.open(change)
    }

    /// Has the ways to find peers be on as these settings say.
    pub(crate) fn allow_ways(&self, settings: &NetworkSettings) {
        self.ways.allow(settings);
        let exchanges = settings.exchange.unwrap_or(self.exchanges_peers);
        self.network.set_exchange(exchanges);
    }

    /// Sets how fast all torrents together send and receive, from now on.
    pub(crate) fn set_limits(&self, limits: RateLimits) {
        self.session.set_limits(limits.into());
    }

    /// Sets which bandwidth groups there are, and how fast the torrents of each together send and receive, from
    /// now on.
    pub(crate) fn set_groups(&self, wanted: &Groups) {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.retain(|name, _| wanted.contains_key(name));
        for (name, limits) in wanted {
            let group = groups.entry(name.clone()).or_default();
            group.set(limits.rates.into(), limits.is_exempt);
        }
    }

    /// Which limits those of a torrent with these settings are within.
    pub(crate) fn outer_limits(&self, settings: &Settings) -> OuterLimits {
        let groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        OuterLimits {
            group: groups.get(&settings.group).cloned(),
            is_exempt: settings.is_exempt,
            priority: settings.priority.into(),
        }
    }

    /// The options of a torrent with `count` files, padding included, that runs with these settings. What is
    /// verified of it is kept at `record`.
    pub(crate) fn options(
        &self,
        settings: &Settings,
        count: usize,
        record: PathBuf,
    ) -> DownloadOptions {
        DownloadOptions {
            // Whether they are is up to the network.
            exchanges_peers: true,
            record: Some(record),
            storage: self.storage,
            ..options(settings, count)
        }
    }
}

fn options(settings: &Settings, count: usize) -> DownloadOptions {
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

/// The options of a torrent that is verified only, and all of it.
pub(crate) fn verify_options(
    settings: &Settings,
    count: usize,
    record: PathBuf,
) -> DownloadOptions {
    DownloadOptions {
        record: Some(record),
        rechecks: true,
        finds_peers: false,
        uses_web_seeds: false,
        seed: None,
        ..options(settings, count)
    }
}
