//! Reaching peers: SCION peers over QUIC, with one connection per path; IP peers over TCP and
//! uTP.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use hawser_address::PeerAddr;
use hawser_endhost::{self as endhost, Endhost, IsdAsn, ScionAddr};
use hawser_mse::Policy;
use hawser_path::Metadata;
use hawser_quic::Endpoint;
use tokio::sync::watch;

use crate::dht::DhtContacts;
use crate::quic::QuicConnection;
use crate::tcp::{Attempts, Dialer, IpConnection, IpTransports, ListenError, Listener};
use crate::transport::{Connection, Offers, Transport};
use crate::utp::UtpDialer;

/// The sockets through which peers are reached and can connect. Clones share them.
#[derive(Clone)]
pub struct Network {
    scion: Option<(Endpoint, Endhost)>,
    listener: Option<Arc<Listener>>,
    /// The port at which peers beyond the gateway connect, while it maps one.
    mapped: Option<watch::Receiver<Option<u16>>>,
    /// The lock is held for single reads and writes.
    ip: Arc<RwLock<IpSettings>>,
    /// Set once; clones share it.
    dht: Arc<OnceLock<DhtContacts>>,
}

/// How IP peers are reached, and whether peers are exchanged. It may change at any time.
struct IpSettings {
    /// Which connections are encrypted; `None` as without a choice.
    policy: Option<Policy>,
    /// How IP peers are dialed.
    dialer: Dialer,
    /// Whether peers are told of each other.
    exchanges_peers: bool,
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").finish_non_exhaustive()
    }
}

impl Network {
    /// Reaches SCION peers through `endpoint`, over the paths that `host` knows, and IP peers.
    /// SCION peers can connect.
    pub fn scion(endpoint: Endpoint, host: Endhost) -> Self {
        Self {
            scion: Some((endpoint, host)),
            ..Self::ip()
        }
    }

    /// Reaches IP peers only, over TCP. No peer can connect.
    pub fn ip() -> Self {
        Self {
            scion: None,
            listener: None,
            mapped: None,
            ip: Arc::new(RwLock::new(IpSettings {
                policy: None,
                dialer: Dialer {
                    attempts: Attempts::new(Policy::Allow),
                    transports: IpTransports::TCP,
                    utp: Arc::default(),
                },
                exchanges_peers: true,
            })),
            dht: Arc::default(),
        }
    }

    fn ip_settings(&self) -> RwLockReadGuard<'_, IpSettings> {
        self.ip.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn ip_settings_mut(&self) -> RwLockWriteGuard<'_, IpSettings> {
        self.ip.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets IP peers connect to `listener`. If that takes uTP, peers are dialed over its socket.
    pub fn with_listener(mut self, listener: Listener) -> Self {
        self.ip_settings_mut().dialer.utp = Arc::new(UtpDialer::new(listener.utp()));
        self.listener = Some(Arc::new(listener));
        self
    }

    /// Tells peers over IPv4 outside of the own network this port in place of the listener's, while there is
    /// one: those that connect from then on.
    pub fn with_mapped_port(mut self, port: watch::Receiver<Option<u16>>) -> Self {
        self.mapped = Some(port);
        self
    }

    /// Dials IP peers over these transports: with both, over TCP first, and over uTP as well if TCP is not
    /// connected within 400 ms. Over what peers connect is up to the listener.
    pub fn with_transports(self, transports: IpTransports) -> Self {
        self.ip_settings_mut().dialer.transports = transports;
        self
    }

