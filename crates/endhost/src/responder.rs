//! What answers SCMP echoes for a host: they arrive at a port of their own.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

use hawser_packet::{Packet, ScionAddr, Scmp};
use thiserror::Error;
use tokio::net::UdpSocket;

use crate::route::Route;

/// The UDP port routers deliver to what is for no dispatched port: echo and traceroute requests.
pub const PORT: u16 = 30041;

/// Why echoes are no longer answered.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ResponderError {
    /// The address cannot be bound.
    #[error("cannot answer echoes at {addr}: {source}")]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// Receiving failed.
    #[error("cannot receive echoes at {addr}: {source}")]
    Receive {
        /// The address.
        addr: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}

/// Answers SCMP echo and traceroute requests that arrive at `addr` (port [`PORT`] of the host's
/// address) until it is dropped. Answers go the way the request came, to where it came from: they
/// are no larger than it, so they amplify nothing.
///
/// # Errors
/// [`ResponderError`] when `addr` cannot be bound or used.
pub async fn run(addr: SocketAddr) -> Result<Infallible, ResponderError> {
    let bind = |source| ResponderError::Bind { addr, source };
    let socket = UdpSocket::bind(addr).await.map_err(bind)?;
    let mut buffer = vec![0; 65536];
    loop {
        let (length, from) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            // An earlier answer met a closed port; nothing is wrong here.
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

/// The answer to a request, if it is one.
fn answer(request: &[u8], from: SocketAddr) -> Option<Vec<u8>> {
    let packet = Packet::parse(request).ok()?;
    let (port, message) = match Scmp::parse(&packet).ok()? {
        Scmp::Echo {
            reply: false,
            id,
            sequence,
            data,
        } => {
            let echo = Scmp::Echo {
                reply: true,
                id,
                sequence,
                data,
            };
            (id, echo.to_bytes())
        }
        Scmp::Traceroute {
            reply: false,
            id,
            sequence,
            ..
        } => {
            let reply = Scmp::Traceroute {
                reply: true,
                id,
                sequence,
                isd_as: packet.dst_as(),
                interface: 0,
            };
            (id, reply.to_bytes())
        }
        _ => return None,
    };
    if message.len() > packet.payload().len() {
        return None;
    }
    // The request says who we are.
    let host = SocketAddr::new(packet.dst_host().ok()?, PORT);
    let local = ScionAddr::new(packet.dst_as(), host);
    let route = Route::back(local, &packet, port, from).ok()?;
    Some(route.scmp(&message))
}

#[cfg(test)]
mod tests;
