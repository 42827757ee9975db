//! A supervisor inside a Tokio runtime.

use std::io;
use std::time::Instant;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::sleep_until;

use crate::supervisor::Supervisor;

/// A supervisor whose events are awaited.
#[derive(Debug)]
pub struct AsyncSupervisor(AsyncFd<Supervisor>);

impl AsyncSupervisor {
    /// Registers a supervisor with the runtime of the calling task.
    ///
    /// # Errors
    /// When there are too many watched files.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn new(supervisor: Supervisor) -> io::Result<Self> {
        // SAFETY: the file descriptor is that of an epoll instance that the supervisor keeps open,
        // and never replaces, until it is dropped.
        let fd = unsafe { AsyncFd::register_with_interest(supervisor, Interest::READABLE) };
        Ok(Self(fd?))
    }

    /// Waits until [`Supervisor::drive`] has something to do. It must be called then, before this is
    /// called again. Can be cancelled.
    ///
    /// # Errors
    /// When the runtime shuts down.
    pub async fn is_due(&self) -> io::Result<()> {
        let due = self.get().next_due();
        let Some(due) = due else {
            return self.has_events().await;
        };
        if due <= Instant::now() {
            return Ok(());
        }
        tokio::select! {
            ready = self.has_events() => ready,
            () = sleep_until(due.into()) => Ok(()),
        }
    }

    async fn has_events(&self) -> io::Result<()> {
        // Cleared before the events are taken: those that come later count anew.
        self.0.readable().await?.clear_ready();
        Ok(())
    }

    /// The supervisor.
    pub fn get(&self) -> &Supervisor {
        self.0.get_ref()
    }

    /// The supervisor, to drive it.
    pub fn get_mut(&mut self) -> &mut Supervisor {
        self.0.get_mut()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::{Launch, Policy, Report};

    #[tokio::test(flavor = "current_thread")]
    async fn the_end_of_a_process_is_noticed() {
        let supervisor = Supervisor::new(Policy::default()).unwrap();
        let mut supervisor = AsyncSupervisor::new(supervisor).unwrap();
        supervisor.get_mut().add();
        let mut all = Vec::new();
        while !matches!(all.last(), Some(Report::Started { again: true, .. })) {
            supervisor.is_due().await.unwrap();
            let launch = |_| {
                let child = Command::new("true").spawn()?;
                Ok(Launch::Started {
                    child,
                    socket: None,
                })
            };
            let reports = supervisor.get_mut().drive(launch).unwrap();
            let is_ready = |report: &Report| matches!(report, Report::Ready { .. });
            all.extend(reports.into_iter().filter(|report| !is_ready(report)));
        }
        let [
            Report::Started { again: false, .. },
            Report::Ended { .. },
            _,
        ] = &all[..]
        else {
            panic!("{all:?}");
        };
    }
}
