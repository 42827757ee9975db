//! The control plane of one AS, before it serves.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_topology::{AsDir, AsDirError, AsTopology, IsdAsn, LinkState, Network, TopologyError};

use crate::graph::Graph;
use crate::keys::{Keys, as_folder};
use crate::plane::Plane;
use crate::segment::{MAX_LIFETIME, MIN_LIFETIME};
use crate::serve::{Bound, RunError};
use crate::shared::Shared;
use crate::trust::Pki;

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

/// Where the network comes from.
pub(crate) enum Source {
    /// It has been read.
    Plane(Box<Plane>),
    /// It is read from the AS's folder, and its lab's, when it is first needed.
    Folder {
        /// The AS's folder.
        dir: AsDir,
        /// How long segments live.
        lifetime: Duration,
    },
}

/// Why a control plane cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A file of an AS's folder cannot be used.
    #[error(transparent)]
    Folder(#[from] AsDirError),
    /// The TRCs of the AS cannot be used.
    #[error(transparent)]
    Trust(#[from] hawser_trust::LoadError),
    /// The network cannot be read.
    #[error(transparent)]
    Network(#[from] TopologyError),
    /// The folder has no parent.
    #[error("{dir} is not in a lab's folder: name the AS's folder inside it", dir = dir.display())]
    NoLab {
        /// The folder.
        dir: PathBuf,
    },
    /// The network does not have the AS of the folder.
    #[error("the network has no AS {0}: topology.json is of another network")]
    NotInNetwork(IsdAsn),
    /// An AS has no key.
    #[error("there is no hop key of AS {0}: every AS of the network needs one")]
    NoKey(IsdAsn),
    /// A life that segments cannot have.
    #[error("segments cannot live for {0:?}: at least {MIN_LIFETIME:?}, at most {MAX_LIFETIME:?}")]
    Lifetime(Duration),
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
        let lab = lab_of(dir)?;
        let network = Network::read_json(&lab.join("network.json"))?;
        let keys = Keys::read(lab, &network)?;
        let mut states = BTreeMap::new();
        for r#as in &network.ases {
            for (id, state) in read_links(&AsDir::new(as_folder(lab, r#as.isd_as)))? {
                states.insert((r#as.isd_as, id), state);
            }
        }
        let topology = dir.topology()?;
        let mut plane = plane(topology.clone(), network, keys)?;
        plane.pki = Some(Pki::open(lab, dir)?);
        restore(&mut plane, &states);
        Ok(Self::new(dir, &topology, Source::Plane(Box::new(plane))))
    }

    /// As [`Control::load`], but of all files only `topology.json` is read now, the others at the
    /// first request that needs them, which fails if they cannot be. So the cost of starting does
    /// not grow with the network.
    ///
    /// # Errors
    /// When `topology.json` is missing or not valid, or `dir` is in no folder.
    pub fn load_later(dir: &AsDir) -> Result<Self, OpenError> {
        lab_of(dir)?;
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
        let topology = dir.topology()?;
        let plane = plane(topology.clone(), network, keys)?;
        Ok(Self::new(dir, &topology, Source::Plane(Box::new(plane))))
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

impl Source {
    /// Reads the network, if it has not been.
    pub fn plane(self) -> Result<Plane, OpenError> {
        let (dir, lifetime) = match self {
            Self::Plane(plane) => return Ok(*plane),
            Self::Folder { dir, lifetime } => (dir, lifetime),
        };
        Control::load(&dir)?
            .with_segment_lifetime(lifetime)?
            .source
            .plane()
    }
}

/// The lab's folder in which the AS's folder is.
fn lab_of(dir: &AsDir) -> Result<&Path, OpenError> {
    let lab = dir.path().parent().filter(|lab| *lab != Path::new(""));
    lab.ok_or_else(|| OpenError::NoLab {
        dir: dir.path().to_owned(),
    })
}

fn plane(topology: AsTopology, network: Network, keys: Keys) -> Result<Plane, OpenError> {
    let keys = network
        .ases
        .iter()
        .map(|r#as| keys.of(r#as.isd_as).ok_or(OpenError::NoKey(r#as.isd_as)))
        .collect::<Result<_, _>>()?;
    let graph = Graph::new(network);
    let local = graph
        .find(topology.isd_as)
        .ok_or(OpenError::NotInNetwork(topology.isd_as))?;
    Ok(Plane::new(graph, keys, topology, local, LIFETIME))
}

/// A link is up if both ends say so; its shape is that of end `a`.
fn restore(plane: &mut Plane, states: &BTreeMap<(IsdAsn, u16), LinkState>) {
    let graph = &plane.graph;
    let links: Vec<_> = (0..graph.links())
        .filter_map(|at| {
            let link = graph.link(at);
            let [a, b] = [&link.a, &link.b].map(|end| states.get(&(end.isd_as, end.id)));
            let shape = a.or(b)?.shape;
            let up = [a, b].into_iter().flatten().all(|state| state.up);
            Some((at, up, shape))
        })
        .collect();
    for (at, up, shape) in links {
        plane.set_link(at, up, shape);
    }
}

/// The state of an AS's links; nothing where none was ever written.
fn read_links(dir: &AsDir) -> Result<BTreeMap<u16, LinkState>, AsDirError> {
    match dir.links() {
        Err(AsDirError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            Ok(BTreeMap::new())
        }
        links => links,
    }
}
