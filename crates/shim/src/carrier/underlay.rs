//! What carries packets to other hosts: SCION, or plain IP.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::{fmt, io};

use hawser_endhost::lanes::Lanes;
use hawser_endhost::socket::Socket;
use hawser_endhost::{Endhost, Headers, HeadersError, Path, ScionAddr, on_plain_ip, plain_ip};
use hawser_kernel::socket;
use hawser_quic::{Config, Connection, Endpoint};

use super::error::CarrierError;
use crate::lock::lock;
use crate::mark::MARK;
use crate::plane::Plane;
use crate::plane::lane::SealedLane;

/// The sockets of one kind: for connections and for datagrams. Cloning shares them.
#[derive(Clone)]
pub(crate) struct Underlay {
    pub quic: Endpoint,
    lanes: Lanes,
}

impl Underlay {
    /// Binds the sockets of `host` at `listen`; at `default_port` of the host's address if that is
    /// `None`. Must be called inside a tokio runtime.
    pub(crate) fn bind(
        host: &Endhost,
        listen: Option<SocketAddr>,
        default_port: u16,
        config: Config,
        plane: &Plane,
    ) -> Result<Self, CarrierError> {
        let failed = |error: &dyn fmt::Display| CarrierError::Socket(error.to_string());
        let any = listen.map(|listen| SocketAddr::new(listen.ip(), 0));
        let socket = Socket::bind_blocking(host, any).map_err(|error| failed(&error))?;
        let ip = socket.local_addr().host.ip();
        let listen = listen.unwrap_or(SocketAddr::new(ip, default_port));
        let quic = Endpoint::bind(host.clone(), Some(listen), config)?;
        let lanes = plane.receive(socket).map_err(|error| failed(&error))?;
        Ok(Self { quic, lanes })
    }

    /// The UDP port of datagrams.
    pub(crate) fn port(&self) -> u16 {
        self.lanes.socket().local_addr().host.port()
    }

    /// The lanes of datagrams.
    pub(crate) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// The largest datagram to `remote` over `path`, in bytes.
    ///
    /// # Errors
    /// When the path does not lead to the remote.
    pub(crate) fn largest(&self, remote: ScionAddr, path: &Path) -> Result<u16, HeadersError> {
        let local = self.lanes.socket().local_addr();
        Ok(Headers::new(local, remote, path)?.max_payload(path.mtu()))
    }

    /// Opens the path of a lane that this side dialed.
    ///
    /// # Errors
    /// When the path does not lead to the remote.
    pub(crate) fn open(
        &self,
        lane: &Arc<SealedLane>,
        remote: ScionAddr,
        path: Path,
    ) -> Result<(), HeadersError> {
        lane.set_path(self.lanes.open(remote, path)?);
        Ok(())
    }
}

/// How plain IP is used beside SCION.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainIpOptions {
    /// Where other hosts connect to, which is announced to them; `None` if this host only connects.
    pub listen: Option<SocketAddr>,
}

/// Plain IP beside SCION.
pub(crate) struct PlainIp {
    host: Endhost,
    config: Config,
    /// Where other hosts connect to.
    served: Option<Underlay>,
    /// What this host connects from, by its address.
    from: Mutex<HashMap<IpAddr, Underlay>>,
}

impl PlainIp {
    /// Listens at `listen`, if this host serves. Must be called inside a tokio runtime.
    pub(crate) fn bind(
        listen: Option<SocketAddr>,
        config: Config,
        plane: &Plane,
    ) -> Result<Self, CarrierError> {
        // Packets to a captured prefix must not be captured.
        let host = Endhost::on_plain_ip(Some(MARK));
        let bind = |listen: SocketAddr| {
            Underlay::bind(&host, Some(listen), listen.port(), config.clone(), plane)
        };
        let served = listen.map(bind).transpose()?;
        Ok(Self {
            host,
            config,
            served,
            from: Mutex::default(),
        })
    }

    /// Where other hosts connect to, if this one serves.
    pub(crate) fn served(&self) -> Option<&Underlay> {
        self.served.as_ref()
    }

    /// The address that is announced to other hosts.
    pub(crate) fn announced(&self) -> Option<SocketAddr> {
        on_plain_ip(self.served.as_ref()?.quic.local_addr())
    }

    /// Connects to the host at `to`, from the address that the system's routes give.
    ///
    /// # Errors
    /// Why that fails, for people.
    pub(crate) async fn connect(
        &self,
        to: SocketAddr,
        plane: &Plane,
    ) -> Result<(Connection, Underlay), String> {
        let source = source(to).map_err(|error| format!("no route to {to}: {error}"))?;
        let underlay = self.from(source, plane);
        let underlay = underlay.map_err(|error| error.to_string())?;
        let paths = self.host.paths(self.host.local_as()).await;
        let path = paths.map(|paths| paths.into_iter().next());
        let path = path.map_err(|error| error.to_string())?;
        let path = path.ok_or("there is no plain IP")?;
        let connection = underlay.quic.connect(plain_ip(to), path).await;
        let connection = connection.map_err(|error| error.to_string())?;
        Ok((connection, underlay))
    }

    /// The sockets at this host's address `ip`.
    fn from(&self, ip: IpAddr, plane: &Plane) -> Result<Underlay, CarrierError> {
        if let Some(served) = &self.served
            && served.quic.local_addr().host.ip() == ip
        {
            return Ok(served.clone());
        }
        let mut from = lock(&self.from);
        if let Some(known) = from.get(&ip) {
            return Ok(known.clone());
        }
        let any = SocketAddr::new(ip, 0);
        let bound = Underlay::bind(&self.host, Some(any), 0, self.config.clone(), plane)?;
        from.insert(ip, bound.clone());
        Ok(bound)
    }
}

/// The system's source address for our packets to `to`.
fn source(to: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let probe = UdpSocket::bind((any, 0))?;
    // Packets without it are routed to the shim, if `to` is captured.
    socket::set_mark(&probe, MARK)?;
    probe.connect(to)?;
    Ok(probe.local_addr()?.ip())
}
