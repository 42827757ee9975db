//! What is in the folder of a lab.

use crate::{
    netns::NetNsId,
    plan::Plan,
    process::{self, ProcessId},
};
use hawser_topology::{AsDir, IsdAsn, Network, TopologyError};
use serde::{Deserialize, Serialize};
use std::{
    io,
    net::Ipv4Addr,
    path::{Path, PathBuf},
};

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
    pub fn new(path: impl Into<PathBuf>) -> LabDir {
        LabDir(path.into())
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
            .map(|a| self.as_dir(&a.folder))
            .flat_map(|dir| [dir.router_socket(), dir.control_socket()])
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

    pub fn read_state(&self) -> Result<State, StateError> {
        let path = self.state();
        std::fs::read(&path)
            .and_then(|bytes| Ok(serde_json::from_slice(&bytes)?))
            .map_err(|source| StateError { path, source })
    }

    /// Writes beside and renames, so that a crash never leaves half a state.
    pub fn write_state(&self, state: &State) -> Result<(), StateError> {
        let path = self.state();
        let beside = path.with_extension("json.new");
        serde_json::to_vec_pretty(state)
            .map_err(io::Error::from)
            .and_then(|bytes| std::fs::write(&beside, bytes))
            .and_then(|()| std::fs::rename(&beside, &path))
            .map_err(|source| StateError { path, source })
    }
}

/// The two processes of an AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Service {
    Router,
    Control,
}

impl Service {
    /// The subcommand that runs it, and the stem of its log's name.
    pub fn name(self) -> &'static str {
        match self {
            Service::Router => "router",
            Service::Control => "control",
        }
    }

    pub fn log(self, dir: &AsDir) -> PathBuf {
        dir.path().join(self.name()).with_extension("log")
    }
}

/// What runs for a lab: written by the supervisor as it comes up, so that a
/// crash at any point leaves enough to clear up by.
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
    pub host: Ipv4Addr,
    pub net_ns: Option<NetNsId>,
    pub router: Option<ProcessId>,
    pub control: Option<ProcessId>,
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
    pub address: Ipv4Addr,
}

impl State {
    /// The state of a lab whose supervisor, this process, has just started.
    pub fn new(plan: &Plan, rootless: bool) -> io::Result<State> {
        let device = |end: &crate::plan::EndPlan| Device {
            owner: end.owner,
            name: end.device.clone(),
            address: end.address,
        };
        Ok(State {
            boot_id: process::boot_id()?,
            supervisor: ProcessId::own()?,
            rootless,
            ases: plan
                .ases
                .iter()
                .map(|a| AsState {
                    isd_as: a.isd_as,
                    folder: a.folder.clone(),
                    host: a.host,
                    net_ns: None,
                    router: None,
                    control: None,
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
            .flat_map(|a| [a.router, a.control])
            .flatten()
    }
}

/// ISD-AS numbers as text in JSON.
pub(crate) mod isd_as_text {
    use hawser_topology::IsdAsn;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

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
        State::new(&plan, true).unwrap()
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
