//! A lab as commands see it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use hawser_topology::{FileError, IsdAsn, Network};

use crate::dir::LabDir;
use crate::down::{self, DownError};
use crate::place::{PlaceError, Root};
use crate::{Options, Up, UpError, sweep, up};

/// A SCION network on this machine.
///
/// It lives in processes of its own: dropping this value changes nothing, and another process may
/// open the same lab by its name.
#[derive(Debug, Clone)]
pub struct Lab {
    pub(crate) name: String,
    pub(crate) root: Root,
    pub(crate) dir: LabDir,
}

/// There is no lab to open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A wrong name, or a folder that cannot be read.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// None of that name.
    #[error("there is no lab {name:?}: bring it up with `hawser lab up`{others}")]
    NotThere {
        /// The name.
        name: String,
        /// What labs there are.
        others: String,
    },
}

/// A lab that is there.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Whether it runs; if not, `down` clears it away.
    pub running: bool,
    /// How many ASes it has.
    pub ases: usize,
}

impl Lab {
    pub(crate) fn new(name: String, root: Root, dir: LabDir) -> Self {
        Self { name, root, dir }
    }

    /// Brings a network up. Returns once every router and control service answers; the lab then
    /// stays until it is taken down, or its owner ends ([`Options::with_owner`]). What is left of a
    /// lab of that name whose supervisor was killed is cleared away first.
    ///
    /// # Errors
    /// When it cannot be; then nothing of it is left.
    pub fn up(network: &Network, options: &Options) -> Result<Up, UpError> {
        up::up(network, options)
    }

    /// The lab of that name, whether it still runs or has to be cleared away.
    ///
    /// # Errors
    /// When there is none.
    pub fn open(name: &str) -> Result<Self, OpenError> {
        let root = Root::find();
        let dir = LabDir::new(root.lab(name)?);
        if !dir.path().is_dir() {
            let there = root.names()?;
            return Err(OpenError::NotThere {
                name: name.to_owned(),
                others: match there.is_empty() {
                    true => String::new(),
                    false => format!(", or name one of: {}", there.join(", ")),
                },
            });
        }
        Ok(Self::new(name.to_owned(), root, dir))
    }

    /// All labs of this user, by name.
    ///
    /// # Errors
    /// When their folder cannot be read.
    pub fn list() -> Result<Vec<Listed>, PlaceError> {
        let root = Root::find();
        let mut labs = Vec::new();
        for name in root.names()? {
            let state = LabDir::new(root.lab(&name)?).read_state().ok();
            labs.push(Listed {
                name,
                running: state.as_ref().is_some_and(|state| state.is_running()),
                ases: state.map_or(0, |state| state.ases.len()),
            });
        }
        Ok(labs)
    }

    /// Clears away what is left of this user's labs whose owner ([`Options::with_owner`]) and
    /// supervisor have ended, and of those whose `up` was killed before there was a supervisor.
    /// Labs that run, come up or go down are not touched, nor those without an owner.
    ///
    /// # Errors
    /// When the folder of all labs cannot be read.
    pub fn sweep() -> Result<(), PlaceError> {
        sweep::sweep(&Root::find())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its folder, with `network.json`, the supervisor's log, and one folder per AS.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The network as it is now, changes of links included.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn network(&self) -> Result<Network, FileError> {
        self.dir.read_network()
    }

    /// The flags of `hawser lab up` by which this lab differs from what its network says:
    /// `--no-router 1-ff00:0:110`.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn up_flags(&self) -> Result<Vec<String>, FileError> {
        let settings = self.dir.read_settings()?;
        let some = |flag: &str, ases: &[IsdAsn]| -> Vec<String> {
            let flag = |isd_as: &IsdAsn| format!("{flag} {isd_as}");
            ases.iter().map(flag).collect()
        };
        let mut flags = some("--no-router", &settings.no_router);
        flags.extend(some("--no-control", &settings.no_control));
        flags.extend(settings.segment_lifetime.map(|lifetime| {
            let lifetime = hawser_topology::format_duration(lifetime);
            format!("--segment-lifetime {lifetime}")
        }));
        Ok(flags)
    }

    /// The address of an AS's host as SCION has it: of IPv6 where the AS speaks that; none when
    /// there is no such AS.
    ///
    /// # Errors
    /// When what runs cannot be read.
    pub fn host(&self, isd_as: IsdAsn) -> Result<Option<IpAddr>, FileError> {
        let state = self.dir.read_state()?;
        Ok(state.find(isd_as).map(|at| state.ases[at].host))
    }

    /// The addresses of the hosts of all ASes, as [`Lab::host`].
    ///
    /// # Errors
    /// When what runs cannot be read.
    pub fn hosts(&self) -> Result<BTreeMap<IsdAsn, IpAddr>, FileError> {
        let state = self.dir.read_state()?;
        let hosts = state.ases.iter().map(|as_| (as_.isd_as, as_.host));
        Ok(hosts.collect())
    }

    /// Takes the lab down: ends all its processes, those that were started inside it too, and
    /// removes its folder. Does nothing when that has been done.
    ///
    /// # Errors
    /// When something of it is left, which [`Lab::down`] may be tried on again.
    pub fn down(&self) -> Result<(), DownError> {
        let _lock = self.root.lock(&self.name)?;
        down::clear(&self.dir)
    }
}
