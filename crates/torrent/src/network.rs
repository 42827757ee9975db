//! How peers are reached: SCION peers over QUIC, each path a connection of its own; IP peers over
//! plain TCP.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::Duration;

use hawser_endhost::{self as endhost, Endhost, IsdAsn, ScionAddr};
use hawser_path::{Fingerprint, Metadata};
use hawser_quic::{self as quic, Endpoint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;

use crate::address::PeerAddr;
use crate::close::{CloseCode, Closed};
use crate::quic::QuicConnection;
use crate::tcp::{Half, Listener, TcpConnection};
use crate::transport::{Connection, Offers, Transport};

/// The ways there are to reach peers, and where peers connect to. Cloning shares it.
#[derive(Clone)]
pub struct Network {
    scion: Option<(Endpoint, Endhost)>,
    listener: Option<Arc<Listener>>,
}

impl Network {
    /// SCION peers through `endpoint`, over the paths that `host` knows, and IP peers; nobody but
    /// SCION peers can connect.
    pub fn scion(endpoint: Endpoint, host: Endhost) -> Self {
        Self {
            scion: Some((endpoint, host)),
            listener: None,
        }
    }

    /// IP peers only; nobody can connect.
    pub fn ip() -> Self {
        Self {
            scion: None,
            listener: None,
        }
    }

    /// IP peers can connect to `listener`.
    pub fn with_listener(mut self, listener: Listener) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    fn endpoint(&self) -> Result<(&Endpoint, &Endhost), String> {
        let scion = self.scion.as_ref();
        let (endpoint, host) = scion.ok_or("only IP peers can be reached from here")?;
        Ok((endpoint, host))
    }
}

/// The way to a peer: a path, or whatever way IP packets take.
#[derive(Debug, Clone)]
pub(crate) enum Route {
    Scion(endhost::Path),
    Ip,
}

/// What is known of the way IP packets take, the same for all of them: nothing.
static UNKNOWN: LazyLock<hawser_path::Path> = LazyLock::new(|| hawser_path::Path {
    src: IsdAsn(0),
    dst: IsdAsn(0),
    interfaces: Vec::new(),
    metadata: Metadata::default(),
});

impl AsRef<hawser_path::Path> for Route {
    fn as_ref(&self) -> &hawser_path::Path {
        match self {
            Self::Scion(path) => path.as_ref(),
            Self::Ip => &UNKNOWN,
        }
    }
}

/// Routes of the paths that are offered, for as long as somebody looks.
fn routes(mut paths: watch::Receiver<Arc<Vec<endhost::Path>>>) -> Offers<Route> {
    let all = |paths: &mut watch::Receiver<Arc<Vec<endhost::Path>>>| {
        let paths = Arc::clone(&paths.borrow_and_update());
        Arc::new(paths.iter().cloned().map(Route::Scion).collect())
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
    type Path = Route;
    type Connection = Link;

    fn offers(&self, peer: PeerAddr) -> Offers<Route> {
        match (peer, &self.scion) {
            (PeerAddr::Ip(_), _) => watch::channel(Arc::new(vec![Route::Ip])).1,
            (PeerAddr::Scion(peer), Some((_, host))) => routes(host.watch(peer.isd_as)),
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

    fn fits(&self, peer: PeerAddr, route: &Route) -> Result<(), String> {
        let (PeerAddr::Scion(peer), Route::Scion(path)) = (peer, route) else {
            return Ok(());
        };
        let fits = self.endpoint()?.0.fits(peer, path);
        fits.map_err(|error| error.to_string())
    }

    async fn dial(&self, peer: PeerAddr, route: Route) -> Result<Link, String> {
        match (peer, route) {
            (PeerAddr::Scion(peer), Route::Scion(path)) => {
                let (endpoint, _) = self.endpoint()?;
                let connection = endpoint.connect(peer, path).await;
                let connection = connection.map_err(|error| error.to_string())?;
                Ok(Link::Quic(QuicConnection::dialed(connection)))
            }
            (PeerAddr::Ip(peer), _) => TcpConnection::dial(peer).await.map(Link::Tcp),
            (PeerAddr::Scion(_), Route::Ip) => Err("a SCION peer is reached over a path".into()),
        }
    }

    async fn accept(&self) -> Option<Link> {
        let scion = async {
            match &self.scion {
                Some((endpoint, _)) => endpoint.accept().await,
                None => std::future::pending().await,
            }
        };
        let ip = async {
            match &self.listener {
                Some(listener) => listener.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            connection = scion => Some(Link::Quic(QuicConnection::accepted(connection?))),
            connection = ip => Some(Link::Tcp(connection)),
        }
    }

    fn local(&self) -> Option<ScionAddr> {
        let (endpoint, _) = self.scion.as_ref()?;
        Some(endpoint.local_addr())
    }

    fn port(&self, peer: PeerAddr) -> Option<u16> {
        match peer {
            PeerAddr::Scion(_) => self.local().map(|local| local.host.port()),
            PeerAddr::Ip(_) => Some(self.listener.as_ref()?.local_addr().port()),
        }
    }
}

/// A connection to a peer of either kind.
pub(crate) enum Link {
    Quic(QuicConnection),
    Tcp(TcpConnection),
}

/// What is read from it.
pub(crate) enum Read {
    Quic(quic::RecvStream),
    Tcp(Half),
}

/// What is written to it.
pub(crate) enum Write {
    Quic(quic::SendStream),
    Tcp(Half),
}

impl Connection for Link {
    type Read = Read;
    type Write = Write;

    async fn stream(&self) -> Result<(Read, Write), String> {
        Ok(match self {
            Self::Quic(connection) => {
                let (read, write) = connection.stream().await?;
                (Read::Quic(read), Write::Quic(write))
            }
            Self::Tcp(connection) => {
                let (read, write) = connection.stream().await?;
                (Read::Tcp(read), Write::Tcp(write))
            }
        })
    }

    fn peer(&self) -> PeerAddr {
        match self {
            Self::Quic(connection) => connection.peer(),
            Self::Tcp(connection) => connection.peer(),
        }
    }

    fn fingerprint(&self) -> Fingerprint {
        match self {
            Self::Quic(connection) => connection.fingerprint(),
            Self::Tcp(connection) => connection.fingerprint(),
        }
    }

    fn key(&self) -> [u8; 32] {
        match self {
            Self::Quic(connection) => connection.key(),
            Self::Tcp(connection) => connection.key(),
        }
    }

    fn rtt(&self) -> Duration {
        match self {
            Self::Quic(connection) => connection.rtt(),
            Self::Tcp(connection) => connection.rtt(),
        }
    }

    fn close(&self, code: CloseCode, text: &str) {
        match self {
            Self::Quic(connection) => connection.close(code, text),
            Self::Tcp(connection) => connection.close(code, text),
        }
    }

    fn close_reason(&self) -> Option<Closed> {
        match self {
            Self::Quic(connection) => connection.close_reason(),
            Self::Tcp(connection) => connection.close_reason(),
        }
    }
}

impl AsyncRead for Read {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Quic(stream) => AsyncRead::poll_read(Pin::new(stream), cx, buffer),
            Self::Tcp(half) => AsyncRead::poll_read(Pin::new(half), cx, buffer),
        }
    }
}

impl AsyncWrite for Write {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Quic(stream) => AsyncWrite::poll_write(Pin::new(stream), cx, bytes),
            Self::Tcp(half) => AsyncWrite::poll_write(Pin::new(half), cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Quic(stream) => AsyncWrite::poll_flush(Pin::new(stream), cx),
            Self::Tcp(half) => AsyncWrite::poll_flush(Pin::new(half), cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Quic(stream) => AsyncWrite::poll_shutdown(Pin::new(stream), cx),
            Self::Tcp(half) => AsyncWrite::poll_shutdown(Pin::new(half), cx),
        }
    }
}
