//! The status of a lab.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use hawser_router::{Counters, InterfaceCounters};
use hawser_topology::{End, IsdAsn, LinkKind, Shape};
use serde::Serialize;

use crate::emulator::{self, PlainIp};
use crate::error::LabError;
use crate::plan::{EndPlan, LinkId, LinkPlan};
use crate::process::ProcessId;
use crate::protocol::{self, History, LimitState, Reply, Request};
use crate::state::{AsState, RouterState, Service};
use crate::{Lab, live};

/// Longest wait for the supervisor, which answers commands one by one.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The status of a lab.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Its folder, which contains the folders of the ASes and the logs.
    pub dir: PathBuf,
    /// Whether it runs: if not, none of its processes run, and `down` removes its remains.
    pub running: bool,
    /// Whether it has a separate user namespace.
    pub rootless: bool,
    /// Whether every packet crosses its devices by itself (`hawser lab up --no-offload`).
    pub no_offload: bool,
    /// Whether its border routers refuse packets above the MTU of a link (`hawser lab up
    /// --enforce-mtu`).
    pub enforce_mtu: bool,
    /// The process that keeps the lab's namespaces open.
    pub supervisor: ProcessStatus,
    /// In the topology's order.
    pub ases: Vec<AsStatus>,
    /// In the topology's order.
    pub links: Vec<LinkStatus>,
}

/// The status of one process.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessStatus {
    /// Its number; `None` if it was never started.
    pub pid: Option<i32>,
    /// Whether it runs.
    pub alive: bool,
    /// Its resident memory in bytes, including memory shared with other processes.
    pub resident: Option<u64>,
    /// How it ended the last time, if it has: for example `signal: 9 (SIGKILL)`.
    pub ended: Option<String>,
    /// Number of restarts by the supervisor.
    pub restarts: u32,
    /// Seconds until the supervisor restarts it; `None` while it runs.
    pub restart_in: Option<f64>,
    /// Whether the lab runs it; if not, the user runs it, perhaps in place of a process of the lab
    /// that has ended.
    pub ours: bool,
}

impl ProcessStatus {
    /// Whether the lab runs it, but it has ended.
    pub fn is_dead(&self) -> bool {
        self.ours && !self.alive
    }
}

/// The status of a border router.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RouterStatus {
    /// Its name in `topology.json`.
    pub name: String,
    /// Its process.
    #[serde(flatten)]
    pub process: ProcessStatus,
    /// Number of dropped packets, by reason; `None` if the router does not answer.
    pub drops: Option<BTreeMap<String, u64>>,
    /// Whether its BFD sessions with the other routers of its AS are up, by their names; `None` if
    /// it does not answer.
    pub bfd_up: Option<BTreeMap<String, bool>>,
}

/// The status of an AS.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AsStatus {
    /// The AS.
    pub isd_as: IsdAsn,
    /// Its note in the topology.
    pub note: Option<String>,
    /// Whether it is a core AS.
    pub core: bool,
    /// The SCION address of its host.
    pub host: IpAddr,
    /// Its border routers.
    pub routers: Vec<RouterStatus>,
    /// Its control service and daemon.
    pub control: ProcessStatus,
    /// What gives plain IP the delay, jitter and loss of links; `None` if no link of the AS has, or
    /// had, any.
    pub emulator: Option<ProcessStatus>,
    /// Hosts that were added.
    pub hosts: Vec<HostStatus>,
}

/// The status of a host that was added to an AS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostStatus {
    /// Its name.
    pub name: String,
    /// Its SCION address.
    pub address: IpAddr,
    /// Whether it is a network namespace of another program (`hawser lab attach`).
    pub guest: bool,
    /// Whether its namespace has ended, as that of a container does with it.
    pub ended: bool,
}

impl AsStatus {
    /// All its processes.
    pub fn processes(&self) -> impl Iterator<Item = &ProcessStatus> {
        let routers = self.routers.iter().map(|router| &router.process);
        routers.chain([&self.control]).chain(&self.emulator)
    }
}

