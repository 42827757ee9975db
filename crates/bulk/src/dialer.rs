//! The client's side of a session: obeys the path manager.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use hawser_endhost::{Path, ScionAddr};
use hawser_manager::{Action, Carried, Failure, Order, PathSet, SubflowId};
use hawser_quic::PeerKey;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use crate::algorithm::{Algorithm, Start};
use crate::control::{Control, ControlError};
use crate::data::{Measured, SessionId, SubflowKey};
use crate::error::TransferError;
use crate::joined::Joined;
use crate::keys::{self, CODE_EXPORTER, Code};
use crate::node::{Node, Side, datagram_keys};
use crate::protocol::{Cipher, ErrorCode, Message, Open, Role};
use crate::report::TransferEvent;
use crate::trust::Trust;

/// Longest wait for the server's answer to the first message.
const ANSWER: Duration = Duration::from_secs(10);

/// What all dials of a session have in common.
pub(crate) struct Target {
    pub node: Node,
    pub peer: ScionAddr,
    pub trust: Trust,
    /// The key of the server that knew the code.
    pub agreed: Arc<OnceLock<PeerKey>>,
    /// What this host is, and what the first message names.
    pub role: Role,
    /// Bytes of content that this host takes before the first acknowledgement, if it is the sink.
    pub credit: u64,
    pub name: String,
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
}

/// A connection was set up, or was not.
#[derive(Debug)]
enum Dialed {
    Joined(SubflowId, Box<Joined>, u64),
    Failed(SubflowId, DialError),
}

/// Why a dial failed.
#[derive(Debug)]
pub(crate) enum DialError {
    /// The path, or the connection over it, failed: another path may work.
    Path(String),
    /// No path will do better.
    Fatal(TransferError),
}

/// Dials the paths that the path manager orders, for one session.
pub(crate) struct Dialer {
    target: Arc<Target>,
    paths: PathSet<Path>,
    offers: watch::Receiver<Arc<Vec<Path>>>,
    dials: HashMap<SubflowId, AbortHandle>,
    /// The subflows that are connected, by both of their names.
    open: HashMap<SubflowKey, SubflowId>,
    results: (
        mpsc::UnboundedSender<Dialed>,
        mpsc::UnboundedReceiver<Dialed>,
    ),
    joined: mpsc::UnboundedSender<Joined>,
    fatal: Option<TransferError>,
    /// The credit of the first answer.
    pub(crate) credit: Option<u64>,
}

/// What the session does as the path manager orders.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub closed: Vec<SubflowKey>,
    pub held: Vec<(SubflowKey, bool)>,
}

impl Dialer {
    /// Connections that are set up go to `joined`.
    pub(crate) fn new(
        target: Arc<Target>,
        paths: PathSet<Path>,
        joined: mpsc::UnboundedSender<Joined>,
    ) -> Self {
        let mut offers = target.node.host().watch(target.peer.isd_as);
        offers.mark_changed();
        Self {
            target,
            paths,
            offers,
            dials: HashMap::new(),
            open: HashMap::new(),
            results: mpsc::unbounded_channel(),
            joined,
            fatal: None,
            credit: None,
        }
    }

