//! Adding hosts to the ASes of a running lab, and removing them.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use hawser_kernel::namespace::NetNs;
use hawser_topology::IsdAsn;
use rustix::fd::AsFd;

use crate::Lab;
use crate::error::LabError;
use crate::protocol::{self, Attached, Reply, Request};
use crate::state::HostState;

/// Longest wait for the supervisor, which ends the programs in a host before it removes that.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The folder of named network namespaces (ip-netns(8)).
const NAMED: &str = "/run/netns";

/// A network namespace: that of a process, or one with a name or a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guest {
    /// The namespace of the process with this number, such as the first one of a container.
    Process(i32),
    /// A name of ip-netns(8), in `/run/netns`.
    Named(String),
    /// A file, such as `/proc/PID/ns/net`.
    File(PathBuf),
}

impl Guest {
    /// Its file.
    fn path(&self) -> PathBuf {
        match self {
            Self::Process(pid) => format!("/proc/{pid}/ns/net").into(),
            Self::Named(name) => PathBuf::from(NAMED).join(name),
            Self::File(path) => path.clone(),
        }
    }

    fn open(&self) -> Result<NetNs, LabError> {
        NetNs::open(&self.path()).map_err(|error| {
            let path = self.path();
            let path = path.display();
            LabError::Failed(match (self, error.kind()) {
                (Self::Process(pid), io::ErrorKind::NotFound) => {
                    format!("there is no process {pid}")
                }
                (Self::Named(name), io::ErrorKind::NotFound) => {
                    format!(
                        "there is no network namespace {name:?} ({path}): `ip netns` lists them"
                    )
                }
                (_, io::ErrorKind::PermissionDenied) => {
                    format!("{path}: {error}: this takes root")
                }
                _ => format!("{path}: {error}"),
            })
        })
    }
}

impl fmt::Display for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(pid) => write!(f, "process {pid}"),
            Self::Named(name) => f.write_str(name),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// The error that a text names no network namespace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a network namespace: give the number of a process, a name of `ip netns`, or a path"
)]
pub struct GuestError(String);

impl FromStr for Guest {
    type Err = GuestError;

    /// A number is a process, what has a slash a file, and all else a name.
    fn from_str(text: &str) -> Result<Self, GuestError> {
        let wrong = || GuestError(text.to_owned());
        if text.contains('/') {
            return Ok(Self::File(text.into()));
        }
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            let pid = text.parse().ok().filter(|pid| *pid > 0);
            return pid.map(Self::Process).ok_or_else(wrong);
        }
        match text.is_empty() || text == "." || text == ".." || text.contains('\0') {
            true => Err(wrong()),
            false => Ok(Self::Named(text.to_owned())),
        }
    }
}

impl Lab {
    /// Makes a network namespace of another program a host of an AS: it gets a device with an address of
    /// the AS's network, and nothing else in it changes. The device goes with the namespace, with the lab,
    /// or by [`Lab::detach`].
    ///
    /// # Errors
    /// When there is no such namespace or AS, the namespace is the machine's or the lab's own, is a host
    /// already or has addresses of the AS's network, or without root.
    pub fn attach(
        &self,
        guest: &Guest,
        isd_as: IsdAsn,
        name: Option<String>,
    ) -> Result<Attached, LabError> {
        let _lock = self.lock_running()?;
        let guest = guest.open()?;
        self.send_host(isd_as, name, Some(&guest))
    }

    /// Makes a host of an AS with a network namespace of its own, in which [`Lab::exec`] runs commands.
    ///
    /// # Errors
    /// When there is no such AS, or a host of the name.
    pub fn add_host(&self, isd_as: IsdAsn, name: String) -> Result<Attached, LabError> {
        let _lock = self.lock_running()?;
        self.send_host(isd_as, Some(name), None)
    }

