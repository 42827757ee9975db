//! The connections and packets of programs that are captured.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use hawser_capture::{Gateway, Manner, Redirect, Scope, Wanted};
use hawser_tun::Queue;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use tokio::net::{TcpListener, TcpSocket};

use super::device::CaptureDevice;
use super::{HolderError, MARK};

/// Connections that wait to be accepted.
const BACKLOG: u32 = 4096;
/// The name of the nf_tables table.
const TABLE: &str = "hawser-shim";

/// Which programs' connections are captured.
#[derive(Debug, Clone)]
pub struct CaptureOptions {
    /// The name of the nf_tables table: one for each holder in a network namespace.
    pub table: String,
    /// The programs.
    pub scope: Scope,
}

impl Default for CaptureOptions {
    /// Those of all programs.
    fn default() -> Self {
        Self {
            table: TABLE.to_owned(),
            scope: Scope::Host,
        }
    }
}

/// The captures of a holder.
pub(super) struct Capture {
    redirect: Redirect,
    wanted: Wanted,
    device: CaptureDevice,
}

impl Capture {
    /// Prepares the capture of connections; none is captured before [`Capture::set`]. Returns the
    /// listeners for them.
    pub(super) fn open(options: &CaptureOptions) -> Result<(Self, Vec<TcpListener>), HolderError> {
        let listeners = listen().map_err(HolderError::system("listen for captured connections"))?;
        let port = listeners.first().and_then(|first| first.local_addr().ok());
        let port = port.map_or(0, |address| address.port());
        let wanted = Wanted::new(port, MARK).with_scope(options.scope);
        let redirect = Redirect::create(&options.table, &wanted)?;
        let device = CaptureDevice::create(options.scope)?;
        let capture = Self {
            redirect,
            wanted,
            device,
        };
        Ok((capture, listeners))
    }

    /// Captures connections to `prefixes`, and to nothing else; leads other packets to those of
    /// `routed` to the device.
    pub(super) fn set(
        &mut self,
        prefixes: Vec<IpNet>,
        routed: Vec<IpNet>,
    ) -> Result<(), HolderError> {
        let wanted = self.wanted.clone().with_prefixes(prefixes);
        self.redirect.apply(&wanted)?;
        self.device.route(&wanted.prefixes, routed)?;
        self.wanted = wanted;
        Ok(())
    }

    /// Captures connections of other hosts to the same prefixes, which arrive at the listener at
    /// `port`, or no longer if there is none.
    pub(super) fn forward(&mut self, port: Option<u16>) -> Result<(), HolderError> {
        let mut wanted = self.wanted.clone();
        wanted.gateway = port.map(|port| Gateway {
            sources: vec![Ipv4Net::default().into(), Ipv6Net::default().into()],
            port,
            manner: Manner::Redirect,
        });
        self.redirect.apply(&wanted)?;
        self.wanted = wanted;
        Ok(())
    }

    /// A copy of the queue of the device.
    pub(super) fn queue(&self) -> Result<Queue, HolderError> {
        self.device.queue()
    }
}

/// A listener at all addresses, to which connections of other hosts are redirected: at that of the
/// interface on which they arrive. What connects to it directly is refused.
pub(super) fn listen_for_others() -> Result<TcpListener, HolderError> {
    let both = bind((Ipv6Addr::UNSPECIFIED, 0).into());
    // A host without IPv6.
    let listener = both.or_else(|_| bind((Ipv4Addr::UNSPECIFIED, 0).into()));
    listener.map_err(HolderError::system("listen for other hosts' connections"))
}

/// Listeners at one port of both loopback addresses, where redirected connections arrive.
fn listen() -> std::io::Result<Vec<TcpListener>> {
    // The port of one may be in use at the other.
    for _ in 0..16 {
        let first = bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let port = first.local_addr()?.port();
        match bind((Ipv6Addr::LOCALHOST, port).into()) {
            Ok(second) => return Ok(vec![first, second]),
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {}
            // A host without IPv6.
            Err(error) if error.kind() == std::io::ErrorKind::AddrNotAvailable => {
                return Ok(vec![first]);
            }
            Err(error) => return Err(error),
        }
    }
    Err(std::io::ErrorKind::AddrInUse.into())
}

fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
