//! The connections and packets of programs that are captured.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use hawser_capture::{Gateway, Guard, Guarded, Manner, Redirect, Scope, Wanted};
use hawser_kernel::namespace::NetNs;
use hawser_tun::Queue;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::Handle;

use super::device::CaptureDevice;
use super::enclosed;
use super::error::HolderError;
use super::fail::{FailMode, GUARD, TABLE};
use crate::mark::MARK;

/// Connections that wait to be accepted.
const BACKLOG: u32 = 4096;

/// Which programs' connections are captured.
#[derive(Debug, Clone)]
pub struct CaptureOptions {
    /// The name of the nf_tables table: one for each holder in a network namespace.
    pub table: String,
    /// What is captured.
    pub captured: Captured,
    /// The TCP port of this host at which captured connections arrive; 0 for any.
    pub port: u16,
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
            port: 0,
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
    fail: FailMode,
    guard: Option<Guard>,
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
                Self::create(options, *scope, Vec::new(), create)
            }
            Captured::Enclosed(namespace) => {
                let runtime = Handle::current();
                let opened = namespace.run(|| {
                    let _runtime = runtime.enter();
                    let create = || enclosed::create_device().map(Device::Enclosed);
                    Self::create(options, Scope::Host, enclosed::everything(), create)
                });
                opened.map_err(HolderError::Namespace)?
            }
        }
    }

    /// Makes everything in the calling thread's namespace; captures connections to `prefixes`.
    fn create(
        options: &CaptureOptions,
        scope: Scope,
        prefixes: Vec<IpNet>,
        device: impl FnOnce() -> Result<Device, HolderError>,
    ) -> Result<(Self, Vec<TcpListener>), HolderError> {
        // Where it is made, it brings the loopback device up.
        let device = device()?;
        let listeners = listen(options.port).map_err(|source| match options.port {
            0 => HolderError::system("listen for captured connections")(source),
            port => HolderError::RedirectPort { port, source },
        })?;
        let port = listeners.first().and_then(|first| first.local_addr().ok());
        let port = port.map_or(0, |address| address.port());
        let wanted = Wanted::new(port, MARK)
            .with_scope(scope)
            .with_prefixes(prefixes);
        let redirect = Redirect::create(&options.table, &wanted)?;
        let capture = Self {
            redirect,
            wanted,
            led: Default::default(),
            device,
            fail: FailMode::default(),
            guard: None,
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
        self.route()?;
        self.guard()
    }

    /// Sets what becomes of what is captured once this process has ended, however it ends.
    pub(super) fn set_fail(&mut self, mode: FailMode) -> Result<(), HolderError> {
        self.fail = mode;
        match (mode, self.guard.take()) {
            (FailMode::Open, Some(guard)) => guard.remove()?,
            (FailMode::Open, None) => drop(Guard::remove_left(GUARD)?),
            (FailMode::Closed, guard) => {
                self.guard = guard;
                // What an ended holder left stays in force until it is known what is mapped.
                if !self.wanted.prefixes.is_empty() {
                    self.guard()?;
                }
            }
        }
        Ok(())
    }

    /// Rejects what would leave by ordinary routes, if that is wanted.
    fn guard(&mut self) -> Result<(), HolderError> {
        let (Device::Mapped(device), FailMode::Closed) = (&self.device, self.fail) else {
            return Ok(());
        };
        let mut guarded = Guarded::new(MARK);
        guarded.connections.clone_from(&self.wanted.prefixes);
        guarded.packets.clone_from(&self.led.1);
        guarded.device = Some(device.name().to_owned());
        guarded.forwarded = self.wanted.gateway.is_some();
        match &mut self.guard {
            Some(guard) => drop(guard.apply(&guarded)?),
            None => self.guard = Some(Guard::create(GUARD, &guarded)?),
        }
        Ok(())
    }

    /// Ends the capture in order: nothing of it stays.
    pub(super) fn release(mut self) {
        if let Some(Err(error)) = self.guard.take().map(Guard::remove) {
            tracing::error!("{error}");
        }
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
        self.route()?;
        self.guard()
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
/// interface on which they arrive. What connects to it directly is refused. Its `port` may be that of
/// the listeners at loopback addresses, which are more specific; 0 for any.
pub(super) fn listen_for_others(port: u16) -> Result<TcpListener, HolderError> {
    let both = bind((Ipv6Addr::UNSPECIFIED, port).into(), port != 0);
    let listener = match both {
        Err(error) if error.kind() == ErrorKind::AddrInUse => Err(error),
        // A host without IPv6.
        Err(_) => bind((Ipv4Addr::UNSPECIFIED, port).into(), port != 0),
        both => both,
    };
    listener.map_err(|source| match port {
        0 => HolderError::system("listen for other hosts' connections")(source),
        port => HolderError::RedirectPort { port, source },
    })
}

/// Listeners at one port of both loopback addresses, where redirected connections arrive; at any if
/// `port` is 0.
fn listen(port: u16) -> io::Result<Vec<TcpListener>> {
    let is_given = port != 0;
    // The port of one may be in use at the other.
    let attempts = if is_given { 1 } else { 16 };
    for _ in 0..attempts {
        let first = bind((Ipv4Addr::LOCALHOST, port).into(), is_given)?;
        let port = first.local_addr()?.port();
        match bind((Ipv6Addr::LOCALHOST, port).into(), is_given) {
            Ok(second) => return Ok(vec![first, second]),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            // A host without IPv6.
            Err(error) if error.kind() == ErrorKind::AddrNotAvailable => {
                return Ok(vec![first]);
            }
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AddrInUse.into())
}

/// A listener at `address`; with `shared`, this user's other listeners may have the port as well, if
/// they share it, too.
fn bind(address: SocketAddr, shared: bool) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    socket.set_reuseport(shared)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
