//! How a host determines its AS and its source of paths.

use std::env;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::daemon::{Daemon, ENVIRONMENT};
use crate::endhost::Endhost;
use crate::service::{CONNECT_TIMEOUT, DEFAULT_ADDRESS, SourceError};
use crate::source::Source;
use crate::standalone::Standalone;

/// The environment variable with this host's address.
const LOCAL_ADDRESS: &str = "SCION_LOCAL_ADDR";
/// The folder that is tried last, as in scionproto's programs.
const CONFIG_DIR: &str = "/etc/scion";

/// How the user wants to join the network. Fields that are `None` are determined from the host.
///
/// The order is: `daemon`; `config_dir`; the environment variables `SCION_DAEMON`, then
/// `SCION_DAEMON_ADDRESS`; the daemon at [`DEFAULT_ADDRESS`] if one answers there; the folder
/// `/etc/scion` if it has a `topology.json`. A named source must work: then no other is tried.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bootstrap {
    /// The daemon's `HOST:PORT`, or `default`.
    pub daemon: Option<String>,
    /// A folder with `topology.json`.
    pub config_dir: Option<PathBuf>,
    /// This host's address in its AS; `None` for that in `SCION_LOCAL_ADDR`, or else the source
    /// address of packets to the border routers.
    pub local: Option<IpAddr>,
}

/// Why a host could not join a network.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// `SCION_LOCAL_ADDR` is not the address of a host.
    #[error("`{0}` in {LOCAL_ADDRESS} is not an address of this host: write an IP address")]
    Local(String),
    /// The daemon or folder that the user or the environment names is not usable.
    #[error("{source} (named by {by})")]
    Named {
        /// The flag or variable that names it.
        by: &'static str,
        /// The error.
        source: SourceError,
    },
    /// The folder that the user names cannot be used.
    #[error("{0}")]
    Folder(String),
    /// This host is not set up for a network: none was named, no program listens at the default
    /// daemon's address, and the default folder does not exist.
    #[error(
        "no SCION network found: {tried}. Start a daemon, name one (SCION_DAEMON=HOST:PORT), or \
         name a folder with topology.json",
        tried = list(.0)
    )]
    Nothing(Vec<Attempt>),
    /// This host is set up for a network, but no source that was found is usable.
    #[error("cannot join the SCION network of this host: {tried}", tried = list(.0))]
    Unusable(Vec<Attempt>),
}

/// One attempt to join a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The daemon or folder that was tried.
    pub what: String,
    /// Why it cannot be used.
    pub outcome: String,
    /// Whether it exists.
    pub found: bool,
}

fn list(tried: &[Attempt]) -> String {
    let text = |Attempt { what, outcome, .. }: &Attempt| format!("{what}: {outcome}");
    tried.iter().map(text).collect::<Vec<_>>().join("; ")
}

/// The settings of this host.
struct Environment<'a> {
    variable: &'a (dyn Fn(&str) -> Option<String> + Sync),
    daemon: &'a str,
    config_dir: PathBuf,
}

impl Endhost {
    /// Joins the network by the first source that [`Bootstrap`] lists, and then keeps paths fresh.
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`BootstrapError`] when there is no network, or a named source is not usable.
    pub async fn bootstrap(wanted: &Bootstrap) -> Result<Self, BootstrapError> {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let environment = Environment {
            variable: &variable,
            daemon: DEFAULT_ADDRESS,
            config_dir: CONFIG_DIR.into(),
        };
        environment.bootstrap(wanted).await
    }
}

/// A host without a daemon.
async fn standalone(
    folder: &Path,
    local: Option<IpAddr>,
    by: &'static str,
) -> Result<Endhost, BootstrapError> {
    let source = Standalone::open(folder).map_err(BootstrapError::Folder)?;
    let host = Endhost::start(Source::Standalone(source), local).await;
    host.map_err(|source| BootstrapError::Named { by, source })
}

/// A host with the daemon at `address`.
async fn with_daemon(address: &str, local: Option<IpAddr>) -> Result<Endhost, SourceError> {
    let daemon = Daemon::connect(address)?;
    Endhost::start(Source::Daemon(daemon.into()), local).await
}

impl Environment<'_> {
    async fn bootstrap(&self, wanted: &Bootstrap) -> Result<Endhost, BootstrapError> {
        let local = self.local(wanted)?;
        if let (None, Some(folder)) = (&wanted.daemon, &wanted.config_dir) {
            return standalone(folder, local, "the folder flag").await;
        }
        if let Some((by, address)) = self.named(wanted) {
            let host = with_daemon(&address, local).await;
            return host.map_err(|source| BootstrapError::Named { by, source });
        }
        let mut tried = Vec::new();
        match self.default_daemon(local).await {
            Ok(host) => return Ok(host),
            Err(outcome) => tried.push(outcome),
        }
        match standalone(&self.config_dir, local, CONFIG_DIR).await {
            Ok(host) => return Ok(host),
            Err(error) => tried.push(Attempt {
                what: format!("the folder {}", self.config_dir.display()),
                outcome: error.to_string(),
                found: self.config_dir.join("topology.json").exists(),
            }),
        }
        Err(match tried.iter().any(|tried| tried.found) {
            true => BootstrapError::Unusable(tried),
            false => BootstrapError::Nothing(tried),
        })
    }

    /// The daemon that the user or the environment names, and the flag or variable that names it.
    fn named(&self, wanted: &Bootstrap) -> Option<(&'static str, String)> {
        if let Some(address) = &wanted.daemon {
            return Some(("--sciond", address.clone()));
        }
        ENVIRONMENT
            .into_iter()
            .find_map(|name| Some((name, (self.variable)(name)?)))
    }

    /// This host's address, if it is configured.
    fn local(&self, wanted: &Bootstrap) -> Result<Option<IpAddr>, BootstrapError> {
        let text = match (wanted.local, (self.variable)(LOCAL_ADDRESS)) {
            (Some(local), _) => return Ok(Some(local)),
            (None, Some(text)) => text,
            (None, None) => return Ok(None),
        };
        match text.parse::<IpAddr>() {
            Ok(ip) if !ip.is_unspecified() && !ip.is_multicast() => Ok(Some(ip)),
            _ => Err(BootstrapError::Local(text)),
        }
    }

    /// A host with the default daemon, if it answers.
    async fn default_daemon(&self, local: Option<IpAddr>) -> Result<Endhost, Attempt> {
        let connect = timeout(CONNECT_TIMEOUT, TcpStream::connect(self.daemon));
        let (outcome, found) = match connect.await {
            Ok(Ok(_)) => match with_daemon(self.daemon, local).await {
                Ok(host) => return Ok(host),
                Err(error) => (error.to_string(), true),
            },
            Ok(Err(error)) => (error.to_string(), false),
            Err(_) => ("no answer".into(), false),
        };
        let what = format!("the daemon at {}", self.daemon);
        Err(Attempt {
            what,
            outcome,
            found,
        })
    }
}

#[cfg(test)]
mod tests;
