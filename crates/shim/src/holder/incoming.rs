//! Connections of other hosts' programs: relayed to the servers of this one.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hawser_endhost::patience::wait;
use hawser_mptcp::{Info, TcpState};
use tokio::net::TcpListener;

use super::carrier::Carriers;
use super::exchange::Exchange;
use super::relays::{Failed, New};
use super::{intake, opening};
use crate::address::Block;
use crate::protocol::{Preamble, Role, Status, preamble};
use crate::relay::{self, IncomingError, Watched, connect_server};

/// How long the other side may take to say what it connects to, without the time in which this process
/// did not run.
const PREAMBLE_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait until the other host has joined a connection again over one of its slots.
const REJOIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which that is looked at.
const JOIN_INTERVAL: Duration = Duration::from_millis(50);

/// Accepts connections of other holders.
pub(super) async fn run(listener: TcpListener, carriers: Carriers) {
    let budget = carriers.budget().clone();
    let refusing = carriers.clone();
    let take = move |stream, from, permit| {
        let carriers = carriers.clone();
        tokio::spawn(async move {
            let _permit = permit;
            let stream = match Watched::from_tokio(stream) {
                Ok(stream) => Arc::new(stream),
                Err(error) => return tracing::warn!(%error, "a connection cannot be watched"),
            };
            // Later its session may have ended.
            let name = name(&carriers, from);
            let mut ends = None;
            if let Err(error) = handle(&stream, from, &carriers, &mut ends).await {
                if let (IncomingError::NoLongerServed { .. }, Some(block)) = (&error, block(from)) {
                    // A carrier was started anew: the reset has to arrive at the other host.
                    let before = subflows(&stream);
                    carriers.reconnected((block.address(0), Role::Server)).await;
                    let _ = tokio::time::timeout(REJOIN_TIMEOUT, joined(&stream, &before)).await;
                }
                refuse(&stream, &error).await;
                fail(&carriers, &name, ends, &error);
            }
        });
    };
    let refuse = move |from| {
        let text = format!(
            "from {}: {}",
            name(&refusing, from),
            refusing.budget().exhausted()
        );
        refusing.relays().failed(Failed::SetUp, text);
    };
    intake::accept(listener, budget, take, refuse).await;
}

/// When the connection failed that ended so.
fn when(error: &IncomingError) -> Failed {
    match error {
        IncomingError::Broken(_)
        | IncomingError::Ended(_)
        | IncomingError::NoLongerServed { .. } => Failed::Broken,
        _ => Failed::SetUp,
    }
}

/// The numbers of a connection's subflows.
fn subflows(stream: &Watched) -> Vec<u32> {
    let info = Info::read(stream).into_iter();
    let numbers = info.flat_map(|info| info.subflows.into_iter().map(|subflow| subflow.number));
    numbers.collect()
}

/// Waits until the other host has joined a connection over another subflow than those `before`, which
/// ended there with the carrier here. Until then it cannot be told that the connection ends, and later
/// the kernel knows nothing of it any more.
async fn joined(stream: &Watched, before: &[u32]) {
    while let Ok(info) = Info::read(stream)
        && !(info.subflows.iter()).any(|subflow| {
            subflow.state == TcpState::Established && !before.contains(&subflow.number)
        })
    {
        tokio::time::sleep(JOIN_INTERVAL).await;
    }
}

/// Records that a connection failed.
fn fail(carriers: &Carriers, from: &str, ends: Option<Preamble>, error: &IncomingError) {
    let is_quiet = match error {
        IncomingError::PlainTcp => true,
        IncomingError::Broken(error) => relay::is_end(error),
        _ => false,
    };
    if is_quiet {
        tracing::debug!("a connection from {from} ended: {error}");
        return;
    }
    let to = ends.map(|ends| format!(", {} to {}", ends.source, ends.destination));
    let text = format!("from {from}{}: {error}", to.unwrap_or_default());
    tracing::info!("a connection failed: {text}");
    carriers.relays().failed(when(error), text);
}

/// The host that a connection comes from, for messages.
fn name(carriers: &Carriers, from: SocketAddr) -> String {
    let name = block(from).and_then(|block| carriers.name((block.address(0), Role::Server)));
    name.unwrap_or_else(|| from.to_string())
}

/// The addresses of that host.
fn block(from: SocketAddr) -> Option<Block> {
    match from {
        SocketAddr::V6(address) => Block::split(*address.ip()).map(|(block, _)| block),
        SocketAddr::V4(_) => None,
    }
}

/// Says why, and ends the connection.
async fn refuse(stream: &Watched, error: &IncomingError) {
    let Some(status) = error.status() else {
        return relay::reset(stream);
    };
    // With bytes unread the kernel would end the connection with a reset, and the reason could be
    // lost: the other side closes first.
    let said = async {
        relay::write_all(stream, &[status.to_u8()]).await?;
        relay::discard(stream).await
    };
    let _ = wait(PREAMBLE_TIMEOUT, said).await;
}

/// What the other side sends first.
async fn first_bytes(stream: &Watched) -> Result<[u8; preamble::LENGTH], IncomingError> {
    let mut bytes = [0; preamble::LENGTH];
    let read = wait(PREAMBLE_TIMEOUT, relay::read_exact(stream, &mut bytes)).await;
    read.ok_or(IncomingError::Silent)??;
    Ok(bytes)
}

