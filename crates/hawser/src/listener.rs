//! Connections that others set up.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use hawser_keys::{Allowed, PeerKey};
use hawser_quic::Endpoint;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::addr::{Addr, addr};
use crate::connection::Connection;
use crate::host::{Host, config};
use crate::identity::Identity;
use crate::server::{Server, serve};
use crate::trust::{ClientTrust, user_file};

/// Connections that may wait for [`Listener::accept`]; further ones wait in their tasks.
const MAX_WAITING: usize = 16;

/// A listener to be made; [`Host::bind`] makes it. Awaiting it binds its socket.
///
/// ```no_run
/// # async fn example(host: hawser::Host) -> Result<(), Box<dyn std::error::Error>> {
/// let mut listener = host
///     .bind()
///     .listen(([10, 0, 0, 1], 31000).into())
///     .identity(hawser::Identity::of_user()?)
///     .allow("SHA256:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8".parse()?)
///     .await?;
/// # Ok(()) }
/// ```
#[must_use = "binds when it is awaited"]
pub struct Bind {
    host: Host,
    listen: Option<SocketAddr>,
    identity: Option<Identity>,
    keys: Vec<PeerKey>,
    file: Option<PathBuf>,
    any_key: bool,
}

/// Why a listener could not be made.
///
/// ```no_run
/// # async fn example(host: hawser::Host) {
/// if let Err(hawser::BindError::Socket(why)) = host.bind().await {
///     eprintln!("{why}");
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BindError {
    /// The socket cannot be bound.
    #[error("{0}")]
    Socket(String),
    /// The file of allowed keys cannot be used, or there is no folder for it.
    #[error("{0}")]
    KeysFile(String),
}

impl Host {
    /// Accepts connections of others, once the returned [`Bind`] is awaited.
    ///
    /// ```no_run
    /// # async fn example(host: hawser::Host) -> Result<(), Box<dyn std::error::Error>> {
    /// let client = "SHA256:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8".parse()?;
    /// let mut listener = host.bind().allow(client).await?;
    /// # Ok(()) }
    /// ```
    pub fn bind(&self) -> Bind {
        Bind::new(self.clone())
    }
}

impl Bind {
    pub(crate) fn new(host: Host) -> Self {
        Self {
            host,
            listen: None,
            identity: None,
            keys: Vec::new(),
            file: None,
            any_key: false,
        }
    }

    /// Listens at this address of the host. The port must be one that the AS's routers deliver to (31000
    /// to 32767 in most ASes); 0 stands for a free one. By default a free port of the host's address.
    ///
    /// ```no_run
    /// # fn example(bind: hawser::Bind) {
    /// let bind = bind.listen(([10, 0, 0, 1], 31000).into());
    /// # }
    /// ```
    pub fn listen(mut self, listen: SocketAddr) -> Self {
        self.listen = Some(listen);
        self
    }

    /// Shows this key to clients, in place of the host's.
    ///
    /// ```no_run
    /// # fn example(bind: hawser::Bind) -> Result<(), hawser::IdentityError> {
    /// let bind = bind.identity(hawser::Identity::of_user()?);
    /// # Ok(()) }
    /// ```
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Lets the holder of `key` connect; of several calls, each. Then the user's file `allowed_keys` is
    /// not used.
    ///
    /// ```no_run
    /// # fn example(bind: hawser::Bind) -> Result<(), hawser::PeerKeyError> {
    /// let bind = bind.allow("SHA256:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8".parse()?);
    /// # Ok(()) }
    /// ```
    pub fn allow(mut self, key: PeerKey) -> Self {
        self.keys.push(key);
        self
    }

    /// Lets the holders of the keys in this file connect, in the manner of OpenSSH's `authorized_keys`.
    /// It is read for each path, so that a running listener follows it.
    ///
    /// ```no_run
    /// # fn example(bind: hawser::Bind) {
    /// let bind = bind.allow_file("/etc/my-program/allowed_keys");
    /// # }
    /// ```
    pub fn allow_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.file = Some(file.into());
        self
    }

    /// Lets anybody connect. What that can cost is [bounded](crate#what-strangers-can-cost).
    ///
    /// ```no_run
    /// # fn example(bind: hawser::Bind) {
    /// let bind = bind.allow_any();
    /// # }
    /// ```
    pub fn allow_any(mut self) -> Self {
        self.any_key = true;
        self
    }

    fn trust(&self) -> Result<ClientTrust, BindError> {
        if self.any_key {
            return Ok(ClientTrust::Any);
        }
        let unusable = |error: hawser_keys::KeysFileError| BindError::KeysFile(error.to_string());
        let allowed = Allowed::new(self.keys.iter().copied());
        let allowed = match &self.file {
            Some(file) => allowed.with_file(file).map_err(unusable)?,
            None if self.keys.is_empty() => {
                let file = user_file(Allowed::FILE).map_err(BindError::KeysFile)?;
                allowed.with_file_if_any(file).map_err(unusable)?
            }
            None => allowed,
        };
        Ok(ClientTrust::Allowed(allowed))
    }

    async fn bind(self) -> Result<Listener, BindError> {
        let trust = self.trust()?;
        let identity = self.identity.as_ref().unwrap_or(&self.host.identity);
        let endhost = self.host.endhost.clone();
        let endpoint = Endpoint::bind(endhost, self.listen, config(identity));
        let endpoint = endpoint.map_err(|error| BindError::Socket(error.to_string()))?;
        let (waiting, accepted) = mpsc::channel(MAX_WAITING);
        let server = Arc::new(Server::new(trust, waiting));
        let task = serve(server, endpoint.clone());
        Ok(Listener {
            endpoint,
            accepted,
            _task: JoinSet::from_iter([task]),
        })
    }
}

impl IntoFuture for Bind {
    type Output = Result<Listener, BindError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.bind())
    }
}

impl fmt::Debug for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bind")
            .field("listen", &self.listen)
            .finish_non_exhaustive()
    }
}

/// Accepts the connections of others. When it is dropped nobody can connect any more; connections that were
/// accepted go on, over the paths that they have.
///
/// ```no_run
/// # async fn example(host: hawser::Host) -> Result<(), hawser::BindError> {
/// let mut listener = host.bind().await?;
/// println!("{} {}", listener.local_addr(), listener.key());
/// while let Some(connection) = listener.accept().await {
///     println!("{} is connected", connection.peer_addr());
/// }
/// # Ok(()) }
/// ```
pub struct Listener {
    endpoint: Endpoint,
    accepted: mpsc::Receiver<Connection>,
    _task: JoinSet<()>,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("local_addr", &self.local_addr())
            .finish_non_exhaustive()
    }
}

impl Listener {
    /// The address that clients connect to.
    ///
    /// ```no_run
    /// # fn example(listener: hawser::Listener) {
    /// println!("listening at {}", listener.local_addr());
    /// # }
    /// ```
    pub fn local_addr(&self) -> Addr {
        addr(self.endpoint.local_addr())
    }

    /// The key that it shows to clients.
    ///
    /// ```no_run
    /// # fn example(listener: hawser::Listener) {
    /// println!("clients trust {}", listener.key());
    /// # }
    /// ```
    pub fn key(&self) -> PeerKey {
        self.endpoint.key()
    }

    /// The next connection; `None` when the socket fails. Cancel safe.
    ///
    /// ```no_run
    /// # async fn example(mut listener: hawser::Listener) {
    /// if let Some(connection) = listener.accept().await {
    ///     println!("{}", connection.peer_key());
    /// }
    /// # }
    /// ```
    pub async fn accept(&mut self) -> Option<Connection> {
        self.accepted.recv().await
    }
}
