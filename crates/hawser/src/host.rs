//! This host in its AS.

use std::collections::HashSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hawser_endhost::{Bootstrap, Endhost};
use hawser_keys::PeerKey;
use hawser_quic::{Config, Endpoint};
use thiserror::Error;

use crate::addr::{Addr, IsdAs, addr, isd_as, isd_asn};
use crate::identity::{Identity, IdentityError};
use crate::path::{Path, PathStatus};
use crate::wire::ALPN;

/// Time without a packet from the peer after which a path has ended.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time without other packets after which one is sent: a dead link is reported, and silence noticed, by
/// what is answered.
const KEEP_ALIVE: Duration = Duration::from_millis(250);
/// Bytes that a path takes at least; what it has taken arrives over it, or has to be sent again.
const SEND_WINDOW: u64 = 128 << 10;
/// Bytes of messages that may wait on a path, in each direction.
const DATAGRAMS: usize = 256 << 10;

/// This host in its AS. Cloning shares it.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let host = hawser::Host::bootstrap().await?;
/// println!("{} in {}", host.local_addr(), host.isd_as());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Host {
    pub(crate) endhost: Endhost,
    /// What connects.
    pub(crate) endpoint: Endpoint,
    pub(crate) identity: Identity,
}

/// How a [`Host`] joins the network. What is not set is found out.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let options = hawser::HostOptions::default()
///     .with_daemon("127.0.0.1:30255")
///     .with_identity(hawser::Identity::of_user()?);
/// let host = hawser::Host::bootstrap_with(options).await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct HostOptions {
    bootstrap: Bootstrap,
    identity: Option<Identity>,
}

impl HostOptions {
    /// Uses the SCION daemon at `HOST:PORT`.
    ///
    /// ```
    /// let options = hawser::HostOptions::default().with_daemon("127.0.0.1:30255");
    /// ```
    pub fn with_daemon(mut self, daemon: impl Into<String>) -> Self {
        self.bootstrap.daemon = Some(daemon.into());
        self
    }

    /// Works without a daemon, by the `topology.json` in this folder; with the TRCs in its subfolder
    /// `certs`, if that exists, only segments with valid signatures are used. A daemon that is set
    /// too goes before.
    ///
    /// ```
    /// let options = hawser::HostOptions::default().with_config_dir("/etc/scion");
    /// ```
    pub fn with_config_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.bootstrap.config_dir = Some(folder.into());
        self
    }

    /// Sends from this address of the host, and receives there.
    ///
    /// ```
    /// let options = hawser::HostOptions::default().with_local_ip([10, 0, 0, 1].into());
    /// ```
    pub fn with_local_ip(mut self, ip: IpAddr) -> Self {
        self.bootstrap.local = Some(ip);
        self
    }

    /// Shows this key to peers. Without it a key is made, which ends with the host.
    ///
    /// ```
    /// let options = hawser::HostOptions::default().with_identity(hawser::Identity::generate()?);
    /// # Ok::<(), hawser::IdentityError>(())
    /// ```
    pub fn with_identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }
}

/// Why a host could not join the network.
///
/// ```no_run
/// # async fn example() {
/// match hawser::Host::bootstrap().await {
///     Err(hawser::BootstrapError::NoNetwork(tried)) => eprintln!("{tried}"),
///     Err(error) => eprintln!("this host's network does not work: {error}"),
///     Ok(host) => println!("{}", host.isd_as()),
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// This host is not set up for a SCION network.
    #[error("{0}")]
    NoNetwork(String),
    /// It is, but what it names does not work: a daemon, a folder, its address.
    #[error("{0}")]
    Unusable(String),
    /// The socket for connections could not be bound.
    #[error("{0}")]
    Socket(String),
    /// No key could be made.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

/// Why there are no paths.
///
/// ```no_run
/// # async fn example(host: hawser::Host) -> Result<(), hawser::IsdAsParseError> {
/// if let Err(hawser::PathsError::None(why)) = host.paths("1-ff00:0:999".parse()?).await {
///     eprintln!("{why}");
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PathsError {
    /// The daemon or control service gives no usable answer.
    #[error("{0}")]
    Source(String),
    /// It knows no path.
    #[error("{0}")]
    None(String),
    /// All paths have expired by this host's clock.
    #[error("{0}")]
    Expired(String),
    /// All paths cross links that are reported down.
    #[error("{0}")]
    AllDown(String),
}

pub(crate) fn paths_error(error: hawser_endhost::PathsError) -> PathsError {
    use hawser_endhost::PathsError as Inner;
    let text = error.to_string();
    match error {
        Inner::None { .. } => PathsError::None(text),
        Inner::Expired { .. } => PathsError::Expired(text),
        Inner::AllDown { .. } => PathsError::AllDown(text),
        _ => PathsError::Source(text),
    }
}

