//! A connection: one peer, one path.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hawser_endhost::{Outage, Path, ScionAddr};
use hawser_path::{Fingerprint, Interface};
use noq::{ConnectionError, PathId};
use rustls::pki_types::CertificateDer;
use thiserror::Error;

use crate::endpoint::Tasks;
use crate::faults::Fate;
use crate::routes::InUse;
use crate::stream::{RecvStream, SendStream};
use crate::tls;

/// SHA-256 of the public key (DER `SubjectPublicKeyInfo`) in a peer's certificate: the same on all
/// connections of one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerKey(pub [u8; 32]);

impl fmt::Display for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A connection to one peer over one path. Cloning shares it; it closes when the last clone and the
/// last of its streams are gone.
///
/// It never changes its path: packets of it that arrive over another one are dropped. Only the
/// path's bytes are replaced, by fresher ones for the same interfaces.
#[derive(Clone)]
pub struct Connection(Arc<Inner>);

pub(crate) struct Inner {
    quic: noq::Connection,
    fate: Arc<Fate>,
    way: InUse,
    fingerprint: Fingerprint,
    key: PeerKey,
    idle_timeout: Duration,
    /// What watches over the connection lives as long as it does.
    _tasks: Arc<Tasks>,
}

/// Why a connection is closed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// This side closed it.
    #[error("closed here: {0}")]
    Local(String),
    /// The peer closed it.
    #[error("closed by the peer: {0}")]
    Peer(String),
    /// Nothing was heard for the idle timeout.
    #[error("nothing heard from the peer for {0:?}")]
    TimedOut(Duration),
    /// A router reported something on the path down (SCMP), and nothing got through from then on.
    #[error("the path is down at {0}")]
    PathDown(Outage),
    /// A router or host on the path reported that packets do not get through (SCMP), and none did
    /// from then on.
    #[error("{0}")]
    Unreachable(String),
    /// Packets cannot leave this host.
    #[error("cannot send to {peer}: {message}")]
    Socket {
        /// Where to.
        peer: ScionAddr,
        /// What the system says.
        message: String,
    },
    /// The peer broke the protocol, or forgot the connection.
    #[error("QUIC: {0}")]
    Protocol(String),
}

/// Why no stream could be opened or accepted: the connection is closed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the connection is closed: {0}")]
pub struct OpenStreamError(pub CloseReason);

/// Counters and estimates of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Congestion window, in bytes.
    pub cwnd: u64,
    /// Bytes of QUIC packets sent.
    pub bytes_sent: u64,
    /// Bytes of QUIC packets received.
    pub bytes_received: u64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets that counted as lost.
    pub lost: u64,
    /// Bytes of QUIC in a full packet.
    pub mtu: u16,
}

/// What a connection is made of once it is set up.
pub(crate) struct Parts {
    pub(crate) quic: noq::Connection,
    pub(crate) fate: Arc<Fate>,
    pub(crate) way: InUse,
    pub(crate) local: ScionAddr,
    pub(crate) idle_timeout: Duration,
    pub(crate) tasks: Arc<Tasks>,
}

impl Connection {
    /// Takes over a connection that is set up.
    pub(crate) fn new(parts: Parts) -> Result<Self, CloseReason> {
        let Parts {
            quic,
            fate,
            way,
            local,
            idle_timeout,
            tasks,
        } = parts;
        let key = peer_key(&quic).map_err(CloseReason::Protocol)?;
        let fingerprint = match fate.path() {
            Some(path) => path.fingerprint(),
            None => known_fingerprint(local, &way),
        };
        fate.bind(&quic);
        if let Some(reason) = fate.reason() {
            return Err(reason);
        }
        Ok(Self(Arc::new(Inner {
            quic,
            fate,
            way,
            fingerprint,
            key,
            idle_timeout,
            _tasks: tasks,
        })))
    }

    /// The peer's address.
    pub fn peer(&self) -> ScionAddr {
        self.0.way.way().peer()
    }

    /// The identity of the connection's path, seen from here.
    ///
    /// A peer that connects shows the interface ids of its path, not the ASes between. Where the
    /// daemon knows the path, this is its fingerprint all the same; where not, it is made of the
    /// ids and the ASes at both ends, and matches no fingerprint of the daemon's.
    pub fn fingerprint(&self) -> Fingerprint {
        self.0.fingerprint
    }

    /// The path; none when the peer connected over one the daemon does not know.
    pub fn path(&self) -> Option<Path> {
        self.0.fate.path()
    }

    /// When routers stop accepting what is sent now, in seconds since the Unix epoch. It moves on
    /// when the path is refreshed, on the side that accepted the connection with the first packet
    /// over the peer's fresh path.
    pub fn expiry(&self) -> u64 {
        self.0.way.way().expiry()
    }

