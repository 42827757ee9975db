//! The processes, namespaces and devices of a lab.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use hawser_kernel::namespace::NetNsId;
use hawser_topology::{AsDir, IsdAsn};
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::plan::{EndPlan, Plan};
use crate::process::{self, ProcessId};
use crate::settings::Settings;

/// A service of an AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Service {
    /// The border router at that index of [`AsState::routers`].
    Router(usize),
    Control,
}

impl Service {
    /// The subcommand that runs it.
    pub fn command(self) -> &'static str {
        match self {
            Self::Router(_) => "router",
            Self::Control => "control",
        }
    }
}

/// The socket of the router at `index` of `routers`, those of an AS: named after the router only
/// where there are several.
pub(crate) fn router_socket(dir: &AsDir, routers: &[&str], index: usize) -> PathBuf {
    match routers {
        [_] => dir.router_socket(),
        _ => dir.router_socket_of(routers[index]),
    }
}

/// The processes, namespaces and devices of a lab: written by the supervisor as the lab comes up, so
/// that after a crash at any point enough is known to clean up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    /// The boot to which process and namespace numbers belong.
    pub boot_id: String,
    pub supervisor: ProcessId,
    /// Whether the lab has a user namespace of its own.
    pub rootless: bool,
    /// In the order of the network.
    pub ases: Vec<AsState>,
    /// In the order of the network.
    pub links: Vec<LinkDevices>,
}

/// The processes and the namespace of an AS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AsState {
    pub isd_as: IsdAsn,
    pub folder: String,
    /// The address of its host in SCION.
    pub host: IpAddr,
    pub net_ns: Option<NetNsId>,
    /// At least one.
    pub routers: Vec<RouterState>,
    /// Whether the user runs the routers.
    pub no_router: bool,
    pub control: Option<ProcessId>,
    /// Whether the user runs the control service.
    pub no_control: bool,
}

/// A border router.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RouterState {
    pub name: String,
    pub process: Option<ProcessId>,
}

impl AsState {
    /// The services that the lab runs for it.
    pub fn services(&self) -> Vec<Service> {
        let routers = match self.no_router {
            true => 0,
            false => self.routers.len(),
        };
        let control = (!self.no_control).then_some(Service::Control);
        (0..routers).map(Service::Router).chain(control).collect()
    }

    pub fn process_mut(&mut self, service: Service) -> &mut Option<ProcessId> {
        match service {
            Service::Router(index) => &mut self.routers[index].process,
            Service::Control => &mut self.control,
        }
    }

    /// The name of a router; `None` when it is the only one of its AS.
    pub fn router_id(&self, index: usize) -> Option<&str> {
        (self.routers.len() > 1).then(|| self.routers[index].name.as_str())
    }

    /// The socket of a router.
    pub fn router_socket(&self, dir: &AsDir, index: usize) -> PathBuf {
        let names: Vec<_> = self.routers.iter().map(|r| r.name.as_str()).collect();
        router_socket(dir, &names, index)
    }

    /// A service in messages: `router of 1-ff00:0:110`.
    pub fn service_name(&self, service: Service) -> String {
        let command = service.command();
        match service {
            Service::Router(index) if self.routers.len() > 1 => {
                format!("{command} {} of {}", self.routers[index].name, self.isd_as)
            }
            _ => format!("{command} of {}", self.isd_as),
        }
    }

    /// The log of a service: `router.log`, `control.log`, or the router's name.
    pub fn log(&self, dir: &AsDir, service: Service) -> PathBuf {
        let stem = match service {
            Service::Router(index) => self.router_id(index),
            Service::Control => None,
        };
        let stem = stem.unwrap_or(service.command());
        dir.path().join(format!("{stem}.log"))
    }
}

/// The two devices of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinkDevices {
    pub a: Device,
    pub b: Device,
}

/// A device of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Device {
    /// Index of its AS in [`State::ases`].
    pub owner: usize,
    pub name: String,
    /// Its address on the underlay.
    pub address: IpAddr,
}

