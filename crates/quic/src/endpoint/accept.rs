//! Connections that peers set up.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::time::Instant;

use hawser_endhost::ScionAddr;
use hawser_endhost::lanes::Lane;
use hawser_endhost::patience::elapse;
use noq_proto::{Incoming, ServerConfig};
use tokio::sync::mpsc;

use super::places::{Place, Places};
use crate::congestion::Factory;
use crate::connection::Connection;
use crate::connection::inner::{AcceptTask, Inner};
use crate::driver::{Begun, Driver, flow_at};
use crate::tls::Tls;
use crate::transport::{Config, MIN_MTU, Mtu, transport};

/// Most connections being set up at the same time, fewer than unknown peers may have. The host that has
/// most of them gives way to others; the first packets of more are dropped, and their peers send them
/// again.
pub(super) const HANDSHAKES: usize = 64;
/// While more connections than this are being set up, peers first have to validate their addresses
/// (RFC 9000, 8.1.2), which costs a round trip.
const BUSY: usize = 32;
/// Most established connections that [`Endpoint::accept`](super::Endpoint::accept) can return at once.
/// Further ones wait in their tasks, which drop those that close meanwhile.
pub(super) const WAITING: usize = 8;
/// Most bytes buffered from a peer before its connection is accepted.
const EARLY: u64 = 16 << 10;

/// State that all connections of one endpoint need.
pub(super) struct Shared {
    pub(super) driver: Arc<Driver>,
    pub(super) tls: Tls,
    pub(super) config: Config,
}

/// Settings for connections that peers set up, whose path takes packets of `mtu`.
pub(crate) fn server_config(
    tls: &Tls,
    config: &Config,
    mtu: Mtu,
    congestion: Factory,
) -> ServerConfig {
    let mut server = ServerConfig::with_crypto(Arc::clone(&tls.server) as _);
    server.transport_config(transport(config, mtu, congestion));
    // A connection stays on its path.
    server.migration(false);
    // Peers retransmit what does not fit before their connections are accepted.
    server
        .max_incoming(HANDSHAKES * 2)
        .incoming_buffer_size(EARLY)
        .incoming_buffer_size_total(EARLY * HANDSHAKES as u64);
    server
}

/// Sets up the connections of peers, as long as the endpoint is open.
pub(super) async fn run(
    shared: Arc<Shared>,
    task: Weak<AcceptTask>,
    mut begun: mpsc::Receiver<Begun>,
    accepted: mpsc::Sender<Connection>,
) {
    let places = Places::new(HANDSHAKES);
    let driver = &shared.driver;
    while let Some(begun) = begun.recv().await {
        let Begun {
            incoming,
            candidate,
        } = begun;
        let flow = flow_at(incoming.remote_address());
        let lane = flow.and_then(|flow| driver.lanes().accept(flow, candidate.as_deref()));
        let Some(lane) = lane else {
            // Its flow was forgotten because of many others; the peer tries again.
            driver.ignore(incoming);
            continue;
        };
        let busy = places.taken() > BUSY;
        if busy && !incoming.remote_address_validated() && incoming.may_retry() {
            driver.retry(incoming);
            continue;
        }
        if accepted.is_closed() {
            driver.refuse(incoming);
            continue;
        }
        let Some(place) = places.take(lane.remote().network()) else {
            driver.ignore(incoming);
            continue;
        };
        let (shared, task) = (Arc::clone(&shared), task.clone());
        let accepted = accepted.clone();
        tokio::spawn(async move {
            let peer = lane.remote();
            match set_up(&shared, task, incoming, lane, place).await {
                // If the endpoint is gone the connection closes. One that closes needs no place.
                Ok(connection) => tokio::select! {
                    _ = accepted.send(connection.clone()) => {}
                    _ = connection.closed() => {}
                },
                Err(error) => tracing::debug!(%peer, error, "connection not set up"),
            }
        });
    }
}

async fn set_up(
    shared: &Shared,
    task: Weak<AcceptTask>,
    incoming: Incoming,
    lane: Lane,
    mut place: Place<ScionAddr>,
) -> Result<Connection, String> {
    let began = Instant::now();
    let path = lane.look_up().await;
    let max = lane.max_payload().max(MIN_MTU);
    let setting = shared.config.congestion;
    let mtu = match path {
        Some(_) => Mtu::Known(max),
        None => Mtu::UpTo(max),
    };
    let controllers = Factory::of(&lane, max, setting);
    let records = controllers.records.clone();
    let config = server_config(&shared.tls, &shared.config, mtu, controllers);
    let quic = shared.driver.accept(incoming, lane.flow(), config)?;
    tokio::select! {
        // What is there already counts more than the end of the wait.
        biased;
        connected = poll_fn(|cx| quic.poll_connected(cx)) => {
            connected.map_err(|error| error.to_string())?;
        }
        end = lane.ended() => return Err(end.to_string()),
        () = place.displaced() => return Err("it gave way to another host's".into()),
        () = elapse(shared.config.handshake_timeout) => {
            return Err("the peer stopped answering".into());
        }
    }
    let task = task.upgrade().ok_or("the endpoint is gone")?;
    let inner = Inner::new(quic, lane, records, shared.config.idle_timeout, task, began);
    inner.map(Connection).map_err(|reason| reason.to_string())
}
