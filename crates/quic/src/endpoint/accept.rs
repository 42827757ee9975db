//! Connections that peers set up.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use hawser_endhost::Path;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::{MIN_MTU, Mtu, Shared, Tasks, payload, server_config};
use crate::congestion::Congestion;
use crate::connection::Connection;
use crate::faults::Fate;
use crate::routes::{InUse, Way};

/// Connections set up at the same time; more have to wait until they are tried again.
pub(super) const HANDSHAKES: usize = 256;
/// With more than this being set up, a peer first has to show that it is where it says (RFC 9000,
/// 8.1.2), which costs it a round trip.
const BUSY: usize = 32;
/// Connections set up that nobody has taken yet.
pub(super) const WAITING: usize = 64;
/// How long the daemon may take to tell what it knows about a peer's path.
const LOOK_UP: Duration = Duration::from_secs(2);

/// Sets connections up that peers ask for, as long as the endpoint is open.
pub(super) async fn run(
    shared: Arc<Shared>,
    tasks: Weak<Tasks>,
    accepted: mpsc::Sender<Connection>,
) {
    let places = Arc::new(Semaphore::new(HANDSHAKES));
    while let Some(incoming) = shared.quic.accept().await {
        let Some(way) = shared.routes.take_addr(incoming.remote_address()) else {
            // Pushed out by others meanwhile; the peer tries again.
            incoming.ignore();
            continue;
        };
        let busy = HANDSHAKES - places.available_permits() > BUSY;
        if busy && !incoming.remote_address_validated() && incoming.may_retry() {
            // It can only fail for those that may not retry.
            let _ = incoming.retry();
            continue;
        }
        let (Ok(place), false) = (
            Arc::clone(&places).try_acquire_owned(),
            accepted.is_closed(),
        ) else {
            incoming.refuse();
            continue;
        };
        let (shared, tasks) = (Arc::clone(&shared), tasks.clone());
        let accepted = accepted.clone();
        tokio::spawn(async move {
            let peer = way.way().peer();
            match set_up(&shared, tasks, incoming, way, place).await {
                // Nobody there to take it any more: it closes.
                Ok(connection) => drop(accepted.send(connection).await),
                Err(error) => tracing::debug!(%peer, error, "connection not set up"),
            }
        });
    }
}

async fn set_up(
    shared: &Shared,
    tasks: Weak<Tasks>,
    incoming: noq::Incoming,
    way: InUse,
    _place: OwnedSemaphorePermit,
) -> Result<Connection, String> {
    let began = Instant::now();
    let path = look_up(shared, way.way()).await;
    let route = way.way().route();
    let mtu = match &path {
        Some(path) => payload(path.mtu(), &route).map(Mtu::Known),
        None => payload(shared.socket.host().local_mtu(), &route).map(Mtu::UpTo),
    };
    drop(route);
    let Some(mtu) = mtu else {
        incoming.refuse();
        return Err(format!("the path takes no packets of {MIN_MTU} bytes"));
    };
    let congestion = match (&path, mtu) {
        (Some(path), Mtu::Known(mtu)) => Congestion::of(path, mtu),
        _ => Congestion::default(),
    };
    let fate = Arc::new(Fate::new(Arc::clone(way.way()), path));
    shared.fates.add(&fate);
    let congestion = fate.controllers(congestion);
    let config = server_config(&shared.identity, &shared.config, mtu, congestion);
    let connecting = incoming.accept_with(Arc::new(config));
    let connecting = connecting.map_err(|error| error.to_string())?;
    let quic = tokio::select! {
        quic = connecting => quic.map_err(|error| error.to_string())?,
        reason = fate.ended() => return Err(reason.to_string()),
        () = tokio::time::sleep(shared.config.handshake_timeout) => {
            return Err("the peer does not go on".into());
        }
    };
    let tasks = tasks.upgrade().ok_or("the endpoint is gone")?;
    shared
        .connection(quic, fate, way, tasks, began)
        .map_err(|reason| reason.to_string())
}

/// The path the peer came by, if the daemon knows it: it tells what the peer's packets do not, the
/// ASes between and the MTU.
async fn look_up(shared: &Shared, way: &Way) -> Option<Path> {
    let paths = shared.socket.host().paths(way.peer().isd_as);
    let paths = match tokio::time::timeout(LOOK_UP, paths).await {
        Ok(Ok(paths)) => paths,
        Ok(Err(error)) => {
            tracing::debug!(peer = %way.peer(), %error, "the peer's path is unknown");
            return None;
        }
        Err(_) => return None,
    };
    paths.into_iter().find(|path| {
        let interfaces = &path.info().interfaces;
        let ids = interfaces.iter().map(|interface| &interface.id);
        ids.eq(way.interfaces())
    })
}
