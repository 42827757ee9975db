//! The routers, control services and emulators of a lab, which are children of its supervisor.

use std::error::Error;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hawser_kernel::namespace::NetNs;
use hawser_supervisor::{KILL_TIMEOUT, Policy, Report, ServiceId, Status, Supervisor};

use super::slot::Slot;
use super::starter::Starter;
use crate::dir::LabDir;
use crate::live;
use crate::protocol::History;
use crate::reap::GRACE;
use crate::report::PROGRAM;
use crate::state::{LabState, Service, Settings};

/// Longest time from the start of all services until the last one is ready.
const START_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct Services {
    program: PathBuf,
    supervisor: Supervisor,
    /// By the numbers of the services.
    slots: Vec<Slot>,
}

impl Services {
    /// Starts all services that the lab runs, and enters their processes in `state`.
    pub fn spawn(
        dir: &LabDir,
        settings: &Settings,
        state: &mut LabState,
        namespaces: &[NetNs],
        starter: &Starter,
    ) -> Result<Self, Box<dyn Error>> {
        let program = match std::env::var_os(PROGRAM) {
            Some(program) => PathBuf::from(program),
            None => std::env::current_exe()?,
        };
        let mut slots = Vec::with_capacity(2 * namespaces.len());
        for (owner, as_) in state.ases.iter().enumerate() {
            let as_dir = dir.as_dir(as_.isd_as);
            let services = as_.services().into_iter();
            slots.extend(services.map(|service| {
                let mut slot = Slot::new(owner, service, as_, &as_dir, &program);
                if let (Service::Control, Some(lifetime)) = (service, settings.segment_lifetime) {
                    let lifetime = hawser_topology::format_duration(lifetime);
                    let flag = ["--segment-lifetime".into(), lifetime.into()];
                    slot.args.extend(flag);
                }
                if matches!(service, Service::Router(_)) && settings.enforce_mtu {
                    slot.args.push("--enforce-mtu".into());
                }
                // The control service answers them elsewhere.
                if service == Service::Router(0) && as_.no_control && !settings.no_echo {
                    slot.args.push("--echo".into());
                }
                slot
            }));
        }
        let policy = Policy {
            grace: GRACE,
            ..Policy::default()
        };
        let mut services = Self {
            program,
            supervisor: Supervisor::new(policy)?,
            slots: Vec::with_capacity(slots.len()),
        };
        for slot in slots {
            starter.check()?;
            services.add(slot);
            services.drive(namespaces, state)?;
        }
        Ok(services)
    }

    /// Starts the emulator of an AS that has none. Returns when it is ready.
    pub fn add_emulator(
        &mut self,
        owner: usize,
        dir: &LabDir,
        namespaces: &[NetNs],
        state: &mut LabState,
    ) -> Result<(), Box<dyn Error>> {
        let as_ = &mut state.ases[owner];
        as_.emulates = true;
        let as_dir = dir.as_dir(as_.isd_as);
        let slot = Slot::new(owner, Service::Emulator, as_, &as_dir, &self.program);
        let id = self.add(slot);
        let deadline = Instant::now() + START_TIMEOUT;
        self.wait_for(id, deadline, namespaces, state)
    }

    /// Adds a service, which is started when services are driven next.
    fn add(&mut self, slot: Slot) -> ServiceId {
        self.slots.push(slot);
        self.supervisor.add()
    }

    /// Waits until all services listen on their sockets.
    pub fn wait_ready(
        &mut self,
        namespaces: &[NetNs],
        state: &mut LabState,
        starter: &Starter,
    ) -> Result<(), Box<dyn Error>> {
        let deadline = Instant::now() + START_TIMEOUT;
        for id in self.supervisor.services() {
            starter.check()?;
            self.wait_for(id, deadline, namespaces, state)?;
        }
        Ok(())
    }

    /// When the next service is due for a restart.
    pub fn next_due(&self) -> Option<Instant> {
        self.supervisor.next_due()
    }

    /// Reaps the processes, all of which have ended or were killed. No service is started again.
    pub fn reap(&mut self) -> io::Result<()> {
        self.supervisor.stop_all();
        let nothing = |_| Err(io::ErrorKind::Unsupported.into());
        loop {
            self.supervisor.drive(nothing)?;
            if self.supervisor.is_over() {
                return Ok(());
            }
            self.supervisor.wait(Instant::now() + KILL_TIMEOUT)?;
        }
    }

