//! Processor time of running processes.

use rustix::param::clock_ticks_per_second;

/// Least share of the processor time of all that a process must have used to be reported: idle ones
/// use some too, for keeping sessions alive.
const IDLE: f64 = 0.02;

/// Measures the processor time of processes from its creation on.
#[derive(Debug)]
pub struct Meter(Vec<(u32, f64)>);

impl Meter {
    /// Begins to measure.
    pub fn new(processes: impl IntoIterator<Item = u32>) -> Self {
        let processes = processes.into_iter();
        Self(
            processes
                .filter_map(|pid| Some((pid, seconds(pid)?)))
                .collect(),
        )
    }

    /// Seconds of processor time since the beginning, of each process that took part.
    pub fn used(&self) -> Vec<f64> {
        let mut used: Vec<f64> = self.since().collect();
        let all: f64 = used.iter().sum();
        used.retain(|used| *used > IDLE * all);
        used
    }

    /// Seconds of processor time since the beginning, of all processes together. Where there are many,
    /// each has a small part.
    pub fn total(&self) -> f64 {
        self.since().sum()
    }

    /// Those of each process that has not ended.
    fn since(&self) -> impl Iterator<Item = f64> {
        let processes = self.0.iter();
        processes.filter_map(|&(pid, before)| Some(seconds(pid)? - before))
    }
}

/// Processor time of a process so far, in seconds; `None` if it has ended.
pub fn seconds(pid: u32) -> Option<f64> {
    read(&pid.to_string(), OWN)
}

/// The running processes that have an argument.
pub fn with_argument(argument: &str) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let has_it = |pid: &u32| {
        // One that has ended meanwhile has none.
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0)
            .any(|one| one == argument.as_bytes())
    };
    pids.filter(has_it).collect()
}

/// Processor time of the children of this process that have ended, in seconds.
pub fn of_children() -> Option<f64> {
    read("self", CHILDREN)
}

/// User and system time of a process, as fields behind its name (proc_pid_stat(5), 14 and 15).
const OWN: usize = 11;

/// The same of its children that have ended (16 and 17).
const CHILDREN: usize = 13;

fn read(pid: &str, of: usize) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    ticks(&stat, of).map(|ticks| ticks as f64 / clock_ticks_per_second() as f64)
}

/// User and system time together, in clock ticks.
fn ticks(stat: &str, of: usize) -> Option<u64> {
    // The name of the program, in parentheses, may contain spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(of);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_read_behind_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 31 11 2 3 20 0 1 0 5 1 1";
        assert_eq!(ticks(stat, OWN), Some(42));
        assert_eq!(ticks(stat, CHILDREN), Some(5));
        for wrong in ["", "7 (a", "7 (a) S 1 2"] {
            assert_eq!(ticks(wrong, OWN), None, "{wrong:?}");
        }
    }

    #[test]
    fn processes_are_found_by_an_argument() {
        let own = std::env::args().next().unwrap();
        assert!(with_argument(&own).contains(&std::process::id()));
        assert!(with_argument("an argument that no process has").is_empty());
    }

    #[test]
    fn this_process_uses_time() {
        let own = std::process::id();
        let meter = Meter::new([own, u32::MAX]);
        let before = seconds(own).unwrap();
        let mut work = 0u64;
        while seconds(own).unwrap() == before {
            work = std::hint::black_box(work.wrapping_add(1));
        }
        assert_eq!(meter.used().len(), 1);
        assert!(meter.total() > 0.0);
    }
}
