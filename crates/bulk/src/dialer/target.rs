//! One dial of a session: connects over a path, and begins the session or joins it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hawser_endhost::patience::wait;
use hawser_endhost::{Path, ScionAddr};
use hawser_keys::{PeerKey, Side, Trust};
use hawser_seal::Cipher;

use super::agreement::Agreement;
use super::failure::DialError;
use super::opening::Opening;
use crate::algorithm::{Algorithm, Start};
use crate::control::Control;
use crate::data::SessionId;
use crate::error::TransferError;
use crate::joined::Joined;
use crate::node::{Node, datagram_keys};
use crate::protocol::{Message, Open, Role, Wants};

/// Longest wait for the server's answer to the first message.
const ANSWER: Duration = Duration::from_secs(10);

/// What all dials of a session have in common.
pub(crate) struct Target {
    pub node: Node,
    pub peer: ScionAddr,
    pub trust: Trust,
    /// What is known of the code.
    pub agreement: Arc<Agreement>,
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
    /// What the server has answered to the first dial.
    pub session: tokio::sync::Mutex<Answered>,
}

/// What the server has answered to a session.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Answered {
    /// Nothing yet.
    #[default]
    Nothing,
    /// It has accepted the session.
    Accepted(SessionId),
    /// It has refused the session: it is not asked again.
    Refused,
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

impl Target {
    /// Connects over `path`, and begins the session or joins it.
    pub(super) async fn dial(&self, path: Path) -> Result<(Joined, u64), DialError> {
        let failed = |error: &dyn std::fmt::Display| DialError::Path(error.to_string());
        let (node, peer) = (&self.node, self.peer);
        let connection = node.quic().connect(peer, path.clone()).await;
        let connection = connection.map_err(|error| failed(&error))?;
        let key = connection.peer_key();
        match (&self.trust, self.agreement.key()) {
            (Trust::Known(known), _) => {
                let checked = known.check(peer, key);
                let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
                checked.map_err(|error| match error.key() {
                    // It was trusted: the watch over that decides, which looks twice. The file of keys may
                    // just be written.
                    Some(key) if shown.contains(&key) => failed(&error),
                    None if !shown.is_empty() => failed(&error),
                    _ => DialError::Fatal(error.into()),
                })?;
                shown.insert(key);
            }
            (Trust::Code(_), Some(agreed)) if agreed != key => {
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
        let mut session = self.session.lock().await;
        match *session {
            Answered::Accepted(id) => {
                // Only the first answer is waited for in turn.
                drop(session);
                self.join(control, id).await
            }
            Answered::Refused => {
                drop(session);
                // The dial that was refused ends the transfer, and this one.
                std::future::pending().await
            }
            Answered::Nothing => {
                let opened = self.open(control).await;
                match &opened {
                    Ok((id, _)) => *session = Answered::Accepted(*id),
                    Err(DialError::Fatal(_)) => *session = Answered::Refused,
                    Err(DialError::Path(_)) => {}
                }
                opened.map(|(_, accepted)| accepted)
            }
        }
    }

    async fn open(&self, control: &mut Control) -> Result<(SessionId, Accepted), DialError> {
        if let (Trust::Code(code), None) = (&self.trust, self.agreement.key()) {
            self.agreement.reach(control, code).await?;
        }
        let message = Message::Open(Open {
            cipher: self.cipher,
            port: self.port(),
            instance: self.instance,
            role: self.role,
            credit: self.credit,
            name: self.name.clone(),
            wants: self.wants.clone(),
        });
        let began = Instant::now();
        let opening = self.opening.after(&message);
        control.write_encoded(&opening).await?;
        match control.read().await? {
            Message::Accept {
                session,
                port,
                credit,
            } => {
                let accepted = Accepted {
                    port,
                    credit,
                    sent: self.opening.count,
                    after: began.elapsed(),
                };
                Ok((session, accepted))
            }
            answer => Err(DialError::refusal(answer)),
        }
    }

    async fn join(&self, control: &mut Control, id: SessionId) -> Result<Accepted, DialError> {
        let message = Message::Join {
            session: id,
            cipher: self.cipher,
            port: self.port(),
        };
        let began = Instant::now();
        control.write(&message).await?;
        match control.read().await? {
            Message::Accept {
                session,
                port,
                credit,
            } if session == id => Ok(Accepted {
                port,
                credit,
                sent: 0,
                after: began.elapsed(),
            }),
            answer => Err(DialError::refusal(answer)),
        }
    }

    /// The port for content of this host.
    fn port(&self) -> u16 {
        self.node.data().local_addr().host.port()
    }

    /// The keys that the server has shown and that were trusted.
    pub(crate) fn shown_keys(&self) -> Vec<PeerKey> {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.iter().copied().collect()
    }
}
