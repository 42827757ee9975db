//! SCION peers: the wire protocol over QUIC, one connection for each path.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hawser_address::PeerAddr;
use hawser_path::Fingerprint;
use hawser_quic as quic;

use crate::close::{CloseCode, Closed};
use crate::transport::{Connection, Output, Stream};

impl Output for quic::SendStream {
    /// Without a copy: QUIC holds the bytes until they are acknowledged.
    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &mut Bytes) -> Poll<io::Result<()>> {
        self.poll_write_chunk(cx, bytes).map_err(io::Error::from)
    }
}

/// What SCION peers name as their protocol (TLS ALPN).
pub const ALPN: &[u8] = b"hawser-bt/1";

/// A QUIC connection, pinned to one path.
pub(crate) struct QuicConnection {
    pub connection: quic::Connection,
    /// Whether this side opened it.
    pub dialed: bool,
}

impl Connection for QuicConnection {
    fn stream(&self) -> Pin<Box<dyn Future<Output = Result<Stream, String>> + Send + '_>> {
        Box::pin(async {
            let streams = match self.dialed {
                true => self.connection.open_bi().await,
                false => self.connection.accept_bi().await,
            };
            let (send, receive) = streams.map_err(|error| error.to_string())?;
            Ok((Box::new(receive) as _, Box::new(send) as _))
        })
    }

    fn peer(&self) -> PeerAddr {
        self.connection.peer().into()
    }

    fn fingerprint(&self) -> Fingerprint {
        self.connection.fingerprint()
    }

    fn key(&self) -> [u8; 32] {
        self.connection.peer_key().0
    }

    fn rtt(&self) -> Duration {
        self.connection.stats().rtt
    }

    fn received(&self) -> Option<u64> {
        Some(self.connection.stats().bytes_received)
    }

    fn congestion(&self) -> Option<quic::CongestionState> {
        Some(self.connection.stats().congestion)
    }

    fn set_known(&self) {
        self.connection.set_known();
    }

    fn expect_data(&self) {
        self.connection.expect_data();
    }

    fn close(&self, code: CloseCode, text: &str) {
        self.connection.close(code as u32, text);
    }

    fn close_reason(&self) -> Option<Closed> {
        let reason = self.connection.close_reason()?;
        Some(Closed {
            code: match reason {
                quic::CloseReason::Peer { code, .. } => CloseCode::received(code),
                _ => CloseCode::Plain,
            },
            text: reason.to_string(),
        })
    }
}
