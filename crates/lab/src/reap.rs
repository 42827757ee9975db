//! Ending of processes.

use std::io;
use std::time::{Duration, Instant};

use hawser_kernel::namespace::{self, NamespaceKind, NetNsId};
use hawser_supervisor::{Handle, KILL_TIMEOUT};
use rustix::process::Signal;

use crate::process::{self, ProcessId};

/// Longest wait for a process to end after SIGTERM.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// The means by which a namespace is identified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// The inode: the caller holds the namespaces open, so that no other namespace can have it.
    Held,
    /// The cookie: the namespaces may be gone, and others may have their inodes.
    Cookie,
}

/// The processes inside the given network namespaces.
pub(crate) fn inside(namespaces: &[NetNsId], certainty: Certainty) -> io::Result<Vec<Handle>> {
    let mut found = Vec::new();
    for pid in process::all()? {
        let is_inside = || {
            let inode = namespace::inode_of(pid, NamespaceKind::Net)?;
            let id = namespaces.iter().find(|id| id.inode == inode)?;
            let sure = certainty == Certainty::Held || namespace::cookie_of(pid)? == id.cookie;
            sure.then_some(())
        };
        // The number may be reused until the handle is open, so `is_inside` is checked again
        // afterwards.
        let Ok(process) = ProcessId::of(pid) else {
            continue;
        };
        if is_inside().is_some()
            && let Some(handle) = process.open()?
            && is_inside().is_some()
        {
            found.push(handle);
        }
    }
    Ok(found)
}

/// Opens handles to those of the processes that still run.
pub(crate) fn open(processes: impl IntoIterator<Item = ProcessId>) -> io::Result<Vec<Handle>> {
    processes
        .into_iter()
        .filter_map(|process| process.open().transpose())
        .collect()
}

/// Ends processes with SIGTERM, and with SIGKILL if that does not suffice. Returns once all have
/// ended.
pub(crate) fn end(handles: &[Handle]) -> io::Result<()> {
    for (signal, timeout) in [(Signal::TERM, GRACE), (Signal::KILL, KILL_TIMEOUT)] {
        let deadline = Instant::now() + timeout;
        let mut left = false;
        for handle in handles {
            handle.signal(signal)?;
        }
        for handle in handles {
            left |= !handle.wait_until(deadline)?;
        }
        if !left {
            return Ok(());
        }
    }
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        "a process does not end, even when killed",
    ))
}

/// Ends all processes inside the given namespaces, including those that these start meanwhile.
pub(crate) fn clear(namespaces: &[NetNsId], certainty: Certainty) -> io::Result<()> {
    // Each round ends the processes started during the previous one. A program that outruns SIGKILL
    // for this many rounds is hostile.
    const MAX_ROUNDS: usize = 20;
    for _ in 0..MAX_ROUNDS {
        let handles = inside(namespaces, certainty)?;
        if handles.is_empty() {
            return Ok(());
        }
        end(&handles)?;
    }
    Err(io::Error::other(
        "programs inside the lab start others faster than they can be ended",
    ))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use hawser_kernel::namespace::{NetNs, is_privileged};

    use super::*;

    #[test]
    fn a_process_that_ignores_sigterm_is_killed() {
        let mut child = Command::new("sh")
            .args(["-c", "trap '' TERM; while :; do sleep 0.05; done"])
            .spawn()
            .unwrap();
        let id = ProcessId::of(child.id() as i32).unwrap();
        end(&open([id]).unwrap()).unwrap();
        assert!(!id.is_alive());
        child.wait().unwrap();
    }

    #[test]
    fn only_processes_inside_are_ended() {
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return;
        }
        let (ours, other) = (NetNs::create().unwrap(), NetNs::create().unwrap());
        let sleeper = |ns: &NetNs| {
            ns.run(|| Command::new("sleep").arg("1000").spawn())
                .unwrap()
                .unwrap()
        };
        let mut inner = sleeper(&ours);
        let mut outer = sleeper(&other);
        let id = |child: &std::process::Child| ProcessId::of(child.id() as i32).unwrap();
        let (inner_id, outer_id) = (id(&inner), id(&outer));

        // The same inode with another cookie is another namespace.
        let recycled = NetNsId {
            cookie: u64::MAX,
            ..ours.id().unwrap()
        };
        clear(&[recycled], Certainty::Cookie).unwrap();
        assert!(inner_id.is_alive());

        clear(&[ours.id().unwrap()], Certainty::Cookie).unwrap();
        assert!(!inner_id.is_alive());
        assert!(outer_id.is_alive());
        outer.kill().unwrap();
        inner.wait().unwrap();
        outer.wait().unwrap();
    }
}