    /// Takes a guest out of the lab, named by its host or by its namespace; also one whose namespace has
    /// ended. Returns its AS and its name.
    ///
    /// # Errors
    /// When the lab has no such guest.
    pub fn detach(&self, of: &str) -> Result<(IsdAsn, String), LabError> {
        let _lock = self.lock_running()?;
        let state = self.dir.read_state()?;
        let guests = state.ases.iter().flat_map(|as_| {
            let guests = as_.hosts.iter().filter(|host| host.is_guest);
            guests.map(|host| (as_.isd_as, host))
        });
        let guests: Vec<_> = guests.collect();
        let mut found: Vec<_> = guests.iter().filter(|(_, host)| host.name == of).collect();
        if found.is_empty() {
            let id = of.parse::<Guest>().map_err(|e| e.to_string());
            let id = id.map_err(LabError::Failed)?.open()?.id();
            let id = id.map_err(|error| LabError::Failed(format!("{of}: {error}")))?;
            found.extend(guests.iter().filter(|(_, host)| host.net_ns == id));
        }
        let [(isd_as, host)] = &found[..] else {
            let names = |guests: &mut dyn Iterator<Item = &(IsdAsn, &HostState)>| {
                let names: Vec<_> = guests
                    .map(|(isd_as, host)| format!("{} of {isd_as}", host.name))
                    .collect();
                names.join(", ")
            };
            return Err(LabError::Failed(match (found.len(), guests.len()) {
                (0, 0) => format!("{of} is not attached to lab {}: nothing is", self.name),
                (0, _) => format!(
                    "{of} is not attached to lab {}: attached are {}",
                    self.name,
                    names(&mut guests.iter())
                ),
                _ => format!(
                    "several guests have this name ({}): name the process or the namespace",
                    names(&mut found.into_iter())
                ),
            }));
        };
        let (isd_as, name) = (*isd_as, host.name.clone());
        self.send_removal(isd_as, &name)?;
        Ok((isd_as, name))
    }

    /// Removes a host that [`Lab::add_host`] made, and ends what runs in it.
    ///
    /// # Errors
    /// When the AS has no such host, or it is a guest.
    pub fn remove_host(&self, isd_as: IsdAsn, name: &str) -> Result<(), LabError> {
        let _lock = self.lock_running()?;
        let state = self.dir.read_state()?;
        let as_ = &state.ases[state.require(isd_as)?];
        match as_.hosts.iter().find(|host| host.name == name) {
            Some(host) if host.is_guest => Err(LabError::Failed(format!(
                "the host {name} of {isd_as} is a guest: `hawser lab detach {name}` takes it out"
            ))),
            _ => self.send_removal(isd_as, name),
        }
    }

    fn send_host(
        &self,
        isd_as: IsdAsn,
        name: Option<String>,
        guest: Option<&NetNs>,
    ) -> Result<Attached, LabError> {
        self.dir.read_state()?.require(isd_as)?;
        let request = Request::AddHost { isd_as, name };
        let fds: Vec<_> = guest.map(|guest| guest.as_fd()).into_iter().collect();
        match protocol::call_with(&self.dir.socket(), (&request, &fds), TIMEOUT)? {
            Reply::Host(attached) => Ok(attached),
            other => Err(LabError::Failed(format!(
                "the supervisor answers {other:?}"
            ))),
        }
    }

    fn send_removal(&self, isd_as: IsdAsn, name: &str) -> Result<(), LabError> {
        let name = name.to_owned();
        let request = Request::RemoveHost { isd_as, name };
        protocol::call(&self.dir.socket(), &request, TIMEOUT).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn processes_names_and_files_are_told_apart() {
        let guest = |text: &str| text.parse::<Guest>().ok();
        assert_eq!(guest("12"), Some(Guest::Process(12)));
        assert_eq!(guest("blue"), Some(Guest::Named("blue".to_owned())));
        assert_eq!(guest("./12"), Some(Guest::File("./12".into())));
        for wrong in ["", "0", ".", "..", "99999999999"] {
            assert_eq!(guest(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn names_stay_in_their_folder(text in ".{0,20}") {
            if let Ok(Guest::Named(name)) = text.parse() {
                let path = Guest::Named(name).path();
                prop_assert_eq!(path.parent(), Some(std::path::Path::new(NAMED)));
            }
        }
    }
}
