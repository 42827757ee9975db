//! Networks for tests: folders like those of a lab, and a router that walks paths hop by hop.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use hawser_rpc::Client;
use hawser_topology::{
    As, AsDir, AsTopology, Bfd, BorderRouter, End, Interface, IsdAsn, Link, LinkAddresses,
    LinkKind, LinkTo, Network, Shape, Side, Underlay, as_folder,
};

use crate::graph::Graph;
use crate::plane::Plane;
use crate::{Control, ControlError};

mod walk;
pub(crate) use self::walk::walk;

pub(crate) fn ia(text: &str) -> IsdAsn {
    text.parse().unwrap()
}

/// A network with a core AS and ASes below it in each of two ISDs, with shortcuts, peering inside
/// an ISD and across, and two links between the ISDs:
///
/// ```text
///   1-ff00:0:110 ===== 1-ff00:0:120 ----- 2-ff00:0:210      core
///        |        \       /   |      \________/  |
///   1-ff00:0:111   1-ff00:0:112      2-ff00:0:211
///        |     \__ __/    |   ~~~~~~~~/    |   \
///   1-ff00:0:113   1-ff00:0:114 ~~~~ 2-ff00:0:212 2-ff00:0:213
/// ```
pub(crate) const TWO_ISDS: &str = r#"
ASes:
  "1-ff00:0:110": {core: true, note: "one"}
  "1-ff00:0:120": {core: true}
  "1-ff00:0:111": {}
  "1-ff00:0:112": {mtu: 1400}
  "1-ff00:0:113": {}
  "1-ff00:0:114": {}
  "2-ff00:0:210": {core: true}
  "2-ff00:0:211": {}
  "2-ff00:0:212": {}
  "2-ff00:0:213": {}
links:
  - {a: "1-ff00:0:110-A#1", b: "1-ff00:0:120#1", linkAtoB: CORE, rate: 10mbit, delay: 5ms}
  - {a: "1-ff00:0:110-B#2", b: "1-ff00:0:120#2", linkAtoB: CORE, delay: 7ms}
  - {a: "1-ff00:0:120#3", b: "2-ff00:0:210#1", linkAtoB: CORE}
  - {a: "1-ff00:0:120#4", b: "2-ff00:0:210#2", linkAtoB: CORE, mtu: 1300}
  - {a: "1-ff00:0:110-A#5", b: "1-ff00:0:111#1", linkAtoB: CHILD}
  - {a: "1-ff00:0:110-B#6", b: "1-ff00:0:112#1", linkAtoB: CHILD}
  - {a: "1-ff00:0:120#5", b: "1-ff00:0:112#2", linkAtoB: CHILD}
  - {a: "1-ff00:0:111#3", b: "1-ff00:0:113#1", linkAtoB: CHILD}
  - {a: "1-ff00:0:111#4", b: "1-ff00:0:114#1", linkAtoB: CHILD}
  - {a: "1-ff00:0:112#4", b: "1-ff00:0:114#2", linkAtoB: CHILD}
  - {a: "2-ff00:0:210#5", b: "2-ff00:0:211#1", linkAtoB: CHILD}
  - {a: "2-ff00:0:211#2", b: "2-ff00:0:212#1", linkAtoB: CHILD}
  - {a: "2-ff00:0:211#3", b: "2-ff00:0:213#1", linkAtoB: CHILD}
  - {a: "1-ff00:0:112#9", b: "2-ff00:0:211#9", linkAtoB: PEER, rate: 2mbit, delay: 3ms}
  - {a: "1-ff00:0:114#9", b: "2-ff00:0:212#9", linkAtoB: PEER}
  - {a: "1-ff00:0:113#8", b: "1-ff00:0:114#8", linkAtoB: PEER}
"#;

/// An AS with default properties.
pub(crate) fn plain_as(isd_as: IsdAsn, core: bool) -> As {
    As {
        isd_as,
        core,
        voting: core,
        authoritative: core,
        issuing: core,
        cert_issuer: None,
        underlay: Underlay::Ipv4,
        dispatched_ports: (31000, 32767),
        mtu: 1472,
        note: None,
    }
}

/// A link without a shape whose two interfaces have the same number.
pub(crate) fn plain_link(ends: [IsdAsn; 2], id: u16, kind: LinkKind) -> Link {
    let [a, b] = ends.map(|isd_as| End {
        isd_as,
        router: String::new(),
        id,
    });
    Link {
        a,
        b,
        kind,
        underlay: Underlay::Ipv4,
        mtu: 1472,
        shape: Shape::default(),
    }
}

/// The hop key of an AS of a [`plane`]: not derived from a master key, so that property tests are
/// fast.
pub(crate) fn hop_key(isd_as: IsdAsn) -> [u8; 16] {
    u128::from(isd_as.to_u64()).to_le_bytes()
}

