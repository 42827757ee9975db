//! A connection: one peer, one path.

pub(crate) mod inner;

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hawser_congestion::CongestionState;
use hawser_endhost::{Path, ScionAddr};
use hawser_keys::PeerKey;
use hawser_path::Fingerprint;
use noq_proto::{ConnectionError, StreamId};
use thiserror::Error;

use self::inner::Inner;
use crate::close::CloseReason;
use crate::stream::{RecvStream, SendStream, StreamError};

/// A connection to one peer over one path. Cloning shares it; it closes when the last clone and the
/// last of its streams are gone.
///
/// A connection never changes its path: its packets that arrive over another path are dropped. Only
/// the path's bytes are replaced, by fresher ones for the same interfaces.
#[derive(Clone, Debug)]
pub struct Connection(pub(crate) Arc<Inner>);

/// Counters and estimates of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// How congestion is controlled, with the reason.
    pub congestion: CongestionState,
    /// Congestion window, in bytes.
    pub cwnd: u64,
    /// Bytes of QUIC packets received.
    pub bytes_received: u64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets counted as lost.
    pub lost: u64,
    /// Size of a full QUIC packet, in bytes.
    pub mtu: u16,
    /// What data takes that arrived and was not read, in bytes of memory.
    pub held: u64,
    /// The most that it has taken.
    pub peak_held: u64,
}

/// Why a datagram is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DatagramError {
    /// It does not fit into a packet.
    #[error("the datagram is too large: the path takes {max} bytes")]
    TooLarge {
        /// The largest datagram now, in bytes.
        max: usize,
    },
    /// This endpoint or the peer's does not take datagrams.
    #[error("datagrams are not enabled at both ends")]
    Unsupported,
    /// The connection is closed.
    #[error("the connection is closed")]
    Closed,
}

impl Connection {
    /// The peer's address.
    pub fn peer(&self) -> ScionAddr {
        self.0.lane.remote()
    }

    /// The identity of the connection's path, seen from here.
    ///
    /// A peer that connects shows the interface ids of its path, not the ASes between. If the
    /// daemon knows the path, this is still the path's fingerprint; otherwise it is computed from
    /// the ids and the ASes at both ends, and is the fingerprint of no other path.
    pub fn fingerprint(&self) -> Fingerprint {
        self.0.fingerprint
    }

    /// The path; `None` when the peer connected over a path that the daemon does not know.
    pub fn path(&self) -> Option<Path> {
        self.0.lane.path()
    }

    /// The time until which routers accept packets sent now, in seconds since the Unix epoch. It
    /// increases when the path is refreshed; on the side that accepted the connection, with the
    /// first packet over the peer's fresh path.
    pub fn expiry(&self) -> u64 {
        self.0.lane.flow().expiry()
    }

    /// The peer's key.
    pub fn peer_key(&self) -> PeerKey {
        self.0.key
    }

    /// A secret that both ends derive from the connection's TLS session, and nobody else: for
    /// `label` and `context` the same at both ends, and another one for every connection (RFC 5705;
    /// RFC 8446, 7.5).
    ///
    /// # Errors
    /// Why the connection is closed, when its TLS session has failed.
    pub fn export_secret(&self, label: &[u8], context: &[u8]) -> Result<[u8; 64], CloseReason> {
        self.0.quic.export_secret(label, context).ok_or_else(|| {
            let failed = || CloseReason::Protocol("TLS exports no secret".into());
            self.close_reason().unwrap_or_else(failed)
        })
    }

    /// Opens a stream in both directions. The peer accepts it once the first byte arrives.
    ///
    /// # Errors
    /// [`StreamError::Closed`] when the connection is closed.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), StreamError> {
        self.streams(poll_fn(|cx| self.0.quic.poll_open(cx)).await)
    }

    /// Waits for the peer to open a stream in both directions.
    ///
    /// # Errors
    /// [`StreamError::Closed`] when the connection is closed.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), StreamError> {
        self.streams(poll_fn(|cx| self.0.quic.poll_accept(cx)).await)
    }

    fn streams(
        &self,
        id: Result<StreamId, ConnectionError>,
    ) -> Result<(SendStream, RecvStream), StreamError> {
        let connection = &self.0;
        let closed = |error| StreamError::Closed(connection.reason(&error));
        let id = id.map_err(closed)?;
        Ok((
            SendStream::new(id, Arc::clone(connection)),
            RecvStream::new(id, Arc::clone(connection)),
        ))
    }

    /// Sends a datagram: at most once, in any order, or not at all. It waits for congestion control;
    /// older ones that still wait are dropped when there are more bytes of them than
    /// [`Config::datagrams`](crate::Config::datagrams).
    ///
    /// # Errors
    /// [`DatagramError`] when it is too large, or one of the ends takes none.
    pub fn send_datagram(&self, bytes: Bytes) -> Result<(), DatagramError> {
        self.0.quic.send_datagram(bytes)
    }

    /// Waits for the next datagram. Those that arrived before the application
    /// [knew](Self::set_known) the peer are dropped. Cancel safe.
    ///
    /// # Errors
    /// Why the connection is closed.
    pub async fn read_datagram(&self) -> Result<Bytes, CloseReason> {
        let read = poll_fn(|cx| self.0.quic.poll_datagram(cx)).await;
        read.map_err(|error| self.0.reason(&error))
    }

    /// Counters and estimates.
    pub fn stats(&self) -> Stats {
        let (all, path) = self.0.quic.stats();
        let (held, peak_held) = self.0.quic.held();
        Stats {
            rtt: path.rtt,
            congestion: self.0.congestion.get(),
            cwnd: path.cwnd,
            bytes_received: all.udp_rx.bytes,
            packets_sent: all.sent_packets,
            lost: all.lost_packets,
            mtu: path.current_mtu,
            held: held as u64,
            peak_held: peak_held as u64,
        }
    }

    /// Notes that the application knows the peer and serves it. Until then a connection that the peer
    /// set up may be closed with [`DISPLACED`](crate::DISPLACED), as all of them together take a fixed
    /// amount of memory.
    pub fn set_known(&self) {
        self.0.quic.set_known();
    }

    /// Lets the peer have as much under way as the path holds, up to 256 MiB, as the application
    /// reads. Before this, and where the application never asks for it, the peer may send 64 KiB
    /// ahead of what is read: what it costs is a fixed sum.
    ///
    /// Call this once the peer's identity is checked, or once data is wanted from it. It implies
    /// [`set_known`](Self::set_known).
    pub fn expect_data(&self) {
        self.0.quic.expect_data();
    }

    /// Closes the connection at once. The peer receives `code`, for programs, and `reason`, for
    /// people. Undelivered data is lost.
    pub fn close(&self, code: u32, reason: &str) {
        let reason = reason.to_owned();
        self.0.watched.close(CloseReason::Local { code, reason });
    }

    /// Waits until the connection is closed, and returns why: within some round trips (at least a
    /// quarter of a second) when a router reports the path down, after the idle timeout when no
    /// packet arrives.
    pub async fn closed(&self) -> CloseReason {
        let error = poll_fn(|cx| self.0.quic.poll_closed(cx)).await;
        self.0.reason(&error)
    }

    /// Why the connection is closed, if it is.
    pub fn close_reason(&self) -> Option<CloseReason> {
        let error = self.0.quic.error()?;
        Some(self.0.reason(&error))
    }
}
