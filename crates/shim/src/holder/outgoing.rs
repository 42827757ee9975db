//! Programs' connections that were captured: relayed to the holder of the host behind them.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use hawser_capture::original_destination;
use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpStream};

use super::carrier::{Carriers, Connect};
use super::exchange::Exchange;
use super::intake;
use super::opening::{Opening, OutgoingError, Remote};
use super::relays::{Beginning, New};
use crate::protocol::Preamble;
use crate::relay::{self, Watched};
use crate::served;

/// Accepts captured connections at all `listeners`.
pub(super) fn run(listeners: Vec<TcpListener>, carriers: &Carriers) {
    for listener in listeners {
        let (carriers, refusing) = (carriers.clone(), carriers.clone());
        let budget = carriers.budget().clone();
        let take = move |stream: TcpStream, source, permit| {
            let carriers = carriers.clone();
            tokio::spawn(async move {
                let _permit = permit;
                let _busy = carriers.relays().busy();
                let begins = carriers.relays().begin();
                // Dropped before the above.
                match Watched::from_tokio(stream) {
                    Ok(stream) => handle(&stream, source, &carriers, begins).await,
                    Err(error) => tracing::warn!(%error, "a connection cannot be watched"),
                }
            });
        };
        let refuse = move |source| {
            let error = OutgoingError::TooMany(refusing.budget().exhausted());
            let what = format!("{}: {error}", canonical(source));
            refusing.relays().failed(error.when(), what);
        };
        let budget = budget.clone();
        tokio::spawn(intake::accept(listener, budget, take, refuse));
    }
}

async fn handle(program: &Watched, source: SocketAddr, carriers: &Carriers, begins: Beginning) {
    let source = canonical(source);
    let destination = original_destination(program).ok().flatten();
    // The other host, once it is known.
    let peer = OnceLock::new();
    let result = match destination {
        Some(destination) => {
            let ends = Preamble {
                destination,
                source,
            };
            connect(program, ends, carriers, begins, &peer).await
        }
        None => Err(OutgoingError::NotCaptured),
    };
    if let Err(error) = result {
        relay::reset(program);
        if matches!(&error, OutgoingError::Broken(error) if relay::is_end(error)) {
            return;
        }
        let to = destination.map_or_else(|| "the shim".to_owned(), |to| to.to_string());
        let at = peer.get().map(|peer| format!(" at {peer}"));
        let at = at.unwrap_or_default();
        let what = format!("{source} to {to}{at}: {error}");
        tracing::warn!("a connection failed: {what}");
        carriers.relays().failed(error.when(), what);
    }
}

async fn connect(
    program: &Watched,
    ends: Preamble,
    carriers: &Carriers,
    begins: Beginning,
    other: &OnceLock<String>,
) -> Result<(), OutgoingError> {
    sockopt::set_tcp_nodelay(program, true).map_err(io::Error::from)?;
    let found = carriers.find(ends.destination).await;
    let (expected, slot) = match found.map_err(OutgoingError::NoSession)? {
        Connect::Peer(expected, slot) => {
            // It is set once.
            let _ = carriers
                .name(expected.session())
                .map(|name| other.set(name));
            (expected, slot)
        }
        Connect::Stream(handover) => {
            let handed = handover.send(&ends, program.as_fd()).await;
            // The carrier has ended meanwhile.
            return handed.map_err(|_| OutgoingError::NoSession("the shim has ended".to_owned()));
        }
        // A rule of somebody else brought it here, and would again: nothing to an address of this
        // host is captured.
        Connect::Direct if carriers.is_on_host() && served::is_own(ends.destination.ip()) => {
            return Err(OutgoingError::NotCaptured);
        }
        Connect::Direct => return direct(program, ends.destination, carriers, begins).await,
    };
    let network = carriers.network().ok_or(OutgoingError::NoMptcp)?;
    let to = Remote {
        network,
        slot,
        peer: expected.peer(),
    };
    let explain = |error| expected.end().map_or(error, OutgoingError::NoSession);
    let socket = to.connect().await.map_err(explain)?;
    // Registered before it is connected: the session may end meanwhile, with the reason.
    let relayed = expected.begin(New {
        source: ends.source,
        destination: ends.destination,
        peer: Arc::clone(&socket),
    });
    drop(begins);
    let is_open = AtomicBool::new(false);
    let relay = async {
        let opening = Opening::new(program, &ends, to);
        let socket = opening.open(socket, &relayed).await?;
        is_open.store(true, Ordering::Relaxed);
        let mut exchange = Exchange::new(program, &socket, &relayed, carriers);
        let relayed = exchange.run().await;
        relayed.inspect_err(|_| relay::reset(&*socket))?;
        // Until then the connection needs its session.
        relay::delivered(&*socket).await;
        Ok(())
    };
    let end = match relayed.run(relay).await {
        Ok(done @ (Ok(()) | Err(OutgoingError::Refused(_)))) => return done,
        // The end of the session explains the failure, which may be noticed first.
        Ok(Err(error)) => relayed.end().ok_or(error)?,
        Err(end) => end,
    };
    relayed.reset();
    Err(match is_open.into_inner() {
        true => OutgoingError::Ended(end),
        false => OutgoingError::NoSession(end.reason()),
    })
}

/// Relays a connection that does not go over SCION.
async fn direct(
    program: &Watched,
    destination: SocketAddr,
    carriers: &Carriers,
    begins: Beginning,
) -> Result<(), OutgoingError> {
    let undelivered = carriers.relays().add_direct(destination);
    drop(begins);
    let server = relay::connect(destination).await;
    let server = server.map_err(OutgoingError::Unreachable)?;
    let forth = async {
        relay::copy(program, &server).await?;
        // The kernel delivers what it has.
        drop(undelivered);
        Ok(())
    };
    tokio::try_join!(forth, relay::copy(&server, program))?;
    Ok(())
}

/// An IPv4 address that an IPv6 socket shows as one of its own.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
