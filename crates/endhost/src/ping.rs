//! SCMP echo: whether a host at the end of a path answers, and its round-trip time.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hawser_address::ScionAddr;
use hawser_packet::{Body, Scmp};

use crate::headers::HeadersError;
use crate::path::Path;
use crate::requests::{RequestError, Requests, random};
use crate::responder;

/// An echo reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply {
    /// The host that answered; the port has no meaning.
    pub from: ScionAddr,
    /// The round-trip time.
    pub rtt: Duration,
    /// Bytes of the SCION packet received.
    pub size: usize,
}

impl Requests {
    /// Bytes of the SCION packet that carries an echo request with `size` bytes of data to `host`
    /// at the end of `path`.
    ///
    /// # Errors
    /// [`HeadersError`] when the path does not lead to the host.
    pub fn echo_size(&self, host: IpAddr, path: &Path, size: usize) -> Result<usize, HeadersError> {
        let headers = self.headers(host, path)?;
        let empty = headers.scmp(&request(0, 0, &[])).len();
        Ok(empty.saturating_add(size))
    }

    /// Sends an echo request with `size` bytes of data to `host` at the end of `path` and waits for
    /// the reply, no longer than `timeout`.
    ///
    /// # Errors
    /// [`RequestError`] when no reply arrives.
    pub async fn echo(
        &self,
        host: IpAddr,
        path: &Path,
        size: usize,
        timeout: Duration,
    ) -> Result<Reply, RequestError> {
        let (packet, mtu) = (self.echo_size(host, path, size)?, path.mtu());
        if packet > usize::from(mtu) {
            return Err(RequestError::TooLarge { size, packet, mtu });
        }
        let mut data = vec![0; size];
        // Random data, so that hosts off the path cannot quote the request.
        for (byte, random) in data.iter_mut().zip(random().to_be_bytes()) {
            *byte = random;
        }
        let headers = self.headers(host, path)?;
        let packet = |id, sequence| headers.scmp(&request(id, sequence, &data));
        let (answer, rtt) = self.ask(headers.next_hop, timeout, packet).await?;
        Ok(Reply {
            from: answer.from,
            rtt,
            size: answer.size,
        })
    }
}

fn request(id: u16, sequence: u16, data: &[u8]) -> Vec<u8> {
    let request = Scmp::Query {
        reply: false,
        id,
        sequence,
        body: Body::Echo(data),
    };
    request.to_bytes()
}

/// The underlay address of packets for `host` at the end of `path`: the border router of the path,
/// or inside an AS the host itself, at the port where it answers echoes.
pub fn next_hop(path: &Path, host: IpAddr) -> SocketAddr {
    path.next_hop()
        .unwrap_or_else(|| SocketAddr::new(host, responder::PORT))
}
