//! Sessions that other hosts begin.
//!
//! [`serve`] accepts connections until the node is closed, and handles each in a task of its own.
//! The first message must come within [`FIRST_MESSAGE_TIMEOUT`]; if it begins an exchange about the
//! code, that and the message after it have as much time each. Then the key must be allowed. A
//! connection that *opens* a session takes a place ([`Slot`]) and a share of the memory, and its
//! task runs the session to its end. One that *joins* is handed to the session, and its task ends.
//! All others are refused, which is reported while fewer than [`MAX_REFUSALS`] such reports wait.
//!
//! A session has its place until both it and the listing of its content have ended. It is ended
//! from outside by its [`Notice`]: `end_revoked` looks every quarter of a second whether keys are
//! still allowed, and a session of another process of the same client replaces it once it is
//! silent. [`End`] reports its end once, also after a panic or when the future of [`serve`] is
//! dropped.
//!
//! There are three locks: the sessions that run (`Sessions`), the state of the code (`Offer`), and
//! the rule who may connect ([`Clients`]). None is taken under another or held across an await. The
//! file of allowed keys is read under none of them: in the task of a connection, and on a blocking
//! thread by `end_revoked`.

mod clients;
mod offer;
mod refusal;
mod sessions;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use hawser_endhost::ScionAddr;
use hawser_endhost::patience::wait;
use hawser_keys::{Code, KeysFileError, PeerKey, Revocations, Side};
use hawser_quic::Connection;
use hawser_seal::Cipher;
use hawser_session::FIRST_MESSAGE_TIMEOUT;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

pub use self::clients::Clients;
use self::offer::Offer;
use self::refusal::Refusal;
use self::sessions::{Entry, Sessions, Slot};
use crate::algorithm::{Algorithm, Start};
use crate::content::{PatternError, ScanOptions, Source, scan_shared};
use crate::control::{Control, ControlError};
use crate::data::SessionId;
use crate::error::TransferError;
use crate::joined::Joined;
use crate::limit::Limit;
use crate::node::{Node, datagram_keys};
use crate::notice::Notice;
use crate::protocol::{self, Choices, DecodeError, ErrorCode, Message, Open};
use crate::report::{Summary, TransferEvent};
use crate::session::{Begin, Connections, Destination, List, Role, Session, landing_options};

/// What others may do here.
#[derive(Clone)]
pub struct ServerOptions {
    /// The hosts that may connect.
    pub clients: Clients,
    /// The code of a host that may connect although its key is not allowed: one host, until one of its
    /// transfers is complete. After three wrong codes the offer has ended.
    pub code: Option<Code>,
    /// Where others may write; `None` for nowhere.
    pub receive: Option<Destination>,
    /// The folder that others may read; `None` for none.
    pub share: Option<PathBuf>,
    /// Which of owners, groups, ACLs and extended attributes are taken from others.
    pub take: protocol::Choices,
    /// Most sessions at once.
    pub sessions: usize,
    /// How the rate of each path is controlled.
    pub algorithm: Algorithm,
    /// Limits the rate of content that others send here, and of what they fetch; `None` for no limit.
    pub limit: Option<Limit>,
}

/// The number of a session of this server.
pub type SessionNumber = u64;

/// What happens at a server.
#[derive(Debug)]
pub enum ServerEvent {
    /// A host was refused.
    Refused {
        /// The host.
        peer: ScionAddr,
        /// Its key.
        key: PeerKey,
        /// Why.
        reason: String,
        /// Its place among those that wait to be handled.
        place: RefusalPlace,
    },
    /// As many codes were wrong as are allowed: nobody can use the code any more.
    OfferEnded,
    /// The file of allowed keys cannot be used. Reported once for each reason.
    Keys(KeysFileError),
    /// A session begins.
    Began {
        /// Its number.
        session: SessionNumber,
        /// The host.
        peer: ScionAddr,
        /// Its key.
        key: PeerKey,
        /// Whether the host sends, or fetches.
        sends: bool,
        /// What it names.
        name: String,
    },
    /// Something happens in a session.
    Session(SessionNumber, TransferEvent),
    /// A session has ended.
    Ended(SessionNumber, Result<Summary, TransferError>),
}

