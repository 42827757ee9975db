//! The settings, processes and namespaces of a lab.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use hawser_kernel::namespace::NetNsId;
use hawser_topology::{AsDir, IsdAsn, Side};
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::plan::{AddedPlan, AsPlan, LinkPlan, Plan, RouterPlan};
use crate::process::{self, ProcessId};

/// The settings of a lab that are not part of its network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// ASes whose border routers the user runs.
    pub no_router: Vec<IsdAsn>,
    /// ASes whose control service the user runs.
    pub no_control: Vec<IsdAsn>,
    /// Lifetime of path segments; `None` for the control service's default.
    pub segment_lifetime: Option<Duration>,
    /// The lab ends with this process; `None` for a lab without an owner.
    #[serde(default)]
    pub owner: Option<ProcessId>,
    /// Whether the devices of the lab have no segmentation and receive offloads.
    #[serde(default)]
    pub no_offload: bool,
    /// Whether border routers refuse packets above the announced MTU of a link.
    #[serde(default)]
    pub enforce_mtu: bool,
    /// Whether hosts of ASes without a control service of ours answer no echo requests.
    #[serde(default)]
    pub no_echo: bool,
}

/// A service of an AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Service {
    /// The border router at this index of [`AsState::routers`].
    Router(usize),
    Control,
    /// What gives plain IP the delay, jitter and loss of links.
    Emulator,
}

impl Service {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Router(_) => "router",
            Self::Control => "control",
            Self::Emulator => "emulator",
        }
    }

    /// The arguments that run it, before the folder of its AS.
    pub fn command(self) -> [&'static str; 2] {
        match self {
            Self::Emulator => ["internal", self.name()],
            Self::Router(_) | Self::Control => [self.name(), "run"],
        }
    }
}

/// The processes, namespaces and devices of a lab. The supervisor writes them while the lab comes
/// up, so that cleaning up is possible after a crash at any point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LabState {
    /// The boot to which process and namespace numbers belong.
    pub boot_id: String,
    pub supervisor: ProcessId,
    /// Whether the lab has a separate user namespace.
    pub rootless: bool,
    /// In the order of the network, unless the lab is being changed.
    pub ases: Vec<AsState>,
    /// In the order of the network, unless the lab is being changed.
    pub links: Vec<LinkPlan>,
}

/// The processes and the namespace of an AS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AsState {
    pub isd_as: IsdAsn,
    /// The SCION address of its host.
    pub host: IpAddr,
    pub net_ns: Option<NetNsId>,
    /// The border routers, at least one.
    pub routers: Vec<RouterState>,
    /// Whether the user runs the routers.
    pub no_router: bool,
    pub control: Option<ProcessId>,
    /// Whether the user runs the control service.
    pub no_control: bool,
    pub emulator: Option<ProcessId>,
    /// Whether a link of the AS has, or once had, delay, jitter or loss.
    pub emulates: bool,
    /// Hosts that were added, beside the AS's own.
    #[serde(default)]
    pub hosts: Vec<HostState>,
    /// Where the daemon answers added hosts; `None` in labs of earlier versions.
    #[serde(default)]
    pub daemon: Option<SocketAddr>,
}

/// A host that was added to an AS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostState {
    /// Unique in its AS.
    pub name: String,
    /// Its address follows from this number, from 0.
    pub number: u32,
    /// The SCION address.
    pub address: IpAddr,
    pub net_ns: NetNsId,
    /// Whether its namespace is that of another program, as of a container: the lab ends nothing in it.
    pub is_guest: bool,
}

/// A border router.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RouterState {
    pub name: String,
    pub process: Option<ProcessId>,
}

impl AsState {
    /// The state of an AS before its services are started.
    pub fn new(plan: &AsPlan, settings: &Settings) -> Self {
        let router = |router: &RouterPlan| RouterState {
            name: router.name.clone(),
            process: None,
        };
        Self {
            isd_as: plan.isd_as,
            host: plan.scion_host(),
            net_ns: None,
            routers: plan.routers.iter().map(router).collect(),
            no_router: settings.no_router.contains(&plan.isd_as),
            control: None,
            no_control: settings.no_control.contains(&plan.isd_as),
            emulator: None,
            emulates: plan.links.values().any(|link| link.shape.is_emulated()),
            hosts: Vec::new(),
            daemon: Some(AddedPlan::daemon_of(plan)),
        }
    }

