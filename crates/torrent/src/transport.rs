//! The network as the engine needs it, so that it runs over QUIC and TCP, and over pipes in tests.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use hawser_address::PeerAddr;
use hawser_endhost::ScionAddr;
use hawser_path::Fingerprint;
use hawser_quic::CongestionState;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::close::{CloseCode, Closed};
use crate::dht::DhtContacts;
use crate::metainfo::InfoHash;
use crate::rate::SessionRates;

/// The paths to a peer that are not known to be down, as they change.
pub(crate) type Offers<P> = watch::Receiver<Arc<Vec<P>>>;

/// A network over which peers are reached.
pub(crate) trait Transport: Clone + Send + Sync + 'static {
    /// A path with everything needed to send over it.
    type Path: AsRef<hawser_path::Path> + Clone + Send + Sync + 'static;

    /// The paths to a peer, as they change. Empty until they are known.
    fn offers(&self, peer: PeerAddr) -> Offers<Self::Path>;

    /// Looks up paths to a peer.
    ///
    /// # Errors
    /// The reason if there are none.
    fn lookup(&self, peer: PeerAddr) -> impl Future<Output = Result<(), String>> + Send;

    /// Checks that a path to a peer can be dialed at all.
    ///
    /// # Errors
    /// The reason if it cannot.
    fn fits(&self, peer: PeerAddr, path: &Self::Path) -> Result<(), String>;

    /// Connects to a peer over a path.
    ///
    /// # Errors
    /// The reason if that fails.
    fn dial(
        &self,
        peer: PeerAddr,
        path: Self::Path,
    ) -> impl Future<Output = Result<Arc<dyn Connection>, String>> + Send;

    /// The next connection that a peer opens; `None` once there will be no more.
    fn accept(&self) -> impl Future<Output = Option<Arc<dyn Connection>>> + Send;

    /// Whether peers of this kind can be dialed from here.
    fn reaches(&self, peer: PeerAddr) -> bool;

    /// Whether the peer did not answer the last dial, and the next one is the first that is made in another
    /// way, such as encrypted.
    fn has_other_way(&self, _peer: PeerAddr) -> bool {
        false
    }

    /// The address at which SCION peers reach this host, if they can.
    fn local(&self) -> Option<ScionAddr>;

    /// The port at which peers of the same kind reach this host, if they can.
    fn port(&self, peer: PeerAddr) -> Option<u16>;

    /// The nodes of the DHT of this program, if it has any.
    fn dht(&self) -> Option<&DhtContacts> {
        None
    }

    /// Whether peers are told of each other, by torrents that are to.
    fn exchanges_peers(&self) -> bool {
        true
    }

    /// The limits that the torrents of a session keep to together.
    fn rates(&self) -> SessionRates {
        SessionRates::unlimited()
    }
}

/// The direction of a stream in which this side sends.
pub(crate) trait Output: AsyncWrite + Send + Unpin {
    /// Sends some of `bytes`, at least one, and takes them off its front; waits for room.
    ///
    /// # Errors
    /// If the stream has failed.
    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &mut Bytes) -> Poll<io::Result<()>> {
        let sent = ready!(Pin::new(self).poll_write(cx, bytes))?;
        if sent == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        bytes.advance(sent);
        Poll::Ready(Ok(()))
    }
}

/// Both directions of a stream.
pub(crate) type Stream = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn Output>);

/// A connection to one peer over one path.
pub(crate) trait Connection: Send + Sync + 'static {
    /// The stream for BitTorrent: opened by the side that dialed, accepted by the other. Called
    /// once.
    ///
    /// # Errors
    /// The reason if the connection has no such stream.
    fn stream(&self) -> Pin<Box<dyn Future<Output = Result<Stream, String>> + Send + '_>>;

    /// Notes which torrent the stream is for, or of a connection that a peer opened for which ones it may
    /// be; to be called before [`Self::stream`].
    fn set_torrents(&self, _: Arc<[InfoHash]>) {}

    /// The address of the peer.
    fn peer(&self) -> PeerAddr;

    /// The path, as seen from here.
    fn fingerprint(&self) -> Fingerprint;

    /// The key that all path-level peers of one peer share and no other peer has.
    fn key(&self) -> [u8; 32];

    /// Smoothed round-trip time.
    fn rtt(&self) -> Duration;

    /// Bytes of packets received from the peer, also of those without data; `None` where the system does
    /// not tell.
    fn received(&self) -> Option<u64> {
        None
    }

    /// How the rate to the peer is controlled; `None` where the system does that.
    fn congestion(&self) -> Option<CongestionState> {
        None
    }

    /// Notes that the peer is one of the swarm: the connection does not give way to others any more.
    fn set_known(&self) {}

    /// Notes that blocks were requested over it, so that the peer may have many under way. Called once.
    fn expect_data(&self) {}

    /// Closes it at once. Over QUIC the peer receives `code` and `text`, over TCP nothing.
    fn close(&self, code: CloseCode, text: &str);

    /// Why it was closed; `None` while it is open.
    fn close_reason(&self) -> Option<Closed>;
}
