//! The own network beside a torrent.

use hawser_discovery::{LocalDiscovery, LocalSearch};
use hawser_torrent::PeerAddr;
use tokio::sync::mpsc;

use super::{MAX_WAITING, Sought, Ways};
use crate::cmd::network::Sockets;
use crate::failure::Failure;

/// The search for peers on the own network.
pub struct Local {
    /// With the port of `--tcp`, and its address if that is of one interface.
    search: LocalSearch,
    sink: mpsc::Sender<Vec<PeerAddr>>,
    found: mpsc::Receiver<Vec<PeerAddr>>,
    discovery: Option<LocalDiscovery>,
}

impl Local {
    /// What is to be looked for, if `ways` say so.
    pub fn new(ways: Ways, sought: &Sought, sockets: &Sockets) -> Option<Self> {
        let tcp = sockets.addresses.tcp;
        let ip = tcp.map(|tcp| tcp.ip()).filter(|ip| !ip.is_unspecified());
        let (sink, found) = mpsc::channel(MAX_WAITING);
        ways.local.then_some(Self {
            search: LocalSearch {
                info_hash: sought.info_hash.0,
                port: tcp.map(|tcp| tcp.port()),
                ip,
            },
            sink,
            found,
            discovery: None,
        })
    }

    /// Looks for peers from now on, and announces this side if it `announces`.
    ///
    /// # Errors
    /// If no interface can be used.
    pub fn search(&mut self, announces: bool) -> Result<(), Failure> {
        let search = LocalSearch {
            port: self.search.port.filter(|_| announces),
            ..self.search
        };
        // The port of the group is free again for this one.
        self.discovery = None;
        self.discovery = Some(LocalDiscovery::spawn(search, self.sink.clone())?);
        Ok(())
    }

    /// Ends the search: nothing is announced any more.
    pub fn end_search(&mut self) {
        self.discovery = None;
    }

    /// The next peers that are found. Cancel safe.
    pub async fn found(&mut self) -> Vec<PeerAddr> {
        match self.found.recv().await {
            Some(peers) => peers,
            None => std::future::pending().await,
        }
    }
}
