//! Running programs inside an AS.

use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hawser_kernel::namespace;
use hawser_topology::IsdAsn;
use rustix::fd::{AsFd, OwnedFd};
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::Lab;
use crate::error::LabError;
use crate::protocol::{self, Reply, Request};

/// The environment variable with the daemon's address for SCION programs, and its value.
const DAEMON: (&str, &str) = ("SCION_DAEMON", "127.0.0.1:30255");
/// Longest wait for the supervisor, which answers commands one by one.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The error for a reply that does not match the request.
const INVALID_REPLY: &str =
    "the lab's supervisor sent an invalid reply: is it of another version of hawser?";

/// Where programs look names up.
const HOSTS_AT: &CStr = c"/etc/hosts";
/// The warning where a system does not allow a command a file of names of its own.
const NO_NAMES: &[u8] =
    b"hawser: names of the lab are unknown to this command: /etc/hosts cannot be replaced for it\n";

/// Moves this process into a mount namespace of its own, in which the file `by` is at `path`. Mounts that are
/// made outside are still seen in it. Does not allocate.
fn replace(by: &CStr, path: &CStr) -> io::Result<()> {
    // SAFETY: only this thread moves, which becomes the program; no memory depends on what is mounted.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    let outside = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change(c"/", outside)?;
    Ok(mount_bind(by, path)?)
}

/// A path for system calls; `None` if it has a zero byte, which no path has.
fn cstring(path: &Path) -> Option<CString> {
    CString::new(path.as_os_str().as_bytes()).ok()
}

impl Lab {
    /// Makes `command` run inside the namespace of an AS, with the daemon's address in its
    /// environment unless that already has one.
    ///
    /// The caller starts the command; `tokio::process::Command::from` converts it for tokio. Its
    /// process is ended with the lab.
    ///
    /// # Errors
    /// When the lab has no such AS, or does not run.
    pub fn command(&self, isd_as: IsdAsn, command: Command) -> Result<Command, LabError> {
        let mut command = self.inside((isd_as, None), command)?;
        let own = rustix::process::getpid();
        let owner = self.dir.read_settings()?.owner;
        if owner.is_some_and(|owner| owner.pid == own.as_raw_nonzero().get()) {
            // When this process ends, the supervisor ends all processes inside. A child that enters
            // only after that must end itself. SAFETY: between fork and exec it only makes a system
            // call.
            unsafe {
                command.pre_exec(move || match rustix::process::getppid() == Some(own) {
                    true => Ok(()),
                    false => Err(io::ErrorKind::NotConnected.into()),
                })
            };
        }
        Ok(command)
    }

    /// Makes `command` run inside the namespace of an AS, or of a host that was added to it.
    fn inside(
        &self,
        (isd_as, host): (IsdAsn, Option<&str>),
        mut command: Command,
    ) -> Result<Command, LabError> {
        let (net, user) = self.namespaces(isd_as, host)?;
        let is_set = command.get_envs().any(|(name, _)| name == DAEMON.0);
        if !is_set && std::env::var_os(DAEMON.0).is_none() {
            let state = self.dir.read_state()?;
            let daemon = state.find(isd_as).and_then(|at| state.ases[at].daemon);
            let daemon = host.and(daemon).map(|daemon| daemon.to_string());
            command.env(DAEMON.0, daemon.as_deref().unwrap_or(DAEMON.1));
        }
        let names = self.dir.names();
        // A lab that an earlier version brought up has none.
        let names = names.exists().then(|| cstring(&names)).flatten();
        // SAFETY: between fork and exec it only makes system calls; nothing allocates or locks.
        unsafe {
            command.pre_exec(move || {
                if let Some(user) = &user {
                    namespace::enter_user(user.as_fd())?;
                }
                namespace::enter_net(net.as_fd())?;
                if let Some(names) = &names
                    && replace(names, HOSTS_AT).is_err()
                {
                    let _ = rustix::io::write(rustix::stdio::stderr(), NO_NAMES);
                }
                Ok(())
            })
        };
        Ok(command)
    }

    /// Moves this process into the namespace of an AS. If the lab runs without root, the process must
    /// have one thread (user_namespaces(7)).
    pub(crate) fn enter(&self, isd_as: IsdAsn) -> Result<(), LabError> {
        let (net, user) = self.namespaces(isd_as, None)?;
        user.map_or(Ok(()), |user| namespace::enter_user(user.as_fd()))
            .and_then(|()| namespace::enter_net(net.as_fd()))
            .map_err(|source| {
                LabError::Failed(format!(
                    "cannot enter the namespace of AS {isd_as}: {source}: it takes the rights of the user who brought the lab up"
                ))
            })
    }

    /// The network namespace of an AS or an added host, and the lab's user namespace if this process is
    /// not in it.
    pub(crate) fn namespaces(
        &self,
        isd_as: IsdAsn,
        host: Option<&str>,
    ) -> Result<(OwnedFd, Option<OwnedFd>), LabError> {
        self.dir.read_state()?.require(isd_as)?;
        let host = host.map(str::to_owned);
        let request = Request::Enter { isd_as, host };
        let (reply, fds) = protocol::call(&self.dir.socket(), &request, TIMEOUT)?;
        let mut fds = fds.into_iter();
        let (Reply::Entered, Some(net), user) = (reply, fds.next(), fds.next()) else {
            return Err(LabError::Failed(INVALID_REPLY.to_owned()));
        };
        // A process cannot enter its current user namespace, as in a shell inside the lab.
        let user = user.filter(|fd| !namespace::is_own_user(fd.as_fd()));
        Ok((net, user))
    }

    /// Replaces this process by a command inside the namespace of an AS, or of the host `host` that
    /// [`Lab::add_host`] made (execve(2)).
    ///
    /// If the lab runs without root, the process must have one thread (user_namespaces(7)).
    ///
    /// # Errors
    /// Returns only when the command could not be run.
    pub fn exec(
        &self,
        isd_as: IsdAsn,
        host: Option<&str>,
        command: Command,
    ) -> Result<Infallible, LabError> {
        let mut command = self.inside((isd_as, host), command)?;
        let source = command.exec();
        Err(LabError::Run {
            program: command.get_program().to_string_lossy().into_owned(),
            isd_as,
            source,
        })
    }
}
