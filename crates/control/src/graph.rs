//! The network as a graph: the links of each AS, and which are up.

use std::collections::HashMap;

use hawser_topology::{End, IsdAsn, Link, LinkKind, Network, Shape, Side};

/// A network whose links can go down and up and change their shape. ASes and links are named by
/// their indices in the network.
#[derive(Debug)]
pub(crate) struct Graph {
    /// Changed by [`Graph::set_link`] only.
    pub network: Network,
    up: Vec<bool>,
    index: HashMap<IsdAsn, usize>,
    /// The links of each AS, with its side of them.
    links: Vec<Vec<(usize, Side)>>,
}

/// A step over a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// The link.
    pub link: usize,
    /// The AS it leads to.
    pub to: usize,
}

/// Which links a segment is made of, in the direction of beaconing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Along {
    /// Links between core ASes, in both directions.
    Core,
    /// Links from parent to child.
    Children,
}

impl Graph {
    /// The graph of a network, every link up.
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

    /// The AS with an ISD-AS.
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

    /// Takes a link down or up and gives it a shape. Returns whether anything changed.
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

    /// An AS's own end of one of its links.
    pub fn end(&self, link: usize, of: usize) -> &End {
        let link = &self.network.links[link];
        if link.a.isd_as == self.network.ases[of].isd_as {
            &link.a
        } else {
            &link.b
        }
    }

    /// The links of an AS, also those that are down.
    pub fn all(&self, of: usize) -> impl Iterator<Item = usize> {
        self.links[of].iter().map(|&(link, _)| link)
    }

    /// The steps that a beacon can take from an AS, over links that are up.
    pub fn forward(&self, from: usize, along: Along) -> impl Iterator<Item = Step> {
        self.beacon_steps(from, along, Side::A)
    }

    /// The steps by which a beacon can have come to an AS, reversed.
    pub fn backward(&self, from: usize, along: Along) -> impl Iterator<Item = Step> {
        self.beacon_steps(from, along, Side::B)
    }

    /// The steps from an AS, which is at `near` of links to children.
    fn beacon_steps(&self, from: usize, along: Along, near: Side) -> impl Iterator<Item = Step> {
        self.steps(from, move |kind, side| match along {
            Along::Core => kind == LinkKind::Core,
            Along::Children => kind == LinkKind::Child && side == near,
        })
    }

    /// The peering links of an AS that are up.
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
