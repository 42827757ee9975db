//! The folder of a lab.

use std::io;
use std::path::{Path, PathBuf};

use hawser_topology::{AsDir, FileError, IsdAsn, Network, as_folder, read_json, write_json};

use crate::plan::Plan;
use crate::state::{AsState, LabState, Settings};

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

    /// The file with the network, including all changes of its links.
    fn network(&self) -> PathBuf {
        self.0.join("network.json")
    }

    /// The file with the network that the lab is being changed to.
    fn next(&self) -> PathBuf {
        self.0.join("next.json")
    }

    /// The file with the [`LabState`].
    fn state(&self) -> PathBuf {
        self.0.join("state.json")
    }

    /// The file with the [`Settings`].
    fn settings(&self) -> PathBuf {
        self.0.join("settings.json")
    }

    /// The file with the names of hosts and routers, see [`crate::names`].
    pub fn names(&self) -> PathBuf {
        self.0.join("hosts")
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
    pub fn as_dir(&self, isd_as: IsdAsn) -> AsDir {
        AsDir::new(self.0.join(as_folder(isd_as)))
    }

    /// The longest socket path in the folder.
    pub fn longest_socket(&self, plan: &Plan) -> PathBuf {
        let all_services = Settings::default();
        let sockets = plan.ases.iter().flat_map(|plan| {
            let (mut as_, dir) = (AsState::new(plan, &all_services), self.as_dir(plan.isd_as));
            // It may be started later, when a link is changed.
            as_.emulates = true;
            let services = as_.services().into_iter();
            services.map(move |service| as_.socket(&dir, service))
        });
        sockets
            .chain([self.socket()])
            .max_by_key(|path| path.as_os_str().len())
            .unwrap_or_default()
    }

    pub fn read_network(&self) -> Result<Network, FileError> {
        Network::read_json(&self.network()).map_err(|error| self.with_remedy(error))
    }

    /// An error with what helps, if a file of the lab is damaged.
    fn with_remedy(&self, error: FileError) -> FileError {
        if !error.is_damaged() {
            return error;
        }
        let name = self.0.file_name().unwrap_or_default().to_string_lossy();
        let reason = format!(
            "it is damaged ({}): clear the lab away with `hawser lab down --name {name}`, and bring it up again",
            error.source
        );
        FileError {
            source: io::Error::new(io::ErrorKind::InvalidData, reason),
            ..error
        }
    }

    pub fn write_network(&self, network: &Network) -> Result<(), FileError> {
        network.write_json(&self.network())
    }

    /// The network that the lab is being changed to.
    pub fn read_next(&self) -> Result<Network, FileError> {
        Network::read_json(&self.next()).map_err(|error| self.with_remedy(error))
    }

    pub fn write_next(&self, network: &Network) -> Result<(), FileError> {
        network.write_json(&self.next())
    }

    /// The lab is no longer being changed.
    pub fn remove_next(&self) -> Result<(), FileError> {
        let path = self.next();
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(FileError::at(&path)(error))
            }
            _ => Ok(()),
        }
    }

    pub fn read_settings(&self) -> Result<Settings, FileError> {
        read_json(&self.settings()).map_err(|error| self.with_remedy(error))
    }

    pub fn write_settings(&self, settings: &Settings) -> Result<(), FileError> {
        write_json(&self.settings(), settings)
    }

    pub fn read_state(&self) -> Result<LabState, FileError> {
        read_json(&self.state()).map_err(|error| self.with_remedy(error))
    }

    pub fn write_state(&self, state: &LabState) -> Result<(), FileError> {
        write_json(&self.state(), state)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hawser_kernel::namespace::NetNsId;

    use super::*;
    use crate::process::ProcessId;
    use crate::state::Service;

    fn state() -> LabState {
        let plan = Plan::of(&Network::ready("fig7a").unwrap()).unwrap();
        LabState::new(&plan, &Settings::default(), true).unwrap()
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
    fn settings_are_read_back_and_applied() {
        let folder = tempfile::tempdir().unwrap();
        let dir = LabDir::new(folder.path());
        let network = Network::ready("fig7a").unwrap();
        let [first, second] = [0, 1].map(|i| network.ases[i].isd_as);
        let settings = Settings {
            no_router: vec![first],
            no_control: vec![first, second],
            segment_lifetime: Some(Duration::from_secs(30)),
            owner: Some(ProcessId::own().unwrap()),
            no_offload: true,
            enforce_mtu: true,
            no_echo: true,
        };
        dir.write_settings(&settings).unwrap();
        assert_eq!(dir.read_settings().unwrap(), settings);
        let plan = Plan::of(&network).unwrap();
        let state = LabState::new(&plan, &settings, true).unwrap();
        assert_eq!(state.ases[0].services(), []);
        assert_eq!(state.ases[1].services(), [Service::Router(0)]);
        let both = [Service::Router(0), Service::Control];
        assert_eq!(state.ases[2].services(), both);
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

    /// A file that is cut short anywhere, or whose bytes are changed, is refused with the remedy, or
    /// still is what can be read as such a file; nothing panics.
    #[test]
    fn damaged_files_are_refused_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let dir = LabDir::new(folder.path().join("big"));
        std::fs::create_dir(dir.path()).unwrap();
        dir.write_state(&state()).unwrap();
        dir.write_settings(&Settings::default()).unwrap();
        dir.write_network(&Network::ready("fig7a").unwrap())
            .unwrap();
        let read = |name: &str| match name {
            "state.json" => dir.read_state().map(drop),
            "settings.json" => dir.read_settings().map(drop),
            _ => dir.read_network().map(drop),
        };
        for name in ["state.json", "settings.json", "network.json"] {
            let path = dir.path().join(name);
            let whole = std::fs::read(&path).unwrap();
            let check = |error: FileError| {
                let error = error.to_string();
                assert!(error.contains(name), "{error}");
                let remedy = "`hawser lab down --name big`";
                assert!(error.contains(remedy) && !error.contains('\n'), "{error}");
            };
            for length in 0..whole.len() {
                std::fs::write(&path, &whole[..length]).unwrap();
                check(read(name).unwrap_err());
            }
            for at in 0..whole.len() {
                for byte in [0, b'"', whole[at] ^ 1] {
                    let mut changed = whole.clone();
                    changed[at] = byte;
                    std::fs::write(&path, &changed).unwrap();
                    read(name).unwrap_or_else(check);
                }
            }
            std::fs::write(&path, &whole).unwrap();
            read(name).unwrap();
        }
    }

    #[test]
    fn the_longest_socket_is_that_of_an_as() {
        let dir = LabDir::new("/run/hawser/lab/x");
        let plan = Plan::of(&Network::ready("fig4").unwrap()).unwrap();
        let longest = dir.longest_socket(&plan);
        assert!(longest.ends_with("emulator.sock"), "{longest:?}");
    }
}
