//! The services of an AS.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

use hawser_bundle::ServiceChange;
use hawser_control::live as control;
use hawser_router::live as router;
use hawser_topology::{AsDir, AsTopology, LinkState};
use tokio::sync::mpsc::{Sender, UnboundedSender, channel};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use crate::event::{Event, ServiceName};
use crate::keeper::{Change, Keeper, ServiceState, Spec};

/// The services of one version of an AS's configuration, which are killed when this is dropped.
pub(crate) struct Services {
    specs: Vec<Spec>,
    states: watch::Receiver<Vec<ServiceState>>,
    changes: Sender<Change>,
    /// The task that keeps them.
    keeper: JoinSet<io::Result<()>>,
}

impl Services {
    /// Starts the services of the AS in `folder`: its border routers, and its control service with
    /// the segments in the file `segments`.
    ///
    /// # Errors
    /// When there are too many open files.
    pub fn start(
        program: &Path,
        folder: &Path,
        topology: &AsTopology,
        segments: &Path,
        events: &UnboundedSender<Event>,
    ) -> io::Result<Self> {
        let specs = specs(program, folder, topology, segments);
        let kept = Keeper::new(specs.clone(), events.clone())?;
        let (states, (changes, received)) = (kept.states(), channel(1));
        let mut keeper = JoinSet::new();
        keeper.spawn(kept.keep(received));
        Ok(Self {
            specs,
            states,
            changes,
            keeper,
        })
    }

    /// The folders of versions that they run from.
    pub fn folders(&self) -> Vec<PathBuf> {
        let states = self.states.borrow();
        states.iter().map(|state| state.folder.clone()).collect()
    }

    /// Has them go over to the version in `folder`, which has the same routers: border routers while
    /// they run, whose links get the `states` that differ, the control service by another start if `change` is
    /// of what it reads. Otherwise hosts are left with the daemon that they have.
    ///
    /// # Errors
    /// Why a router cannot. Then some may have gone over; all are to be started again.
    pub async fn reload(
        &mut self,
        program: &Path,
        folder: &Path,
        topology: &AsTopology,
        segments: &Path,
        (change, states): (ServiceChange, BTreeMap<u16, LinkState>),
    ) -> Result<(), String> {
        let specs = specs(program, folder, topology, segments);
        let is_router = |spec: &Spec| matches!(spec.name, ServiceName::Router(_));
        for (before, spec) in self.specs.iter().zip(&specs) {
            let (socket, folder) = (before.socket.clone(), folder.to_owned());
            if is_router(spec) {
                reload_router(socket.clone(), folder).await?;
                set_links(socket.clone(), states_of(&spec.name, topology, &states)).await?;
                link(&socket, &spec.socket).map_err(|error| error.to_string())?;
            } else if change <= ServiceChange::Underlay {
                match link(&socket, &spec.socket) {
                    // It is just starting: the next change reaches it.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    linked => linked.map_err(|error| error.to_string())?,
                }
                // Without this it announces what the routes to the addresses of before take.
                if let Err(reason) = move_links(socket, folder).await {
                    tracing::info!("the control service does not know moved links: {reason}");
                }
            }
        }
        self.specs.clone_from(&specs);
        let (done, is_done) = oneshot::channel();
        let specs = specs.into_iter().map(|spec| {
            let starts_again = !is_router(&spec) && change > ServiceChange::Underlay;
            (spec, starts_again)
        });
        let specs = specs.collect();
        let sent = self.changes.send(Change { specs, done }).await;
        sent.map_err(|error| error.to_string())?;
        is_done.await.map_err(|error| error.to_string())
    }

    /// Whether each is ready.
    pub fn states(&self) -> Vec<(ServiceName, bool)> {
        let states = self.states.borrow();
        let both = self.specs.iter().zip(states.iter());
        both.map(|(spec, state)| (spec.name.clone(), state.is_ready))
            .collect()
    }

    /// The live sockets of the border routers.
    pub fn router_sockets(&self) -> Vec<PathBuf> {
        let is_router = |spec: &&Spec| matches!(spec.name, ServiceName::Router(_));
        let routers = self.specs.iter().filter(is_router);
        routers.map(|spec| spec.socket.clone()).collect()
    }

    /// Whether all are ready.
    pub fn ready(&self) -> bool {
        self.states.borrow().iter().all(|state| state.is_ready)
    }

