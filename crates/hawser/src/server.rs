//! What a listener does with the QUIC connections of clients: keys, greetings, sessions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hawser_endhost::patience::elapse;
use hawser_quic::{Connection as Quic, Endpoint, SendStream};
use hawser_streams::Side;
use tokio::sync::mpsc;

use crate::connection::Connection;
use crate::event::PathEvent;
use crate::registry::Registry;
use crate::session::path::{Greeted, read_first, run};
use crate::session::{End, Session};
use crate::trust::ClientTrust;
use crate::wire::{Answer, GREETING, Greeting, Refusal, SessionId, code};

/// Longest wait for the first byte of a session's stream, without the time in which this process did not
/// run.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait until a client has received a refusal.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// The sessions of a listener, and who may begin them.
pub(crate) struct Server {
    trust: ClientTrust,
    sessions: Mutex<Registry<Session>>,
    next_key: AtomicU64,
    waiting: mpsc::Sender<Connection>,
}

impl Server {
    /// A server without sessions. Those that clients begin go to `waiting`.
    pub(crate) fn new(trust: ClientTrust, waiting: mpsc::Sender<Connection>) -> Self {
        Self {
            trust,
            sessions: Mutex::default(),
            next_key: AtomicU64::new(0),
            waiting,
        }
    }

    fn sessions(&self) -> MutexGuard<'_, Registry<Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves the connections of an endpoint until it is closed. There is a task for each QUIC connection, of
/// which the endpoint bounds those that are not greeted, and for each session, which the registry bounds.
/// They go on when this is dropped.
pub(crate) async fn serve(server: Arc<Server>, endpoint: Endpoint) {
    while let Some(quic) = endpoint.accept().await {
        tokio::spawn(greet(Arc::clone(&server), quic));
    }
}

/// Serves a QUIC connection until it ends: a path of a session, if its greeting is accepted.
async fn greet(server: Arc<Server>, quic: Quic) {
    let (peer, key) = (quic.peer(), quic.peer_key());
    if !server.trust.allows(key).await {
        tracing::info!(%peer, %key, "the key is not allowed");
        return quic.close(code::KEY, "the client's key is not allowed");
    }
    let read = tokio::select! {
        read = read_greeting(&quic) => read,
        // A peer that opens no stream.
        () = elapse(OPEN_TIMEOUT) => Err("the peer does not greet".into()),
    };
    let (greeting, mut send, receive, rest) = match read {
        Ok(read) => read,
        Err(error) => return quic.close(code::OFFENCE, &error),
    };
    let name = server.next_key.fetch_add(1, Ordering::Relaxed);
    let begin = || Session::new(Side::Accepts, peer, key, None);
    let admitted = server.sessions().admit(&greeting, key, begin);
    let status = admitted.as_ref().map(drop).map_err(|refusal| *refusal);
    let answer = Answer { status, path: name };
    let sent = send.write_all(&answer.encode()).await;
    let (session, is_new) = match admitted {
        Ok(admitted) => admitted,
        Err(refusal) => return refuse(&quic, send, refusal).await,
    };
    if is_new {
        tokio::spawn(hand_over(Arc::clone(&server), greeting.id, session.clone()));
    }
    if sent.is_ok() {
        quic.expect_data();
        let path = Greeted {
            key: name,
            name: greeting.path,
            quic: quic.clone(),
            send,
            receive,
            rest,
        };
        if let Some(end) = run(session.clone(), path, None, None).await {
            let event = PathEvent::new(quic.fingerprint(), end.change, end.reason, end.text);
            session.report(event);
        }
    }
    server.sessions().leave(greeting.id);
}

type Read = (Greeting, SendStream, hawser_quic::RecvStream, bytes::Bytes);

async fn read_greeting(quic: &Quic) -> Result<Read, String> {
    let opened = quic.accept_bi().await;
    let (send, mut receive) = opened.map_err(|error| error.to_string())?;
    let (greeting, rest) = read_first::<GREETING>(&mut receive).await?;
    let greeting = Greeting::decode(&greeting).map_err(|error| error.to_string())?;
    Ok((greeting, send, receive, rest))
}

/// Waits until the client has the refusal, and closes the connection.
async fn refuse(quic: &Quic, mut send: SendStream, refusal: Refusal) {
    tracing::info!(peer = %quic.peer(), %refusal, "a path is refused");
    if send.finish().is_ok() {
        // If it does not arrive, the client learns it by the close.
        let _ = tokio::time::timeout(REFUSAL_TIMEOUT, send.delivered()).await;
    }
    quic.close(code::PATH, &refusal.to_string());
}

/// Gives a session to the caller of `accept` once its stream has begun, and removes it when it ends.
async fn hand_over(server: Arc<Server>, id: SessionId, session: Session) {
    tokio::select! {
        () = session.opened() => {
            let waiting = server.waiting.clone();
            let connection = Connection::new(session.clone());
            tokio::select! {
                // Without a receiver the connection is dropped, which ends the session.
                sent = waiting.send(connection) => drop(sent),
                _ = session.ended() => {}
            }
        }
        () = elapse(OPEN_TIMEOUT) => session.end(End::Refused("its stream does not begin".into())),
        _ = session.ended() => {}
    }
    session.ended().await;
    server.sessions().end(id);
}
