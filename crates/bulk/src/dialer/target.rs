//! One dial of a session: connects over a path, and begins the session or joins it.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hawser_endhost::patience::wait;
use hawser_endhost::{Path, ScionAddr};
use hawser_keys::{CODE_EXPORTER, Code, Exchange, PeerKey, Side, Trust};
use hawser_seal::Cipher;

use super::opening::Opening;
use crate::algorithm::{Algorithm, Start};
use crate::control::{Control, ControlError};
use crate::data::SessionId;
use crate::error::TransferError;
use crate::joined::Joined;
use crate::node::{Node, datagram_keys};
use crate::protocol::{ErrorCode, Message, Open, Role, Wants};

/// Longest wait for the server's answer to the first message.
const ANSWER: Duration = Duration::from_secs(10);

/// What all dials of a session have in common.
pub(crate) struct Target {
    pub node: Node,
    pub peer: ScionAddr,
    pub trust: Trust,
    /// The key of the server that knew the code.
    pub agreed: Arc<OnceLock<PeerKey>>,
    /// Keys that the server has shown and that were trusted.
    pub shown: Mutex<BTreeSet<PeerKey>>,
    /// Tells this session's process, or its attempt, from earlier ones with the same key.
    pub instance: u64,
    /// What this host is, and what the first message names.
    pub role: Role,
    /// Bytes of content that this host takes before the first acknowledgement, if it is the sink.
    pub credit: u64,
    pub name: String,
    pub wants: Wants,
    /// What follows the message that begins the session.
    pub opening: Opening,
    pub cipher: Cipher,
    pub algorithm: Algorithm,
    /// The session, once the server has accepted it.
    pub session: tokio::sync::Mutex<Option<SessionId>>,
}

/// What the server has accepted.
#[derive(Debug, Clone, Copy)]
struct Accepted {
    port: u16,
    credit: u64,
    /// Messages of the session that it was sent.
    sent: u64,
    /// The time that it took to answer.
    after: Duration,
}

/// Why a dial failed.
#[derive(Debug)]
pub(crate) enum DialError {
    /// The path, or the connection over it, failed: another path may work.
    Path(String),
    /// No path will do better.
    Fatal(TransferError),
}

impl Target {
    /// Connects over `path`, and begins the session or joins it.
    pub(super) async fn dial(&self, path: Path) -> Result<(Joined, u64), DialError> {
        let failed = |error: &dyn std::fmt::Display| DialError::Path(error.to_string());
        let (node, peer) = (&self.node, self.peer);
        let connection = node.quic().connect(peer, path.clone()).await;
        let connection = connection.map_err(|error| failed(&error))?;
        let key = connection.peer_key();
        match (&self.trust, self.agreed.get()) {
            (Trust::Known(known), _) => {
                let checked = known.check(peer, key);
                checked.map_err(|error| DialError::Fatal(error.into()))?;
                let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
                shown.insert(key);
            }
            (Trust::Code(_), Some(agreed)) if *agreed != key => {
                return Err(DialError::Fatal(TransferError::OtherServer { peer, key }));
            }
            (Trust::Code(_) | Trust::Any, _) => {}
        }
        let mut control = Control::open(connection)
            .await
            .map_err(|error| failed(&error))?;
        let largest = node
            .data()
            .largest(peer, &path)
            .map_err(|error| failed(&error))?;
        let answer = wait(ANSWER, self.greet(&mut control)).await;
        let accepted = match answer {
            Some(answer) => answer?,
            None => return Err(DialError::Path("the server does not answer".into())),
        };
        let Accepted { port, credit, .. } = accepted;
        // The handshake of a server that looked paths up meanwhile took longer.
        let measured = control.connection().stats().rtt.min(accepted.after);
        let mut remote = peer;
        remote.host.set_port(port);
        let start = Start::of(self.algorithm, &path, largest);
        let lane = node
            .data()
            .open(remote, path)
            .map_err(|error| failed(&error))?;
        let keys = datagram_keys(control.connection(), Side::Client, self.cipher);
        let keys = keys.map_err(|error| failed(&error))?;
        let joined = Joined {
            subflow: node.subflow_key(),
            control,
            keys,
            remote,
            lane: Some(lane),
            datagram: largest.into(),
            rtt: Some(measured).filter(|rtt| !rtt.is_zero()),
            start,
            answer: None,
            sent: accepted.sent,
        };
        Ok((joined, credit))
    }

