//! The services of an AS.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use hawser_topology::{AsDir, AsTopology};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::event::{Event, ServiceName};
use crate::service::{Spec, Status, keep};

/// The services of one version of an AS's configuration, which end when this is dropped.
pub(crate) struct Services {
    /// The folder of the version.
    folder: PathBuf,
    names: Vec<ServiceName>,
    statuses: watch::Receiver<Vec<Status>>,
    stop: watch::Sender<bool>,
    keepers: JoinSet<()>,
}

impl Services {
    /// Starts the services of the AS in `folder`: its border routers, and its control service with
    /// the segments in the file `segments`.
    pub fn start(
        program: &Path,
        folder: PathBuf,
        topology: &AsTopology,
        segments: &Path,
        events: &UnboundedSender<Event>,
    ) -> Self {
        let specs = specs(program, &folder, topology, segments);
        let (stop, stopped) = watch::channel(false);
        let (status, statuses) = watch::channel(vec![Status::Starting; specs.len()]);
        let names = specs.iter().map(|spec| spec.name.clone()).collect();
        let mut keepers = JoinSet::new();
        for (at, spec) in specs.into_iter().enumerate() {
            let status = status.clone();
            let report = move |new| status.send_modify(|all| all[at] = new);
            keepers.spawn(keep(spec, events.clone(), report, stopped.clone()));
        }
        Self {
            folder,
            names,
            statuses,
            stop,
            keepers,
        }
    }

    /// The folder of the version that they run from.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether all are ready.
    pub fn ready(&self) -> bool {
        let statuses = self.statuses.borrow();
        statuses.iter().all(|status| *status == Status::Ready)
    }

    /// The first service that has ended, and why.
    pub fn ended(&self) -> Option<(ServiceName, String)> {
        let statuses = self.statuses.borrow();
        let mut both = self.names.iter().zip(statuses.iter());
        both.find_map(|(name, status)| match status {
            Status::Ended(how) => Some((name.clone(), how.clone())),
            _ => None,
        })
    }

    /// Waits until the status of one changes.
    pub async fn changed(&mut self) {
        if self.statuses.changed().await.is_err() {
            // All keepers have ended, which they do only when they are stopped.
            std::future::pending::<()>().await;
        }
    }

    /// Stops them, and waits until they have ended.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        while self.keepers.join_next().await.is_some() {}
    }
}

fn specs(program: &Path, folder: &Path, topology: &AsTopology, segments: &Path) -> Vec<Spec> {
    let dir = AsDir::new(folder);
    let several = topology.border_routers.len() > 1;
    let owner = std::process::id().to_string();
    let spec = |name, command: [&str; 2], further: Vec<OsString>, socket| {
        let mut args: Vec<OsString> = command.map(OsString::from).into();
        args.push(folder.into());
        args.extend(["--owner".into(), owner.clone().into()]);
        args.extend(further);
        Spec {
            name,
            program: program.to_owned(),
            args,
            socket,
        }
    };
    let routers = topology.border_routers.keys().map(|id| {
        let socket = match several {
            true => dir.router_socket_of(id),
            false => dir.router_socket(),
        };
        let further = match several {
            true => vec!["--id".into(), id.into()],
            false => Vec::new(),
        };
        spec(
            ServiceName::Router(id.clone()),
            ["router", "run"],
            further,
            socket,
        )
    });
    let segments = vec!["--segments".into(), segments.into()];
    let socket = dir.control_socket();
    let control = spec(ServiceName::Control, ["control", "run"], segments, socket);
    routers.chain([control]).collect()
}