    /// Dials IP peers over these transports from now on, and lets them connect over these, if they can connect
    /// at all. Connections that are open stay so. Holds for all clones.
    ///
    /// # Errors
    /// If the address at which peers connect is in use over one of them; nothing is changed then.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn set_transports(&self, transports: IpTransports) -> Result<(), ListenError> {
        let mut settings = self.ip_settings_mut();
        if let Some(listener) = &self.listener {
            let had_utp = listener.utp().is_some();
            listener.listen_over(transports)?;
            if !had_utp && transports.utp {
                settings.dialer.utp = Arc::new(UtpDialer::new(listener.utp()));
            }
        }
        settings.dialer.transports = transports;
        Ok(())
    }

    /// Sets which connections with IP peers are encrypted (MSE). Without, those that peers open are
    /// as with [`Policy::Prefer`], and peers are dialed as with [`Policy::Allow`]. Connections with
    /// SCION peers always are: by QUIC.
    pub fn with_encryption(self, policy: Policy) -> Self {
        self.set_encryption(policy);
        self
    }

    /// Sets which connections with IP peers are encrypted (MSE), of those that begin from now on. Holds for all
    /// clones.
    pub fn set_encryption(&self, policy: Policy) {
        let mut settings = self.ip_settings_mut();
        settings.policy = Some(policy);
        settings.dialer.attempts = Attempts::new(policy);
    }

    /// Sets whether peers are told of each other (BEP 11), by torrents whose options say so: over connections
    /// that begin from now on. Without, no message is sent or taken, and none over a connection that has begun
    /// before. Holds for all clones.
    pub fn set_exchange(&self, exchanges_peers: bool) {
        self.ip_settings_mut().exchanges_peers = exchanges_peers;
    }

    /// Over which transports IP peers are reached.
    pub fn transports(&self) -> IpTransports {
        self.ip_settings().dialer.transports
    }

    /// Which connections with IP peers are encrypted; `None` while that was not set.
    pub fn encryption(&self) -> Option<Policy> {
        self.ip_settings().policy
    }

    /// Which connections that IP peers open are accepted.
    fn accepts(&self) -> Policy {
        self.encryption().unwrap_or(Policy::Prefer)
    }

    /// Tells peers of the nodes of the DHT in `contacts`, and these of the nodes of peers (BEP 5), unless it does
    /// that with others already: over connections that are opened from now on, except of private torrents (BEP 27).
    /// Holds for all clones.
    pub fn add_dht(&self, contacts: DhtContacts) {
        // Another one was first.
        let _ = self.dht.set(contacts);
    }

    fn endpoint(&self) -> Result<(&Endpoint, &Endhost), String> {
        let scion = self.scion.as_ref();
        let (endpoint, host) = scion.ok_or("only IP peers can be reached from here")?;
        Ok((endpoint, host))
    }
}

/// A SCION path to a peer, or the unknown path that IP packets take.
#[derive(Debug, Clone)]
pub(crate) enum NetworkPath {
    Scion(endhost::Path),
    Ip,
}

/// Stands for the path of IP packets, of which nothing is known.
static UNKNOWN: LazyLock<hawser_path::Path> = LazyLock::new(|| hawser_path::Path {
    src: IsdAsn(0),
    dst: IsdAsn(0),
    interfaces: Vec::new(),
    metadata: Metadata::default(),
});

impl AsRef<hawser_path::Path> for NetworkPath {
    fn as_ref(&self) -> &hawser_path::Path {
        match self {
            Self::Scion(path) => path.as_ref(),
            Self::Ip => &UNKNOWN,
        }
    }
}

/// Forwards the offered paths as they change, until the receiver is dropped.
fn follow(mut paths: watch::Receiver<Arc<Vec<endhost::Path>>>) -> Offers<NetworkPath> {
    let all = |paths: &mut watch::Receiver<Arc<Vec<endhost::Path>>>| {
        let paths = Arc::clone(&paths.borrow_and_update());
        Arc::new(paths.iter().cloned().map(NetworkPath::Scion).collect())
    };
    let (sender, offers) = watch::channel(all(&mut paths));
    tokio::spawn(async move {
        loop {
            tokio::select! {
                changed = paths.changed() => if changed.is_err() { return },
                () = sender.closed() => return,
            }
            sender.send_replace(all(&mut paths));
        }
    });
    offers
}

impl Transport for Network {
    type Path = NetworkPath;

    fn offers(&self, peer: PeerAddr) -> Offers<NetworkPath> {
        match (peer, &self.scion) {
            (PeerAddr::Ip(_), _) => watch::channel(Arc::new(vec![NetworkPath::Ip])).1,
            (PeerAddr::Scion(peer), Some((_, host))) => follow(host.watch(peer.isd_as)),
            (PeerAddr::Scion(_), None) => watch::channel(Arc::default()).1,
        }
    }

    async fn lookup(&self, peer: PeerAddr) -> Result<(), String> {
        let PeerAddr::Scion(peer) = peer else {
            return Ok(());
        };
        let (_, host) = self.endpoint()?;
        let paths = host.paths(peer.isd_as).await;
        paths.map(drop).map_err(|error| error.to_string())
    }

