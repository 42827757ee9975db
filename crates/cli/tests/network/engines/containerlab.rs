//! What containerlab does with a topology file: it starts the containers, makes their links, and runs the
//! commands of each. What it would refuse, these types refuse: fields that its schema does not have.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use hawser_topology::Network;
use serde::Deserialize;
use tempfile::TempDir;

use super::Machines;
use super::docker::Docker;
use crate::image::Made;
use crate::machine::{Machine, export_with, read};

/// The hosts, and their addresses for each other.
const HOSTS: [(&str, &str); 2] = [("first", "192.0.2.1"), ("second", "192.0.2.2")];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    topology: Topology,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Topology {
    nodes: BTreeMap<String, Node>,
    links: Vec<Link>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Node {
    kind: String,
    image: String,
    privileged: bool,
    #[serde(rename = "cap-add")]
    cap_add: Vec<String>,
    entrypoint: String,
    cmd: String,
    binds: Vec<String>,
    #[serde(default)]
    exec: Vec<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Endpoint {
    node: String,
    interface: String,
}

/// Two hosts that are joined by a link, each with a Docker engine.
pub struct Hosts {
    engines: [Docker; 2],
    folder: TempDir,
}

impl Hosts {
    /// The hosts, with the image of the program; says why there are none.
    pub fn start() -> Option<Self> {
        let engines = [Docker::start("first")?, Docker::start("second")?];
        let [first, second] = &engines;
        first.machine.ip(&format!(
            "link add host type veth peer name host netns {}",
            second.machine.file()
        ));
        for (engine, (_, address)) in engines.iter().zip(HOSTS) {
            let machine = &engine.machine;
            machine.ip(&format!("address add {address}/24 dev host"));
            machine.ip("link set host up");
        }
        let made = Made::new();
        // As `lab export` names it.
        let with_ip = made.name().replace("/hawser:", "/hawser-ip:");
        for engine in &engines {
            engine.load(made.archive(), made.name(), &with_ip);
        }
        let folder = tempfile::tempdir().unwrap();
        Some(Self { engines, folder })
    }

    /// Exports a network for the hosts and runs it on them. Returns the machines of the ASes, whose names in
    /// the export are `names`.
    pub fn deploy(&self, network: &str, names: &BTreeMap<String, String>) -> Machines {
        let hosts = self.folder.path().join("hosts.txt");
        let lines = HOSTS.map(|(name, address)| format!("{name} {address}\n"));
        std::fs::write(&hosts, lines.concat()).unwrap();
        let flags = ["--hosts", hosts.to_str().unwrap()];
        export_with(&self.folder, "containerlab", network, &flags);
        let mut machines = BTreeMap::new();
        std::thread::scope(|scope| {
            let hosts = self.engines.iter().zip(self.folders());
            let running: Vec<_> = hosts
                .map(|(engine, folder)| scope.spawn(move || deploy(engine, &folder)))
                .collect();
            for one in running {
                machines.extend(one.join().unwrap());
            }
        });
        let of = |(isd_as, name): (&String, &String)| {
            let machine = machines.remove(name);
            (isd_as.clone(), machine.expect("each AS is on a host"))
        };
        names.iter().map(of).collect()
    }

    /// What each host gets.
    fn folders(&self) -> [PathBuf; 2] {
        HOSTS.map(|(name, _)| self.folder.path().join("out/hosts").join(name))
    }

    /// How many containers run on each host.
    pub fn sizes(&self) -> [usize; 2] {
        let running = |engine: &Docker| engine.run(&["ps", "--quiet"]).lines().count();
        [running(&self.engines[0]), running(&self.engines[1])]
    }

    /// A parent and its child on the first host, and an AS on the other one.
    pub fn neighbours(
        &self,
        network: &str,
        names: &BTreeMap<String, String>,
    ) -> (String, String, String) {
        let [first, second] = self.folders().map(|folder| topology(&folder));
        let network = Network::parse(network).unwrap();
        let is_here = |isd_as: &str| first.topology.nodes.contains_key(&names[isd_as]);
        let mut links = network.links.iter().filter_map(|link| {
            let ends = [&link.a, &link.b].map(|end| end.isd_as.to_string());
            let is_child = link.kind == hawser_topology::LinkKind::Child;
            (is_child && ends.iter().all(|end| is_here(end))).then_some(ends)
        });
        let [near, same] = links.next().expect("some links are within hosts");
        let is_far = |name: &str| second.topology.nodes.contains_key(name);
        let far = names.iter().find(|(_, name)| is_far(name)).unwrap().0;
        (near, same, far.clone())
    }

    /// Takes the link between the hosts down.
    pub fn cut(&self) {
        self.engines[0].machine.ip("link set host down");
    }

    /// Brings the link between the hosts up.
    pub fn join(&self) {
        self.engines[0].machine.ip("link set host up");
    }
}

/// The topology file in a folder.
fn topology(folder: &Path) -> File {
    let value = read(&folder.join("hawser.clab.yml")).remove(0);
    serde_json::from_value(value).unwrap()
}

/// Runs the nodes of a topology file on the engine of its host. Returns their machines, by name.
fn deploy(engine: &Docker, folder: &Path) -> Machines {
    let File { name, topology } = topology(folder);
    let container = |node: &str| format!("clab-{name}-{node}");
    let mut machines = BTreeMap::new();
    for (name, node) in &topology.nodes {
        start(engine, &container(name), name, node, folder);
        machines.insert(name.clone(), engine.container(&container(name)));
    }
    for link in &topology.links {
        join(&engine.machine, &machines, link);
    }
    for (name, node) in &topology.nodes {
        for line in &node.exec {
            let words = line.split_whitespace();
            let container = container(name);
            let exec: Vec<&str> = ["exec", &container].into_iter().chain(words).collect();
            engine.run(&exec);
        }
    }
    machines
}

/// Starts the container of a node. containerlab gives it a network for management too, which no AS uses.
fn start(engine: &Docker, container: &str, name: &str, node: &Node, folder: &Path) {
    assert_eq!(node.kind, "linux");
    let mut args = vec!["run", "--detach", "--name", container, "--hostname", name];
    args.extend(["--network", "none"]);
    assert!(!node.privileged, "{name} has all rights of its host");
    let capabilities = node.cap_add.iter();
    args.extend(capabilities.flat_map(|capability| ["--cap-add", capability]));
    let absolute = |bind: &String| format!("{}/{bind}", folder.display());
    let binds: Vec<String> = node.binds.iter().map(absolute).collect();
    args.extend(binds.iter().flat_map(|bind| ["--volume", bind]));
    args.extend(["--entrypoint", &node.entrypoint, &node.image]);
    args.extend(node.cmd.split_whitespace());
    engine.run(&args);
}

/// Makes a link of nodes of a host.
fn join(host: &Machine, machines: &Machines, link: &Link) {
    let up = |end: &Endpoint, mtu: u16| {
        let device = &end.interface;
        machines[&end.node].ip(&format!("link set {device} mtu {mtu} up"));
    };
    match link {
        Link::Veth { endpoints, mtu } => {
            let [a, b] = endpoints;
            machines[&a.node].ip(&format!(
                "link add {} type veth peer name {} netns {}",
                a.interface,
                b.interface,
                machines[&b.node].file()
            ));
            endpoints.iter().for_each(|end| up(end, *mtu));
        }
        Link::Vxlan {
            endpoint,
            remote,
            vni,
            udp_port,
            mtu,
        } => {
            let device = format!("vx-{vni}");
            host.ip(&format!(
                "link add {device} type vxlan id {vni} remote {remote} dstport {udp_port}"
            ));
            let (name, file) = (&endpoint.interface, machines[&endpoint.node].file());
            host.ip(&format!("link set {device} netns {file} name {name}"));
            up(endpoint, *mtu);
        }
    }
}
