//! Looking at a host: asks, reads and tries, each for a bounded time, all at once.

mod disk;
mod keys;
mod network;
mod rights;
mod routers;
mod sockets;
#[cfg(test)]
mod tests;
mod trust;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hawser_endhost::{Bootstrap, IsdAsn};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::facts::{Facts, NotFetched, Purpose};

/// The folder with `topology.json` and certificates, if no other is named.
const CONFIG_DIR: &str = "/etc/scion";

/// What is looked at.
#[derive(Debug, Clone)]
pub struct Options {
    /// How the host joins its network; why it cannot, if its bootstrap server failed.
    pub bootstrap: Result<Bootstrap, NotFetched>,
    /// What the host is used for.
    pub purposes: Vec<Purpose>,
    /// An AS, and a host in it, that should be reached.
    pub destination: Option<(IsdAsn, Option<IpAddr>)>,
    /// An address that a command is to listen at.
    pub listen: Option<SocketAddr>,
    /// A state folder of a service.
    pub state: Option<PathBuf>,
    /// The time after which anything that does not answer is given up.
    pub timeout: Duration,
}

impl Options {
    /// The folder with `topology.json` and certificates.
    fn config_dir(&self) -> &Path {
        let found = self.bootstrap.as_ref().ok();
        let named = found.and_then(|found| found.config_dir.as_deref());
        named.unwrap_or(Path::new(CONFIG_DIR))
    }
}

/// Looks at this host. Changes nothing; sockets that are bound are closed at once. Must be called
/// inside a tokio runtime.
pub async fn gather(options: &Options) -> Facts {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let limit = options.timeout;
    let (config, state) = (options.config_dir().to_owned(), options.state.clone());
    let (mut facts, trust, local, rights) = tokio::join!(
        network::gather(options),
        bounded("certificates", limit, move || trust::gather(&config)),
        bounded("keys and folders", limit, move || {
            let keys = keys::gather();
            let folders = disk::gather(&keys, state.as_deref());
            (keys, folders)
        }),
        bounded("rights", limit, rights::gather),
    );
    facts.now = now.map_or(0, |now| now.as_secs());
    facts.purposes.clone_from(&options.purposes);
    let late = &mut facts.late;
    facts.trust = trust.unwrap_or_else(|what| {
        late.push((what, limit));
        Vec::new()
    });
    match local {
        Ok((keys, folders)) => (facts.keys, facts.folders) = (keys, folders),
        Err(what) => late.push((what, limit)),
    }
    match rights {
        Ok((rights, dropping_chains)) => {
            facts.rights = Some(rights);
            facts.dropping_chains = dropping_chains;
        }
        Err(what) => late.push((what, limit)),
    }
    facts
}

/// The result of a blocking `job`, or `what` if it takes longer than `limit`. A job that hangs, as
/// on a dead network file system, is left behind, and does not keep the process from ending.
async fn bounded<T: Send + 'static>(
    what: &'static str,
    limit: Duration,
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<T, &'static str> {
    let (sender, receiver) = oneshot::channel();
    let spawned = std::thread::Builder::new().spawn(move || {
        // Fails only after the time is over.
        let _ = sender.send(job());
    });
    match spawned {
        Ok(_) => timeout(limit, receiver)
            .await
            .ok()
            .and_then(Result::ok)
            .ok_or(what),
        Err(_) => Err(what),
    }
}