/// The status of a link.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkStatus {
    /// The first end.
    pub a: EndStatus,
    /// The second end.
    pub b: EndStatus,
    /// Its kind in SCION's routing.
    pub kind: LinkKind,
    /// Largest SCION packet on the link, in bytes.
    pub mtu: u16,
    /// Whether the link is up.
    pub up: bool,
    /// Rate, delay, jitter, loss and queue.
    pub shape: Shape,
}

/// The status of one end of a link.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EndStatus {
    /// The AS.
    pub isd_as: IsdAsn,
    /// The number of the interface in the AS.
    pub id: u16,
    /// The device in the AS's namespace.
    pub device: String,
    /// Its underlay address.
    pub address: IpAddr,
    /// The router's counters; `None` if it does not answer.
    pub counters: Option<InterfaceCounters>,
    /// Whether the BFD session with the router at the other end is up; `None` if the router does
    /// not answer, or has no session.
    pub bfd_up: Option<bool>,
    /// Whether the link has carried nothing for a while, so that BFD sends one packet a second; `None` as
    /// above.
    pub bfd_at_rest: Option<bool>,
    /// The limit on the traffic that this end sends, read from the kernel.
    pub limit: Option<LimitState>,
    /// Plain IP that this end sends; `None` if the link never had delay, jitter or loss, or the
    /// emulator of the AS does not answer.
    pub plain_ip: Option<PlainIp>,
}

impl Lab {
    /// The status of the lab. Processes that do not answer are reported as ended, or their values
    /// are left out.
    ///
    /// # Errors
    /// When the lab's files cannot be read.
    pub fn status(&self) -> Result<Status, LabError> {
        let state = self.dir.read_state()?;
        let network = self.dir.read_network()?;
        let settings = self.dir.read_settings()?;
        let running = state.is_running();
        let histories = match running.then(|| self.ask(&Request::Services)) {
            Some(Some(Reply::Services(histories))) => histories,
            _ => Vec::new(),
        };
        let limits = match running.then(|| self.ask(&Request::Limits)) {
            Some(Some(Reply::Limits(limits))) => limits.into_iter().collect(),
            _ => BTreeMap::new(),
        };
        let has_hosts = state.ases.iter().any(|as_| !as_.hosts.is_empty());
        let ended = match (running && has_hosts).then(|| self.ask(&Request::EndedHosts)) {
            Some(Some(Reply::EndedHosts(ended))) => ended,
            _ => Vec::new(),
        };
        // The counters of each router of each AS.
        let counters = state.ases.iter().map(|as_| {
            let routers = 0..as_.routers.len();
            let counters = routers.map(|router| running.then(|| self.counters(as_, router))?);
            counters.collect()
        });
        let counters: Vec<Vec<Option<Counters>>> = counters.collect();

        let of_this_boot = state.is_of_this_boot().unwrap_or(false);
        let mut ases = Vec::with_capacity(state.ases.len());
        for as_ in &network.ases {
            // A lab that is being changed may lack it.
            let Some(owner) = state.find(as_.isd_as) else {
                continue;
            };
            let at = &state.ases[owner];
            let process = |process, service| {
                let is_of = |h: &&History| h.isd_as == as_.isd_as && h.service == service;
                let history = histories.iter().find(is_of);
                let ours = at.services().contains(&service);
                let status = process_status(process, ours, of_this_boot, history);
                match status.alive || !running {
                    true => status,
                    false => self.by_hand(at, service).unwrap_or(status),
                }
            };
            let routers = at.routers.iter().zip(&counters[owner]).enumerate();
            let router = |(i, (router, counters)): (usize, (&RouterState, &Option<Counters>))| {
                RouterStatus {
                    name: router.name.clone(),
                    process: process(router.process, Service::Router(i)),
                    drops: counters.as_ref().map(|c| c.drops.clone()),
                    bfd_up: counters.as_ref().map(|c| siblings(at, c)),
                }
            };
            ases.push(AsStatus {
                isd_as: as_.isd_as,
                note: as_.note.clone(),
                core: as_.core,
                host: at.host,
                routers: routers.map(router).collect(),
                control: process(at.control, Service::Control),
                emulator: (at.emulates).then(|| process(at.emulator, Service::Emulator)),
                hosts: (at.hosts.iter())
                    .map(|host| HostStatus {
                        name: host.name.clone(),
                        address: host.address,
                        guest: host.is_guest,
                        ended: !running || ended.contains(&(at.isd_as, host.name.clone())),
                    })
                    .collect(),
            });
        }
        let plain_ip = state.ases.iter();
        let plain_ip: Vec<_> = plain_ip.map(|as_| self.plain_ip(as_, running)).collect();
        let mut links = Vec::with_capacity(network.links.len());
        let known: BTreeMap<LinkId, &LinkPlan> =
            state.links.iter().map(|link| (link.id(), link)).collect();
        for link in &network.links {
            let id = LinkId::of(link);
            let Some(devices) = known.get(&id) else {
                continue;
            };
            let limits = limits.get(&id).copied().unwrap_or_default();
            let end = |end: &End, device: &EndPlan, limit| {
                let owner = state.find(device.isd_as);
                let of_as = owner.and_then(|owner| counters.get(owner));
                let mut routers = of_as.into_iter().flatten().flatten();
                // Only the router with the interface has its counters.
                let router = routers.find(|c| c.interfaces.contains_key(&end.id));
                EndStatus {
                    isd_as: end.isd_as,
                    id: end.id,
                    device: device.device.clone(),
                    address: device.underlay(),
                    counters: router.and_then(|c| c.interfaces.get(&end.id).copied()),
                    bfd_up: router.and_then(|c| live::session(c, end.id)),
                    bfd_at_rest: router.and_then(|c| live::at_rest(c, end.id)),
                    limit,
                    plain_ip: owner.and_then(|owner| plain_ip[owner].get(&end.id).copied()),
                }
            };
            let states = self.dir.as_dir(link.a.isd_as).links()?;
            links.push(LinkStatus {
                a: end(&link.a, &devices.a, limits[0]),
                b: end(&link.b, &devices.b, limits[1]),
                kind: link.kind,
                mtu: link.mtu,
                up: states.get(&link.a.id).is_none_or(|state| state.up),
                shape: link.shape,
            });
        }
        Ok(Status {
            name: self.name.clone(),
            dir: self.dir.path().to_owned(),
            running,
            rootless: state.rootless,
            no_offload: settings.no_offload,
            enforce_mtu: settings.enforce_mtu,
            supervisor: process_status(Some(state.supervisor), true, running, None),
            ases,
            links,
        })
    }

