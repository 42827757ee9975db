//! Processes, identified by more than their number, which the system may reuse.

use std::io;

use hawser_supervisor::Handle;
use serde::{Deserialize, Serialize};

/// The identity of a process: the pair is unique until the next boot, even if the system reuses the
/// number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessId {
    pub pid: i32,
    /// Its start time in clock ticks since boot: field 22 of proc_pid_stat(5).
    pub started: u64,
}

/// The parts of `/proc/PID/stat` that are used here.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    zombie: bool,
    started: u64,
}

impl ProcessId {
    /// The process with the number `pid`. Fails if there is none.
    pub fn of(pid: i32) -> io::Result<Self> {
        let started = read_stat(pid)?.started;
        Ok(Self { pid, started })
    }

    /// This process.
    pub fn own() -> io::Result<Self> {
        Self::of(rustix::process::getpid().as_raw_nonzero().get())
    }

    /// Whether the process runs. A zombie does not run.
    pub fn is_alive(&self) -> bool {
        read_stat(self.pid).is_ok_and(|stat| !stat.zombie && stat.started == self.started)
    }

    /// Resident memory in bytes: RSS in proc_pid_statm(5).
    pub fn resident(&self) -> Option<u64> {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.pid)).ok()?;
        let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
        let page = rustix::param::page_size() as u64;
        self.is_alive().then_some(pages * page)
    }

    /// A handle to this process; `None` if it has ended.
    pub fn open(&self) -> io::Result<Option<Handle>> {
        let handle = Handle::open(self.pid)?;
        // The check comes after opening: the handle could belong to a process that has reused the
        // number.
        Ok(handle.filter(|_| self.is_alive()))
    }
}

/// The numbers of all processes.
pub(crate) fn all() -> io::Result<Vec<i32>> {
    let mut pids = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        if let Some(pid) = entry?.file_name().to_str().and_then(|n| n.parse().ok()) {
            pids.push(pid);
        }
    }
    Ok(pids)
}

/// The ID of the current boot. Start times count from boot, so they identify a process only within
/// one boot.
pub(crate) fn boot_id() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?
        .trim()
        .to_owned())
}

fn read_stat(pid: i32) -> io::Result<Stat> {
    let text = std::fs::read(format!("/proc/{pid}/stat"))?;
    parse_stat(&String::from_utf8_lossy(&text)).ok_or_else(|| {
        let message = format!("/proc/{pid}/stat is not as proc_pid_stat(5) says");
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

/// Parses proc_pid_stat(5). The second field is the program's name in brackets, which may contain
/// brackets and spaces: the other fields follow the last closing bracket.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.parse().ok()?;
    Some(Stat {
        zombie: matches!(state, "Z" | "X" | "x"),
        started,
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use proptest::prelude::*;
    use rustix::process::Signal;

    use super::*;

    #[test]
    fn names_with_brackets_are_parsed() {
        let text = "7 (a) S (b) R 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        let expected = Stat {
            zombie: false,
            started: 4242,
        };
        assert_eq!(parse_stat(text), Some(expected));
    }

    #[test]
    fn this_process_is_identified() {
        let own = ProcessId::own().unwrap();
        assert!(own.is_alive());
        assert!(own.resident().unwrap() > 0);
        let earlier = ProcessId {
            started: own.started + 1,
            ..own
        };
        assert!(!earlier.is_alive());
        assert!(earlier.open().unwrap().is_none());
        assert_eq!(earlier.resident(), None);
    }

    #[test]
    fn a_child_is_ended_through_its_handle() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let id = ProcessId::of(child.id() as i32).unwrap();
        assert!(all().unwrap().contains(&id.pid));
        let handle = id.open().unwrap().unwrap();
        assert!(!handle.wait_until(Instant::now()).unwrap());
        handle.signal(Signal::KILL).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        assert!(handle.wait_until(deadline).unwrap());
        // The child has ended, but has not been reaped.
        assert!(!id.is_alive());
        child.wait().unwrap();
        handle.signal(Signal::KILL).unwrap();
        assert!(id.open().unwrap().is_none());
    }

    proptest! {
        #[test]
        fn parsing_any_text_never_panics(text in "\\PC*") {
            let _ = parse_stat(&text);
        }
    }
}
