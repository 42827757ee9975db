//! Processes inside namespaces, and the CPU time that they use.

use std::ffi::OsStr;
use std::process::{Child, Command, Stdio};

use hawser_kernel::namespace::NetNs;

/// A command, then the process that runs it. Killed when dropped.
pub struct Process {
    command: Command,
    child: Option<Child>,
}

impl Process {
    /// A process of the program at `path`.
    pub fn new(path: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(path);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Self {
            command,
            child: None,
        }
    }

    /// Another process of this program, in the role `role`.
    pub fn of_this_program(role: &str) -> Self {
        Self::new(std::env::current_exe().unwrap()).arg(role)
    }

    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub fn start(mut self, namespace: &NetNs) -> Self {
        let command = &mut self.command;
        self.child = Some(namespace.run(|| command.spawn()).unwrap().unwrap());
        self
    }

    /// # Panics
    /// If the process has ended.
    pub fn assert_runs(&mut self) {
        let ended = self.child.as_mut().unwrap().try_wait().unwrap();
        if let Some(status) = ended {
            panic!("{:?} has ended: {status}", self.command);
        }
    }

    /// CPU time of all threads so far, in seconds.
    pub fn cpu_time(&self) -> f64 {
        let id = self.child.as_ref().unwrap().id();
        let tasks = std::fs::read_dir(format!("/proc/{id}/task")).unwrap();
        let tasks = tasks.map(|task| task.unwrap().path());
        tasks.map(|task| time_of(&task.join("schedstat"))).sum()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // A process that has ended cannot be killed.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// CPU time of the calling thread so far, in seconds.
pub fn thread_time() -> f64 {
    time_of("/proc/thread-self/schedstat".as_ref())
}

/// The first value of a `schedstat` file: the time on a CPU, in nanoseconds.
fn time_of(file: &std::path::Path) -> f64 {
    let text = std::fs::read_to_string(file).unwrap();
    let time: f64 = text.split(' ').next().unwrap().parse().unwrap();
    time / 1e9
}

/// Time that all CPUs have not been idle so far, in seconds (proc(5), `/proc/stat`).
pub fn machine_time() -> f64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap();
    let line = text.lines().next().unwrap();
    let times = line.split_whitespace().skip(1).take(8);
    let times: Vec<f64> = times.map(|time| time.parse().unwrap()).collect();
    // The fourth and fifth are idle time and waiting for I/O; all are in hundredths of a second.
    (times.iter().sum::<f64>() - times[3] - times[4]) / 100.0
}
