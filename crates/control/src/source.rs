//! The network that a control plane is made of: read at once, or when it is first needed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_topology::{AsDir, AsTopology, FileError, IsdAsn, LinkState, Network};

use crate::graph::Graph;
use crate::keys::{Keys, as_folder};
use crate::pki::Pki;
use crate::plane::Plane;
use crate::segment::{MAX_LIFETIME, MIN_LIFETIME};

/// The network, read or to be read.
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
    /// The network, or a file of an AS's folder, cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The TRCs of the AS cannot be used.
    #[error(transparent)]
    Trust(#[from] hawser_trust::LoadError),
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

impl Source {
    /// The plane; reads the network if that has not been done.
    pub fn plane(self) -> Result<Plane, OpenError> {
        match self {
            Self::Plane(plane) => Ok(*plane),
            Self::Folder { dir, lifetime } => load(&dir, lifetime),
        }
    }
}

/// Reads the network, every AS's key and the state of the links.
pub(crate) fn load(dir: &AsDir, lifetime: Duration) -> Result<Plane, OpenError> {
    let lab = lab_of(dir)?;
    let network = Network::read_json(&lab.join("network.json"))?;
    let keys = Keys::read(lab, &network)?;
    let mut states = BTreeMap::new();
    for r#as in &network.ases {
        for (id, state) in AsDir::new(as_folder(lab, r#as.isd_as)).links()? {
            states.insert((r#as.isd_as, id), state);
        }
    }
    let mut plane = plane(dir.topology()?, network, keys, lifetime)?;
    plane.pki = Some(Pki::open(lab, dir)?);
    restore(&mut plane, &states);
    Ok(plane)
}

/// The lab's folder, which contains the AS's folder `dir`.
pub(crate) fn lab_of(dir: &AsDir) -> Result<&Path, OpenError> {
    let lab = dir.path().parent().filter(|lab| *lab != Path::new(""));
    lab.ok_or_else(|| OpenError::NoLab {
        dir: dir.path().to_owned(),
    })
}

/// The plane of a network with all links up.
pub(crate) fn plane(
    topology: AsTopology,
    network: Network,
    keys: Keys,
    lifetime: Duration,
) -> Result<Plane, OpenError> {
    let keys = network
        .ases
        .iter()
        .map(|r#as| keys.of(r#as.isd_as).ok_or(OpenError::NoKey(r#as.isd_as)))
        .collect::<Result<_, _>>()?;
    let graph = Graph::new(network);
    let local = graph
        .find(topology.isd_as)
        .ok_or(OpenError::NotInNetwork(topology.isd_as))?;
    Ok(Plane::new(graph, keys, topology, local, lifetime))
}

/// Applies the ASes' states of links: a link is up if both ends say so; its shape is that of end
/// `a`.
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
