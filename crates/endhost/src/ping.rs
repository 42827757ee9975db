//! SCMP echo: whether a host at the end of a path answers, and after which time.

mod requests;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hawser_packet::{ScionAddr, Scmp, ScmpError};
use thiserror::Error;

pub use self::requests::RequestError;
use self::requests::random;
pub(crate) use self::requests::{Requests, What};
use crate::endhost::Endhost;
use crate::headers::{Headers, HeadersError};
use crate::path::Path;
use crate::responder;
use crate::socket::BindError;

/// Bytes of an SCMP echo before its data.
const ECHO_HEADER: usize = 8;

/// Sends SCMP echo requests and waits for the replies; any number may be under way at once.
pub struct Pinger(Requests);

/// An echo that came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply {
    /// The host that answered; the port means nothing.
    pub from: ScionAddr,
    /// The round-trip time.
    pub rtt: Duration,
    /// Bytes of the SCION packet received.
    pub size: usize,
}

/// Why no echo came back.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PingError {
    /// The request could not be sent, or nothing came back.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A router or host reported why nothing comes back.
    #[error("{0}")]
    Scmp(ScmpError),
    /// The path does not lead there.
    #[error(transparent)]
    Headers(#[from] HeadersError),
    /// The request is larger than the path takes.
    #[error("{size} bytes of data make a packet of {packet} bytes: the path takes {mtu}")]
    TooLarge {
        /// Bytes of data asked for.
        size: usize,
        /// Bytes of the packet.
        packet: usize,
        /// The path's MTU, in bytes.
        mtu: u16,
    },
}

impl Pinger {
    /// Binds a socket for echoes at `local`, or else at this host's address towards `next_hop`:
    /// [`next_hop`] of the path and host to be sent to. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`BindError`] when there is no address or port to use.
    pub fn bind(
        host: &Endhost,
        local: Option<IpAddr>,
        next_hop: SocketAddr,
    ) -> Result<Self, BindError> {
        Requests::bind(host, local, next_hop).map(Self)
    }

    /// The address that echoes are sent back to.
    pub fn local_addr(&self) -> ScionAddr {
        self.0.local_addr()
    }

    /// Bytes of the SCION packet that carries an echo request with `size` bytes of data to `host`
    /// at the end of `path`.
    ///
    /// # Errors
    /// [`HeadersError`] when the path does not lead there.
    pub fn packet_size(
        &self,
        host: IpAddr,
        path: &Path,
        size: usize,
    ) -> Result<usize, HeadersError> {
        let headers = self.headers(host, path)?;
        let header = headers.scmp(&request(0, 0, &[])).len();
        Ok(header + size)
    }

    fn headers(&self, host: IpAddr, path: &Path) -> Result<Headers, HeadersError> {
        // An echo request has no port; hosts in this AS receive it at that of the responder.
        let host = SocketAddr::new(host, responder::PORT);
        let remote = ScionAddr::new(path.info().dst, host);
        Headers::new(self.0.local_addr(), remote, path)
    }

    /// Sends an echo request with `size` bytes of data to `host` at the end of `path` and waits for
    /// the reply, no longer than `timeout`.
    ///
    /// # Errors
    /// [`PingError`] when none comes.
    pub async fn echo(
        &self,
        host: IpAddr,
        path: &Path,
        size: usize,
        timeout: Duration,
    ) -> Result<Reply, PingError> {
        let headers = self.headers(host, path)?;
        let mtu = path.mtu();
        // Data beyond any packet is not even put into one.
        let mut data = vec![0; size.min(usize::from(u16::MAX))];
        // Hosts off the path cannot quote the request.
        for (byte, random) in data.iter_mut().zip(random().to_be_bytes()) {
            *byte = random;
        }
        let packet = |id, sequence| headers.scmp(&request(id, sequence, &data));
        let length = packet(0, 0).len();
        if length > usize::from(mtu) || size > usize::from(mtu) {
            let packet = length.max(size + ECHO_HEADER);
            return Err(PingError::TooLarge { size, packet, mtu });
        }
        let (answer, rtt) = self.0.ask(headers.next_hop(), timeout, packet).await?;
        match answer.what {
            What::Error(error) => Err(PingError::Scmp(error)),
            What::Echo | What::Traceroute { .. } => Ok(Reply {
                from: answer.from,
                rtt,
                size: answer.size,
            }),
        }
    }
}

fn request(id: u16, sequence: u16, data: &[u8]) -> Vec<u8> {
    let request = Scmp::Echo {
        reply: false,
        id,
        sequence,
        data,
    };
    request.to_bytes()
}

/// The underlay address that packets for `host` at the end of `path` are sent to: the border router
/// of the path, or inside an AS the host itself, at the port where it answers echoes.
pub fn next_hop(path: &Path, host: IpAddr) -> SocketAddr {
    path.next_hop()
        .unwrap_or_else(|| SocketAddr::new(host, responder::PORT))
}
