//! The routers, control services and emulators of a lab, which are children of its supervisor.

use std::error::Error;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hawser_supervisor::{KILL_TIMEOUT, Policy, Report, ServiceId, Status, Supervisor};
use hawser_topology::IsdAsn;

use super::slot::Slot;
use super::starter::Starter;
use crate::build::Namespaces;
use crate::dir::LabDir;
use crate::live;
use crate::protocol::History;
use crate::reap::GRACE;
use crate::report::PROGRAM;
use crate::state::{AsState, LabState, Service, Settings};

/// Longest time from the start of all services until the last one is ready.
const START_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct Services {
    program: PathBuf,
    settings: Settings,
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
        namespaces: &Namespaces,
        starter: &Starter,
    ) -> Result<Self, Box<dyn Error>> {
        let program = match std::env::var_os(PROGRAM) {
            Some(program) => PathBuf::from(program),
            None => std::env::current_exe()?,
        };
        let policy = Policy {
            grace: GRACE,
            ..Policy::default()
        };
        let mut services = Self {
            program,
            settings: settings.clone(),
            supervisor: Supervisor::new(policy)?,
            slots: Vec::with_capacity(2 * namespaces.len()),
        };
        let slots = state.ases.iter().flat_map(|as_| {
            let of_as = as_.services().into_iter();
            of_as.map(|service| services.slot(dir, as_, service))
        });
        let slots: Vec<Slot> = slots.collect();
        for slot in slots {
            starter.check()?;
            services.add(slot);
            services.drive(namespaces, state)?;
        }
        Ok(services)
    }

    /// A service of an AS, with its arguments.
    fn slot(&self, dir: &LabDir, as_: &AsState, service: Service) -> Slot {
        let settings = &self.settings;
        let mut slot = Slot::new(service, as_, &dir.as_dir(as_.isd_as), &self.program);
        if let (Service::Control, Some(lifetime)) = (service, settings.segment_lifetime) {
            let lifetime = hawser_topology::format_duration(lifetime);
            let flag = ["--segment-lifetime".into(), lifetime.into()];
            slot.args.extend(flag);
        }
        if let (Service::Control, Some(daemon)) = (service, as_.daemon) {
            let flag = ["--listen".into(), daemon.to_string().into()];
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
    }

    /// Starts those services of an AS that `is_wanted` selects; those that run go on. Returns when all
    /// of them are ready.
    pub fn start(
        &mut self,
        (isd_as, is_wanted): (IsdAsn, impl Fn(Service) -> bool),
        dir: &LabDir,
        namespaces: &Namespaces,
        state: &mut LabState,
    ) -> Result<(), Box<dyn Error>> {
        let Some(as_) = state.as_mut(isd_as) else {
            return Err(format!("the lab has no AS {isd_as}").into());
        };
        let wanted: Vec<Service> = as_
            .services()
            .into_iter()
            .filter(|s| is_wanted(*s))
            .collect();
        let slots: Vec<Slot> = wanted.iter().map(|s| self.slot(dir, as_, *s)).collect();
        let mut started = Vec::new();
        for slot in slots {
            started.push(match self.find(isd_as, slot.service) {
                // An earlier attempt has added it.
                Some(id) => {
                    self.slots[id.index()].ended = None;
                    if self.supervisor.status(id) != Status::Ready {
                        self.supervisor.restart(id);
                    }
                    id
                }
                None => self.add(slot),
            });
        }
        let deadline = Instant::now() + START_TIMEOUT;
        for id in started {
            self.wait_for(id, deadline, namespaces, state)?;
        }
        Ok(())
    }

    /// Ends those services of an AS that `is_chosen` selects, for good. Returns when they have ended.
    pub fn retire(
        &mut self,
        (isd_as, is_chosen): (IsdAsn, impl Fn(Service) -> bool),
        namespaces: &Namespaces,
        state: &mut LabState,
    ) -> Result<(), Box<dyn Error>> {
        let both = self.supervisor.services().zip(&self.slots);
        let chosen = both.filter(|(_, slot)| slot.isd_as == isd_as && is_chosen(slot.service));
        let chosen: Vec<ServiceId> = chosen.map(|(id, _)| id).collect();
        for id in &chosen {
            self.supervisor.stop(*id);
        }
        let deadline = Instant::now() + GRACE + 2 * KILL_TIMEOUT;
        for id in &chosen {
            loop {
                self.drive(namespaces, state)?;
                let name = &self.slots[id.index()].name;
                match self.supervisor.status(*id) {
                    Status::Down => break,
                    Status::Stuck => return Err(format!("the {name} does not end").into()),
                    _ if Instant::now() > deadline => {
                        return Err(format!("the {name} does not end in time").into());
                    }
                    _ => self.supervisor.wait(deadline)?,
                }
            }
            self.slots[id.index()].is_retired = true;
        }
        Ok(())
    }

    /// Starts the emulator of an AS that has none. Returns when it is ready.
    pub fn add_emulator(
        &mut self,
        isd_as: IsdAsn,
        dir: &LabDir,
        namespaces: &Namespaces,
        state: &mut LabState,
    ) -> Result<(), Box<dyn Error>> {
        if let Some(as_) = state.as_mut(isd_as) {
            as_.emulates = true;
        }
        let is_emulator = |service| service == Service::Emulator;
        self.start((isd_as, is_emulator), dir, namespaces, state)
    }

    /// The service of an AS that is not retired.
    fn find(&self, isd_as: IsdAsn, service: Service) -> Option<ServiceId> {
        let mut both = self.supervisor.services().zip(&self.slots);
        let is_it =
            |slot: &Slot| (slot.isd_as, slot.service, slot.is_retired) == (isd_as, service, false);
        both.find(|(_, slot)| is_it(slot)).map(|(id, _)| id)
    }

    /// Adds a service, which is started when services are driven next. It takes the number of one that
    /// is retired, so that changes of a lab do not add up.
    fn add(&mut self, slot: Slot) -> ServiceId {
        let mut both = self.supervisor.services().zip(&self.slots);
        let free = both.find(|(_, slot)| slot.is_retired).map(|(id, _)| id);
        match free {
            Some(id) => {
                let known = &mut self.slots[id.index()];
                *known = slot;
                known.earlier_restarts = self.supervisor.restarts(id);
                self.supervisor.restart(id);
                id
            }
            None => {
                self.slots.push(slot);
                self.supervisor.add()
            }
        }
    }

    /// Waits until all services listen on their sockets.
    pub fn wait_ready(
        &mut self,
        namespaces: &Namespaces,
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
    pub fn keep_alive(
        &mut self,
        namespaces: &Namespaces,
        state: &mut LabState,
    ) -> io::Result<bool> {
        let reports = self.drive(namespaces, state)?;
        let is_started = |report: &Report| matches!(report, Report::Started { .. });
        Ok(reports.iter().any(is_started))
    }

    /// Restarts a service at once. Returns when it is ready.
    pub fn restart(
        &mut self,
        isd_as: IsdAsn,
        service: Service,
        namespaces: &Namespaces,
        state: &mut LabState,
    ) -> Result<(), String> {
        let Some(id) = self.find(isd_as, service) else {
            return Err(
                "the lab does not run this service: restart it where it was started".into(),
            );
        };
        let slot = &mut self.slots[id.index()];
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
        both.filter(|(_, slot)| !slot.is_retired)
            .filter_map(|(id, slot)| {
                Some(History {
                    isd_as: slot.isd_as,
                    service: slot.service,
                    ended: slot.ended.clone()?,
                    restarts: self.supervisor.restarts(id) - slot.earlier_restarts,
                    restart_in: match self.supervisor.status(id) {
                        Status::Waiting(due) => Some(due.saturating_duration_since(now)),
                        _ => None,
                    },
                })
            })
            .collect()
    }

    /// Does what is to be done for the services, and logs it.
    fn drive(&mut self, namespaces: &Namespaces, state: &mut LabState) -> io::Result<Vec<Report>> {
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
        namespaces: &Namespaces,
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
