//! What a lab needs of a machine, and what the machine has.

use std::fs;
use std::path::{Path, PathBuf};

use hawser_topology::Network;

/// Bytes of memory of a border router or control service at rest, of pages that several share its part, as
/// `hawser bench ases` measured them (2.4 MiB in a release build), with some room.
const SERVICE_BYTES: u64 = 3 << 20;
/// Bytes of memory of what runs once: the supervisor, and the program's own pages.
const LAB_BYTES: u64 = 32 << 20;
/// Threads of a service at rest.
const SERVICE_THREADS: u64 = 2;

/// What a lab needs, or what a machine has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resources {
    /// Bytes of memory.
    pub memory: u64,
    /// Threads of processes.
    pub threads: u64,
}

impl Resources {
    /// An estimate of what a network needs at rest. Traffic, and many segments, need more.
    pub fn needed(network: &Network) -> Self {
        let ases = network.ases.iter();
        let routers = ases.map(|as_| network.routers(as_.isd_as).len() as u64);
        let services = routers.sum::<u64>() + network.ases.len() as u64;
        Self {
            memory: LAB_BYTES + SERVICE_BYTES * services,
            threads: SERVICE_THREADS * services,
        }
    }

    /// What this machine has left, also by the limits of the control group of this process (version 2). What
    /// cannot be read is no bound.
    pub fn available() -> Self {
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        let number = |path: &str| read(Path::new(path)).trim().parse().unwrap_or(u64::MAX);
        let mut available = Self {
            memory: available_memory(&read(Path::new("/proc/meminfo"))).unwrap_or(u64::MAX),
            threads: number("/proc/sys/kernel/threads-max").min(number("/proc/sys/kernel/pid_max")),
        };
        let group = group(&read(Path::new("/proc/self/cgroup"))).unwrap_or_default();
        for folder in Path::new("/sys/fs/cgroup").join(group).ancestors() {
            let left = |what: &str| {
                let of = |name: &str| read(&folder.join(format!("{what}.{name}")));
                left(&of("max"), &of("current"))
            };
            available.memory = available.memory.min(left("memory").unwrap_or(u64::MAX));
            available.threads = available.threads.min(left("pids").unwrap_or(u64::MAX));
        }
        available
    }
}

/// `MemAvailable` of proc_meminfo(5), in bytes.
fn available_memory(meminfo: &str) -> Option<u64> {
    let mut lines = meminfo.lines();
    let value = lines.find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The path of the control group (version 2) below its mount, of cgroups(7).
fn group(cgroup: &str) -> Option<PathBuf> {
    let mut lines = cgroup.lines();
    let path = lines.find_map(|line| line.strip_prefix("0::/"))?;
    Some(PathBuf::from(path))
}

/// What is left of a limit; `None` without one.
fn left(max: &str, current: &str) -> Option<u64> {
    let max: u64 = max.trim().parse().ok()?;
    Some(max.saturating_sub(current.trim().parse().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

    use super::*;

    #[test]
    fn each_service_is_counted() {
        let text = "ASes:\n  \"1-ff00:0:1\": {core: true}\n  \"1-ff00:0:2\": {}\nlinks:\n  \
                    - {a: \"1-ff00:0:1-a#1\", b: \"1-ff00:0:2#1\", linkAtoB: CHILD}\n  \
                    - {a: \"1-ff00:0:1-b#2\", b: \"1-ff00:0:2#2\", linkAtoB: CHILD}\n";
        let needed = Resources::needed(&Network::parse(text).unwrap());
        // Three routers and two control services.
        assert_eq!(needed.memory, LAB_BYTES + 5 * SERVICE_BYTES);
        assert_eq!(needed.threads, 5 * SERVICE_THREADS);
    }

    #[test]
    fn what_is_left_is_read() {
        assert_eq!(
            available_memory("MemFree: 1 kB\nMemAvailable:   2048 kB\n"),
            Some(2 << 20)
        );
        assert_eq!(available_memory("MemAvailable: x kB\n"), None);
        assert_eq!(group("1:name=x:/y\n0::/a/b\n"), Some(PathBuf::from("a/b")));
        assert_eq!(group("1:name=x:/y\n"), None);
        assert_eq!(left("100\n", "30\n"), Some(70));
        assert_eq!(left("10\n", "30\n"), Some(0));
        assert_eq!(left("max\n", "30\n"), None);
        let available = Resources::available();
        assert!(
            available.memory > 1 << 20 && available.threads > 1,
            "{available:?}"
        );
    }
}