/// The place of a refusal among those that wait to be handled. Anybody can be refused as often as they
/// like: beyond 256 that wait, which a caller that handles none leads to, further ones are not reported.
#[derive(Debug)]
pub struct RefusalPlace(
    #[expect(dead_code, reason = "it is free once this is dropped")] OwnedSemaphorePermit,
);

/// Most refusals that wait to be handled.
const MAX_REFUSALS: usize = 256;

struct Server {
    node: Node,
    offer: Offer,
    options: ServerOptions,
    sessions: Sessions,
    /// Besides refusals, a few for each session, of which there is a limit, and ten a second.
    events: UnboundedSender<ServerEvent>,
    refusals: Arc<Semaphore>,
}

/// Serves until the node is closed; what happens goes to `events`. Dropping the future ends all
/// sessions.
pub async fn serve(node: &Node, options: ServerOptions, events: UnboundedSender<ServerEvent>) {
    let server = Arc::new(Server {
        node: node.clone(),
        offer: Offer::new(options.code.clone()),
        options,
        sessions: Sessions::default(),
        events,
        refusals: Arc::new(Semaphore::new(MAX_REFUSALS)),
    });
    let mut tasks = JoinSet::new();
    tasks.spawn(Arc::clone(&server).end_revoked());
    loop {
        tokio::select! {
            connection = node.quic().accept() => match connection {
                Some(connection) => {
                    let server = Arc::clone(&server);
                    tasks.spawn(async move { server.greet(connection).await });
                }
                None => return,
            },
            // A panic of a task was reported.
            Some(_) = tasks.join_next() => {}
        }
    }
}

impl Server {
    fn report(&self, event: impl Into<Option<ServerEvent>>) {
        if let Some(event) = event.into() {
            // The caller may have dropped its end: then nothing is reported.
            let _ = self.events.send(event);
        }
    }

    /// The report that a host is refused, unless too many wait to be handled.
    fn refused(&self, peer: ScionAddr, key: PeerKey, reason: String) -> Option<ServerEvent> {
        let place = Arc::clone(&self.refusals).try_acquire_owned().ok()?;
        Some(ServerEvent::Refused {
            peer,
            key,
            reason,
            place: RefusalPlace(place),
        })
    }

    /// Handles the first message of a connection, and runs the session that it begins.
    async fn greet(self: Arc<Self>, connection: Connection) {
        let (peer, key) = (connection.peer(), connection.peer_key());
        let refused = |reason: String| self.refused(peer, key, reason);
        let (mut control, message) = match Control::accept(connection).await {
            Ok((control, Ok(message))) => (control, message),
            Ok((control, Err(error))) => {
                let code = match error {
                    ControlError::Invalid(DecodeError::UnknownVersion(_)) => ErrorCode::VERSION,
                    _ => ErrorCode::PROTOCOL,
                };
                let text = match error {
                    ControlError::Invalid(error) => error.to_string(),
                    error => error.to_string(),
                };
                let event = refused(text.clone());
                return self.refuse(control, event, code, &text).await;
            }
            Err(error) => return self.report(refused(error.to_string())),
        };
        let message = match message {
            Message::Code(element) => {
                let agreed = wait(
                    FIRST_MESSAGE_TIMEOUT,
                    self.offer.agree(&mut control, &element),
                );
                let next = match agreed.await {
                    Some(Ok(())) => wait(FIRST_MESSAGE_TIMEOUT, control.read()).await,
                    Some(Err(Refusal(code, text))) => {
                        self.refuse(control, refused(text.clone()), code, &text)
                            .await;
                        if self.offer.take_end() {
                            self.report(ServerEvent::OfferEnded);
                        }
                        return;
                    }
                    None => None,
                };
                match next {
                    Some(Ok(message)) => message,
                    Some(Err(error)) => return self.report(refused(error.to_string())),
                    None => return self.report(refused("it does not continue".into())),
                }
            }
            message => message,
        };
        let mut remote = peer;
        if let Message::Open(Open { port, .. }) | Message::Join { port, .. } = &message {
            remote.host.set_port(*port);
        }
        let is_first = matches!(message, Message::Open(_));
        let answer = match self.allows(&key, is_first) {
            false => {
                let text = format!("the key {key} is not allowed here");
                Err(Refusal(ErrorCode::KEY, text))
            }
            true => match message {
                Message::Open(open) => self.open(peer, key, open),
                Message::Join {
                    session, cipher, ..
                } => self.join(key, session, cipher),
                _ => {
                    let text = "the first message is neither Open nor Join";
                    Err(Refusal(ErrorCode::PROTOCOL, text.into()))
                }
            },
        };
        match answer {
            Ok(Accepted {
                id,
                cipher,
                credit,
                joined,
                session,
            }) => {
                let connection = control.connection();
                let rtt = Some(connection.stats().rtt).filter(|rtt| !rtt.is_zero());
                // If the connection has ended, its client knows.
                if let Ok(keys) = datagram_keys(connection, Side::Server, cipher) {
                    let _ = joined.send(Joined {
                        subflow: self.node.subflow_key(),
                        control,
                        keys,
                        remote,
                        lane: None,
                        datagram: 0,
                        rtt,
                        start: Start::unknown(self.options.algorithm),
                        // The session answers: packets may come before anything else is known.
                        answer: Some(self.accept(id, credit)),
                        sent: 0,
                    });
                }
                drop(joined);
                if let Some(session) = session {
                    self.run(key, *session).await;
                }
            }
            Err(Refusal(code, text)) => {
                self.refuse(control, refused(text.clone()), code, &text)
                    .await;
            }
        }
    }

