//! This host in bulk transfers: its key, its connections, its data socket.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use hawser_endhost::socket::{BindError, Socket, XdpUse};
use hawser_endhost::{Endhost, ScionAddr};
use hawser_keys::{Identity, PeerKey, Side};
use hawser_quic::{CloseReason, Config, Connection, Endpoint};
use hawser_seal::Cipher;
use tokio::runtime::Handle;

use crate::data::{Data, Keys, SessionKey, SubflowKey};
use crate::error::TransferError;
use crate::memory::Memory;

/// The application protocol of connections (TLS ALPN).
const ALPN: &[u8] = b"hawser-bulk/1";
/// How long a connection stays open without a packet from the peer. Content takes other packets, and
/// whether it gets through shows earlier; this ends what no router reports.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// Where the sockets of a [`Node`] are bound.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sockets {
    /// The address for connections; `None`, or port 0, for the first free port that routers deliver
    /// to.
    pub listen: Option<SocketAddr>,
    /// The port for content, at the same IP address; `None` for the last free one that routers
    /// deliver to.
    pub data_port: Option<u16>,
    /// The network device on which content passes the kernel's stack by, as far as that is possible
    /// (AF_XDP).
    pub xdp: Option<String>,
}

/// This host in bulk transfers. Cloning shares it.
#[derive(Clone)]
pub struct Node(Arc<Inner>);

struct Inner {
    host: Endhost,
    quic: Endpoint,
    data: Data,
    /// Whether the thread of the data socket has ended by itself.
    has_failed: Arc<AtomicBool>,
    instance: u64,
    memory: Memory,
    sessions: AtomicU64,
    subflows: AtomicU32,
}

impl Node {
    /// Binds sockets: one for connections, and one for content. Must be called inside a tokio
    /// runtime.
    ///
    /// # Errors
    /// When a socket cannot be bound, or the device for AF_XDP cannot be used so.
    pub fn bind(
        host: Endhost,
        sockets: &Sockets,
        identity: Identity,
    ) -> Result<Self, TransferError> {
        let config = Config {
            alpn: ALPN.to_vec(),
            idle_timeout: IDLE_TIMEOUT,
            identity: Some(identity),
            ..Config::default()
        };
        let quic = Endpoint::bind(host.clone(), sockets.listen, config)?;
        let failed = |error: &dyn std::fmt::Display| TransferError::DataSocket(error.to_string());
        let ip = quic.local_addr().host.ip();
        let socket = bind_data(&host, ip, sockets.data_port);
        let mut socket = socket.map_err(|error| failed(&error))?;
        if let Some(device) = &sockets.xdp {
            socket = socket.with_xdp(device)?;
        }
        let (runtime, connections) = (Handle::current(), quic.clone());
        // No session works without the data thread. When it ends, the endpoint is closed, so that peers
        // begin no session, and serving ends with an error.
        let has_failed = Arc::new(AtomicBool::new(false));
        let fails = Arc::clone(&has_failed);
        let close = move || {
            fails.store(true, Ordering::Release);
            drop(runtime.spawn(async move { connections.close().await }));
        };
        let data = Data::start(socket, close).map_err(|error| failed(&error))?;
        Ok(Self(Arc::new(Inner {
            host,
            quic,
            data,
            has_failed,
            instance: fastrand::u64(..),
            memory: Memory::default(),
            sessions: AtomicU64::new(1),
            subflows: AtomicU32::new(0),
        })))
    }

    /// The address that others connect to.
    pub fn local_addr(&self) -> ScionAddr {
        self.0.quic.local_addr()
    }

    /// The key of this host.
    pub fn key(&self) -> PeerKey {
        self.0.quic.key()
    }

    /// How the datagrams with content use AF_XDP; `None` without [`Sockets::xdp`].
    pub fn xdp(&self) -> Option<XdpUse> {
        self.0.data.xdp()
    }

    /// The host's network.
    pub fn host(&self) -> &Endhost {
        &self.0.host
    }

    /// Closes all connections, and waits up to a second until the peers are informed.
    pub async fn close(&self) {
        self.0.quic.close().await;
    }

    pub(crate) fn quic(&self) -> &Endpoint {
        &self.0.quic
    }

    pub(crate) fn data(&self) -> &Data {
        &self.0.data
    }

    /// Whether no session works any more, because content can be neither sent nor received.
    pub(crate) fn has_failed(&self) -> bool {
        self.0.has_failed.load(Ordering::Acquire)
    }

    /// A number that tells this process from an earlier one with the same key.
    pub(crate) fn instance(&self) -> u64 {
        self.0.instance
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.0.memory
    }

    pub(crate) fn session_key(&self) -> SessionKey {
        SessionKey(self.0.sessions.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn subflow_key(&self) -> SubflowKey {
        SubflowKey(self.0.subflows.fetch_add(1, Ordering::Relaxed))
    }
}

/// Binds the socket for content at `port`, or at the last free port. The first ones are those that
/// people name for other servers of this host.
fn bind_data(host: &Endhost, ip: IpAddr, port: Option<u16>) -> Result<Socket, BindError> {
    let bind = |port| Socket::bind_blocking(host, Some(SocketAddr::new(ip, port)));
    if let Some(port) = port {
        return bind(port);
    }
    // Without dispatched ports the range has port 0 alone, which is any.
    for port in host.port_range().rev() {
        match bind(port) {
            Err(BindError::Refused { source, .. }) if source.kind() == ErrorKind::AddrInUse => {}
            bound => return bound,
        }
    }
    let range = host.port_range();
    Err(BindError::NoFreePort { ip, range })
}

/// The keys of the datagrams beside `connection`, on this `side` of it.
///
/// # Errors
/// When the connection is closed.
pub(crate) fn datagram_keys(
    connection: &Connection,
    side: Side,
    cipher: Cipher,
) -> Result<Keys, CloseReason> {
    let client = connection.export_secret(b"EXPORTER-hawser-bulk client", b"")?;
    let server = connection.export_secret(b"EXPORTER-hawser-bulk server", b"")?;
    let (here, there) = match side {
        Side::Client => (client, server),
        Side::Server => (server, client),
    };
    Ok(Keys {
        cipher,
        here,
        there,
    })
}
