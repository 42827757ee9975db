//! How a lab goes.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use hawser_router::{Counters, InterfaceCounters};
use hawser_topology::{IsdAsn, LinkKind, LinkState, Shape, Side};
use serde::Serialize;

use crate::error::LabError;
use crate::process::ProcessId;
use crate::protocol::{self, History, LimitState, Reply, Request};
use crate::state::{AsState, Device, Service};
use crate::{Lab, live};

/// How long the supervisor may take, which answers commands one by one.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a lab goes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Its folder, with the ASes' and their logs.
    pub dir: PathBuf,
    /// Whether it runs: if not, nothing of it does, and `down` clears it away.
    pub running: bool,
    /// Whether it has a user namespace of its own.
    pub rootless: bool,
    /// The process that holds it.
    pub supervisor: ProcessStatus,
    /// In the topology's order.
    pub ases: Vec<AsStatus>,
    /// In the topology's order.
    pub links: Vec<LinkStatus>,
}

/// How one process goes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessStatus {
    /// Its number; none when it was never started.
    pub pid: Option<i32>,
    /// Whether it runs.
    pub alive: bool,
    /// Its resident memory in bytes, parts shared with others included.
    pub resident: Option<u64>,
    /// How it ended last, if it has: `signal: 9 (SIGKILL)`.
    pub ended: Option<String>,
    /// How often the supervisor has started it again after it ended.
    pub restarts: u32,
    /// Seconds until the supervisor starts it again; None while it runs.
    pub restart_in: Option<f64>,
    /// Whether the lab runs it; if not, the user does: also where the user has started one in the
    /// place of one that ended.
    pub ours: bool,
}

impl ProcessStatus {
    /// Whether the lab should be running it, and it does not.
    pub fn is_dead(&self) -> bool {
        self.ours && !self.alive
    }
}

/// How a border router goes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RouterStatus {
    /// Its name in `topology.json`.
    pub name: String,
    /// Its process.
    #[serde(flatten)]
    pub process: ProcessStatus,
    /// Packets that it did not pass on, by reason; none when it does not answer.
    pub drops: Option<BTreeMap<String, u64>>,
    /// Whether it hears the other routers of its AS, by their names; none when it does not answer.
    pub hears: Option<BTreeMap<String, bool>>,
}

/// How an AS goes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AsStatus {
    /// The AS.
    pub isd_as: IsdAsn,
    /// What the topology says of it.
    pub note: Option<String>,
    /// Whether it is a core AS.
    pub core: bool,
    /// The address of its host, as SCION has it.
    pub host: IpAddr,
    /// Its border routers.
    pub routers: Vec<RouterStatus>,
    /// Its control service and daemon.
    pub control: ProcessStatus,
}

impl AsStatus {
    /// All its processes.
    pub fn processes(&self) -> impl Iterator<Item = &ProcessStatus> {
        let routers = self.routers.iter().map(|router| &router.process);
        routers.chain([&self.control])
    }
}

/// How a link goes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkStatus {
    /// One end.
    pub a: EndStatus,
    /// The other.
    pub b: EndStatus,
    /// What it is in SCION's routing.
    pub kind: LinkKind,
    /// Largest SCION packet on it, in bytes.
    pub mtu: u16,
    /// Whether packets pass.
    pub up: bool,
    /// Rate, delay, jitter, loss and queue.
    pub shape: Shape,
}

/// How one end of a link goes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EndStatus {
    /// The AS.
    pub isd_as: IsdAsn,
    /// The interface's number in it.
    pub id: u16,
    /// The device in the AS's namespace.
    pub device: String,
    /// Its address there, as the border router has it.
    pub address: IpAddr,
    /// What the router counts; none when it does not answer.
    pub counters: Option<InterfaceCounters>,
    /// Whether the router hears the one at the other end (BFD); none when it does not answer, or
    /// does not listen for it.
    pub hears: Option<bool>,
    /// The limit on what this end sends, as the kernel has it.
    pub limit: Option<LimitState>,
}

