//! How often processes are woken.

use std::collections::HashMap;

/// Counts how often the threads of processes wait from its creation on: a thread that waits once is woken
/// once.
#[derive(Debug)]
pub struct WakeUps {
    processes: Vec<u32>,
    before: HashMap<u32, u64>,
}

impl WakeUps {
    /// Begins to count.
    pub fn new(processes: impl IntoIterator<Item = u32>) -> Self {
        let processes: Vec<u32> = processes.into_iter().collect();
        let before = all(&processes);
        Self { processes, before }
    }

    /// How often all threads together have waited since. Those that have ended are left out; those that
    /// were started since count from their start.
    pub fn count(&self) -> u64 {
        let now = all(&self.processes).into_iter();
        let since = now.map(|(thread, switches)| {
            switches.saturating_sub(self.before.get(&thread).copied().unwrap_or(0))
        });
        since.sum()
    }
}

/// The voluntary context switches of each thread.
fn all(processes: &[u32]) -> HashMap<u32, u64> {
    let threads = processes.iter().flat_map(|process| {
        let threads = std::fs::read_dir(format!("/proc/{process}/task"));
        let threads = threads.into_iter().flatten();
        threads.filter_map(|one| one.ok()?.file_name().to_str()?.parse::<u32>().ok())
    });
    let counts = threads.filter_map(|thread| {
        // A thread that has ended has none.
        let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
        Some((thread, voluntary(&status)?))
    });
    counts.collect()
}

/// `voluntary_ctxt_switches` of proc_pid_status(5).
fn voluntary(status: &str) -> Option<u64> {
    let mut lines = status.lines();
    let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    count.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn the_line_is_found() {
        let status = "Name:\tx\nnonvoluntary_ctxt_switches:\t7\nvoluntary_ctxt_switches:\t42\n";
        assert_eq!(voluntary(status), Some(42));
        assert_eq!(voluntary("Name:\tx\nvoluntary_ctxt_switches:\tx\n"), None);
    }

    #[test]
    fn threads_that_wait_are_counted() {
        let (ask, asked) = mpsc::channel::<()>();
        let (answer, answered) = mpsc::channel();
        let thread = thread::spawn(move || asked.iter().for_each(|()| answer.send(()).unwrap()));
        let wake_ups = WakeUps::new([std::process::id(), u32::MAX]);
        // Either thread waits for the other in some of these.
        while wake_ups.count() == 0 {
            ask.send(()).unwrap();
            answered.recv().unwrap();
        }
        drop(ask);
        thread.join().unwrap();
    }
}
