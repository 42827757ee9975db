//! What is in the folder of a lab.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_topology::{AsDir, IsdAsn, Network, TopologyError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::netns::NetNsId;
use crate::plan::Plan;
use crate::process::{self, ProcessId};

/// A lab's state cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {path}: {source}", path = path.display())]
pub struct StateError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub source: io::Error,
}

/// The folder of a lab.
#[derive(Debug, Clone)]
pub(crate) struct LabDir(PathBuf);

impl LabDir {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The network as it is now, in JSON.
    fn network(&self) -> PathBuf {
        self.0.join("network.json")
    }

    /// What runs, see [`State`].
    fn state(&self) -> PathBuf {
        self.0.join("state.json")
    }

    /// The supervisor's socket.
    pub fn socket(&self) -> PathBuf {
        self.0.join("lab.sock")
    }

    /// The supervisor's log.
    pub fn log(&self) -> PathBuf {
        self.0.join("supervisor.log")
    }

    /// The folder of an AS.
    pub fn as_dir(&self, folder: &str) -> AsDir {
        AsDir::new(self.0.join(folder))
    }

    /// The longest path of a socket in it.
    pub fn longest_socket(&self, plan: &Plan) -> PathBuf {
        plan.ases
            .iter()
            .flat_map(|a| {
                let dir = self.as_dir(&a.folder);
                let routers: Vec<_> = a.routers.iter().map(|r| r.name.as_str()).collect();
                let sockets = (0..routers.len()).map(|i| router_socket(&dir, &routers, i));
                sockets.chain([dir.control_socket()]).collect::<Vec<_>>()
            })
            .chain([self.socket()])
            .max_by_key(|path| path.as_os_str().len())
            .unwrap_or_default()
    }

    /// Reads the network as it is now.
    pub fn read_network(&self) -> Result<Network, TopologyError> {
        Network::read_json(&self.network())
    }

    /// Writes it beside and renames, so that a reader never sees half of it.
    pub fn write_network(&self, network: &Network) -> Result<(), TopologyError> {
        let path = self.network();
        let beside = path.with_extension("json.new");
        network.write_json(&beside)?;
        std::fs::rename(&beside, &path).map_err(|e| TopologyError::File {
            path,
            reason: e.to_string(),
        })
    }

    /// How the lab is to run, see [`Settings`].
    fn settings(&self) -> PathBuf {
        self.0.join("settings.json")
    }

    pub fn read_settings(&self) -> Result<Settings, StateError> {
        read(self.settings())
    }

    pub fn write_settings(&self, settings: &Settings) -> Result<(), StateError> {
        write(self.settings(), settings)
    }

    pub fn read_state(&self) -> Result<State, StateError> {
        read(self.state())
    }

    pub fn write_state(&self, state: &State) -> Result<(), StateError> {
        write(self.state(), state)
    }
}

fn read<T: DeserializeOwned>(path: PathBuf) -> Result<T, StateError> {
    std::fs::read(&path)
        .and_then(|bytes| Ok(serde_json::from_slice(&bytes)?))
        .map_err(|source| StateError { path, source })
}

/// Writes beside and renames, so that a crash never leaves half a file.
fn write<T: Serialize>(path: PathBuf, value: &T) -> Result<(), StateError> {
    let beside = path.with_extension("json.new");
    serde_json::to_vec_pretty(value)
        .map_err(io::Error::from)
        .and_then(|bytes| std::fs::write(&beside, bytes))
        .and_then(|()| std::fs::rename(&beside, &path))
        .map_err(|source| StateError { path, source })
}

/// How the lab is to run, of which the network says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// ASes whose border routers the user runs.
    pub no_router: Vec<IsdAsnText>,
    /// ASes whose control service the user runs.
    pub no_control: Vec<IsdAsnText>,
    /// How long path segments live; none for the control service's own choice.
    pub segment_lifetime: Option<Duration>,
    /// The process that the lab ends with; None for one that stays.
    #[serde(default)]
    pub owner: Option<ProcessId>,
}

/// A process of an AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Service {
    /// The border router at that place in [`AsState::routers`].
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

/// The socket of the router at `index` among those of an AS: named after it only where there are
/// several.
fn router_socket(dir: &AsDir, routers: &[&str], index: usize) -> PathBuf {
    match routers {
        [_] => dir.router_socket(),
        _ => dir.router_socket_of(routers[index]),
    }
}

/// What runs for a lab: written by the supervisor as it comes up, so that a crash at any point
/// leaves enough to clear up by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    /// The boot that process and namespace numbers are from.
    pub boot_id: String,
    pub supervisor: ProcessId,
    /// Whether the lab has a user namespace of its own.
    pub rootless: bool,
    /// In the order of the network.
    pub ases: Vec<AsState>,
    /// In the order of the network.
    pub links: Vec<LinkDevices>,
}

/// What runs for an AS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AsState {
    #[serde(with = "isd_as_text")]
    pub isd_as: IsdAsn,
    pub folder: String,
    /// As SCION addresses it.
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

/// What runs of a border router.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RouterState {
    pub name: String,
    pub process: Option<ProcessId>,
}