    /// The services of the AS that the lab runs.
    pub fn services(&self) -> Vec<Service> {
        let routers = match self.no_router {
            true => 0,
            false => self.routers.len(),
        };
        let control = (!self.no_control).then_some(Service::Control);
        let emulator = self.emulates.then_some(Service::Emulator);
        let routers = (0..routers).map(Service::Router);
        routers.chain(control).chain(emulator).collect()
    }

    /// The namespaces of added hosts that the lab has made.
    pub fn made_hosts(&self) -> impl Iterator<Item = NetNsId> {
        let made = self.hosts.iter().filter(|host| !host.is_guest);
        made.map(|host| host.net_ns)
    }

    pub fn process_mut(&mut self, service: Service) -> &mut Option<ProcessId> {
        match service {
            Service::Router(index) => &mut self.routers[index].process,
            Service::Control => &mut self.control,
            Service::Emulator => &mut self.emulator,
        }
    }

    /// The name of a router of several; `None` for the only router of its AS, and for other
    /// services.
    pub fn router_id(&self, service: Service) -> Option<&str> {
        match service {
            Service::Router(index) if self.routers.len() > 1 => Some(&self.routers[index].name),
            _ => None,
        }
    }

    /// The name of a service within its AS: `router`, or the router's name if the AS has several,
    /// or `control` or `emulator`.
    pub fn short_name(&self, service: Service) -> &str {
        self.router_id(service).unwrap_or(service.name())
    }

    /// The name of a service in messages, for example `router of 1-ff00:0:110`.
    pub fn service_name(&self, service: Service) -> String {
        let command = service.name();
        match self.router_id(service) {
            Some(id) => format!("{command} {id} of {}", self.isd_as),
            None => format!("{command} of {}", self.isd_as),
        }
    }

    /// The Unix socket of a service.
    pub fn socket(&self, dir: &AsDir, service: Service) -> PathBuf {
        match (service, self.router_id(service)) {
            (Service::Control, _) => dir.control_socket(),
            (Service::Emulator, _) => dir.emulator_socket(),
            (Service::Router(_), Some(id)) => dir.router_socket_of(id),
            (Service::Router(_), None) => dir.router_socket(),
        }
    }

    /// The log of a service, for example `router.log`, or named after the router.
    pub fn log(&self, dir: &AsDir, service: Service) -> PathBuf {
        dir.path().join(format!("{}.log", self.short_name(service)))
    }
}

impl LabState {
    /// The state of a lab whose supervisor is this process and has just started.
    pub fn new(plan: &Plan, settings: &Settings, rootless: bool) -> io::Result<Self> {
        let ases = plan.ases.iter().map(|as_| AsState::new(as_, settings));
        Ok(Self {
            boot_id: process::boot_id()?,
            supervisor: ProcessId::own()?,
            rootless,
            ases: ases.collect(),
            links: plan.links.clone(),
        })
    }

    /// Whether the state is of this boot. Processes of an earlier boot do not run any more.
    pub fn is_of_this_boot(&self) -> io::Result<bool> {
        Ok(process::boot_id()? == self.boot_id)
    }

    /// Whether the lab's supervisor runs.
    pub fn is_running(&self) -> bool {
        self.is_of_this_boot().unwrap_or(false) && self.supervisor.is_alive()
    }

    /// The namespaces that the lab has made, and that exist.
    pub fn namespaces(&self) -> Vec<NetNsId> {
        let own = self.ases.iter().filter_map(|a| a.net_ns);
        let hosts = self.ases.iter().flat_map(AsState::made_hosts);
        own.chain(hosts).collect()
    }

    /// The index of an AS in [`LabState::ases`].
    pub fn find(&self, isd_as: IsdAsn) -> Option<usize> {
        self.ases.iter().position(|a| a.isd_as == isd_as)
    }

    /// The AS with this number.
    pub fn as_mut(&mut self, isd_as: IsdAsn) -> Option<&mut AsState> {
        self.ases.iter_mut().find(|as_| as_.isd_as == isd_as)
    }

