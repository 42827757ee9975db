//! The network as a graph: the links of each AS and their states.

use std::collections::HashMap;

use hawser_topology::{End, IsdAsn, Link, LinkKind, Network, Shape, Side};

/// A network whose links can go down and up and change their shape. ASes and links are identified
/// by their indices in the network.
#[derive(Debug)]
pub(crate) struct Graph {
    /// Only [`Graph::set_link`] changes it.
    pub network: Network,
    up: Vec<bool>,
    index: HashMap<IsdAsn, usize>,
    /// The links of each AS, with the side of the AS.
    links: Vec<Vec<(usize, Side)>>,
}

/// A step over a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// The link.
    pub link: usize,
    /// The AS that the step leads to.
    pub to: usize,
}

/// The kind of links that a segment consists of, in the direction of beaconing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Along {
    /// Links between core ASes, in both directions.
    Core,
    /// Links from parent to child.
    Children,
}

impl Graph {
    /// The graph of a network, with all links up.
    ///
    /// Links to ASes that the network does not list are left out; networks of `.topo` files have no
    /// such links.
    pub fn new(network: Network) -> Self {
        let index: HashMap<_, _> = network
            .ases
            .iter()
            .enumerate()
            .map(|(at, r#as)| (r#as.isd_as, at))
            .collect();
        let mut links = vec![Vec::new(); network.ases.len()];
        for (at, link) in network.links.iter().enumerate() {
            let ends = [Side::A, Side::B].map(|side| index.get(&link.end(side).isd_as));
            if let [Some(&a), Some(&b)] = ends {
                links[a].push((at, Side::A));
                links[b].push((at, Side::B));
            }
        }
        Self {
            up: vec![true; network.links.len()],
            network,
            index,
            links,
        }
    }

    /// The index of the AS with an ISD-AS.
    pub fn find(&self, isd_as: IsdAsn) -> Option<usize> {
        self.index.get(&isd_as).copied()
    }

    /// The ISD-AS of an AS.
    pub fn isd_as(&self, at: usize) -> IsdAsn {
        self.network.ases[at].isd_as
    }

    /// Whether an AS is a core AS.
    pub fn is_core(&self, at: usize) -> bool {
        self.network.ases[at].core
    }

    /// The core ASes, of one ISD or of all.
    pub fn core_ases(&self, isd: Option<u16>) -> Vec<usize> {
        let ases = self.network.ases.iter().enumerate();
        ases.filter(|(_, r#as)| {
            r#as.core && isd.is_none_or(|isd| r#as.isd_as.isd().to_u16() == isd)
        })
        .map(|(at, _)| at)
        .collect()
    }

    /// Sets the state and the shape of a link. Returns whether this changed anything.
    pub fn set_link(&mut self, at: usize, up: bool, shape: Shape) -> bool {
        let changed = self.up[at] != up || self.network.links[at].shape != shape;
        self.up[at] = up;
        self.network.links[at].shape = shape;
        changed
    }

    /// The links that are down.
    pub fn down(&self) -> impl Iterator<Item = &Link> {
        self.network
            .links
            .iter()
            .zip(&self.up)
            .filter_map(|(link, &up)| (!up).then_some(link))
    }

    /// The end of link `link` at AS `of`.
    pub fn end(&self, link: usize, of: usize) -> &End {
        let link = &self.network.links[link];
        if link.a.isd_as == self.network.ases[of].isd_as {
            &link.a
        } else {
            &link.b
        }
    }

    /// All links of an AS, up and down.
    pub fn all(&self, of: usize) -> impl Iterator<Item = usize> {
        self.links[of].iter().map(|&(link, _)| link)
    }

    /// The steps of a beacon from an AS, over links that are up.
    pub fn forward(&self, from: usize, along: Along) -> impl Iterator<Item = Step> {
        self.beacon_steps(from, along, Side::A)
    }

    /// The reversed steps of beacons to an AS, over links that are up.
    pub fn backward(&self, from: usize, along: Along) -> impl Iterator<Item = Step> {
        self.beacon_steps(from, along, Side::B)
    }

    /// The steps from an AS, over links of which it is the end `near` if they are to children.
    fn beacon_steps(&self, from: usize, along: Along, near: Side) -> impl Iterator<Item = Step> {
        self.steps(from, move |kind, side| match along {
            Along::Core => kind == LinkKind::Core,
            Along::Children => kind == LinkKind::Child && side == near,
        })
    }

    /// The steps over the peering links of an AS that are up.
    pub fn peers(&self, of: usize) -> impl Iterator<Item = Step> {
        self.steps(of, |kind, _| kind == LinkKind::Peer)
    }

    fn steps(
        &self,
        from: usize,
        wanted: impl Fn(LinkKind, Side) -> bool,
    ) -> impl Iterator<Item = Step> {
        self.links[from].iter().filter_map(move |&(link, side)| {
            let kind = self.network.links[link].kind;
            if !self.up[link] || !wanted(kind, side) {
                return None;
            }
            let far = &self.network.links[link].end(side.other()).isd_as;
            Some(Step {
                link,
                to: self.index[far],
            })
        })
    }
}
