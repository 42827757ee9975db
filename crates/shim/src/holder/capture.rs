//! The connections and packets of programs that are captured.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use hawser_capture::{Gateway, Manner, Redirect, Scope, Wanted};
use hawser_kernel::namespace::NetNs;
use hawser_tun::Queue;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::Handle;

use super::device::CaptureDevice;
use super::{HolderError, MARK, enclosed};

/// Connections that wait to be accepted.
const BACKLOG: u32 = 4096;
/// The name of the nf_tables table.
const TABLE: &str = "hawser-shim";

/// Which programs' connections are captured.
#[derive(Debug, Clone)]
pub struct CaptureOptions {
    /// The name of the nf_tables table: one for each holder in a network namespace.
    pub table: String,
    /// What is captured.
    pub captured: Captured,
}

/// What is captured.
#[derive(Debug, Clone)]
pub enum Captured {
    /// In this process's network namespace: the connections of programs to what is mapped.
    Mapped(Scope),
    /// All traffic inside a namespace that has no connection to others.
    Enclosed(Arc<NetNs>),
}

impl Default for CaptureOptions {
    /// Those of all programs.
    fn default() -> Self {
        Self {
            table: TABLE.to_owned(),
            captured: Captured::Mapped(Scope::Host),
        }
    }
}

/// The captures of a holder.
pub(super) struct Capture {
    redirect: Redirect,
    wanted: Wanted,
    /// The prefixes that have a route to the device, and those of them that have it before others.
    led: (Vec<IpNet>, Vec<IpNet>),
    device: Device,
}

/// The device to which packets are routed.
enum Device {
    /// Those to what is mapped.
    Mapped(CaptureDevice),
    /// All in a namespace.
    Enclosed(OwnedFd),
}

impl Capture {
    /// Prepares the capture of connections; of [`Captured::Mapped`] none is captured before
    /// [`Capture::set`]. Returns the listeners for them.
    pub(super) fn open(options: &CaptureOptions) -> Result<(Self, Vec<TcpListener>), HolderError> {
        match &options.captured {
            Captured::Mapped(scope) => {
                let create = || CaptureDevice::create(*scope).map(Device::Mapped);
                Self::create(&options.table, *scope, Vec::new(), create)
            }
            Captured::Enclosed(namespace) => {
                let runtime = Handle::current();
                let opened = namespace.run(|| {
                    let _runtime = runtime.enter();
                    let create = || enclosed::create_device().map(Device::Enclosed);
                    Self::create(&options.table, Scope::Host, enclosed::everything(), create)
                });
                opened.map_err(HolderError::Namespace)?
            }
        }
    }

    /// Makes everything in the calling thread's namespace; captures connections to `prefixes`.
    fn create(
        table: &str,
        scope: Scope,
        prefixes: Vec<IpNet>,
        device: impl FnOnce() -> Result<Device, HolderError>,
    ) -> Result<(Self, Vec<TcpListener>), HolderError> {
        // Where it is made, it brings the loopback device up.
        let device = device()?;
        let listeners = listen().map_err(HolderError::system("listen for captured connections"))?;
        let port = listeners.first().and_then(|first| first.local_addr().ok());
        let port = port.map_or(0, |address| address.port());
        let wanted = Wanted::new(port, MARK)
            .with_scope(scope)
            .with_prefixes(prefixes);
        let redirect = Redirect::create(table, &wanted)?;
        let capture = Self {
            redirect,
            wanted,
            led: Default::default(),
            device,
        };
        Ok((capture, listeners))
    }

    /// Captures connections to `prefixes`, and to nothing else; leads other packets to those of
    /// `routed` to the device. Connections to `kept`, which exist, keep a route, too. Where
    /// everything is captured, so it stays.
    pub(super) fn set(
        &mut self,
        prefixes: Vec<IpNet>,
        routed: Vec<IpNet>,
        kept: &[IpAddr],
    ) -> Result<(), HolderError> {
        if let Device::Enclosed(_) = self.device {
            return Ok(());
        }
        let wanted = self.wanted.clone().with_prefixes(prefixes);
        self.redirect.apply(&wanted)?;
        let kept = kept.iter().copied().map(IpNet::from);
        let reachable: Vec<_> = wanted.prefixes.iter().copied().chain(kept).collect();
        self.wanted = wanted;
        self.led = (IpNet::aggregate(&reachable), routed);
        self.route()
    }

    /// Leads packets to the device.
    fn route(&self) -> Result<(), HolderError> {
        let Device::Mapped(device) = &self.device else {
            return Ok(());
        };
        let (captured, routed) = self.led.clone();
        device.route(&captured, routed, self.wanted.gateway.is_some())
    }

    /// Captures connections of other hosts to the same prefixes, which arrive at the listener at
    /// `port`, and their other packets, or no longer if there is none.
    pub(super) fn forward(&mut self, port: Option<u16>) -> Result<(), HolderError> {
        let mut wanted = self.wanted.clone();
        wanted.gateway = port.map(|port| Gateway {
            sources: vec![Ipv4Net::default().into(), Ipv6Net::default().into()],
            port,
            manner: Manner::Redirect,
        });
        self.redirect.apply(&wanted)?;
        self.wanted = wanted;
        self.route()
    }

    /// A copy of the queue of the device.
    pub(super) fn queue(&self) -> Result<Queue, HolderError> {
        match &self.device {
            Device::Mapped(device) => device.queue(),
            Device::Enclosed(queue) => {
                let copy = queue.try_clone();
                let copy = copy.map_err(HolderError::system("copy the TUN device's queue"))?;
                Ok(copy.into())
            }
        }
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
