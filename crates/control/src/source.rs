//! Reading the control plane of an AS from the folders of its lab.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use hawser_topology::{AsDir, Network, as_folder};

use crate::discovery::announced;
use crate::error::ControlError;
use crate::graph::Graph;
use crate::pki::Pki;
use crate::plane::Plane;
use crate::segment::EntrySource;

/// Reads the network, the hop keys and services of all ASes, the TRCs, and the states of the links (`links.json`
/// of each AS; without that file its links are up and have the shape in the network).
pub(crate) fn load(dir: &AsDir, lifetime: Duration) -> Result<Plane, ControlError> {
    let lab = lab_of(dir)?;
    let network = Network::read_json(&lab.join("network.json"))?;
    let topology = dir.topology()?;
    let mut graph = Graph::new(network);
    let local = graph.find(topology.isd_as);
    let local = local.ok_or(ControlError::NotInNetwork(topology.isd_as))?;
    let mut sources = Vec::new();
    let mut states = BTreeMap::new();
    for r#as in &graph.network.ases {
        let dir = AsDir::new(lab.join(as_folder(r#as.isd_as)));
        sources.push(EntrySource {
            hop_key: dir.hop_key()?,
            services: announced(&dir.topology()?),
        });
        let links = dir.links()?.into_iter();
        states.extend(links.map(|(id, state)| ((r#as.isd_as, id), state)));
    }
    // A link is up if it is up at both ends; its shape is that of end `a`.
    for at in 0..graph.network.links.len() {
        let link = &graph.network.links[at];
        let [a, b] = [&link.a, &link.b].map(|end| states.get(&(end.isd_as, end.id)));
        if let Some(state) = a.or(b) {
            let up = [a, b].into_iter().flatten().all(|state| state.up);
            graph.set_link(at, up, state.shape);
        }
    }
    let mut plane = Plane::new(graph, sources, topology, local, lifetime);
    plane.pki = Some(Pki::open(lab, dir)?);
    Ok(plane)
}

/// The lab's folder, which contains the AS's folder `dir`.
pub(crate) fn lab_of(dir: &AsDir) -> Result<&Path, ControlError> {
    let lab = dir.path().parent().filter(|lab| *lab != Path::new(""));
    lab.ok_or_else(|| ControlError::NoLab(dir.path().to_owned()))
}
