//! The processes of a set of services.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData};
use rustix::io::Errno;
use rustix::process::Signal;

use crate::handle::poll_until;
use crate::policy::Policy;
use crate::process::Process;
use crate::report::Report;
use crate::service::{Exit, Status};
use crate::set::{Order, ServiceId, ServiceSet};

/// Most events of processes that are taken at once; further ones are taken the next time.
const MAX_EVENTS: usize = 64;

/// The answer to the order to start a service.
#[derive(Debug)]
pub enum Launch {
    /// It was started.
    Started {
        /// Its process. If standard error is a pipe, its lines are reported.
        child: Child,
        /// The Unix socket that it listens on when it is ready; `None` if it counts as ready at once.
        socket: Option<PathBuf>,
    },
    /// It must not be started for this time, which is no failure: as when somebody else runs it.
    Postponed(Duration),
}

/// Services and their processes. The processes that still run when this is dropped are killed; end
/// them before with [`Supervisor::stop_all`].
///
/// Its file descriptor is readable when [`Supervisor::drive`] has something to do.
#[derive(Debug)]
pub struct Supervisor {
    set: ServiceSet,
    /// By the number of the service.
    processes: Vec<Option<Process>>,
    epoll: OwnedFd,
    /// Whether there are events that were not taken yet.
    has_more: bool,
}

impl Supervisor {
    /// A supervisor without services.
    ///
    /// # Errors
    /// When there are too many open files.
    pub fn new(policy: Policy) -> io::Result<Self> {
        Ok(Self {
            set: ServiceSet::new(policy),
            processes: Vec::new(),
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            has_more: false,
        })
    }

    /// Adds a service, which is started at the next call of [`Supervisor::drive`].
    pub fn add(&mut self) -> ServiceId {
        self.processes.push(None);
        self.set.add(Instant::now())
    }

    /// All services, in the order in which they were added.
    pub fn services(&self) -> impl Iterator<Item = ServiceId> + use<> {
        self.set.ids()
    }

    /// Has the process of a service end, and another one start at once.
    pub fn restart(&mut self, service: ServiceId) {
        self.set.restart(service, Instant::now());
    }

    /// Has the process of a service end. The service stays down until [`Supervisor::restart`].
    pub fn stop(&mut self, service: ServiceId) {
        self.set.stop(service);
    }

    /// Has all services end. From now on nothing is started; [`Supervisor::is_over`] holds after
    /// [`Policy::grace`] and [`Policy::kill_timeout`] at the latest.
    pub fn stop_all(&mut self) {
        self.set.stop_all();
    }

    /// Whether no process runs that could end.
    pub fn is_over(&self) -> bool {
        self.set.is_over()
    }

    /// The state of a service.
    pub fn status(&self, service: ServiceId) -> Status {
        self.set.status(service)
    }

    /// How often a service was started after it had ended by itself.
    pub fn restarts(&self, service: ServiceId) -> u32 {
        self.set.restarts(service)
    }

    /// Whether the process with this number is one of a service that was not reaped.
    pub fn owns(&self, pid: u32) -> bool {
        let mut processes = self.processes.iter().flatten();
        processes.any(|process| process.pid() == pid)
    }

    /// When [`Supervisor::drive`] has something to do at the latest.
    pub fn next_due(&self) -> Option<Instant> {
        let now = Instant::now();
        match self.has_more {
            true => Some(now),
            false => self.set.next_due(now),
        }
    }

    /// Waits until [`Supervisor::drive`] has something to do, at most until `deadline`.
    ///
    /// # Errors
    /// When the kernel has too little memory.
    pub fn wait(&self, deadline: Instant) -> io::Result<()> {
        let due = self.next_due().map_or(deadline, |due| due.min(deadline));
        poll_until(self.as_fd(), Some(due)).map(drop)
    }

