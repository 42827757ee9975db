//! The task that keeps the services of an AS alive, as child processes.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use hawser_supervisor::{AsyncSupervisor, Launch, Policy, Report, ServiceId, Status, Supervisor};
use tokio::sync::mpsc::{Receiver, UnboundedSender};
use tokio::sync::{oneshot, watch};

use crate::event::{Event, ServiceName};

/// Longest line of a service that is passed on, in characters.
const MAX_LINE: usize = 1000;

/// What is started, and how it shows that it is ready.
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    pub name: ServiceName,
    /// The folder of the version of the configuration.
    pub folder: PathBuf,
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// The Unix socket that it listens on when it is ready.
    pub socket: PathBuf,
}

impl Spec {
    fn launch(&self) -> io::Result<Launch> {
        let child = Command::new(&self.program)
            .args(&self.args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let socket = Some(self.socket.clone());
        Ok(Launch::Started { child, socket })
    }
}

/// What is known of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServiceState {
    pub is_ready: bool,
    /// How it ended; `None` while it runs.
    pub ended: Option<String>,
    /// The folder from which its process was started.
    pub folder: PathBuf,
}

/// A change of the services: what is started from now on.
#[derive(Debug)]
pub(crate) struct Change {
    /// For each service, and whether another process is to start from it at once.
    pub specs: Vec<(Spec, bool)>,
    /// Told when nothing starts from the former ones any more.
    pub done: oneshot::Sender<()>,
}

/// The services and their processes, which are killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Keeper {
    supervisor: AsyncSupervisor,
    /// By the number of the service.
    specs: Vec<Spec>,
    states: Vec<ServiceState>,
    reported: watch::Sender<Vec<ServiceState>>,
    events: UnboundedSender<Event>,
}

impl Keeper {
    /// Services that are started by [`Keeper::keep`]. Must be called inside a Tokio runtime.
    pub fn new(specs: Vec<Spec>, events: UnboundedSender<Event>) -> io::Result<Self> {
        let mut supervisor = Supervisor::new(Policy::default())?;
        for _ in &specs {
            supervisor.add();
        }
        let state = |spec: &Spec| ServiceState {
            is_ready: false,
            ended: None,
            folder: spec.folder.clone(),
        };
        let states: Vec<_> = specs.iter().map(state).collect();
        Ok(Self {
            supervisor: AsyncSupervisor::new(supervisor)?,
            specs,
            reported: watch::Sender::new(states.clone()),
            states,
            events,
        })
    }

    /// What is known of the services, by their numbers.
    pub fn states(&self) -> watch::Receiver<Vec<ServiceState>> {
        self.reported.subscribe()
    }

    /// Keeps the services alive until `changes` has no sender any more, and then ends them.
    pub async fn keep(mut self, mut changes: Receiver<Change>) -> io::Result<()> {
        let mut is_stopping = false;
        loop {
            self.drive()?;
            if is_stopping && self.supervisor.get().is_over() {
                return Ok(());
            }
            tokio::select! {
                change = changes.recv(), if !is_stopping => match change {
                    Some(change) => self.change(change)?,
                    None => {
                        is_stopping = true;
                        self.supervisor.get_mut().stop_all();
                    }
                },
                due = self.supervisor.is_due() => due?,
            }
        }
    }

    fn change(&mut self, change: Change) -> io::Result<()> {
        let supervisor = self.supervisor.get_mut();
        for (id, (spec, starts_again)) in supervisor.services().zip(change.specs) {
            self.specs[id.index()] = spec;
            if starts_again {
                supervisor.restart(id);
            }
        }
        // The states then show what starts again.
        self.drive()?;
        // Who asked may be gone.
        let _ = change.done.send(());
        Ok(())
    }

    /// Does what is to be done for the services, and reports it.
    fn drive(&mut self) -> io::Result<()> {
        let (specs, states) = (&self.specs, &mut self.states);
        let launch = |id: ServiceId| {
            let spec = &specs[id.index()];
            states[id.index()].folder.clone_from(&spec.folder);
            spec.launch()
        };
        let reports = self.supervisor.get_mut().drive(launch)?;
        for report in reports {
            self.report(report);
        }
        let supervisor = self.supervisor.get();
        for (id, state) in supervisor.services().zip(&mut self.states) {
            state.is_ready = supervisor.status(id) == Status::Ready;
        }
        self.reported.send_if_modified(|reported| {
            let is_new = *reported != self.states;
            if is_new {
                reported.clone_from(&self.states);
            }
            is_new
        });
        Ok(())
    }

    fn report(&mut self, report: Report) {
        let (service, how, again_after) = match report {
            Report::Started { service, .. } => {
                self.states[service.index()].ended = None;
                return;
            }
            Report::Said { service, line } => {
                let service = self.specs[service.index()].name.clone();
                let line = line.chars().take(MAX_LINE).collect();
                return self.tell(Event::Said { service, line });
            }
            Report::Stuck { service } => {
                let name = &self.specs[service.index()].name;
                return tracing::error!("the {name} does not end, even when killed");
            }
            Report::NotStarted {
                service,
                error,
                again_after,
            } => {
                let program = self.specs[service.index()].program.display();
                (
                    service,
                    format!("cannot run {program}: {error}"),
                    again_after,
                )
            }
            Report::Ended {
                service,
                status,
                last_line,
                again_after,
            } => {
                let how = match (last_line, status) {
                    (Some(line), _) => plain(&line),
                    (None, Ok(status)) => status.to_string(),
                    (None, Err(error)) => error.to_string(),
                };
                (service, how, again_after)
            }
            // The states show them.
            _ => return,
        };
        self.states[service.index()].ended = Some(how.clone());
        let service = self.specs[service.index()].name.clone();
        self.tell(Event::Ended {
            service,
            how,
            again_after,
        });
    }

    fn tell(&self, event: Event) {
        // Without a receiver nobody wants to know.
        let _ = self.events.send(event);
    }
}

/// What an error says, without the name of the program.
fn plain(line: &str) -> String {
    let line = line.strip_prefix("hawser: ").unwrap_or(line);
    line.chars().take(MAX_LINE).collect()
}