    /// Reaps the processes that have ended, and restarts the services that are due. Returns whether
    /// `state` has changed.
    pub fn keep_alive(&mut self, namespaces: &[NetNs], state: &mut LabState) -> io::Result<bool> {
        let reports = self.drive(namespaces, state)?;
        let is_started = |report: &Report| matches!(report, Report::Started { .. });
        Ok(reports.iter().any(is_started))
    }

    /// Restarts a service at once. Returns when it is ready.
    pub fn restart(
        &mut self,
        owner: usize,
        service: Service,
        namespaces: &[NetNs],
        state: &mut LabState,
    ) -> Result<(), String> {
        let mut both = self.supervisor.services().zip(&mut self.slots);
        let wanted = both.find(|(_, slot)| slot.owner == owner && slot.service == service);
        let Some((id, slot)) = wanted else {
            return Err(
                "the lab does not run this service: restart it where it was started".into(),
            );
        };
        if matches!(self.supervisor.status(id), Status::Waiting(_))
            && let Some(process) = live::listener(&slot.socket)
        {
            return Err(format!(
                "the {} was started by hand, as process {}: end it, and the lab starts its own",
                slot.name, process.pid
            ));
        }
        slot.ended = None;
        self.supervisor.restart(id);
        let ready = self.wait_for(id, Instant::now() + START_TIMEOUT, namespaces, state);
        ready.map_err(|error| error.to_string())
    }

    /// The history of the services that have ended without a request.
    pub fn histories(&self) -> Vec<History> {
        let now = Instant::now();
        let both = self.supervisor.services().zip(&self.slots);
        both.filter_map(|(id, slot)| {
            Some(History {
                owner: slot.owner,
                service: slot.service,
                ended: slot.ended.clone()?,
                restarts: self.supervisor.restarts(id),
                restart_in: match self.supervisor.status(id) {
                    Status::Waiting(due) => Some(due.saturating_duration_since(now)),
                    _ => None,
                },
            })
        })
        .collect()
    }

    /// Does what is to be done for the services, and logs it.
    fn drive(&mut self, namespaces: &[NetNs], state: &mut LabState) -> io::Result<Vec<Report>> {
        let slots = &self.slots;
        let launch = |id: ServiceId| slots[id.index()].launch(namespaces, state);
        let reports = self.supervisor.drive(launch)?;
        for report in &reports {
            self.log(report);
        }
        Ok(reports)
    }

    fn log(&mut self, report: &Report) {
        match report {
            Report::Started { service, again } if *again => {
                tracing::info!("the {} is started again", self.slots[service.index()].name);
            }
            Report::NotStarted { service, error, .. } => {
                let slot = &mut self.slots[service.index()];
                tracing::warn!("the {} cannot be started: {error}", slot.name);
                slot.ended = Some(format!("cannot start {}: {error}", slot.program.display()));
            }
            Report::Ended {
                service,
                status,
                again_after,
                ..
            } => {
                let how = match status {
                    Ok(status) => status.to_string(),
                    Err(error) => error.to_string(),
                };
                let slot = &mut self.slots[service.index()];
                tracing::warn!(
                    "the {} ended ({how}): started again in {again_after:?}",
                    slot.name
                );
                slot.ended = Some(how);
            }
            Report::Stuck { service } => {
                let name = &self.slots[service.index()].name;
                tracing::error!("the {name} does not end, even when killed");
            }
            _ => {}
        }
    }

    /// Waits until a service that starts is ready.
    fn wait_for(
        &mut self,
        id: ServiceId,
        deadline: Instant,
        namespaces: &[NetNs],
        state: &mut LabState,
    ) -> Result<(), Box<dyn Error>> {
        loop {
            self.drive(namespaces, state)?;
            let slot = &self.slots[id.index()];
            if let Some(how) = &slot.ended {
                return Err(slot.not_ready(how.clone()).into());
            }
            let reason = match self.supervisor.status(id) {
                Status::Ready => return Ok(()),
                Status::Stuck => "its process does not end, even when killed",
                _ if Instant::now() > deadline => "it does not listen on its socket",
                _ => {
                    self.supervisor.wait(deadline)?;
                    continue;
                }
            };
            return Err(slot.not_ready(reason.to_owned()).into());
        }
    }
}

/// Readable when [`Services::keep_alive`] has something to do.
impl AsFd for Services {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.supervisor.as_fd()
    }
}