    async fn refuse(
        &self,
        control: Control,
        event: Option<ServerEvent>,
        code: ErrorCode,
        text: &str,
    ) {
        self.report(event);
        control.refuse(&Message::refuse(code, text)).await;
    }

    /// Whether the host with `key` may begin a session, or join one.
    fn allows(&self, key: &PeerKey, begins: bool) -> bool {
        let by_code = match begins {
            true => self.offer.is_taken_by(key),
            false => self.offer.is_known(key),
        };
        by_code
            || self.options.clients.allows(key).unwrap_or_else(|error| {
                self.report(ServerEvent::Keys(error));
                false
            })
    }

    /// Ends the sessions of hosts that are no longer allowed, as long as the server runs.
    async fn end_revoked(self: Arc<Self>) {
        let mut interval = tokio::time::interval(Revocations::<PeerKey>::INTERVAL);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut revocations = Revocations::default();
        let mut reported = None;
        loop {
            interval.tick().await;
            let held = self.sessions.keys();
            if held.is_empty() {
                continue;
            }
            let clients = self.options.clients.clone();
            let Ok((still, error)) = tokio::task::spawn_blocking(move || clients.still()).await
            else {
                // It cannot panic; without an answer nobody is known to be allowed or not.
                continue;
            };
            let text = error.as_ref().map(ToString::to_string);
            if text != reported {
                error
                    .into_iter()
                    .for_each(|error| self.report(ServerEvent::Keys(error)));
                reported = text;
            }
            let trusted = |key: &PeerKey| self.offer.is_known(key) || still.allows(key);
            for key in revocations.look(held, trusted) {
                self.sessions.revoke(key);
            }
        }
    }