impl Lab {
    /// How the lab goes. What does not answer is reported dead or left out.
    ///
    /// # Errors
    /// When its files cannot be read.
    pub fn status(&self) -> Result<Status, LabError> {
        let state = self.dir.read_state()?;
        let network = self.dir.read_network()?;
        let running = state.is_running();
        let histories = match running.then(|| self.ask(&Request::Services)) {
            Some(Some(Reply::Services(histories))) => histories,
            _ => Vec::new(),
        };
        let limits = match running.then(|| self.ask(&Request::Limits)) {
            Some(Some(Reply::Limits(limits))) => limits,
            _ => Vec::new(),
        };
        // For each AS, of each of its routers.
        let counters: Vec<Vec<Option<Counters>>> = state
            .ases
            .iter()
            .map(|as_| {
                let routers = 0..as_.routers.len();
                routers
                    .map(|router| running.then(|| self.counters(as_, router))?)
                    .collect()
            })
            .collect();

        let of_this_boot = state.is_of_this_boot().unwrap_or(false);
        let ases = (0..)
            .zip(state.ases.iter().zip(&network.ases))
            .map(|(owner, (at, as_))| {
                let process = |process, service| {
                    let history = histories
                        .iter()
                        .find(|h| h.owner == owner && h.service == service);
                    let ours = at.services().contains(&service);
                    let status = process_status(process, ours, of_this_boot, history);
                    match status.alive || !running {
                        true => status,
                        false => self.by_hand(at, service).unwrap_or(status),
                    }
                };
                let routers = at.routers.iter().zip(&counters[owner]);
                AsStatus {
                    isd_as: as_.isd_as,
                    note: as_.note.clone(),
                    core: as_.core,
                    host: at.host,
                    routers: (0..)
                        .zip(routers)
                        .map(|(i, (router, counters))| RouterStatus {
                            name: router.name.clone(),
                            process: process(router.process, Service::Router(i)),
                            drops: counters.as_ref().map(|c| c.drops.clone()),
                            hears: counters.as_ref().map(|c| siblings(at, c)),
                        })
                        .collect(),
                    control: process(at.control, Service::Control),
                }
            })
            .collect();
        let mut links = Vec::with_capacity(network.links.len());
        for (i, link) in network.links.iter().enumerate() {
            let end = |side: Side, device: &Device| {
                let end = link.end(side);
                let mut routers = counters[device.owner].iter().flatten();
                // Only the router that has the interface counts it.
                let router = routers.find(|c| c.interfaces.contains_key(&end.id));
                EndStatus {
                    isd_as: end.isd_as,
                    id: end.id,
                    device: device.name.clone(),
                    address: device.address,
                    counters: router.and_then(|c| c.interfaces.get(&end.id).copied()),
                    hears: router.and_then(|c| c.bfd.get(&end.id.to_string()).copied()),
                    limit: limits.get(i).and_then(|ends| match side {
                        Side::A => ends[0],
                        Side::B => ends[1],
                    }),
                }
            };
            let devices = &state.links[i];
            let folder = &state.ases[devices.a.owner].folder;
            let at_a: BTreeMap<u16, LinkState> = self.dir.as_dir(folder).links()?;
            links.push(LinkStatus {
                a: end(Side::A, &devices.a),
                b: end(Side::B, &devices.b),
                kind: link.kind,
                mtu: link.mtu,
                up: at_a.get(&link.a.id).is_none_or(|state| state.up),
                shape: link.shape,
            });
        }
        let supervisor = process_status(Some(state.supervisor), true, running, None);
        Ok(Status {
            name: self.name.clone(),
            dir: self.dir.path().to_owned(),
            running,
            rootless: state.rootless,
            supervisor,
            ases,
            links,
        })
    }

    /// The process that the user has started for a service, if it listens on the service's socket.
    fn by_hand(&self, as_: &AsState, service: Service) -> Option<ProcessStatus> {
        let dir = self.dir.as_dir(&as_.folder);
        let socket = match service {
            Service::Router(index) => as_.router_socket(&dir, index),
            Service::Control => dir.control_socket(),
        };
        let process = live::listener(&socket)?;
        Some(process_status(Some(process), false, true, None))
    }

    fn ask(&self, request: &Request) -> Option<Reply> {
        match protocol::call(&self.dir.socket(), request, PATIENCE) {
            Ok((reply, _)) => Some(reply),
            Err(error) => {
                tracing::warn!("{error}");
                None
            }
        }
    }

    fn counters(&self, as_: &AsState, router: usize) -> Option<Counters> {
        use hawser_router::live::{Reply, Request, call};
        let socket = as_.router_socket(&self.dir.as_dir(&as_.folder), router);
        match call(&socket, &Request::Counters) {
            Ok(Reply::Counters(counters)) => Some(counters),
            Ok(_) => None,
            Err(error) => {
                tracing::debug!("{error}");
                None
            }
        }
    }
}

/// What a router says of the other routers of its AS.
fn siblings(as_: &AsState, counters: &Counters) -> BTreeMap<String, bool> {
    let names = as_.routers.iter().map(|router| &router.name);
    names
        .filter_map(|name| Some((name.clone(), *counters.bfd.get(name)?)))
        .collect()
}

fn process_status(
    process: Option<ProcessId>,
    ours: bool,
    of_this_boot: bool,
    history: Option<&History>,
) -> ProcessStatus {
    let alive = process.filter(|p| of_this_boot && p.is_alive());
    ProcessStatus {
        pid: process.map(|p| p.pid),
        alive: alive.is_some(),
        resident: alive.and_then(|p| p.resident()),
        ended: history.map(|h| h.ended.clone()),
        restarts: history.map_or(0, |h| h.restarts),
        restart_in: history.and_then(|h| h.restart_in.map(|time| time.as_secs_f64())),
        ours,
    }
}