/// The settings of all QUIC endpoints of the library.
pub(crate) fn config(identity: &Identity) -> Config {
    Config {
        identity: Some(identity.0.clone()),
        alpn: ALPN.to_vec(),
        idle_timeout: IDLE_TIMEOUT,
        keep_alive: Some(KEEP_ALIVE),
        least_send_window: SEND_WINDOW,
        datagrams: Some(DATAGRAMS),
        ..Config::default()
    }
}

impl Host {
    /// Joins the network as the program `hawser` does: by the daemon that `SCION_DAEMON` or
    /// `SCION_DAEMON_ADDRESS` names, else by the one at 127.0.0.1:30255 if one answers there, else by
    /// `/etc/scion/topology.json`. The host's address is that in `SCION_LOCAL_ADDR`, or else found out.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), hawser::BootstrapError> {
    /// let host = hawser::Host::bootstrap().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`BootstrapError`].
    pub async fn bootstrap() -> Result<Self, BootstrapError> {
        Self::bootstrap_with(HostOptions::default()).await
    }

    /// Joins the network as `options` say, and for the rest as [`bootstrap`](Self::bootstrap) does.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), hawser::BootstrapError> {
    /// let options = hawser::HostOptions::default().with_daemon("127.0.0.1:30255");
    /// let host = hawser::Host::bootstrap_with(options).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`BootstrapError`].
    pub async fn bootstrap_with(options: HostOptions) -> Result<Self, BootstrapError> {
        let identity = match options.identity {
            Some(identity) => identity,
            None => Identity::generate()?,
        };
        let endhost = Endhost::bootstrap(&options.bootstrap).await;
        let endhost = endhost.map_err(|error| match error {
            hawser_endhost::BootstrapError::Nothing(_) => {
                BootstrapError::NoNetwork(error.to_string())
            }
            error => BootstrapError::Unusable(error.to_string()),
        })?;
        let endpoint = Endpoint::bind(endhost.clone(), None, config(&identity));
        let endpoint = endpoint.map_err(|error| BootstrapError::Socket(error.to_string()))?;
        Ok(Self {
            endhost,
            endpoint,
            identity,
        })
    }

    /// The AS of this host.
    ///
    /// ```no_run
    /// # fn example(host: hawser::Host) {
    /// println!("{}", host.isd_as());
    /// # }
    /// ```
    pub fn isd_as(&self) -> IsdAs {
        isd_as(self.endhost.local_as())
    }

    /// The address that its connections come from. A [`Listener`](crate::Listener) has an address
    /// of its own.
    ///
    /// ```no_run
    /// # fn example(host: hawser::Host) {
    /// assert_eq!(host.local_addr().isd_as, host.isd_as());
    /// # }
    /// ```
    pub fn local_addr(&self) -> Addr {
        addr(self.endpoint.local_addr())
    }

    /// The key that it shows to peers.
    ///
    /// ```no_run
    /// # fn example(host: hawser::Host) {
    /// println!("allow {} to connect", host.key());
    /// # }
    /// ```
    pub fn key(&self) -> PeerKey {
        self.identity.key()
    }

    /// All paths to the AS `dst` that the network offers, usable ones first, each with its
    /// [status](Path::status); at most a minute old. Inside this host's AS there is one path, without
    /// interfaces.
    ///
    /// ```no_run
    /// # async fn example(host: hawser::Host) -> Result<(), Box<dyn std::error::Error>> {
    /// let paths = host.paths("1-ff00:0:110".parse()?).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`PathsError`] when none of them is usable.
    pub async fn paths(&self, dst: IsdAs) -> Result<Vec<Path>, PathsError> {
        let dst = isd_asn(dst);
        let usable = self.endhost.paths(dst).await.map_err(paths_error)?;
        let offered = self.endhost.offered_paths(dst).await;
        let offered = offered.map_err(|error| PathsError::Source(error.to_string()))?;
        let known: HashSet<_> = usable.iter().map(|path| path.fingerprint()).collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_secs());
        let others = offered.into_iter().filter_map(|path| {
            let status = match path.expiry() <= now {
                true => PathStatus::Expired,
                false => PathStatus::Down,
            };
            (!known.contains(&path.fingerprint())).then(|| Path::new(path, status))
        });
        let usable = usable.iter().cloned();
        let usable = usable.map(|path| Path::new(path, PathStatus::Usable));
        Ok(usable.chain(others).collect())
    }
}
