//! Opening and listing labs.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use hawser_topology::{FileError, IsdAsn, Network};

use crate::dir::LabDir;
use crate::place::{PlaceError, Root};

/// A SCION network on this machine.
///
/// The lab exists in separate processes: dropping this value has no effect on it, and other
/// processes may open the same lab by its name.
#[derive(Debug, Clone)]
pub struct Lab {
    pub(crate) name: String,
    pub(crate) root: Root,
    pub(crate) dir: LabDir,
}

/// An error of opening a lab.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The name is not valid, or the folder of all labs cannot be read.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// There is no lab of that name.
    #[error("there is no lab {name:?}: bring it up with `hawser lab up`{others}")]
    NotFound {
        /// The name.
        name: String,
        /// The existing labs.
        others: String,
    },
}

/// A lab in a list.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Listed {
    /// The name of the lab.
    pub name: String,
    /// Whether the lab runs; if not, `down` removes its remains.
    pub running: bool,
    /// Number of ASes.
    pub ases: usize,
    /// Why it is not known whether the lab runs; left out if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

impl Lab {
    /// Opens the lab named `name`, running or not.
    ///
    /// # Errors
    /// When there is no lab of that name.
    pub fn open(name: &str) -> Result<Self, OpenError> {
        let root = Root::find();
        let dir = LabDir::new(root.lab(name)?);
        if !dir.path().is_dir() {
            let all = root.names()?;
            return Err(OpenError::NotFound {
                name: name.to_owned(),
                others: match all.is_empty() {
                    true => String::new(),
                    false => format!(", or name one of: {}", all.join(", ")),
                },
            });
        }
        Ok(Self {
            name: name.to_owned(),
            root,
            dir,
        })
    }

    /// All labs of this user, sorted by name.
    ///
    /// # Errors
    /// When their folder cannot be read.
    pub fn list() -> Result<Vec<Listed>, PlaceError> {
        let root = Root::find();
        let mut labs = Vec::new();
        for name in root.names()? {
            let read = LabDir::new(root.lab(&name)?).read_state();
            let (state, damage) = match read {
                Ok(state) => (Some(state), None),
                Err(error) => (None, Some(error).filter(FileError::is_damaged)),
            };
            labs.push(Listed {
                name,
                running: state.as_ref().is_some_and(|state| state.is_running()),
                ases: state.map_or(0, |state| state.ases.len()),
                damage: damage.map(|error| error.to_string()),
            });
        }
        Ok(labs)
    }

    /// The name of the lab.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its folder, with `network.json`, the supervisor's log, and one folder per AS.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The network with all changes of its links.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn network(&self) -> Result<Network, FileError> {
        self.dir.read_network()
    }

    /// The flags of `hawser lab up` that this lab was brought up with, without those of the
    /// network: for example `--no-router 1-ff00:0:110`.
    ///
    /// # Errors
    /// When the settings cannot be read.
    pub fn up_flags(&self) -> Result<Vec<String>, FileError> {
        let settings = self.dir.read_settings()?;
        let routers = settings
            .no_router
            .iter()
            .map(|a| format!("--no-router {a}"));
        let controls = settings
            .no_control
            .iter()
            .map(|a| format!("--no-control {a}"));
        let lifetime = settings.segment_lifetime.map(|lifetime| {
            let lifetime = hawser_topology::format_duration(lifetime);
            format!("--segment-lifetime {lifetime}")
        });
        let no_offload = settings.no_offload.then(|| "--no-offload".to_owned());
        let enforce_mtu = settings.enforce_mtu.then(|| "--enforce-mtu".to_owned());
        let no_echo = settings.no_echo.then(|| "--no-echo".to_owned());
        let flags = routers.chain(controls).chain(lifetime);
        let flags = flags.chain(no_offload).chain(enforce_mtu);
        Ok(flags.chain(no_echo).collect())
    }

    /// The SCION address of an AS's host, IPv6 if the AS's underlay is; `None` if there is no such
    /// AS.
    ///
    /// # Errors
    /// When the state of the lab cannot be read.
    pub fn host(&self, isd_as: IsdAsn) -> Result<Option<IpAddr>, FileError> {
        let state = self.dir.read_state()?;
        Ok(state.find(isd_as).map(|at| state.ases[at].host))
    }

    /// The SCION addresses of the hosts of all ASes.
    ///
    /// # Errors
    /// When the state of the lab cannot be read.
    pub fn hosts(&self) -> Result<BTreeMap<IsdAsn, IpAddr>, FileError> {
        let state = self.dir.read_state()?;
        let hosts = state.ases.iter().map(|as_| (as_.isd_as, as_.host));
        Ok(hosts.collect())
    }
}
