//! Connections that peers set up.

use std::sync::{Arc, Weak};
use std::time::Instant;

use hawser_endhost::lanes::Lane;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::shared::{HANDSHAKES, Shared, server_config};
use crate::address;
use crate::congestion::Factory;
use crate::connection::Connection;
use crate::tasks::Tasks;
use crate::transport::{MIN_MTU, Mtu};

/// With more than this being set up, a peer first has to show that it is where it says (RFC 9000,
/// 8.1.2), which costs it a round trip.
const BUSY: usize = 32;
/// Connections set up that nobody has taken yet.
pub(super) const WAITING: usize = 64;

/// Sets connections up that peers ask for, as long as the endpoint is open.
pub(super) async fn run(
    shared: Arc<Shared>,
    tasks: Weak<Tasks>,
    accepted: mpsc::Sender<Connection>,
) {
    let places = Arc::new(Semaphore::new(HANDSHAKES));
    while let Some(incoming) = shared.quic.accept().await {
        let flow = address::flow(incoming.remote_address());
        let Some(lane) = flow.and_then(|flow| shared.lanes.accept(flow)) else {
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
            let peer = lane.remote();
            match set_up(&shared, tasks, incoming, lane, place).await {
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
    lane: Lane,
    _place: OwnedSemaphorePermit,
) -> Result<Connection, String> {
    let began = Instant::now();
    let path = lane.look_up().await;
    let max = lane.max_payload();
    if max < MIN_MTU {
        incoming.refuse();
        return Err(format!("the path takes no packets of {MIN_MTU} bytes"));
    }
    let (mtu, controllers) = match path {
        Some(path) => (Mtu::Known(max), Factory::of(&path, max)),
        None => (Mtu::UpTo(max), Factory::default()),
    };
    let progress = controllers.progress.clone();
    let config = server_config(&shared.identity, &shared.config, mtu, controllers);
    let connecting = incoming.accept_with(Arc::new(config));
    let connecting = connecting.map_err(|error| error.to_string())?;
    let quic = tokio::select! {
        quic = connecting => quic.map_err(|error| error.to_string())?,
        end = lane.ended() => return Err(end.to_string()),
        () = tokio::time::sleep(shared.config.handshake_timeout) => {
            return Err("the peer does not go on".into());
        }
    };
    let tasks = tasks.upgrade().ok_or("the endpoint is gone")?;
    let connection = shared.connection(quic, lane, progress, tasks, began);
    connection.map_err(|reason| reason.to_string())
}