/// Connects to the server that the other side asks for.
async fn reach_server(
    stream: &Watched,
    carriers: &Carriers,
    named: &mut Option<Preamble>,
) -> Result<(Watched, Preamble), IncomingError> {
    let bytes = first_bytes(stream).await?;
    // The other side opens another one.
    if opening::is_plain_tcp(stream) {
        return Err(IncomingError::PlainTcp);
    }
    let ends = Preamble::decode(&bytes)?;
    *named = Some(ends);
    let server = connect_server(&carriers.served(), &ends).await?;
    Ok((Watched::from_tokio(server)?, ends))
}

async fn handle(
    stream: &Arc<Watched>,
    from: SocketAddr,
    carriers: &Carriers,
    named: &mut Option<Preamble>,
) -> Result<(), IncomingError> {
    let block = block(from).ok_or(IncomingError::NotAShim)?;
    let session = (block.address(0), Role::Server);
    // From now on it learns of the end of its session, which may have ended before.
    let expected = carriers.relays().expect(session);
    let reached = async {
        if !carriers.has_session(session).await {
            return Err(IncomingError::Ended("its session has ended".to_owned()));
        }
        reach_server(stream, carriers, named).await
    };
    let (server, ends) = match expected.run(reached).await {
        Ok(reached) => reached?,
        Err(end) => return Err(IncomingError::Ended(end.to_string())),
    };
    let destination = ends.destination;
    let relayed = expected.begin(New {
        source: ends.source,
        destination,
        peer: Arc::clone(stream),
    });
    // What is served may have changed while the server was connected.
    if !carriers.serves(destination) {
        return Err(IncomingError::NotServed { destination });
    }
    let mut exchange = Exchange::new(&server, stream, &relayed, carriers);
    let relay = async {
        relay::write_all(&**stream, &[Status::Connected.to_u8()]).await?;
        exchange.run().await
    };
    let result = match relayed.run(relay).await {
        Ok(done) => done.map_err(IncomingError::from),
        Err(_) if !carriers.serves(destination) => {
            Err(IncomingError::NoLongerServed { destination })
        }
        // The program has ended its direction: the server is to have what it sent, and then learns
        // that the connection has ended.
        Err(end) if relay::has_ended(&**stream) => {
            let rest = async {
                exchange.run_into().await?;
                relay::delivered(&server).await;
                Ok::<_, io::Error>(())
            };
            Err(match relayed.run_on(rest).await {
                // As if the program had closed both directions.
                Some(Ok(())) => io::Error::from(io::ErrorKind::BrokenPipe).into(),
                Some(Err(error)) => error.into(),
                None => IncomingError::Ended(end.to_string()),
            })
        }
        Err(end) => Err(IncomingError::Ended(end.to_string())),
    };
    result.inspect_err(|_| relay::reset(&server))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::net::TcpStream;

    use super::*;
    use crate::holder::carrier::tests::{alone, tell};
    use crate::link::ToHolder;
    use crate::served::{Served, ServedPort};

    /// The other host says goodbye right after its program has connected.
    #[tokio::test]
    async fn a_session_that_ends_while_a_connection_begins_ends_the_connection() {
        let block = Block::of(&hawser_keys::PeerKey([7; 32]), 3);
        let (peer, role) = (block.address(0), Role::Server);
        let carriers = alone();
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let served = Served {
            ports: vec![ServedPort {
                port: 443,
                server: Some(server.local_addr().unwrap()),
            }],
            ..Served::default()
        };
        tell(&carriers, ToHolder::Serve(served)).await;
        let name = "the other host".to_owned();
        let live = vec![1];
        let slots = ToHolder::Slots {
            peer,
            role,
            live,
            name,
        };
        tell(&carriers, slots).await;

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let connecting = TcpStream::connect(listener.local_addr().unwrap());
        let (other, accepted) = tokio::join!(connecting, listener.accept());
        let other = other.unwrap();
        let stream = Arc::new(Watched::from_tokio(accepted.unwrap().0).unwrap());
        let handling = {
            let carriers = carriers.clone();
            let from = SocketAddr::new(block.address(1).into(), 5000);
            tokio::spawn(async move { handle(&stream, from, &carriers, &mut None).await })
        };
        tokio::task::yield_now().await;
        let reason = "the other host has ended it".to_owned();
        let ended = ToHolder::Ended {
            peer,
            role,
            reason,
            at_once: false,
        };
        tell(&carriers, ended).await;
        let ends = Preamble {
            destination: "192.0.2.1:443".parse().unwrap(),
            source: "192.0.2.2:4000".parse().unwrap(),
        };
        relay::write_all(&other, &ends.encode()).await.unwrap();
        let handled = tokio::time::timeout(Duration::from_secs(300), handling).await;
        let handled = handled.expect("the connection has not ended").unwrap();
        assert!(
            matches!(&handled, Err(IncomingError::Ended(why)) if why.contains("has ended")),
            "{handled:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_of_this_process_is_no_silence_of_the_other_side() {
        // Virtual time stands still while something blocks.
        let (_blocks, blocked) = mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || blocked.recv());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let connecting = TcpStream::connect(listener.local_addr().unwrap());
        let (other, accepted) = tokio::join!(connecting, listener.accept());
        let other = other.unwrap();
        let stream = Watched::from_tokio(accepted.unwrap().0).unwrap();
        let reading = tokio::spawn(async move { first_bytes(&stream).await });
        tokio::task::yield_now().await;
        tokio::time::advance(PREAMBLE_TIMEOUT * 10).await;
        relay::write_all(&other, &[7; preamble::LENGTH])
            .await
            .unwrap();
        let read = reading.await.unwrap();
        assert_eq!(read.unwrap(), [7; preamble::LENGTH]);
    }
}
