//! The processes of a lab whose state is damaged or gone, found by their command lines.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use hawser_kernel::namespace::{self, NamespaceKind, NetNsId};
use hawser_supervisor::Handle;

use crate::dir::LabDir;
use crate::error::DownError;
use crate::process::{self, ProcessId};
use crate::reap::{self, Certainty};
use crate::state::Service;

/// The arguments that run a lab's supervisor, before the folder of the lab.
pub(crate) const SUPERVISOR: [&str; 2] = ["internal", "lab-supervisor"];

/// Longest wait for the arguments of processes that begin programs, of all of them together.
const SET_UP: Duration = Duration::from_secs(5);

/// What a process does for a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Supervisor,
    Service,
}

/// Ends the supervisor and the services of the lab in `dir`, and all programs in the namespaces of
/// the services and of the supervisor. The caller must hold the lab's lock.
pub(crate) fn end(dir: &LabDir) -> Result<(), DownError> {
    let (mut supervisors, mut services, mut namespaces) = (Vec::new(), Vec::new(), Vec::new());
    let mut held = Vec::new();
    for (pid, role) in find(dir.path()).map_err(DownError::Process)? {
        let Some(handle) = open(pid, dir.path()).map_err(DownError::Process)? else {
            continue;
        };
        match role {
            Role::Supervisor => {
                held.extend(held_by(pid));
                supervisors.push(handle);
            }
            Role::Service => {
                services.push(handle);
                namespaces.extend(namespace_of(pid));
            }
        }
    }
    // A service is in the namespace of its AS when it has these arguments.
    let own = namespace::own_net().map_err(DownError::Process)?;
    let is_inside = |own: NetNsId| {
        namespaces.contains(&own) || held.iter().any(|(_, id)| id.inode == own.inode)
    };
    if own.is_some_and(is_inside) {
        return Err(DownError::Inside);
    }
    let end = || {
        reap::end(&supervisors)?;
        reap::end(&services)?;
        reap::clear(&namespaces, Certainty::Cookie)?;
        // In a host that the lab has made there may be no service, but programs of users.
        let held: Vec<NetNsId> = held.iter().map(|(_, id)| *id).collect();
        reap::clear(&held, Certainty::Held)
    };
    end().map_err(DownError::Process)
}

/// Whether a supervisor of the lab runs.
pub(crate) fn is_running(dir: &LabDir) -> io::Result<bool> {
    let found = find(dir.path())?;
    Ok(found.iter().any(|(_, role)| *role == Role::Supervisor))
}

/// The network namespaces that a supervisor holds open: those that it has made. They are those only while the
/// files are open.
fn held_by(pid: i32) -> Vec<(File, NetNsId)> {
    let own = namespace::inode_of(pid, NamespaceKind::Net);
    let entries = fs::read_dir(format!("/proc/{pid}/fd"));
    let paths = entries.into_iter().flatten().flatten();
    let opened = paths.filter_map(|entry| {
        let path = entry.path();
        let target = fs::read_link(&path).ok()?;
        if !target.as_os_str().as_bytes().starts_with(b"net:[") {
            return None;
        }
        let file = File::open(path).ok()?;
        let inode = file.metadata().ok()?.ino();
        // The file holds it: no cookie is needed.
        (Some(inode) != own).then_some((file, NetNsId { inode, cookie: 0 }))
    });
    opened.collect()
}

fn namespace_of(pid: i32) -> Option<NetNsId> {
    let inode = namespace::inode_of(pid, NamespaceKind::Net)?;
    let cookie = namespace::cookie_of(pid)?;
    Some(NetNsId { inode, cookie })
}

/// A handle to a process of the lab in `dir`; `None` if it has ended.
fn open(pid: i32, dir: &Path) -> io::Result<Option<Handle>> {
    let Ok(process) = ProcessId::of(pid) else {
        return Ok(None);
    };
    let handle = process.open()?;
    // The number may be another process's since it was found.
    let role = |_: &Handle| role_of(pid, dir, Instant::now() + SET_UP).is_some();
    Ok(handle.filter(role))
}