    /// The peer's key.
    pub fn peer_key(&self) -> PeerKey {
        self.0.key
    }

    /// Opens a stream in both directions. The peer hears of it with the first byte.
    ///
    /// # Errors
    /// [`OpenStreamError`] when the connection is closed.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), OpenStreamError> {
        self.streams(self.0.quic.open_bi().await)
    }

    /// Waits for the peer to open a stream in both directions.
    ///
    /// # Errors
    /// [`OpenStreamError`] when the connection is closed.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), OpenStreamError> {
        self.streams(self.0.quic.accept_bi().await)
    }

    fn streams(
        &self,
        streams: Result<(noq::SendStream, noq::RecvStream), ConnectionError>,
    ) -> Result<(SendStream, RecvStream), OpenStreamError> {
        let inner = &self.0;
        let (send, receive) = streams.map_err(|error| OpenStreamError(inner.reason(&error)))?;
        Ok((
            SendStream::new(send, Arc::clone(inner)),
            RecvStream::new(receive, Arc::clone(inner)),
        ))
    }

    /// Counters and estimates.
    pub fn stats(&self) -> Stats {
        let all = self.0.quic.stats();
        let path = self.0.quic.path_stats(PathId::ZERO).unwrap_or_default();
        Stats {
            rtt: path.rtt,
            cwnd: path.cwnd,
            bytes_sent: all.udp_tx.bytes,
            bytes_received: all.udp_rx.bytes,
            packets_sent: all.sent_packets,
            lost: all.lost_packets,
            mtu: path.current_mtu,
        }
    }

    /// Closes the connection at once and tells the peer why. What is not yet delivered is lost.
    pub fn close(&self, reason: &str) {
        self.0.fate.end(CloseReason::Local(reason.into()));
    }

    /// Waits until the connection is closed, and says why: within some round trips (at least a
    /// quarter of a second) when a router reports the path down, after the idle timeout when nobody
    /// says anything.
    pub async fn closed(&self) -> CloseReason {
        let error = self.0.quic.closed().await;
        self.0.reason(&error)
    }

    /// Why the connection is closed, if it is.
    pub fn close_reason(&self) -> Option<CloseReason> {
        let error = self.0.quic.close_reason()?;
        Some(self.0.reason(&error))
    }
}

impl Inner {
    /// What a QUIC error means here: the first thing that went wrong counts.
    pub(crate) fn reason(&self, error: &ConnectionError) -> CloseReason {
        match self.fate.reason() {
            Some(reason) => reason,
            None => close_reason(error, self.idle_timeout),
        }
    }
}

/// What a QUIC error means when nothing else is known.
pub(crate) fn close_reason(error: &ConnectionError, idle_timeout: Duration) -> CloseReason {
    match error {
        ConnectionError::TimedOut => CloseReason::TimedOut(idle_timeout),
        ConnectionError::LocallyClosed => CloseReason::Local("the endpoint was closed".into()),
        ConnectionError::ApplicationClosed(close) if close.reason.is_empty() => {
            CloseReason::Peer("it gave no reason".into())
        }
        ConnectionError::ApplicationClosed(close) => {
            CloseReason::Peer(String::from_utf8_lossy(&close.reason).into_owned())
        }
        error => CloseReason::Protocol(error.to_string()),
    }
}

fn peer_key(quic: &noq::Connection) -> Result<PeerKey, String> {
    let chain = quic
        .peer_identity()
        .and_then(|identity| identity.downcast::<Vec<CertificateDer<'static>>>().ok());
    let certificate = chain.as_ref().and_then(|chain| chain.first());
    let certificate = certificate.ok_or("the peer shows no certificate")?;
    tls::peer_key(certificate).map_err(|error| error.to_string())
}

/// A fingerprint of what is known of a path: its interface ids, and the ASes at its ends.
fn known_fingerprint(local: ScionAddr, way: &InUse) -> Fingerprint {
    let ids = way.way().interfaces();
    if ids.is_empty() {
        return Fingerprint::local(local.isd_as);
    }
    let last = ids.len() - 1;
    let interfaces: Vec<Interface> = ids
        .iter()
        .enumerate()
        .map(|(at, id)| Interface {
            isd_as: match at {
                0 => local.isd_as,
                at if at == last => way.way().peer().isd_as,
                _ => hawser_endhost::IsdAsn::WILDCARD,
            },
            id: *id,
        })
        .collect();
    Fingerprint::of(&interfaces)
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("peer", &self.peer())
            .field("fingerprint", &self.0.fingerprint)
            .finish_non_exhaustive()
    }
}