    /// Waits until something happened that may lead to orders.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            Ok(()) = self.offers.changed() => self.offer(),
            Some(dialed) = self.results.1.recv() => self.on_dialed(dialed),
        }
    }

    fn offer(&mut self) {
        let offered = self.offers.borrow_and_update();
        let (endpoint, peer) = (self.target.node.quic(), self.target.peer);
        let fits = |path: &Path| endpoint.fits(peer, path).map_err(|error| error.to_string());
        self.paths.offer(&offered, fits, Instant::now());
    }

    fn on_dialed(&mut self, dialed: Dialed) {
        match dialed {
            Dialed::Joined(subflow, joined, credit) => {
                self.dials.remove(&subflow);
                self.open.insert(joined.subflow, subflow);
                self.credit.get_or_insert(credit);
                // The session takes it until it ends.
                let _ = self.joined.send(*joined);
            }
            Dialed::Failed(subflow, error) => {
                self.dials.remove(&subflow);
                match error {
                    DialError::Path(error) => {
                        (self.paths).lost(subflow, Failure::Failed, error, Instant::now());
                    }
                    DialError::Fatal(error) => self.fatal = Some(error),
                }
            }
        }
    }

    /// Reports that content gets through.
    pub(crate) fn connected(&mut self, subflow: SubflowKey, rtt: Duration, now: Instant) {
        if let Some(id) = self.open.get(&subflow) {
            self.paths.connected(*id, Some(rtt), now);
        }
    }

    pub(crate) fn stalled(&mut self, subflow: SubflowKey, now: Instant) {
        if let Some(id) = self.open.get(&subflow) {
            self.paths.stalled(*id, now);
        }
    }

    pub(crate) fn recovered(&mut self, subflow: SubflowKey) {
        if let Some(id) = self.open.get(&subflow) {
            self.paths.recovered(*id);
        }
    }

    /// Reports that a connection ended.
    pub(crate) fn lost(&mut self, subflow: SubflowKey, error: String, now: Instant) {
        if let Some(id) = self.open.remove(&subflow) {
            self.paths.lost(id, Failure::Closed, error, now);
        }
    }

    /// Ends time slots that are over.
    pub(crate) fn tick(&mut self, measured: impl Fn(SubflowKey) -> Option<Measured>) {
        let by_id: HashMap<SubflowId, Measured> = (self.open.iter())
            .filter_map(|(key, id)| Some((*id, measured(*key)?)))
            .collect();
        let carried = |id| {
            let measured = by_id.get(&id).copied().unwrap_or_default();
            Carried {
                bytes: measured.delivered,
                usable: measured.usable,
            }
        };
        self.paths.tick(carried, Instant::now());
    }

    /// Why no path works, if none does.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.paths.trouble()
    }

    /// Whether some path may be dialed, now or later.
    pub(crate) fn is_usable(&self) -> bool {
        self.paths.is_usable()
    }

    /// Dials and closes as ordered, and reports decisions to `events`.
    pub(crate) fn orders(
        &mut self,
        events: &mpsc::UnboundedSender<TransferEvent>,
    ) -> Result<Effects, TransferError> {
        if let Some(error) = self.fatal.take() {
            return Err(error);
        }
        let mut effects = Effects::default();
        for order in self.paths.orders(Instant::now()) {
            let key = self.open.iter().find(|(_, id)| **id == order.subflow);
            let key = key.map(|(key, _)| *key);
            match order.action {
                Action::Dial => self.dial(&order),
                Action::Hold | Action::Resume => {
                    let held = order.action == Action::Hold;
                    effects.held.extend(key.map(|key| (key, held)));
                }
                Action::Close { .. } => {
                    if let Some(dial) = self.dials.remove(&order.subflow) {
                        dial.abort();
                    }
                    if let Some(key) = key {
                        self.open.remove(&key);
                        effects.closed.push(key);
                    }
                }
            }
        }
        for (fingerprint, decision) in self.paths.changes() {
            let path = self.paths.path(fingerprint).cloned();
            let _ = events.send(TransferEvent::Decided(fingerprint, path, decision));
        }
        Ok(effects)
    }

    fn dial(&mut self, order: &Order) {
        let Some(path) = self.paths.path(order.path).cloned() else {
            return;
        };
        let (target, results) = (Arc::clone(&self.target), self.results.0.clone());
        let subflow = order.subflow;
        let task = tokio::spawn(async move {
            let dialed = match target.dial(path).await {
                Ok((joined, credit)) => Dialed::Joined(subflow, Box::new(joined), credit),
                Err(error) => Dialed::Failed(subflow, error),
            };
            // The session may have ended.
            let _ = results.send(dialed);
        });
        self.dials.insert(subflow, task.abort_handle());
    }
}

impl Drop for Dialer {
    fn drop(&mut self) {
        self.dials.values().for_each(AbortHandle::abort);
    }
}

impl Target {
    /// Connects over `path`, and begins the session or joins it.
    async fn dial(&self, path: Path) -> Result<(Joined, u64), DialError> {
        let failed = |error: &dyn std::fmt::Display| DialError::Path(error.to_string());
        let (node, peer) = (&self.node, self.peer);
        let connection = node.quic().connect(peer, path.clone()).await;
        let connection = connection.map_err(|error| failed(&error))?;
        let key = connection.peer_key();
        match (&self.trust, self.agreed.get()) {
            (Trust::Known(known), _) => {
                let checked = known.check(peer, key);
                checked.map_err(|error| DialError::Fatal(error.into()))?;
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
        let answer = tokio::time::timeout(ANSWER, self.greet(&mut control)).await;
        let Accepted { port, credit } = match answer {
            Ok(answer) => answer?,
            Err(_) => return Err(DialError::Path("the server does not answer".into())),
        };
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
            lane: Some(lane),
            datagram: largest.into(),
            start,
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
                instance: self.node.instance(),
                role: self.role,
                credit: self.credit,
                name: self.name.clone(),
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
            control.write(&message).await.map_err(failed)?;
            return match control.read().await.map_err(failed)? {
                Message::Accept {
                    session,
                    port,
                    credit,
                } if Some(session) == known => Ok(Accepted { port, credit }),
                answer => Err(refusal(answer)),
            };
        }
        if let (Trust::Code(code), None) = (&self.trust, self.agreed.get()) {
            self.agree(control, code).await?;
        }
        control.write(&message).await.map_err(failed)?;
        match control.read().await.map_err(failed)? {
            Message::Accept {
                session: id,
                port,
                credit,
            } => {
                *session = Some(id);
                Ok(Accepted { port, credit })
            }
            answer => Err(refusal(answer)),
        }
    }
}

impl Target {
    /// Shows that this host knows the code, and lets the server do so.
    async fn agree(&self, control: &mut Control, code: &Code) -> Result<(), DialError> {
        let failed = |error: ControlError| DialError::Path(error.to_string());
        let wrong = |_| DialError::Fatal(TransferError::Code);
        let key = control.connection().peer_key();
        let exporter = control.connection().export_secret(CODE_EXPORTER, b"");
        let exporter = exporter.map_err(|error| DialError::Path(error.to_string()))?;
        let (exchange, element) = keys::start(code, keys::Side::Client)
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
