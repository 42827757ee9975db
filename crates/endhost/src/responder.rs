//! Answers SCMP echo and traceroute requests to this host, which arrive at a dedicated port.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

use hawser_address::ScionAddr;
use hawser_kernel::bind::Refused;
use hawser_packet::{Body, Packet, Scmp};
use thiserror::Error;
use tokio::net::UdpSocket;

use crate::headers::Headers;

/// The UDP port at which routers deliver packets without a dispatched port: echo and traceroute
/// requests.
pub const PORT: u16 = 30041;

/// Why requests are not answered: the address cannot be bound, or receiving failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ResponderError {
    /// The address cannot be bound.
    #[error("cannot answer echoes at {addr}: {}", Refused::udp(*.addr, source))]
    Refused {
        /// The address.
        addr: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// Requests cannot be received.
    #[error("cannot receive requests for echoes at {addr}: {source}")]
    Receive {
        /// The address.
        addr: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

/// Answers SCMP echo and traceroute requests that arrive at `addr` (port [`PORT`] of the host's
/// address) until the future is dropped. An answer takes the path of its request back to the
/// sender, and is no larger, so that nothing is amplified.
///
/// # Errors
/// [`ResponderError`] when `addr` cannot be bound or used.
pub async fn run(addr: SocketAddr) -> Result<Infallible, ResponderError> {
    let refused = |source| ResponderError::Refused { addr, source };
    let socket = UdpSocket::bind(addr).await.map_err(refused)?;
    let mut buffer = vec![0; 65536];
    loop {
        let (length, from) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            // The error of an earlier answer to a closed port.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
            Err(source) => return Err(ResponderError::Receive { addr, source }),
        };
        let Some(answer) = answer(&buffer[..length], from) else {
            continue;
        };
        if let Err(error) = socket.send_to(&answer, from).await {
            tracing::debug!(%from, %error, "echo not answered");
        }
    }
}

/// The answer to `request`; `None` if it is not a request.
fn answer(request: &[u8], from: SocketAddr) -> Option<Vec<u8>> {
    let packet = Packet::parse(request).ok()?;
    let mut message = Scmp::parse(&packet).ok()?;
    let Scmp::Query {
        reply, id, body, ..
    } = &mut message
    else {
        return None;
    };
    let port = *id;
    if let Body::Traceroute { isd_as, interface } = body {
        (*isd_as, *interface) = (packet.header.dst_as, 0);
    }
    if std::mem::replace(reply, true) {
        return None;
    }
    let message = message.to_bytes();
    if message.len() > packet.payload().len() {
        return None;
    }
    // The request was sent to this address of the host.
    let host = SocketAddr::new(packet.dst_host().ok()?, PORT);
    let local = ScionAddr::new(packet.header.dst_as, host);
    let headers = Headers::reply(local, &packet, port, from).ok()?;
    Some(headers.scmp(&message))
}

#[cfg(test)]
mod tests;