    /// Takes the events of the processes, and does what is to be done; `launch` starts a service.
    /// Does not wait for anything. Returns what has happened.
    ///
    /// # Errors
    /// When events cannot be taken; no process is watched then any more.
    pub fn drive(
        &mut self,
        mut launch: impl FnMut(ServiceId) -> io::Result<Launch>,
    ) -> io::Result<Vec<Report>> {
        let mut reports = Vec::new();
        self.take_events(&mut reports)?;
        loop {
            let orders = self.set.orders(Instant::now());
            if orders.is_empty() {
                return Ok(reports);
            }
            for order in orders {
                self.obey(order, &mut launch, &mut reports);
            }
        }
    }

    fn take_events(&mut self, reports: &mut Vec<Report>) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(MAX_EVENTS);
        let buffer = rustix::buffer::spare_capacity(&mut events);
        self.has_more = match epoll::wait(&self.epoll, buffer, Some(&Timespec::default())) {
            Ok(count) => count == MAX_EVENTS,
            Err(Errno::INTR) => true,
            Err(error) => return Err(error.into()),
        };
        // One whose end and lines are there occurs twice.
        let mut indices: Vec<_> = events.iter().map(|event| event.data.u64()).collect();
        indices.sort_unstable();
        indices.dedup();
        for index in indices {
            self.take_event(ServiceId(index as usize), reports);
        }
        Ok(())
    }

    fn take_event(&mut self, service: ServiceId, reports: &mut Vec<Report>) {
        let slot = &mut self.processes[service.0];
        let Some(process) = slot else {
            return;
        };
        let say = |line| reports.push(Report::Said { service, line });
        let Some(status) = process.reap() else {
            self.has_more |= process.read_lines(&self.epoll, say);
            return;
        };
        let process = slot.take();
        let last_line = process.and_then(|process| process.finish(&self.epoll, say));
        reports.extend(match self.set.on_exited(service, Instant::now()) {
            Some(Exit::Unexpected(again_after)) => Some(Report::Ended {
                service,
                status,
                last_line,
                again_after,
            }),
            Some(Exit::Requested) => Some(Report::Stopped { service }),
            None => None,
        });
    }

    fn obey(
        &mut self,
        order: Order,
        launch: &mut impl FnMut(ServiceId) -> io::Result<Launch>,
        reports: &mut Vec<Report>,
    ) {
        match order {
            Order::Launch(service) => self.launch(service, launch(service), reports),
            Order::Probe(service) => {
                if self.processes[service.0]
                    .as_ref()
                    .is_none_or(Process::is_ready)
                {
                    self.set.on_ready(service);
                    reports.push(Report::Ready { service });
                }
            }
            Order::Terminate(service) => self.signal(service, Signal::TERM),
            Order::Kill(service) => self.signal(service, Signal::KILL),
            Order::Abandon(service) => reports.push(Report::Stuck { service }),
        }
    }

    fn launch(
        &mut self,
        service: ServiceId,
        launched: io::Result<Launch>,
        reports: &mut Vec<Report>,
    ) {
        let watched = launched.and_then(|launch| match launch {
            Launch::Started { child, socket } => {
                let events = EventData::new_u64(service.0 as u64);
                Process::watch(child, socket, &self.epoll, events).map(Ok)
            }
            Launch::Postponed(time) => Ok(Err(time)),
        });
        let now = Instant::now();
        match watched {
            Ok(Ok(process)) => {
                self.processes[service.0] = Some(process);
                let before = self.set.restarts(service);
                self.set.on_started(service, now);
                let again = self.set.restarts(service) > before;
                reports.push(Report::Started { service, again });
            }
            Ok(Err(time)) => self.set.on_postponed(service, now + time),
            Err(error) => {
                reports.extend(self.set.on_failed(service, now).map(|again_after| {
                    Report::NotStarted {
                        service,
                        error,
                        again_after,
                    }
                }));
            }
        }
    }

    fn signal(&self, service: ServiceId, signal: Signal) {
        if let Some(process) = &self.processes[service.0] {
            // A process that cannot be signalled, as one that has changed its user, is stuck in the
            // end, which is reported.
            let _ = process.signal(signal);
        }
    }
}

impl AsFd for Supervisor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl AsRawFd for Supervisor {
    fn as_raw_fd(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        for process in self.processes.iter().flatten() {
            let _ = process.signal(Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests;