    /// Opens the session over the first connection, and joins it over all others.
    async fn greet(&self, control: &mut Control) -> Result<Accepted, DialError> {
        let (cipher, port) = (self.cipher, self.node.data().local_addr().host.port());
        let mut session = self.session.lock().await;
        let message = match *session {
            None => Message::Open(Open {
                cipher,
                port,
                instance: self.instance,
                role: self.role,
                credit: self.credit,
                name: self.name.clone(),
                wants: self.wants.clone(),
            }),
            Some(session) => Message::Join {
                session,
                cipher,
                port,
            },
        };
        let failed = |error: ControlError| DialError::Path(error.to_string());
        if session.is_some() {
            // Only the first answer is waited for in turn.
            let known = *session;
            drop(session);
            let began = Instant::now();
            control.write(&message).await.map_err(failed)?;
            return match control.read().await.map_err(failed)? {
                Message::Accept {
                    session,
                    port,
                    credit,
                } if Some(session) == known => Ok(Accepted {
                    port,
                    credit,
                    sent: 0,
                    after: began.elapsed(),
                }),
                answer => Err(refusal(answer)),
            };
        }
        if let (Trust::Code(code), None) = (&self.trust, self.agreed.get()) {
            self.agree(control, code).await?;
        }
        let began = Instant::now();
        let opening = self.opening.after(&message);
        control.write_encoded(&opening).await.map_err(failed)?;
        match control.read().await.map_err(failed)? {
            Message::Accept {
                session: id,
                port,
                credit,
            } => {
                *session = Some(id);
                Ok(Accepted {
                    port,
                    credit,
                    sent: self.opening.count,
                    after: began.elapsed(),
                })
            }
            answer => Err(refusal(answer)),
        }
    }
}

impl Target {
    /// The keys that the server has shown and that were trusted.
    pub(crate) fn shown_keys(&self) -> Vec<PeerKey> {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.iter().copied().collect()
    }

    /// Shows that this host knows the code, and lets the server do so.
    async fn agree(&self, control: &mut Control, code: &Code) -> Result<(), DialError> {
        let failed = |error: ControlError| DialError::Path(error.to_string());
        let wrong = |_| DialError::Fatal(TransferError::Code);
        let key = control.connection().peer_key();
        let exporter = control.connection().export_secret(CODE_EXPORTER, b"");
        let exporter = exporter.map_err(|error| DialError::Path(error.to_string()))?;
        let (exchange, element) = Exchange::start(code, Side::Client)
            .map_err(|error| DialError::Fatal(TransferError::Thread(io::Error::other(error))))?;
        control
            .write(&Message::Code(element))
            .await
            .map_err(failed)?;
        let element = match control.read().await.map_err(failed)? {
            Message::Code(element) => element,
            answer => return Err(refusal(answer)),
        };
        let confirmation = exchange.finish(&element, &exporter).map_err(wrong)?;
        let mac = Message::CodeConfirm(confirmation.mac());
        control.write(&mac).await.map_err(failed)?;
        match control.read().await.map_err(failed)? {
            Message::CodeConfirm(mac) => confirmation.verify(&mac).map_err(wrong)?,
            answer => return Err(refusal(answer)),
        }
        self.agreed.get_or_init(|| key);
        Ok(())
    }
}

/// What another answer than `Accept` means.
fn refusal(answer: Message) -> DialError {
    match answer {
        Message::Refuse {
            code: ErrorCode::TOO_MANY,
            text,
        } => DialError::Path(text),
        Message::Refuse { code, text } => DialError::Fatal(TransferError::Peer { code, text }),
        _ => DialError::Fatal(TransferError::Protocol("it answers with another message")),
    }
}