impl AsState {
    /// The processes that the lab runs for it.
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

    /// By which a router is told from the others of its AS, if there are any.
    pub fn router_id(&self, index: usize) -> Option<&str> {
        (self.routers.len() > 1).then(|| self.routers[index].name.as_str())
    }

    /// The socket of a router.
    pub fn router_socket(&self, dir: &AsDir, index: usize) -> PathBuf {
        let names: Vec<_> = self.routers.iter().map(|r| r.name.as_str()).collect();
        router_socket(dir, &names, index)
    }

    /// A service in words: `router of 1-ff00:0:110`.
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
    /// Which of [`State::ases`] it is in.
    pub owner: usize,
    pub name: String,
    /// As the border router addresses it.
    pub address: IpAddr,
}

impl State {
    /// The state of a lab whose supervisor, this process, has just started.
    pub fn new(plan: &Plan, settings: &Settings, rootless: bool) -> io::Result<Self> {
        let device = |end: &crate::plan::EndPlan| Device {
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
                    no_router: settings.no_router.contains(&IsdAsnText(a.isd_as)),
                    control: None,
                    no_control: settings.no_control.contains(&IsdAsnText(a.isd_as)),
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

    /// Whether it is of this boot; of an earlier one nothing runs any more.
    pub fn is_of_this_boot(&self) -> io::Result<bool> {
        Ok(process::boot_id()? == self.boot_id)
    }

    /// Whether the lab's supervisor runs.
    pub fn is_running(&self) -> bool {
        self.is_of_this_boot().unwrap_or(false) && self.supervisor.is_alive()
    }

    /// The namespaces that were made.
    pub fn namespaces(&self) -> Vec<NetNsId> {
        self.ases.iter().filter_map(|a| a.net_ns).collect()
    }

    /// Where in [`State::ases`] an AS is.
    pub fn find(&self, isd_as: IsdAsn) -> Option<usize> {
        self.ases.iter().position(|a| a.isd_as == isd_as)
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

/// An ISD-AS number that is text in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IsdAsnText(#[serde(with = "isd_as_text")] pub IsdAsn);

/// ISD-AS numbers as text in JSON.
pub(crate) mod isd_as_text {
    use hawser_topology::IsdAsn;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(isd_as: &IsdAsn, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(isd_as)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<IsdAsn, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        let plan = Plan::of(&Network::ready("fig7a").unwrap()).unwrap();
        State::new(&plan, &Settings::default(), true).unwrap()
    }

    #[test]
    fn the_state_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let dir = LabDir::new(folder.path());
        let mut state = state();
        state.ases[0].net_ns = Some(NetNsId {
            inode: 4026532000,
            cookie: 77,
        });
        state.ases[1].control = Some(state.supervisor);
        dir.write_state(&state).unwrap();
        assert_eq!(dir.read_state().unwrap(), state);
        assert_eq!(state.namespaces().len(), 1);
        assert_eq!(state.services().count(), 1);
    }

    #[test]
    fn settings_are_read_back_and_heeded() {
        let folder = tempfile::tempdir().unwrap();
        let dir = LabDir::new(folder.path());
        let network = Network::ready("fig7a").unwrap();
        let [first, second] = [0, 1].map(|i| IsdAsnText(network.ases[i].isd_as));
        let settings = Settings {
            no_router: vec![first],
            no_control: vec![first, second],
            segment_lifetime: Some(Duration::from_secs(30)),
            owner: Some(ProcessId::own().unwrap()),
        };
        dir.write_settings(&settings).unwrap();
        assert_eq!(dir.read_settings().unwrap(), settings);
        let plan = Plan::of(&network).unwrap();
        let state = State::new(&plan, &settings, true).unwrap();
        assert_eq!(state.ases[0].services(), []);
        assert_eq!(state.ases[1].services(), [Service::Router(0)]);
        let both = [Service::Router(0), Service::Control];
        assert_eq!(state.ases[2].services(), both);
    }

    #[test]
    fn routers_are_told_apart_where_there_are_several() {
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
    fn the_network_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let dir = LabDir::new(folder.path());
        let network = Network::ready("fig9").unwrap();
        dir.write_network(&network).unwrap();
        assert_eq!(dir.read_network().unwrap(), network);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_state_of_another_boot_runs_nothing() {
        let mut state = state();
        assert!(state.is_running());
        state.boot_id.push('x');
        assert!(!state.is_running());
    }

    #[test]
    fn a_broken_state_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let dir = LabDir::new(folder.path());
        std::fs::write(folder.path().join("state.json"), "{").unwrap();
        let error = dir.read_state().unwrap_err().to_string();
        assert!(error.contains("state.json"), "{error}");
    }

    #[test]
    fn the_longest_socket_is_that_of_an_as() {
        let dir = LabDir::new("/run/hawser/lab/x");
        let plan = Plan::of(&Network::ready("fig4").unwrap()).unwrap();
        let longest = dir.longest_socket(&plan);
        assert!(longest.ends_with("control.sock"), "{longest:?}");
    }
}