    /// The first service that has ended, and why.
    pub fn ended(&self) -> Option<(ServiceName, String)> {
        let states = self.states.borrow();
        let mut both = self.specs.iter().zip(states.iter());
        both.find_map(|(spec, state)| Some((spec.name.clone(), state.ended.clone()?)))
    }

    /// Waits until something about them changes.
    ///
    /// # Errors
    /// When they are not kept any more.
    pub async fn changed(&mut self) -> io::Result<()> {
        if self.states.changed().await.is_ok() {
            return Ok(());
        }
        match self.keeper.join_next().await {
            Some(ended) => ended.unwrap_or_else(|panic| Err(io::Error::other(panic))),
            None => std::future::pending().await,
        }
    }

    /// Stops them, and waits until they have ended.
    pub async fn stop(self) {
        let Self {
            changes,
            mut keeper,
            ..
        } = self;
        drop(changes);
        while let Some(ended) = keeper.join_next().await {
            if let Ok(Err(error)) = ended {
                tracing::error!("the services cannot be stopped: {error}");
            }
        }
    }
}

/// Makes `path` another name of the socket. Not by a symbolic link: once the service had removed its socket,
/// as it does at its end, none could be bound there.
fn link(socket: &Path, path: &Path) -> io::Result<()> {
    if path == socket {
        return Ok(());
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::hard_link(socket, path),
    }
}

/// Has the router at `socket` go over to the topology in `folder`.
async fn reload_router(socket: PathBuf, folder: PathBuf) -> Result<(), String> {
    request_router(socket, vec![router::Request::Reload { folder }]).await
}

/// Has the router at `socket` set the states of links.
async fn set_links(socket: PathBuf, states: Vec<(u16, LinkState)>) -> Result<(), String> {
    let requests = states.into_iter();
    let requests = requests.map(|(id, state)| router::Request::SetLink { id, state });
    request_router(socket, requests.collect()).await
}

/// Makes requests to the router at `socket`, which carries each out.
async fn request_router(socket: PathBuf, requests: Vec<router::Request>) -> Result<(), String> {
    let request = move |request| match router::call(&socket, &request) {
        Ok(router::Reply::Done) => Ok(()),
        Ok(router::Reply::Error { message }) => Err(message),
        Ok(_) => Err("the router sent another answer".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    let call = move || requests.into_iter().try_for_each(request);
    let called = tokio::task::spawn_blocking(call).await;
    called.unwrap_or_else(|panic| Err(panic.to_string()))
}

/// Those of `states` that are of links of a router.
fn states_of(
    router: &ServiceName,
    topology: &AsTopology,
    states: &BTreeMap<u16, LinkState>,
) -> Vec<(u16, LinkState)> {
    let ServiceName::Router(name) = router else {
        return Vec::new();
    };
    let interfaces = topology.border_routers.get(name);
    let has = |id: &u16| interfaces.is_some_and(|router| router.interfaces.contains_key(id));
    let states = states.iter().filter(|(id, _)| has(id));
    states.map(|(id, state)| (*id, *state)).collect()
}

/// Has the control service at `socket` know the underlay addresses in `folder`, whose routes say how large
/// packets of the links may be.
async fn move_links(socket: PathBuf, folder: PathBuf) -> Result<(), String> {
    let call = move || match control::call(&socket, &control::Request::Links { folder }) {
        Ok(control::Reply::Done) => Ok(()),
        Ok(control::Reply::Error { message }) => Err(message),
        Ok(_) => Err("the control service sent another answer".to_owned()),
        Err(error) => Err(error.to_string()),
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
        args.extend(["--pid".into(), owner.clone().into()]);
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

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_service_that_ended_binds_where_its_socket_was_linked() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second, third] = ["1", "2", "3"].map(|name| folder.path().join(name));
        let listener = UnixListener::bind(&first).unwrap();
        for _ in 0..2 {
            link(&first, &second).unwrap();
            link(&second, &third).unwrap();
        }
        for path in [&first, &second, &third] {
            UnixStream::connect(path).unwrap();
        }
        drop(listener);
        // A process that another test starts has it until it runs its program.
        let deadline = Instant::now() + Duration::from_secs(300);
        while UnixStream::connect(&first).is_ok() {
            assert!(Instant::now() < deadline, "it is found after its end");
        }
        fs::remove_file(&first).unwrap();
        for path in [&second, &third] {
            hawser_kernel::rpc::listen(path).unwrap();
        }
        assert!(link(&first, &second).is_err());
    }
}
