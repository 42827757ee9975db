//! The network of the state: its ASes, and those of its links whose both ends are known.

use std::net::SocketAddr;

use hawser_topology::{As, End, IsdAsn, Link, LinkKind, Network, Underlay};

use crate::as_link::AsLinkKind;
use crate::emulation::Emulation;
use crate::link::LinkEnd;
use crate::state::State;

/// Ports that routers deliver to directly, as in scionproto's topology generator.
pub(super) const DISPATCHED_PORTS: (u16, u16) = (31000, 32767);
/// Largest SCION packet inside an AS: what an Ethernet frame of 1500 bytes takes over IPv4.
pub(super) const MTU: u16 = 1500 - 28;

/// One end of a link that can be configured.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownEnd {
    pub isd_as: IsdAsn,
    pub interface: u16,
    pub underlay: SocketAddr,
    /// The largest SCION packet that fits what carries the link from here, if it is known.
    pub mtu: Option<u16>,
}

/// A link both of whose ends are known.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownLink {
    /// The parent's end, if one is a parent.
    pub a: KnownEnd,
    pub b: KnownEnd,
    pub kind: LinkKind,
    pub emulation: Emulation,
}

impl KnownLink {
    /// Largest SCION packet on the link: what both ends can send.
    pub fn mtu(&self) -> u16 {
        let ethernet = largest(self.carrier());
        let found = [self.a.mtu, self.b.mtu].into_iter().flatten();
        found.fold(ethernet, u16::min)
    }

    fn carrier(&self) -> Underlay {
        match self.a.underlay.is_ipv6() {
            true => Underlay::Ipv6,
            false => Underlay::Ipv4,
        }
    }
}

/// Largest SCION packet in an Ethernet frame of 1500 bytes.
pub(crate) fn largest(carrier: Underlay) -> u16 {
    1500 - carrier.headers()
}

fn known(end: &LinkEnd) -> Option<KnownEnd> {
    Some(KnownEnd {
        isd_as: end.isd_as,
        interface: end.interface.filter(|&id| id != 0)?,
        underlay: end.underlay()?,
        mtu: end.mtu,
    })
}

/// All links both of whose ends are known.
pub(super) fn links(state: &State) -> impl Iterator<Item = KnownLink> {
    let core = state.core_links.values().map(|link| {
        let [a, b] = &link.ends;
        (a, b, LinkKind::Core, link.emulation)
    });
    let user = state.links.values();
    let user = user.map(|link| {
        let (a, b) = (&link.attachment_point, &link.user_as);
        (a, b, LinkKind::Child, link.emulation)
    });
    let others = state.as_links.values().map(|link| {
        let ([a, b], kind) = (&link.ends, link.kind);
        let kind = match kind {
            AsLinkKind::Child => LinkKind::Child,
            AsLinkKind::Peer => LinkKind::Peer,
        };
        (a, b, kind, link.emulation)
    });
    core.chain(user)
        .chain(others)
        .filter_map(|(a, b, kind, emulation)| {
            let (a, b) = (known(a)?, known(b)?);
            Some(KnownLink {
                a,
                b,
                kind,
                emulation,
            })
        })
}

/// Whether an AS has a link that can be configured.
pub(super) fn has_link(state: &State, isd_as: IsdAsn) -> bool {
    links(state).any(|link| link.a.isd_as == isd_as || link.b.isd_as == isd_as)
}

/// The network.
pub(super) fn of(state: &State) -> Network {
    let core = state.attachment_points.values();
    let core = core.map(|one| (one.isd_as, true, &one.label));
    let user = state.user_ases.values();
    let user = user.map(|one| (one.isd_as, false, &one.label));
    let ases = core
        .chain(user)
        .filter(|(isd_as, ..)| !isd_as.is_wildcard());
    let end = |end: KnownEnd| End {
        isd_as: end.isd_as,
        router: String::new(),
        id: end.interface,
    };
    Network {
        ases: ases
            .map(|(isd_as, core, label)| As {
                isd_as,
                core,
                voting: core,
                authoritative: core,
                issuing: core,
                cert_issuer: None,
                underlay: Underlay::Ipv4,
                dispatched_ports: DISPATCHED_PORTS,
                mtu: MTU,
                note: Some(label.clone()).filter(|label| !label.is_empty()),
            })
            .collect(),
        links: links(state)
            .map(|link| Link {
                a: end(link.a),
                b: end(link.b),
                kind: link.kind,
                underlay: link.carrier(),
                mtu: link.mtu(),
                shape: link.emulation.shape(),
            })
            .collect(),
    }
}