    /// The link at an interface, with the side of the interface.
    pub fn link_at(&self, isd_as: IsdAsn, id: u16) -> Option<(&LinkPlan, Side)> {
        self.links.iter().find_map(|link| {
            let mut sides = Side::BOTH.into_iter();
            let side = sides.find(|side| {
                let end = link.end(*side);
                (end.isd_as, end.id) == (isd_as, id)
            });
            Some((link, side?))
        })
    }

    /// Like [`LabState::find`], but fails if the lab has no such AS.
    pub fn require(&self, isd_as: IsdAsn) -> Result<usize, LabError> {
        self.find(isd_as).ok_or_else(|| {
            let all: Vec<String> = self.ases.iter().map(|a| a.isd_as.to_string()).collect();
            LabError::Failed(format!(
                "the lab has no AS {isd_as}: it has {}",
                nearest(&isd_as.to_string(), all)
            ))
        })
    }

    /// The processes of all ASes.
    pub fn services(&self) -> impl Iterator<Item = ProcessId> {
        let of_as = |as_: &AsState| {
            let routers = as_.routers.iter().filter_map(|router| router.process);
            let others = as_.control.into_iter().chain(as_.emulator);
            routers.chain(others).collect::<Vec<_>>()
        };
        self.ases.iter().flat_map(of_as)
    }
}

/// Most names that an error lists.
const MAX_LISTED: usize = 8;

/// The names, or if there are many, those most like `wrong` and how many there are.
fn nearest(wrong: &str, mut names: Vec<String>) -> String {
    let count = names.len();
    if count <= MAX_LISTED {
        return names.join(", ");
    }
    // Stable: names equally near stay in the order of the network.
    names.sort_by_cached_key(|name| strsim::damerau_levenshtein(wrong, name));
    names.truncate(MAX_LISTED);
    let listed = names.join(", ");
    format!(
        "{listed} and {} more (`hawser lab status`)",
        count - MAX_LISTED
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use hawser_topology::Network;

    use super::*;

    fn state() -> LabState {
        let plan = Plan::of(&Network::ready("fig7a").unwrap()).unwrap();
        LabState::new(&plan, &Settings::default(), true).unwrap()
    }

    #[test]
    fn several_routers_of_an_as_have_names() {
        let dir = AsDir::new("/x");
        let mut as_ = state().ases.remove(0);
        let only = Service::Router(0);
        assert_eq!(as_.router_id(only), None);
        assert_eq!(as_.socket(&dir, only), dir.router_socket());
        assert_eq!(as_.log(&dir, only), Path::new("/x/router.log"));
        assert!(as_.service_name(only).starts_with("router of "));
        as_.routers.push(RouterState {
            name: "br7-2".to_owned(),
            process: None,
        });
        let second = Service::Router(1);
        assert_eq!(as_.router_id(second), Some("br7-2"));
        assert_eq!(as_.socket(&dir, second), dir.router_socket_of("br7-2"));
        assert_eq!(as_.log(&dir, second), Path::new("/x/br7-2.log"));
        assert_eq!(as_.log(&dir, Service::Control), Path::new("/x/control.log"));
        assert!(as_.service_name(second).starts_with("router br7-2 of "));
        assert_eq!(as_.services().len(), 3);
    }

    #[test]
    fn a_lab_of_another_boot_does_not_run() {
        let mut state = state();
        assert!(state.is_running());
        state.boot_id.push('x');
        assert!(!state.is_running());
    }

    #[test]
    fn an_unknown_as_is_answered_with_the_nearest() {
        let few = vec!["1-ff00:0:1".to_owned(), "1-ff00:0:2".to_owned()];
        assert_eq!(nearest("1-ff00:0:9", few), "1-ff00:0:1, 1-ff00:0:2");
        let many: Vec<String> = (1..=300).map(|at| format!("1-ff00:0:{at:x}")).collect();
        let listed = nearest("1-ff00:0:12d", many);
        assert!(listed.starts_with("1-ff00:0:12, 1-ff00:0:1d, "), "{listed}");
        assert!(
            listed.ends_with(" and 292 more (`hawser lab status`)"),
            "{listed}"
        );
        assert_eq!(listed.matches("1-ff00:0:").count(), 8, "{listed}");
    }
}
