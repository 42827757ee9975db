//! SCION peers: the wire protocol over QUIC, one connection for each path.

use std::time::Duration;

use hawser_path::Fingerprint;
use hawser_quic as quic;

use crate::address::PeerAddr;
use crate::close::{CloseCode, Closed};
use crate::transport::Connection;

/// A QUIC connection, pinned to one path.
pub(crate) struct QuicConnection {
    connection: quic::Connection,
    dialed: bool,
}

impl QuicConnection {
    /// One that this side opened.
    pub fn dialed(connection: quic::Connection) -> Self {
        Self {
            connection,
            dialed: true,
        }
    }

    /// One that the peer opened.
    pub fn accepted(connection: quic::Connection) -> Self {
        Self {
            connection,
            dialed: false,
        }
    }
}

impl Connection for QuicConnection {
    type Read = quic::RecvStream;
    type Write = quic::SendStream;

    async fn stream(&self) -> Result<(quic::RecvStream, quic::SendStream), String> {
        let streams = if self.dialed {
            self.connection.open_bi().await
        } else {
            self.connection.accept_bi().await
        };
        let (send, receive) = streams.map_err(|error| error.to_string())?;
        Ok((receive, send))
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
