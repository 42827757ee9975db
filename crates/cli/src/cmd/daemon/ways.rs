//! The ways to find peers of `hawser daemon`, of which those that it was started without are opened when users
//! switch them on.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use hawser_client::{NetworkSettings, WayOpeners};
use hawser_discovery::DhtNodes;

use crate::cmd::find::{Dht, FindArgs, Ways, open_local};
use crate::cmd::network::Sockets;
use crate::failure::Failure;

/// These ways, and those that users have switched on in an earlier run.
pub fn with_kept(ways: Ways, kept: NetworkSettings) -> Ways {
    Ways {
        dht: ways.dht || kept.dht == Some(true),
        local: ways.local || kept.local == Some(true),
        ..ways
    }
}

/// The nodes of the DHT of a daemon, once they run, and what they need to run.
pub struct DaemonDht {
    find: FindArgs,
    sockets: Sockets,
    /// Where the nodes that they know are kept.
    folder: PathBuf,
    running: Mutex<Option<Dht>>,
}

impl DaemonDht {
    /// Over these sockets; none runs.
    pub fn new(find: &FindArgs, sockets: &Sockets, folder: PathBuf) -> Self {
        Self {
            find: find.with_dht(),
            sockets: sockets.clone(),
            folder,
            running: Mutex::default(),
        }
    }

    /// Runs the nodes.
    ///
    /// # Errors
    /// If none can be opened.
    pub fn open(&self) -> Result<DhtNodes, Failure> {
        let dht = Dht::open(&self.find, &[], &self.sockets, Some(self.folder.clone()))?;
        let nodes = dht.nodes();
        *self.lock() = Some(dht);
        Ok(nodes)
    }

    /// Ends the nodes that run, and keeps those that they know.
    pub async fn stop(&self) {
        let running = self.lock().take();
        if let Some(dht) = running {
            dht.stop().await;
        }
    }

    /// Held for single reads and writes.
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Dht>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens ways while the daemon runs.
pub fn openers(dht: &Arc<DaemonDht>, sockets: &Sockets) -> WayOpeners {
    let (dht, tcp) = (Arc::clone(dht), sockets.addresses.tcp);
    WayOpeners {
        dht: Some(Box::new(move || {
            dht.open().map_err(|failure| failure.to_string())
        })),
        local: Some(Box::new(move || {
            open_local(tcp).map_err(|error| error.to_string())
        })),
    }
}