    /// Begins a session.
    fn open(&self, peer: ScionAddr, key: PeerKey, open: Open) -> Result<Accepted, Refusal> {
        let Open {
            cipher,
            instance,
            role,
            credit,
            name,
            wants,
            ..
        } = open;
        let denied = |text: &str| Refusal(ErrorCode::NOT_ALLOWED, text.to_owned());
        let sends = role == protocol::Role::Source;
        let (receive, share) = (&self.options.receive, &self.options.share);
        match role {
            protocol::Role::Source if receive.is_none() => {
                return Err(denied("nothing may be sent here"));
            }
            protocol::Role::Sink if share.is_none() => {
                return Err(denied("nothing may be fetched here"));
            }
            _ => {}
        }
        let exclude = wants.exclude.iter().map(|text| text.parse());
        let exclude = exclude.collect::<Result<_, PatternError>>();
        let scan_options = ScanOptions {
            strict: wants.choices.contains(Choices::STRICT),
            exclude: exclude.map_err(|error| denied(&error.to_string()))?,
            carry: wants.choices,
        };
        // One for each connection, of which an endpoint has a limit.
        let (joined, new_subflows) = unbounded_channel();
        let notice = Arc::<Notice>::default();
        let entry = Entry {
            instance,
            key,
            joined: joined.clone(),
            notice: Arc::clone(&notice),
        };
        let slot = Arc::new(self.sessions.insert(entry, self.options.sessions)?);
        let role = match (receive, share) {
            (Some(receive), _) if sends => {
                let options = landing_options(wants.choices, self.options.take, key.to_string());
                Role::Sink(receive.clone().with_name(&name), options)
            }
            (_, Some(share)) => {
                Role::Shared(list(share.clone(), name.clone(), scan_options, &slot))
            }
            _ => return Err(denied("nothing may be sent or fetched here")),
        };
        let number = self.node.session_key();
        let memory = self.node.memory().join();
        // A source takes nothing.
        let own_credit = if sends { memory.credit() } else { 0 };
        // As those of the server.
        let (events, received) = unbounded_channel();
        self.report(ServerEvent::Began {
            session: number.0,
            peer,
            key,
            sends,
            name,
        });
        let begin = Begin {
            node: self.node.clone(),
            key: number,
            peer,
            credit: if sends { own_credit } else { credit },
            role,
            limit: self.options.limit.clone(),
            memory,
            connections: Connections::Accepted(new_subflows),
            notice,
            events,
        };
        Ok(Accepted {
            id: slot.id,
            cipher,
            credit: own_credit,
            joined,
            session: Some(Box::new((slot, begin, received))),
        })
    }

    fn accept(&self, session: SessionId, credit: u64) -> Message {
        Message::Accept {
            session,
            port: self.node.data().local_addr().host.port(),
            credit,
        }
    }

    /// Adds a connection to a session.
    fn join(&self, key: PeerKey, session: SessionId, cipher: Cipher) -> Result<Accepted, Refusal> {
        let joined = self.sessions.find(session, key)?;
        Ok(Accepted {
            id: session,
            cipher,
            // Acknowledgements have it by now.
            credit: 0,
            joined,
            session: None,
        })
    }

    async fn run(&self, key: PeerKey, (slot, begin, mut received): Beginning) {
        let number = begin.key.0;
        let mut end = End {
            events: self.events.clone(),
            number,
            result: None,
        };
        let ended = {
            let session = async { Session::new(begin).run().await.summary() };
            tokio::pin!(session);
            loop {
                tokio::select! {
                    ended = &mut session => break ended,
                    Some(event) = received.recv() => {
                        self.report(ServerEvent::Session(number, event));
                    }
                }
            }
        };
        drop(slot);
        // Files that changed while they were read come in another session of the same transfer.
        if ended
            .as_ref()
            .is_ok_and(|ended| !ended.is_to_be_continued())
        {
            self.offer.complete(key);
        }
        while let Ok(event) = received.try_recv() {
            self.report(ServerEvent::Session(number, event));
        }
        end.result = Some(ended);
    }
}

/// Lists what a client fetches. The session keeps its place until that is done, so that clients that
/// come and go have no more lists made at once than there are places.
fn list(share: PathBuf, name: String, options: ScanOptions, slot: &Arc<Slot>) -> List {
    let slot = Arc::clone(slot);
    Box::new(move || {
        let scan = scan_shared(&share, name.as_ref(), options);
        drop(slot);
        scan.map(Source::open)
    })
}

/// Reports the end of a session when it is dropped, also when the session panics.
struct End {
    events: UnboundedSender<ServerEvent>,
    number: SessionNumber,
    result: Option<Result<Summary, TransferError>>,
}

impl Drop for End {
    fn drop(&mut self) {
        let result = self.result.take().unwrap_or(Err(match thread::panicking() {
            true => TransferError::Panicked("the session"),
            false => TransferError::Cancelled,
        }));
        // The caller may have dropped its end: then nothing is reported.
        let _ = self.events.send(ServerEvent::Ended(self.number, result));
    }
}

type Beginning = (Arc<Slot>, Begin, UnboundedReceiver<TransferEvent>);

/// A connection that is accepted.
struct Accepted {
    id: SessionId,
    cipher: Cipher,
    /// Bytes of content that this host takes before the first acknowledgement.
    credit: u64,
    joined: UnboundedSender<Joined>,
    /// The session, if it begins with this connection.
    session: Option<Box<Beginning>>,
}
