//! The services of an AS.

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use hawser_router::live;
use hawser_topology::{AsDir, AsTopology};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::event::{Event, ServiceName};
use crate::service::{Kept, Spec, Status, keep};

/// The services of one version of an AS's configuration, which end when this is dropped.
pub(crate) struct Services {
    kept: Vec<Arc<Kept>>,
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
        let kept: Vec<_> = specs.into_iter().map(Kept::new).map(Arc::new).collect();
        let mut keepers = JoinSet::new();
        for (at, kept) in kept.iter().enumerate() {
            let status = status.clone();
            let report = move |new| status.send_modify(|all| all[at] = new);
            let kept = Arc::clone(kept);
            keepers.spawn(keep(kept, events.clone(), report, stopped.clone()));
        }
        Self {
            kept,
            statuses,
            stop,
            keepers,
        }
    }

    /// The folders of versions that they run from.
    pub fn folders(&self) -> Vec<PathBuf> {
        self.kept.iter().map(|kept| kept.folder()).collect()
    }

    /// Has them go over to the version in `folder`, which has the same routers: border routers while
    /// they run, the control service by another start.
    ///
    /// # Errors
    /// Why a router cannot. Then some may have gone over; all are to be started again.
    pub async fn reload(
        &self,
        program: &Path,
        folder: &Path,
        topology: &AsTopology,
        segments: &Path,
    ) -> Result<(), String> {
        let specs = specs(program, folder, topology, segments);
        let is_router = |spec: &Spec| matches!(spec.name, ServiceName::Router(_));
        for (kept, spec) in self.kept.iter().zip(&specs) {
            if is_router(spec) {
                let socket = reload_router(kept.spec().socket, folder.to_owned()).await?;
                link(&socket, &spec.socket).map_err(|error| error.to_string())?;
            }
        }
        for (kept, spec) in self.kept.iter().zip(specs) {
            let starts_again = !is_router(&spec);
            kept.set_spec(spec);
            if starts_again {
                kept.start_again();
            }
        }
        Ok(())
    }

    /// Whether all are ready.
    pub fn ready(&self) -> bool {
        let statuses = self.statuses.borrow();
        statuses.iter().all(|status| *status == Status::Ready)
    }

    /// The first service that has ended, and why.
    pub fn ended(&self) -> Option<(ServiceName, String)> {
        let statuses = self.statuses.borrow();
        let mut both = self.kept.iter().zip(statuses.iter());
        both.find_map(|(kept, status)| match status {
            Status::Ended(how) => Some((kept.spec().name, how.clone())),
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

/// Makes `path` lead to the socket.
fn link(socket: &Path, path: &Path) -> io::Result<()> {
    if path == socket {
        return Ok(());
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => symlink(socket, path),
    }
}

/// Has the router at `socket` go over to the topology in `folder`. Returns where its socket is.
async fn reload_router(socket: PathBuf, folder: PathBuf) -> Result<PathBuf, String> {
    let call = move || {
        // In the folder that the router was started from, whatever it has gone over to since.
        let socket = socket.canonicalize().map_err(|error| error.to_string())?;
        match live::call(&socket, &live::Request::Reload { folder }) {
            Ok(live::Reply::Done) => Ok(socket),
            Ok(live::Reply::Error { message }) => Err(message),
            Ok(_) => Err("the router sent another answer".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    };
    let called = tokio::task::spawn_blocking(call).await;
    called.unwrap_or_else(|panic| Err(panic.to_string()))
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
            folder: folder.to_owned(),
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
