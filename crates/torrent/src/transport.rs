//! Where connections come from, narrowed down to what the engine needs, so that it runs over pipes
//! in tests, and over QUIC and TCP otherwise.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hawser_endhost::ScionAddr;
use hawser_path::Fingerprint;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::address::PeerAddr;
use crate::close::{CloseCode, Closed};

/// What is offered to a peer at a time: every path that is not known to be down.
pub(crate) type Offers<P> = watch::Receiver<Arc<Vec<P>>>;

/// The means to reach peers.
pub(crate) trait Transport: Clone + Send + Sync + 'static {
    /// A path with what is needed to send over it.
    type Path: AsRef<hawser_path::Path> + Clone + Send + Sync + 'static;
    /// A connection over one path.
    type Connection: Connection;

    /// The paths to a peer, as they change. Empty until they are known.
    fn offers(&self, peer: PeerAddr) -> Offers<Self::Path>;

    /// Looks paths to a peer up; the reason if there are none.
    fn lookup(&self, peer: PeerAddr) -> impl Future<Output = Result<(), String>> + Send;

    /// Whether a path to a peer can be dialed at all; the reason if not.
    fn fits(&self, peer: PeerAddr, path: &Self::Path) -> Result<(), String>;

    /// Connects to a peer over a path; the reason if that fails.
    fn dial(
        &self,
        peer: PeerAddr,
        path: Self::Path,
    ) -> impl Future<Output = Result<Self::Connection, String>> + Send;

    /// The next connection a peer opened; `None` when there will be no more.
    fn accept(&self) -> impl Future<Output = Option<Self::Connection>> + Send;

    /// Where SCION peers reach us, if they do.
    fn local(&self) -> Option<ScionAddr>;

    /// The port at which peers of that kind reach us, if they do.
    fn port(&self, peer: PeerAddr) -> Option<u16>;
}

/// A connection to one peer over one path.
pub(crate) trait Connection: Send + Sync + 'static {
    type Read: AsyncRead + Send + Unpin;
    type Write: AsyncWrite + Send + Unpin;

    /// The stream that BitTorrent is spoken on: opened by the side that dialed, accepted by the
    /// other. Called once.
    fn stream(&self) -> impl Future<Output = Result<(Self::Read, Self::Write), String>> + Send;

    /// Where the peer speaks from.
    fn peer(&self) -> PeerAddr;

    /// The path, as seen from here.
    fn fingerprint(&self) -> Fingerprint;

    /// The key that all path-level peers of one peer share, and no other peer has.
    fn key(&self) -> [u8; 32];

    /// Smoothed round-trip time.
    fn rtt(&self) -> Duration;

    /// Closes it at once. Over QUIC the peer receives `code` and `text`, over TCP nothing.
    fn close(&self, code: CloseCode, text: &str);

    /// Why it is closed, if it is.
    fn close_reason(&self) -> Option<Closed>;
}