/// The processes of this user that work for the lab in `dir`.
fn find(dir: &Path) -> io::Result<Vec<(i32, Role)>> {
    let all = process::all()?.into_iter();
    let deadline = Instant::now() + SET_UP;
    Ok(all
        .filter_map(|pid| Some((pid, role_of(pid, dir, deadline)?)))
        .collect())
}

/// What a process does for the lab in `dir`; `None` for any other process, and those of other users.
fn role_of(pid: i32, dir: &Path, deadline: Instant) -> Option<Role> {
    let owner = fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    // A process in a user namespace of its own may belong to nobody in this one.
    let own = rustix::process::geteuid().as_raw();
    if owner != own && !namespace::is_privileged() {
        return None;
    }
    role(&arguments(pid, deadline)?, dir)
}

/// The arguments of a process, as proc_pid_cmdline(5) has them; `None` if it has ended. A process that
/// begins a program has none until the kernel has set it up, which takes long on a busy machine: this waits
/// for them until `deadline`.
fn arguments(pid: i32, deadline: Instant) -> Option<Vec<u8>> {
    loop {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        // Threads of the kernel and processes that have ended have no program.
        let has_program = || fs::read_link(format!("/proc/{pid}/exe")).is_ok();
        if !arguments.is_empty() || !has_program() || Instant::now() >= deadline {
            return Some(arguments);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// The role of a process with these arguments, each with a zero at its end (proc_pid_cmdline(5)).
fn role(arguments: &[u8], dir: &Path) -> Option<Role> {
    let mut arguments = arguments.split(|byte| *byte == 0).skip(1);
    let command = [arguments.next()?, arguments.next()?];
    let is = |words: [&str; 2]| command == words.map(str::as_bytes);
    let folder = arguments.next()?;
    let dir = dir.as_os_str().as_bytes();
    if is(SUPERVISOR) {
        return (folder == dir).then_some(Role::Supervisor);
    }
    let services = [Service::Router(0), Service::Control, Service::Emulator];
    let is_service = services.iter().any(|service| is(service.command()));
    let rest = folder.strip_prefix(dir)?;
    (is_service && rest.starts_with(b"/")).then_some(Role::Service)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_that_begins_a_program_has_its_arguments() {
        for _ in 0..200 {
            // The kernel lets the parent go on before the arguments are there.
            let mut child = Command::new("sleep").arg("60").spawn().unwrap();
            let deadline = Instant::now() + Duration::from_secs(300);
            let found = arguments(child.id().try_into().unwrap(), deadline);
            child.kill().unwrap();
            child.wait().unwrap();
            let found = String::from_utf8(found.unwrap()).unwrap();
            // Before it begins the program it has those of this process.
            assert_ne!(found, "");
        }
    }

    #[test]
    fn processes_of_a_lab_are_told_from_others() {
        let dir = Path::new("/run/hawser/lab/x");
        let role = |line: &str| role(line.replace(' ', "\0").as_bytes(), dir);
        let service = Some(Role::Service);
        for (line, expected) in [
            (
                "hawser internal lab-supervisor /run/hawser/lab/x ",
                Some(Role::Supervisor),
            ),
            ("hawser internal lab-supervisor /run/hawser/lab/xy ", None),
            (
                "/usr/bin/hawser router run /run/hawser/lab/x/1-ff00_0_110 ",
                service,
            ),
            (
                "hawser router run /run/hawser/lab/x/1-ff00_0_110 --id br1 ",
                service,
            ),
            (
                "hawser control run /run/hawser/lab/x/1-ff00_0_110 ",
                service,
            ),
            (
                "hawser internal emulator /run/hawser/lab/x/1-ff00_0_110 ",
                service,
            ),
            ("hawser router run /run/hawser/lab/xy/1-ff00_0_110 ", None),
            ("hawser router run /run/hawser/lab/x ", None),
            ("hawser router status /run/hawser/lab/x/1-ff00_0_110 ", None),
            ("vim /run/hawser/lab/x/state.json ", None),
            ("cp run all /run/hawser/lab/x/state.json ", None),
            ("hawser", None),
            ("", None),
        ] {
            assert_eq!(role(line), expected, "{line}");
        }
    }
}
