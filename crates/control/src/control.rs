//! The control plane of one AS, before it serves.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::time::Duration;

use hawser_topology::{AsDir, AsTopology, IsdAsn, Network};

use crate::keys::Keys;
use crate::plane::Plane;
use crate::segment::{MAX_LIFETIME, MIN_LIFETIME};
use crate::serve::{Bound, RunError};
use crate::shared::Shared;
use crate::source::{self, OpenError, Source};

/// Where SCION programs look for the daemon when nothing else is said.
pub const DAEMON_ADDRESS: SocketAddr =
    SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 30255));

/// Life of segments when nothing else is said: 64 units of a hop field's `ExpTime`, scionproto's
/// default.
const LIFETIME: Duration = Duration::from_secs(6 * 3600);

/// The control plane of one AS.
pub struct Control {
    source: Source,
    isd_as: IsdAsn,
    pub(crate) daemon: SocketAddr,
    pub(crate) services: Vec<SocketAddr>,
    pub(crate) socket: PathBuf,
}

impl Control {
    /// The control plane of the AS whose folder is `dir`, inside its lab's folder: reads the
    /// network, every AS's key, and the state of the links (`links.json` of each AS; where there is
    /// none, its links are up and as the network says). Segments are signed with the keys in the
    /// ASes' folders, which are read when they are first needed.
    ///
    /// # Errors
    /// When a file is missing or not valid, or they do not fit together.
    pub fn load(dir: &AsDir) -> Result<Self, OpenError> {
        let plane = source::load(dir, LIFETIME)?;
        Ok(Self::with_plane(dir, plane))
    }

    /// As [`Control::load`], but of all files only `topology.json` is read now, the others at the
    /// first request that needs them, which fails if they cannot be. So the cost of starting does
    /// not grow with the network.
    ///
    /// # Errors
    /// When `topology.json` is missing or not valid, or `dir` is in no folder.
    pub fn load_later(dir: &AsDir) -> Result<Self, OpenError> {
        source::lab_of(dir)?;
        let source = Source::Folder {
            dir: dir.clone(),
            lifetime: LIFETIME,
        };
        Ok(Self::new(dir, &dir.topology()?, source))
    }

    /// The control plane of the AS whose folder is `dir`, in a given network with all links up. Of
    /// the folder, `topology.json` is read. The network has no certificates, and its segments no
    /// signatures.
    ///
    /// # Errors
    /// When `topology.json` is missing or not valid, its AS is not in the network, or an AS of the
    /// network has no key.
    pub fn open(dir: &AsDir, network: Network, keys: Keys) -> Result<Self, OpenError> {
        let plane = source::plane(dir.topology()?, network, keys, LIFETIME)?;
        Ok(Self::with_plane(dir, plane))
    }

    fn with_plane(dir: &AsDir, plane: Plane) -> Self {
        let topology = plane.topology.clone();
        Self::new(dir, &topology, Source::Plane(Box::new(plane)))
    }

    #[cfg(test)]
    pub(crate) fn into_source(self) -> Source {
        self.source
    }

    fn new(dir: &AsDir, topology: &AsTopology, source: Source) -> Self {
        Self {
            source,
            isd_as: topology.isd_as,
            daemon: DAEMON_ADDRESS,
            services: topology.control_service.values().copied().collect(),
            socket: dir.control_socket(),
        }
    }

    /// Serves the daemon API on another address than [`DAEMON_ADDRESS`]; port 0 takes a free one.
    pub fn with_daemon_address(mut self, address: SocketAddr) -> Self {
        self.daemon = address;
        self
    }

    /// Serves segment lookups on other addresses than those of `topology.json`; port 0 takes a free
    /// one.
    pub fn with_service_addresses(mut self, addresses: Vec<SocketAddr>) -> Self {
        self.services = addresses;
        self
    }

    /// Makes segments that live for `lifetime`, in whole seconds, instead of 6 hours. They are made
    /// anew after half of it, so a path given out always has the other half left.
    ///
    /// # Errors
    /// When it is shorter than 2 s or longer than 24 h.
    pub fn with_segment_lifetime(mut self, lifetime: Duration) -> Result<Self, OpenError> {
        if !(MIN_LIFETIME..=MAX_LIFETIME).contains(&lifetime) {
            return Err(OpenError::Lifetime(lifetime));
        }
        match &mut self.source {
            Source::Plane(plane) => plane.set_lifetime(lifetime),
            Source::Folder { lifetime: of, .. } => *of = lifetime,
        }
        Ok(self)
    }

    /// Takes all addresses and the live socket.
    ///
    /// # Errors
    /// When one of them cannot be taken.
    pub async fn bind(self) -> Result<Bound, RunError> {
        Bound::new(
            Shared::new(self.source),
            self.isd_as,
            self.daemon,
            &self.services,
            self.socket,
        )
        .await
    }

    /// Serves until `shutdown` is ready or [`live::Request::Stop`] comes.
    ///
    /// [`live::Request::Stop`]: crate::live::Request::Stop
    ///
    /// # Errors
    /// When an address cannot be taken, or serving fails.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
        self.bind().await?.run(shutdown).await
    }
}
