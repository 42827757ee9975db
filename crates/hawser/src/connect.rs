//! How connections to others are set up.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use hawser_keys::{Known, PeerKey};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::oneshot;

use crate::MAX_PATHS;
use crate::addr::{Addr, scion_addr};
use crate::connection::Connection;
use crate::error::ConnectError;
use crate::host::{Host, paths_error};
use crate::policy::Policy;
use crate::selector::PathSelector;
use crate::session::client::{Client, Server, Wanted};
use crate::trust::{ServerTrust, user_file};
use crate::wire::{Secret, SessionId};

/// Paths used at once unless more are wanted.
const PATHS: usize = 4;

/// A connection to be set up; [`Host::connect`] makes it. Awaiting it connects: it is ready with the first
/// path that works, and the others join while the connection is in use. Dropping it before gives up.
///
/// ```no_run
/// # async fn example(host: hawser::Host) -> Result<(), Box<dyn std::error::Error>> {
/// let connection = host
///     .connect("1-ff00:0:110,10.0.0.1:31000".parse()?)
///     .server_key("SHA256:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8".parse()?)
///     .policy(hawser::Policy::any().with_acl("- 1-ff00:0:112; +")?)
///     .paths(2)
///     .await?;
/// # Ok(()) }
/// ```
#[must_use = "connects when it is awaited"]
pub struct Connect {
    host: Host,
    addr: Addr,
    wanted: Wanted,
    keys: Vec<PeerKey>,
    any_key: bool,
}

impl Host {
    /// Connects to the program at `addr`, once the returned [`Connect`] is awaited.
    ///
    /// ```no_run
    /// # async fn example(host: hawser::Host) -> Result<(), Box<dyn std::error::Error>> {
    /// let server = "1-ff00:0:110,10.0.0.1:31000".parse()?;
    /// let connection = host.connect(server).paths(2).await?;
    /// # Ok(()) }
    /// ```
    pub fn connect(&self, addr: Addr) -> Connect {
        Connect::new(self.clone(), addr)
    }
}

impl Connect {
    pub(crate) fn new(host: Host, addr: Addr) -> Self {
        Self {
            host,
            addr,
            wanted: Wanted {
                policy: None,
                paths: PATHS,
                selector: None,
            },
            keys: Vec::new(),
            any_key: false,
        }
    }

    /// Uses only paths that `policy` allows. By default all are.
    ///
    /// ```no_run
    /// # fn example(connect: hawser::Connect) -> Result<(), hawser::PolicyError> {
    /// let connect = connect.policy(hawser::Policy::any().with_acl("- 2; +")?);
    /// # Ok(()) }
    /// ```
    pub fn policy(mut self, policy: Policy) -> Self {
        self.wanted.policy = Some(policy);
        self
    }

    /// Uses at most `paths` at once, 1 to [`MAX_PATHS`]; values beyond count as the nearest. 4 by
    /// default.
    ///
    /// ```no_run
    /// # fn example(connect: hawser::Connect) {
    /// let connect = connect.paths(2);
    /// # }
    /// ```
    pub fn paths(mut self, paths: usize) -> Self {
        self.wanted.paths = paths.clamp(1, MAX_PATHS);
        self
    }

    /// Lets `selector` rank and deny the paths, in place of the path manager.
    ///
    /// ```no_run
    /// # fn example(connect: hawser::Connect) {
    /// let connect = connect.selector(|offered: &[hawser::Path]| {
    ///     offered.iter().map(hawser::Path::fingerprint).collect()
    /// });
    /// # }
    /// ```
    pub fn selector(mut self, selector: impl PathSelector) -> Self {
        self.wanted.selector = Some(Arc::new(selector));
        self
    }

    /// Trusts a server that shows `key`; of several calls, each. Then the user's file `known_hosts` is not
    /// used.
    ///
    /// ```no_run
    /// # fn example(connect: hawser::Connect) -> Result<(), hawser::PeerKeyError> {
    /// let key = "SHA256:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8".parse()?;
    /// let connect = connect.server_key(key);
    /// # Ok(()) }
    /// ```
    pub fn server_key(mut self, key: PeerKey) -> Self {
        self.keys.push(key);
        self
    }

    /// Trusts any server, as long as it shows the same key over all paths. An attacker on the first path
    /// that works can act as the server.
    ///
    /// ```no_run
    /// # fn example(connect: hawser::Connect) {
    /// let connect = connect.any_server_key();
    /// # }
    /// ```
    pub fn any_server_key(mut self) -> Self {
        self.any_key = true;
        self
    }

    fn trust(&self) -> Result<ServerTrust, ConnectError> {
        if self.any_key {
            return Ok(ServerTrust::any());
        }
        let file = match self.keys.is_empty() {
            true => user_file(Known::FILE).map_err(ConnectError::KeysFile)?,
            // With keys that are given it is not used.
            false => PathBuf::new(),
        };
        let keys = self.keys.iter().copied();
        Ok(ServerTrust::known(Known::new(file).with_keys(keys)))
    }

    async fn connect(self) -> Result<Connection, ConnectError> {
        let trust = self.trust()?;
        let (mut id, mut secret) = ([0; 16], [0; 32]);
        let random = SystemRandom::new();
        let filled = random.fill(&mut id).and_then(|()| random.fill(&mut secret));
        filled.map_err(|_| ConnectError::Random)?;
        let server = scion_addr(self.addr);
        let endhost = &self.host.endhost;
        endhost.paths(server.isd_as).await.map_err(paths_error)?;
        let offered = endhost.watch(server.isd_as);
        let name = (SessionId(id), Secret(secret));
        let remote = Server::new(server, self.host.endpoint.clone(), trust, name);
        let (first, connected) = oneshot::channel();
        tokio::spawn(Client::new(remote, offered, self.wanted, first).run());
        let lost = |_| ConnectError::TimedOut { addr: self.addr };
        connected.await.map_err(lost)?
    }
}

impl IntoFuture for Connect {
    type Output = Result<Connection, ConnectError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.connect())
    }
}

impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect")
            .field("addr", &self.addr)
            .finish_non_exhaustive()
    }
}
