//! Path-level peers over QUIC and SCION.

use std::time::Duration;

use hawser_endhost::{Endhost, Path, ScionAddr};
use hawser_path::Fingerprint;
use hawser_quic::{self as quic, Endpoint};

use crate::transport::{Connection, Offers, Transport};

/// Dials and accepts through one endpoint, over the paths one endhost knows.
#[derive(Clone)]
pub(crate) struct QuicTransport {
    endpoint: Endpoint,
    host: Endhost,
}

impl QuicTransport {
    pub fn new(endpoint: Endpoint, host: Endhost) -> QuicTransport {
        QuicTransport { endpoint, host }
    }
}

impl Transport for QuicTransport {
    type Path = Path;
    type Connection = QuicConnection;

    fn offers(&self, peer: ScionAddr) -> Offers<Path> {
        self.host.watch(peer.isd_as)
    }

    async fn lookup(&self, peer: ScionAddr) -> Result<(), String> {
        let paths = self.host.paths(peer.isd_as).await;
        paths.map(drop).map_err(|error| error.to_string())
    }

    fn fits(&self, peer: ScionAddr, path: &Path) -> Result<(), String> {
        let fits = self.endpoint.fits(peer, path);
        fits.map_err(|error| error.to_string())
    }

    async fn dial(&self, peer: ScionAddr, path: Path) -> Result<QuicConnection, String> {
        let connection = self.endpoint.connect(peer, path).await;
        connection
            .map(|connection| QuicConnection {
                connection,
                dialed: true,
            })
            .map_err(|error| error.to_string())
    }

    async fn accept(&self) -> Option<QuicConnection> {
        let connection = self.endpoint.accept().await?;
        Some(QuicConnection {
            connection,
            dialed: false,
        })
    }

    fn local(&self) -> ScionAddr {
        self.endpoint.local_addr()
    }
}

/// A QUIC connection, pinned to one path.
pub(crate) struct QuicConnection {
    connection: quic::Connection,
    dialed: bool,
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

    fn peer(&self) -> ScionAddr {
        self.connection.peer()
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

    fn close(&self, reason: &str) {
        self.connection.close(reason);
    }

    fn close_reason(&self) -> Option<String> {
        let reason = self.connection.close_reason()?;
        Some(reason.to_string())
    }
}