/// The control plane of an AS without a folder.
pub(crate) fn plane(network: &Network, isd_as: IsdAsn) -> Plane {
    let ases = network.ases.iter();
    let sources = ases.map(|a| hop_key(a.isd_as).into()).collect();
    let graph = Graph::new(network.clone());
    let local = graph.find(isd_as).unwrap();
    let lifetime = Duration::from_secs(6 * 3600);
    Plane::new(graph, sources, topology(network, isd_as), local, lifetime)
}

/// The master key that [`Lab`] gives an AS.
pub(crate) fn master_key(isd_as: IsdAsn) -> [u8; 16] {
    u128::from(isd_as.to_u64()).to_be_bytes()
}

/// A lab's folder with a network, keys and topologies, which is removed when this is dropped.
pub(crate) struct Lab {
    pub folder: tempfile::TempDir,
    pub network: Network,
}

impl Lab {
    pub fn new(network: Network) -> Self {
        let folder = tempfile::tempdir().unwrap();
        network
            .write_json(&folder.path().join("network.json"))
            .unwrap();
        let lab = Self { folder, network };
        for r#as in &lab.network.ases {
            let dir = lab.dir(r#as.isd_as);
            std::fs::create_dir(dir.path()).unwrap();
            dir.write_master_key(&master_key(r#as.isd_as)).unwrap();
            dir.write_topology(&topology(&lab.network, r#as.isd_as))
                .unwrap();
        }
        let roles = lab.network.ases.iter().map(|r#as| hawser_trust::AsRole {
            isd_as: r#as.isd_as,
            core: r#as.core,
            voting: r#as.voting,
            authoritative: r#as.authoritative,
            issuing: r#as.issuing,
            cert_issuer: r#as.cert_issuer,
        });
        let roles: Vec<_> = roles.collect();
        let folder = |isd_as| lab.folder.path().join(as_folder(isd_as));
        hawser_trust::write(&roles, folder).unwrap();
        lab
    }

    pub fn ready(name: &str) -> Self {
        Self::new(Network::ready(name).unwrap())
    }

    pub fn two_isds() -> Self {
        Self::new(Network::parse(TWO_ISDS).unwrap())
    }

    pub fn dir(&self, isd_as: IsdAsn) -> AsDir {
        AsDir::new(self.folder.path().join(as_folder(isd_as)))
    }

    /// A control plane on free ports.
    pub async fn control(&self, isd_as: &str) -> Result<Control, ControlError> {
        let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
        Control::bind_at(&self.dir(ia(isd_as)), None, any, vec![any]).await
    }
}

/// A client of a service on this host.
pub(crate) fn client(address: SocketAddr) -> Client {
    Client::new(&address.to_string(), Duration::from_secs(10)).unwrap()
}

/// `topology.json` of an AS: a border router for each letter.
pub(crate) fn topology(network: &Network, isd_as: IsdAsn) -> AsTopology {
    let number = 1 + network
        .ases
        .iter()
        .position(|a| a.isd_as == isd_as)
        .unwrap();
    let r#as = network.find(isd_as).unwrap();
    let mut topology = AsTopology {
        isd_as,
        mtu: r#as.mtu,
        core: r#as.core,
        dispatched_ports: (31000, 32767),
        control_service: [(
            "cs1".to_owned(),
            format!("10.0.{number}.254:30252").parse().unwrap(),
        )]
        .into(),
        discovery_service: [].into(),
        border_routers: [].into(),
    };
    for (link, side) in network.links_of(isd_as) {
        let (own, far) = (link.end(side), link.end(side.other()));
        let port = 30042
            + own
                .router
                .bytes()
                .next()
                .map_or(0, |letter| u16::from(letter - b'A'));
        topology
            .border_routers
            .entry(format!("br{}", own.router))
            .or_insert_with(|| BorderRouter {
                internal_addr: format!("10.0.{number}.254:{port}").parse().unwrap(),
                interfaces: [].into(),
            })
            .interfaces
            .insert(
                own.id,
                Interface {
                    underlay: LinkAddresses {
                        local: "10.128.0.0:50000".parse().unwrap(),
                        // The loopback device takes more than any link.
                        remote: "127.0.0.1:50000".parse().unwrap(),
                    },
                    isd_as: far.isd_as,
                    remote_id: far.id,
                    link_to: match (link.kind, side) {
                        (LinkKind::Core, _) => LinkTo::Core,
                        (LinkKind::Peer, _) => LinkTo::Peer,
                        (LinkKind::Child, Side::A) => LinkTo::Child,
                        (LinkKind::Child, Side::B) => LinkTo::Parent,
                    },
                    mtu: link.mtu,
                    bfd: Bfd::default(),
                },
            );
    }
    topology
}