    fn fits(&self, peer: PeerAddr, path: &NetworkPath) -> Result<(), String> {
        let (PeerAddr::Scion(peer), NetworkPath::Scion(path)) = (peer, path) else {
            return Ok(());
        };
        let fits = self.endpoint()?.0.fits(peer, path);
        fits.map_err(|error| error.to_string())
    }

    async fn dial(&self, peer: PeerAddr, path: NetworkPath) -> Result<Arc<dyn Connection>, String> {
        match (peer, path) {
            (PeerAddr::Scion(peer), NetworkPath::Scion(path)) => {
                let (endpoint, _) = self.endpoint()?;
                let connection = endpoint.connect(peer, path).await;
                let connection = connection.map_err(|error| error.to_string())?;
                Ok(Arc::new(QuicConnection {
                    connection,
                    dialed: true,
                }))
            }
            (PeerAddr::Ip(peer), _) => {
                let dialer = self.ip_settings().dialer.clone();
                Ok(Arc::new(IpConnection::dial(peer, &dialer).await?))
            }
            (PeerAddr::Scion(_), NetworkPath::Ip) => {
                Err("a SCION peer is reached over a path".into())
            }
        }
    }

    async fn accept(&self) -> Option<Arc<dyn Connection>> {
        let scion = async {
            match &self.scion {
                Some((endpoint, _)) => endpoint.accept().await,
                None => std::future::pending().await,
            }
        };
        let ip = async {
            match &self.listener {
                Some(listener) => listener.accept(|| self.accepts()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            connection = scion => Some(Arc::new(QuicConnection { connection: connection?, dialed: false })),
            connection = ip => Some(Arc::new(connection)),
        }
    }

    fn reaches(&self, peer: PeerAddr) -> bool {
        peer.ip().is_some() || self.scion.is_some()
    }

    fn has_other_way(&self, peer: PeerAddr) -> bool {
        let attempts = Arc::clone(&self.ip_settings().dialer.attempts);
        peer.ip().is_some_and(|peer| attempts.has_other_way(peer))
    }

    fn local(&self) -> Option<ScionAddr> {
        let (endpoint, _) = self.scion.as_ref()?;
        Some(endpoint.local_addr())
    }

    fn port(&self, peer: PeerAddr) -> Option<u16> {
        match peer {
            PeerAddr::Scion(_) => self.local().map(|local| local.host.port()),
            PeerAddr::Ip(peer) => {
                let local = self.listener.as_ref()?.local_addr().port();
                let mapped = self.mapped.as_ref().and_then(|port| *port.borrow());
                let mapped = mapped.filter(|_| is_beyond_gateway(peer.ip()));
                Some(mapped.unwrap_or(local))
            }
        }
    }

    fn dht(&self) -> Option<&DhtContacts> {
        self.dht.get()
    }

    fn exchanges_peers(&self) -> bool {
        self.ip_settings().exchanges_peers
    }
}

/// Whether a peer reaches this host by way of the gateway that maps ports of IPv4, and not directly.
fn is_beyond_gateway(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => !(ip.is_private() || ip.is_loopback() || ip.is_link_local()),
        IpAddr::V6(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn peers_beyond_the_gateway_are_told_the_mapped_port() {
        let any = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::bind_over(any, IpTransports::TCP).await.unwrap();
        let local = listener.local_addr().port();
        let (sender, mapped) = watch::channel(None);
        let network = Network::ip().with_listener(listener);
        let network = network.with_mapped_port(mapped);
        let told = |peer: &str| network.port(peer.parse().unwrap());
        assert_eq!(told("192.0.2.1:5"), Some(local));
        // Ephemeral ports are not below 1024.
        sender.send_replace(Some(77));
        for peer in ["192.0.2.1:5", "[::ffff:192.0.2.1]:5"] {
            assert_eq!(told(peer), Some(77), "{peer}");
        }
        for peer in [
            "127.0.0.1:5",
            "10.0.0.1:5",
            "169.254.0.1:5",
            "[2001:db8::1]:5",
        ] {
            assert_eq!(told(peer), Some(local), "{peer}");
        }
    }
}
