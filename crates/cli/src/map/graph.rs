//! The content of a map: ASes and links.

use hawser_topology::{End, IsdAsn, LinkKind, Network, Shape, format_duration, format_loss};
use serde::Serialize;

use crate::format;

/// A network to draw.
#[derive(Debug, Clone, Serialize)]
pub struct Graph {
    /// The network's name.
    pub name: String,
    /// The network's ASes.
    pub ases: Vec<Node>,
    /// The network's links.
    pub links: Vec<Edge>,
}

/// An AS.
#[derive(Debug, Clone, Serialize)]
pub struct Node {
    /// The AS's number.
    pub isd_as: String,
    /// Whether the AS is a core AS.
    pub core: bool,
    /// The AS's note in the `.topo` file.
    pub note: Option<String>,
    /// The address of the AS's host, empty if unknown.
    pub host: String,
}

/// A link.
#[derive(Debug, Clone, Serialize)]
pub struct Edge {
    /// One end.
    pub a: Tip,
    /// The other end.
    pub b: Tip,
    /// The relation of the two ASes.
    pub kind: LinkKind,
    /// `up`, `down`, or `mute` if its routers do not receive each other's packets.
    pub state: &'static str,
    /// Largest packet, in bytes.
    pub mtu: u16,
    /// Rate, delay, jitter, loss and queue.
    #[serde(flatten)]
    pub shape: Shape,
}

/// An end of a link.
#[derive(Debug, Clone, Serialize)]
pub struct Tip {
    /// The AS.
    pub isd_as: String,
    /// The interface's number in that AS.
    pub interface: u16,
    /// The index of the AS.
    #[serde(skip)]
    pub node: usize,
}

impl Graph {
    /// A network that is not up, with all links shown as up.
    pub fn planned(name: &str, network: &Network) -> Self {
        let ases = network.ases.iter().map(|a| Node {
            isd_as: a.isd_as.to_string(),
            core: a.core,
            note: a.note.clone(),
            host: String::new(),
        });
        let tip = |end: &End| Tip::new(end.isd_as, end.id, network.ases.iter().map(|a| a.isd_as));
        let links = network.links.iter().map(|link| Edge {
            a: tip(&link.a),
            b: tip(&link.b),
            kind: link.kind,
            state: "up",
            mtu: link.mtu,
            shape: link.shape,
        });
        Self {
            name: name.to_owned(),
            ases: ases.collect(),
            links: links.collect(),
        }
    }

    /// `lab default: 7 ASes, 8 links, 1 of them down`.
    pub fn title(&self) -> String {
        let mut title = format!(
            "lab {}: {} ASes, {} links",
            self.name,
            self.ases.len(),
            self.links.len()
        );
        for state in ["down", "mute"] {
            let count = self.links.iter().filter(|l| l.state == state).count();
            if count > 0 {
                title += &format!(", {count} {state}");
            }
        }
        title
    }
}

impl Tip {
    /// An interface of one of `ases`.
    pub fn new(isd_as: IsdAsn, interface: u16, mut ases: impl Iterator<Item = IsdAsn>) -> Self {
        Self {
            isd_as: isd_as.to_string(),
            interface,
            node: ases.position(|other| other == isd_as).unwrap_or_default(),
        }
    }
}

impl Edge {
    /// `10 Mbit/s`.
    pub fn rate(&self) -> Option<String> {
        self.shape.rate.map(format::limit)
    }

    /// `20ms ±2ms`.
    pub fn delay(&self) -> Option<String> {
        let Shape { delay, jitter, .. } = self.shape;
        let shown = format_duration(delay);
        match (delay.is_zero(), jitter.is_zero()) {
            (true, true) => None,
            (_, true) => Some(shown),
            (_, false) => Some(format!("{shown} ±{}", format_duration(jitter))),
        }
    }

    /// `0.1% lost`.
    pub fn loss(&self) -> Option<String> {
        let loss = self.shape.loss;
        (loss > 0.0).then(|| format!("{} lost", format_loss(loss)))
    }
}

#[cfg(test)]
pub mod testing {
    use super::*;

    /// The map of a network that is up.
    pub fn graph(network: &Network) -> Graph {
        let mut graph = Graph::planned("test", network);
        for node in &mut graph.ases {
            node.host = "10.0.1.1".to_owned();
        }
        graph
    }

    /// The networks for tests of maps.
    pub fn graphs() -> Vec<Graph> {
        let ready = Network::ready_names().map(|name| Network::ready(name).unwrap());
        let made =
            [1, 2, 30, 100].map(|ases| Network::parse(&hawser_sim::generate(ases, 1)).unwrap());
        ready.chain(made).map(|network| graph(&network)).collect()
    }
}