impl State {
    /// The state of a lab whose supervisor, this process, has just started.
    pub fn new(plan: &Plan, settings: &Settings, rootless: bool) -> io::Result<Self> {
        let device = |end: &EndPlan| Device {
            owner: end.owner,
            name: end.device.clone(),
            address: end.underlay(),
        };
        Ok(Self {
            boot_id: process::boot_id()?,
            supervisor: ProcessId::own()?,
            rootless,
            ases: plan
                .ases
                .iter()
                .map(|a| AsState {
                    isd_as: a.isd_as,
                    folder: a.folder.clone(),
                    host: a.scion_host(),
                    net_ns: None,
                    routers: a
                        .routers
                        .iter()
                        .map(|router| RouterState {
                            name: router.name.clone(),
                            process: None,
                        })
                        .collect(),
                    no_router: settings.no_router.contains(&a.isd_as),
                    control: None,
                    no_control: settings.no_control.contains(&a.isd_as),
                })
                .collect(),
            links: plan
                .links
                .iter()
                .map(|link| LinkDevices {
                    a: device(&link.a),
                    b: device(&link.b),
                })
                .collect(),
        })
    }

    /// Whether it is of this boot: nothing of an earlier one runs any more.
    pub fn is_of_this_boot(&self) -> io::Result<bool> {
        Ok(process::boot_id()? == self.boot_id)
    }

    /// Whether the lab's supervisor runs.
    pub fn is_running(&self) -> bool {
        self.is_of_this_boot().unwrap_or(false) && self.supervisor.is_alive()
    }

    /// The namespaces that exist.
    pub fn namespaces(&self) -> Vec<NetNsId> {
        self.ases.iter().filter_map(|a| a.net_ns).collect()
    }

    /// The index of an AS in [`State::ases`].
    pub fn find(&self, isd_as: IsdAsn) -> Option<usize> {
        self.ases.iter().position(|a| a.isd_as == isd_as)
    }

    /// As [`State::find`].
    ///
    /// # Errors
    /// When the lab has no such AS.
    pub fn require(&self, isd_as: IsdAsn) -> Result<usize, LabError> {
        self.find(isd_as).ok_or_else(|| {
            let all: Vec<String> = self.ases.iter().map(|a| a.isd_as.to_string()).collect();
            let all = all.join(", ");
            LabError::Failed(format!("the lab has no AS {isd_as}: it has {all}"))
        })
    }

    /// The processes of all ASes.
    pub fn services(&self) -> impl Iterator<Item = ProcessId> {
        self.ases
            .iter()
            .flat_map(|a| {
                let routers = a.routers.iter().map(|router| router.process);
                routers.chain([a.control])
            })
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use hawser_topology::Network;

    use super::*;

    fn state() -> State {
        let plan = Plan::of(&Network::ready("fig7a").unwrap()).unwrap();
        State::new(&plan, &Settings::default(), true).unwrap()
    }

    #[test]
    fn several_routers_of_an_as_have_names() {
        let dir = AsDir::new("/x");
        let mut as_ = state().ases.remove(0);
        let only = Service::Router(0);
        assert_eq!(as_.router_id(0), None);
        assert_eq!(as_.router_socket(&dir, 0), dir.router_socket());
        assert_eq!(as_.log(&dir, only), Path::new("/x/router.log"));
        assert!(as_.service_name(only).starts_with("router of "));
        as_.routers.push(RouterState {
            name: "br7-2".to_owned(),
            process: None,
        });
        let second = Service::Router(1);
        assert_eq!(as_.router_id(1), Some("br7-2"));
        assert_eq!(as_.router_socket(&dir, 1), dir.router_socket_of("br7-2"));
        assert_eq!(as_.log(&dir, second), Path::new("/x/br7-2.log"));
        assert_eq!(as_.log(&dir, Service::Control), Path::new("/x/control.log"));
        assert!(as_.service_name(second).starts_with("router br7-2 of "));
        assert_eq!(as_.services().len(), 3);
    }

    #[test]
    fn a_state_of_another_boot_runs_nothing() {
        let mut state = state();
        assert!(state.is_running());
        state.boot_id.push('x');
        assert!(!state.is_running());
    }
}