    /// The process that the user has started for a service; `None` if no process listens on the
    /// service's socket.
    fn by_hand(&self, as_: &AsState, service: Service) -> Option<ProcessStatus> {
        let process = live::listener(&as_.socket(&self.dir.as_dir(as_.isd_as), service))?;
        Some(process_status(Some(process), false, true, None))
    }

    fn ask(&self, request: &Request) -> Option<Reply> {
        let reply = protocol::call(&self.dir.socket(), request, TIMEOUT);
        let logged = reply.inspect_err(|error| tracing::warn!("{error}"));
        logged.ok().map(|(reply, _)| reply)
    }

    /// The counters of an AS's emulator, by interface.
    fn plain_ip(&self, as_: &AsState, running: bool) -> BTreeMap<u16, PlainIp> {
        if !running || !as_.emulates {
            return BTreeMap::new();
        }
        let socket = self.dir.as_dir(as_.isd_as).emulator_socket();
        match emulator::call(&socket, &emulator::Request::Counters) {
            Ok(emulator::Reply::Counters(counters)) => counters,
            other => {
                tracing::debug!("emulator of {}: {other:?}", as_.isd_as);
                BTreeMap::new()
            }
        }
    }

    fn counters(&self, as_: &AsState, router: usize) -> Option<Counters> {
        let dir = self.dir.as_dir(as_.isd_as);
        let counters = live::counters(&as_.socket(&dir, Service::Router(router)));
        counters
            .inspect_err(|error| tracing::debug!("{error}"))
            .ok()
    }
}

/// The state of a router's BFD sessions with the other routers of its AS.
fn siblings(as_: &AsState, counters: &Counters) -> BTreeMap<String, bool> {
    let names = as_.routers.iter().map(|router| &router.name);
    let session = |name: &String| Some((name.clone(), *counters.bfd.get(name)?));
    names.filter_map(session).collect()
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
