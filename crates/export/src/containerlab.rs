//! Topology files of containerlab: a node for each AS, and a link for each link. With several hosts, each
//! has a file of its own, and links between hosts are VXLANs.
//!
//! Addresses of links are set by `ip` in the nodes, which containerlab calls once the links are there.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hawser_topology::Side;
use serde::Serialize;

use crate::error::ExportError;
use crate::hosts::Host;
use crate::plan::{EndPlan, LinkPlan, Plan};
use crate::segments::{self, part_path};
use crate::tree::Tree;

/// The end of a topology file's name: containerlab looks for it.
const EXTENSION: &str = "clab.yml";
/// UDP port of the VXLANs, containerlab's own default.
const VXLAN_PORT: u16 = 14789;
/// The folder of archives, beside the topology file.
const ARCHIVES: &str = "ases";
/// The folder of what each host gets.
const HOSTS: &str = "hosts";

/// What is exported, and to where.
pub(crate) struct Topologies<'a> {
    pub plan: &'a Plan,
    /// The name of the lab.
    pub name: &'a str,
    pub image: &'a str,
    /// The hosts; none for one machine.
    pub hosts: &'a [Host],
    /// The host of each AS.
    pub placed: &'a [usize],
    /// The parts of the segments.
    pub parts: &'a [Vec<u8>],
}

#[derive(Serialize)]
struct File {
    name: String,
    topology: Topology,
}

#[derive(Serialize)]
struct Topology {
    nodes: BTreeMap<String, Node>,
    links: Vec<Link>,
}

#[derive(Serialize)]
struct Node {
    kind: &'static str,
    image: String,
    privileged: bool,
    #[serde(rename = "cap-add")]
    cap_add: [&'static str; 1],
    entrypoint: &'static str,
    cmd: String,
    binds: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exec: Vec<String>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Link {
    Veth {
        endpoints: [Endpoint; 2],
        mtu: u16,
    },
    Vxlan {
        endpoint: Endpoint,
        remote: IpAddr,
        vni: u32,
        #[serde(rename = "udp-port")]
        udp_port: u16,
        mtu: u16,
    },
}

#[derive(Serialize)]
struct Endpoint {
    node: String,
    interface: String,
}

impl Topologies<'_> {
    /// Adds the topology files to `tree`, with what stands beside each; `archives` are those of the
    /// ASes.
    pub fn add(&self, tree: &mut Tree, archives: &[Vec<u8>]) -> Result<(), ExportError> {
        if self.hosts.is_empty() {
            return self.add_host(tree, archives, None, "");
        }
        for (number, host) in self.hosts.iter().enumerate() {
            let folder = format!("{HOSTS}/{}/", host.name);
            self.add_host(tree, archives, Some(number), &folder)?;
            for (at, part) in self.parts.iter().enumerate() {
                tree.insert(format!("{folder}{}", part_path(at)), part.clone());
            }
        }
        Ok(())
    }

    /// Adds the files of a host, or of the only machine, to `folder`.
    fn add_host(
        &self,
        tree: &mut Tree,
        archives: &[Vec<u8>],
        host: Option<usize>,
        folder: &str,
    ) -> Result<(), ExportError> {
        let is_here = |owner: usize| host.is_none() || self.placed.get(owner).copied() == host;
        let mut nodes = BTreeMap::new();
        for (owner, (as_, archive)) in self.plan.ases.iter().zip(archives).enumerate() {
            if !is_here(owner) {
                continue;
            }
            let file = format!("{ARCHIVES}/{}.tar.gz", as_.name);
            tree.insert_secret(format!("{folder}{file}"), archive.clone());
            nodes.insert(as_.name.clone(), self.node(owner, &file));
        }
        let mut links = Vec::new();
        for (number, link) in (1..).zip(&self.plan.links) {
            match (is_here(link.a.owner), is_here(link.b.owner)) {
                (true, true) => links.push(Link::Veth {
                    endpoints: [&link.a, &link.b].map(|end| self.endpoint(end)),
                    mtu: link.mtu,
                }),
                (true, false) => links.extend(self.vxlan(number, link, Side::A)),
                (false, true) => links.extend(self.vxlan(number, link, Side::B)),
                (false, false) => {}
            }
        }
        let file = File {
            name: self.name.to_owned(),
            topology: Topology { nodes, links },
        };
        let name = format!("{folder}{}.{EXTENSION}", self.name);
        let text = serde_saphyr::to_string(&file);
        let text = text.map_err(|error| ExportError::yaml(&name, error))?;
        tree.insert(name, text);
        Ok(())
    }

    fn node(&self, owner: usize, archive: &str) -> Node {
        let ends = self.plan.links.iter().flat_map(|link| [&link.a, &link.b]);
        let exec = ends.filter(|end| end.owner == owner).map(|end| {
            let length = if end.address.is_ipv4() { 31 } else { 127 };
            // Without detection of duplicates, which would keep it unused for a second.
            let nodad = if end.address.is_ipv4() { "" } else { " nodad" };
            let (address, device) = (end.address, &end.device);
            format!("ip address replace {address}/{length} dev {device}{nodad}")
        });
        Node {
            kind: "linux",
            image: self.image.to_owned(),
            // Limits of links need this; containerlab would give a node all rights of the host.
            privileged: false,
            cap_add: ["NET_ADMIN"],
            entrypoint: "/usr/bin/hawser",
            cmd: "as join /etc/hawser/as.tar.gz --segments /etc/hawser/segments --state /var/lib/hawser/as"
                .to_owned(),
            binds: vec![
                format!("{archive}:/etc/hawser/as.tar.gz:ro"),
                // The folder, so that files that are replaced in it are seen.
                format!("{}:/etc/hawser/segments:ro", segments::FOLDER),
            ],
            exec: exec.collect(),
        }
    }

    fn endpoint(&self, end: &EndPlan) -> Endpoint {
        Endpoint {
            node: self.plan.ases[end.owner].name.clone(),
            interface: end.device.clone(),
        }
    }

    /// The end of a link to another host.
    fn vxlan(&self, vni: u32, link: &LinkPlan, side: Side) -> Option<Link> {
        let far = self.placed.get(link.end(side.other()).owner)?;
        Some(Link::Vxlan {
            endpoint: self.endpoint(link.end(side)),
            remote: self.hosts.get(*far)?.address,
            vni,
            udp_port: VXLAN_PORT,
            mtu: link.mtu,
        })
    }
}

#[cfg(test)]
mod tests;
