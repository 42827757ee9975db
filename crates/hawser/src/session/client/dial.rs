//! One dial: a QUIC connection over a path, the server's key, the greeting.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hawser_endhost::{Path, ScionAddr};
use hawser_manager::Failure;
use hawser_path::Fingerprint;
use hawser_quic::{CloseReason, ConnectError as QuicError, Connection as Quic, Endpoint};
use hawser_session::Remote;

use crate::addr::addr;
use crate::error::ConnectError;
use crate::event::PathReason;
use crate::selector::Choice;
use crate::session::path::{Greeted, path_end, read_first};
use crate::trust::ServerTrust;
use crate::wire::{Answer, Greeting, Refusal, Secret, SessionId, code};

/// The server of a session, as it is dialed.
pub(crate) struct Server {
    pub addr: ScionAddr,
    /// What the selector says of each path; empty without a selector.
    pub choices: BTreeMap<Fingerprint, Choice>,
    shared: Arc<Shared>,
}

/// What all dials have in common.
struct Shared {
    endpoint: Endpoint,
    trust: ServerTrust,
    id: SessionId,
    secret: Secret,
    /// Whether the server has accepted a greeting.
    known: AtomicBool,
    next_key: AtomicU64,
}

/// Why a dial has failed.
pub(crate) struct DialError {
    pub path: Fingerprint,
    pub reason: PathReason,
    pub failure: Failure,
    pub error: ConnectError,
    /// Whether no other path can do better.
    pub is_final: bool,
}

impl Server {
    /// A server, for a session with this name and secret.
    pub(crate) fn new(
        addr: ScionAddr,
        endpoint: Endpoint,
        trust: ServerTrust,
        (id, secret): (SessionId, Secret),
    ) -> Self {
        let shared = Shared {
            endpoint,
            trust,
            id,
            secret,
            known: AtomicBool::new(false),
            next_key: AtomicU64::new(0),
        };
        Self {
            addr,
            choices: BTreeMap::new(),
            shared: Arc::new(shared),
        }
    }
}

impl Remote for Server {
    type Path = Path;
    type Outcome = Result<Greeted, DialError>;

    fn fits(&self, path: &Path) -> Result<(), String> {
        match self.choices.get(&path.fingerprint()) {
            Some(Choice::Denied) => return Err("the selector leaves it out".into()),
            Some(Choice::Later) => return Err("the selector prefers others".into()),
            Some(Choice::Use) | None => {}
        }
        let fits = self.shared.endpoint.fits(self.addr, path);
        fits.map_err(|error| error.to_string())
    }

    fn dial(&self, path: Path) -> impl Future<Output = Self::Outcome> + Send + 'static {
        let (shared, server) = (Arc::clone(&self.shared), self.addr);
        async move {
            let fingerprint = path.fingerprint();
            let failed = |(reason, failure, error)| DialError {
                path: fingerprint,
                reason,
                failure,
                error,
                is_final: false,
            };
            let connected = shared.endpoint.connect(server, path).await;
            let quic = connected.map_err(|error| failed(unreachable(server, error)))?;
            let trusted = shared.trust.check(server, quic.peer_key()).await;
            if let Err(error) = trusted {
                quic.close(code::KEY, "the server's key is not trusted here");
                return Err(failed((PathReason::ServerKey, Failure::Refused, error)));
            }
            quic.expect_data();
            let greeted = shared.greet(&quic).await;
            let greeted = greeted.map_err(|refusal| {
                let (failed_as, is_final) = refused(server, &quic, &shared, refusal);
                DialError {
                    is_final,
                    ..failed(failed_as)
                }
            });
            if greeted.is_err() {
                quic.close(code::PATH, "not accepted");
            }
            greeted
        }
    }
}

/// What comes of a greeting that is not accepted.
enum GreetError {
    Refused(Refusal),
    /// The connection has failed, or the answer is none.
    Failed(String),
}

impl Shared {
    async fn greet(&self, quic: &Quic) -> Result<Greeted, GreetError> {
        let key = self.next_key.fetch_add(1, Ordering::Relaxed);
        let failed = |error: hawser_quic::StreamError| GreetError::Failed(error.to_string());
        let (mut send, mut receive) = quic.open_bi().await.map_err(failed)?;
        let greeting = Greeting {
            id: self.id,
            secret: self.secret,
            known: self.known.load(Ordering::Relaxed),
            path: key,
        };
        send.write_all(&greeting.encode()).await.map_err(failed)?;
        let read = read_first(&mut receive).await;
        let (answer, rest) = read.map_err(GreetError::Failed)?;
        let answer = Answer::decode(&answer);
        let answer = answer.map_err(|error| GreetError::Failed(error.to_string()))?;
        answer.status.map_err(GreetError::Refused)?;
        self.known.store(true, Ordering::Relaxed);
        Ok(Greeted {
            key,
            name: answer.path,
            quic: quic.clone(),
            send,
            receive,
            rest,
        })
    }
}

type Failed = (PathReason, Failure, ConnectError);

fn unreachable(server: ScionAddr, error: QuicError) -> Failed {
    let reason = match &error {
        QuicError::Closed { reason, .. } => path_end(reason).reason,
        _ => PathReason::NoAnswer,
    };
    let error = ConnectError::Unreachable {
        addr: addr(server),
        reason: error.to_string(),
    };
    (reason, Failure::Failed, error)
}

/// Why a greeting was not accepted, and whether no other path can do better.
fn refused(server: ScionAddr, quic: &Quic, shared: &Shared, error: GreetError) -> (Failed, bool) {
    let server = addr(server);
    if let Some(CloseReason::Peer { code, .. }) = quic.close_reason()
        && code == u64::from(code::KEY)
    {
        let key = shared.endpoint.key();
        let error = ConnectError::KeyRefused { addr: server, key };
        return ((PathReason::Refused, Failure::Refused, error), false);
    }
    match error {
        GreetError::Refused(refusal) => {
            let reason = refusal.to_string();
            let error = ConnectError::Refused {
                addr: server,
                reason,
            };
            let is_final = refusal != Refusal::Busy;
            ((PathReason::Refused, Failure::Rejected, error), is_final)
        }
        GreetError::Failed(reason) => {
            let error = ConnectError::Unreachable {
                addr: server,
                reason,
            };
            ((PathReason::NoAnswer, Failure::Failed, error), false)
        }
    }
}
