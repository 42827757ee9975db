//! The carrier: moves packets between the TUN device of the [holder](crate::holder) and SCION lanes.
//!
//! The life of a carrier. [`Carrier::start`] binds the sockets, and starts the threads that carry packets
//! and the task that serves other hosts. [`Carrier::run`] reads the map, has the holder capture what is
//! mapped, and then works: its task answers the holder, opens sessions, hands them programs' sockets, and
//! looks for changes of the map twice a second. Beside it run a task for each session that this host opens
//! (`client`), one for all that others open (`server`), and those of dials, connections and streams. It
//! ends when the holder says so or has ended, or when a thread or task has without which nothing works.
//! Then the sessions that it has opened end in order, within 0.8 s. When the future is dropped instead,
//! other hosts are told nothing.
//!
//! Requests are bounded by the holder, which has as many as programs connect at once, and by the
//! destinations of packets that are remembered (`capture`). Connections over streams take permits of the
//! budget. A session that this host has opened ends after ten minutes without use.
//!
//! The turn of a target (`clients`) is an async lock that the task of a session holds for all of its life,
//! so that the next session with the same addresses waits for its end. All other locks are held for single
//! calls, and never across an await. For streams that another host opens, the lock of the current process
//! (`streams::path`) is taken before that of its streams (`streams::shared`). When a session was used
//! (`usage`), the list of its streams (`streams::registry`) and the sockets of plain IP (`underlay`, which
//! binds them under its lock) are locked alone. `plane` says which locks packets have.

mod capture;
mod client;
mod clients;
mod control;
mod destinations;
mod error;
mod inbox;
mod node;
mod report;
mod server;
mod streams;
mod underlay;
mod usage;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_endhost::{Endhost, ScionAddr};
use hawser_kernel::pace::BusyPoll;
use hawser_keys::Identity;
use hawser_manager::PathOptions;
use hawser_seal::Cipher;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

pub use self::capture::Captured;
use self::capture::{Capture, Find};
use self::client::{Answer, Request};
use self::clients::Clients;
pub use self::destinations::Destinations;
use self::destinations::{Changes, Target};
pub use self::error::CarrierError;
pub use self::node::Trust;
use self::node::{NewNode, Node};
use self::server::Server;
pub use self::underlay::PlainIpOptions;
pub use crate::attachment::Attachment;
use crate::choice::CarrierKind;
use crate::ended::Watcher;
use crate::handover::{Handed, HandoverReceiver};
use crate::link::{Found, Link, ToCarrier, ToHolder};
use crate::plane::NewPlane;
use crate::plane::packets::Packets;
pub use crate::report::{
    CarrierReport, DecisionReport, Failover, Failovers, PacketCounts, PathReport, PathState,
    SessionReport, StreamsReport, Traffic,
};
use crate::served::Served;
use crate::session::Connect;

/// Interval at which the map's file is looked at.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(500);

/// How much later than its devices the end of the holder may show.
const HOLDER_ENDS: Duration = Duration::from_secs(1);

/// How the carrier works.
pub struct CarrierOptions {
    /// This host's network.
    pub host: Endhost,
    /// Where other hosts connect to; `None` for `default_port` of this host's address.
    pub listen: Option<SocketAddr>,
    /// The port where `listen` names none; 0 for any.
    pub default_port: u16,
    /// Whether plain IP is used beside SCION, and in its place while no path works.
    pub plain_ip: Option<PlainIpOptions>,
    /// This host's key.
    pub identity: Identity,
    /// How hosts recognise each other.
    pub trust: Trust,
    /// Which paths are used.
    pub paths: PathOptions,
    /// What carries the connections of programs. Other hosts may use either carrier.
    pub carrier: CarrierKind,
    /// How datagrams are sealed.
    pub cipher: Cipher,
    /// Where connections of programs go; `None` if this host only serves.
    pub destinations: Option<Destinations>,
    /// Whether connections of other hosts, which this one forwards, are carried as well.
    pub forwards: bool,
    /// What other hosts may connect to.
    pub served: Served,
    /// Which packets come from the device for captured ones.
    pub captured: Captured,
}

/// The sessions of this host.
pub struct Carrier {
    node: Node,
    paths: PathOptions,
    link: Link<ToHolder, ToCarrier>,
    destinations: Option<Destinations>,
    handed: HandoverReceiver,
    clients: Clients,
    /// Of the threads without which nothing works, the first that has ended.
    ended: mpsc::Receiver<String>,
    /// The task that serves other hosts.
    serving: JoinSet<()>,
    /// Destinations of packets: at most one request for each that is remembered.
    finds: mpsc::UnboundedReceiver<Find>,
    capture: Capture,
    /// Requests for reports: one for each caller, of which a few wait.
    server: mpsc::UnboundedSender<oneshot::Sender<Vec<SessionReport>>>,
    reports: mpsc::UnboundedReceiver<oneshot::Sender<Vec<SessionReport>>>,
    reporter: Reporter,
    ready: watch::Sender<bool>,
}

/// Asks a carrier what there is to see. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Reporter {
    began: Instant,
    requests: mpsc::UnboundedSender<oneshot::Sender<Vec<SessionReport>>>,
}

impl Reporter {
    /// What the carrier does; no sessions if it has ended.
    pub async fn report(&self) -> CarrierReport {
        let (answer, answered) = oneshot::channel();
        let sessions = match self.requests.send(answer) {
            Ok(()) => answered.await.unwrap_or_default(),
            Err(_) => Vec::new(),
        };
        CarrierReport {
            uptime_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            sessions,
        }
    }
}

impl Carrier {
    /// Binds the sockets. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`CarrierError`] when that fails.
    pub fn start(options: CarrierOptions, attachment: Attachment) -> Result<Self, CarrierError> {
        let captured = Arc::new(attachment.captured);
        let packets = Packets::new(Arc::clone(&captured), options.served.clone());
        let queue = match (attachment.queue, options.carrier) {
            (Ok(queue), _) => Some(queue),
            (Err(reason), CarrierKind::Mptcp) => return Err(CarrierError::NoMptcp(reason)),
            (Err(reason), CarrierKind::Quic) => {
                tracing::info!("other hosts cannot connect by MPTCP: {reason}");
                None
            }
        };
        let (watcher, ended) = Watcher::new();
        let node = Node::bind(NewNode {
            plane: NewPlane {
                queue,
                packets,
                lent: attachment.lent,
                own: attachment.own,
                watcher: watcher.clone(),
            },
            host: options.host,
            listen: options.listen,
            default_port: options.default_port,
            plain_ip: options.plain_ip,
            identity: options.identity,
            trust: options.trust,
            cipher: options.cipher,
            tag: attachment.tag,
            carrier: options.carrier,
            served: options.served.clone(),
            holder: attachment.link.sender(),
        })?;
        // The caller that asked for a report waits for its answer, here and below.
        let (server, served) = mpsc::unbounded_channel();
        let mut serving = JoinSet::new();
        serving.spawn(Server::new(node.clone()).run(served));
        // One at a time for each destination that is captured (`Capture`).
        let (find, finds) = mpsc::unbounded_channel();
        let capture = Capture::start(node.clone(), captured, options.captured, find, watcher);
        let capture = capture.map_err(CarrierError::Packets)?;
        let (reporter, reports) = mpsc::unbounded_channel();
        node.tell(ToHolder::Forward(options.forwards));
        node.tell(ToHolder::Serve(options.served));
        let clients = Clients::new(node.clone());
        Ok(Self {
            node,
            paths: options.paths,
            link: attachment.link,
            destinations: options.destinations,
            handed: attachment.handed,
            clients,
            ended,
            serving,
            server,
            finds,
            capture,
            reports,
            reporter: Reporter {
                began: Instant::now(),
                requests: reporter,
            },
            ready: watch::Sender::new(false),
        })
    }

    /// How long the threads that receive look for packets again after traffic, before they wait; changes of it
    /// hold at once. Off at first.
    pub fn busy_poll(&self) -> BusyPoll {
        self.node.busy_poll().clone()
    }

    /// The address that other hosts connect to.
    pub fn local_addr(&self) -> ScionAddr {
        self.node.scion().quic.local_addr()
    }

    /// The address that other hosts connect to over plain IP, if they may.
    pub fn plain_ip_addr(&self) -> Option<SocketAddr> {
        self.node.plain_ip()?.announced()
    }

    /// Asks this carrier what there is to see.
    pub fn reporter(&self) -> Reporter {
        self.reporter.clone()
    }

    /// Waits until the connections of programs to what is mapped are captured, which is once
    /// [`run`](Self::run) has begun.
    pub fn ready(&self) -> impl Future<Output = ()> + use<> {
        let mut ready = self.ready.subscribe();
        async move {
            // The carrier may end before.
            let _ = ready.wait_for(|is_ready| *is_ready).await;
        }
    }

    /// Carries packets until the shim is taken down. Dropping the future ends all sessions, without
    /// the other hosts learning of it.
    ///
    /// # Errors
    /// [`CarrierError::HolderEnded`] when the holder ended without that.
    pub async fn run(mut self) -> Result<(), CarrierError> {
        let ended = self.work().await;
        // In either case the connections have ended with the holder, or are about to.
        self.clients.end().await;
        ended
    }

    async fn work(&mut self) -> Result<(), CarrierError> {
        let mut tick = tokio::time::interval(FOLLOW_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut refreshed = JoinSet::new();
        // Before the first request: the holder may have connections that need their sessions.
        if let Some(mut destinations) = self.destinations.take() {
            let first = tokio::task::spawn_blocking(move || {
                let changes = destinations.refresh();
                (destinations, changes)
            });
            let Ok((destinations, mut changes)) = first.await else {
                return self.stopped("the map cannot be read".to_owned()).await;
            };
            self.destinations = Some(destinations);
            // An earlier carrier may have had others captured.
            changes.prefixes.get_or_insert_default();
            self.follow(changes);
        } else {
            self.ready.send_replace(true);
        }
        loop {
            tokio::select! {
                message = self.link.receive() => match message {
                    Some(ToCarrier::Connect { id, destination }) => self.connect(id, destination),
                    Some(ToCarrier::Captured(captured)) => {
                        if let Err(error) = captured {
                            tracing::error!("{error}");
                        }
                        self.ready.send_replace(true);
                    }
                    Some(ToCarrier::Down) => return Ok(()),
                    Some(ToCarrier::InUse(peers)) => self.clients.in_use(&peers),
                    None => return Err(CarrierError::HolderEnded),
                },
                Some(find) = self.finds.recv() => self.find(find),
                handed = self.handed.receive() => match handed {
                    Ok(Some(handed)) => self.carry(handed),
                    Ok(None) => return Err(CarrierError::HolderEnded),
                    Err(error) => tracing::warn!(%error, "a program's socket was not handed over"),
                },
                Some(answer) = self.reports.recv() => self.report(answer),
                true = self.clients.next_end() => {}
                Some(reason) = self.ended.recv() => return self.stopped(reason).await,
                Some(_) = self.serving.join_next() => {
                    return self.stopped("other hosts are not served any more".to_owned()).await;
                }
                _ = tick.tick(), if refreshed.is_empty() => {
                    if let Some(mut destinations) = self.destinations.clone() {
                        refreshed.spawn_blocking(move || {
                            let changes = destinations.refresh();
                            (destinations, changes)
                        });
                    }
                }
                Some(done) = refreshed.join_next() => {
                    if let Ok((destinations, changes)) = done {
                        self.destinations = Some(destinations);
                        self.follow(changes);
                    }
                }
            }
        }
    }

    /// Ends, as something has ended without which nothing works; as the holder wants, if that has ended
    /// it.
    async fn stopped(&mut self, reason: String) -> Result<(), CarrierError> {
        let holder = async {
            loop {
                match self.link.receive().await {
                    Some(ToCarrier::Down) => return Ok(()),
                    Some(_) => {}
                    None => return Err(CarrierError::HolderEnded),
                }
            }
        };
        let ended = tokio::time::timeout(HOLDER_ENDS, holder).await;
        ended.unwrap_or(Err(CarrierError::Stopped(reason)))
    }

    /// Has the holder capture what is mapped now.
    fn follow(&self, changes: Changes) {
        changes.report();
        if changes.is_new {
            self.capture.on_new_map();
            if let Some(destinations) = &self.destinations {
                self.clients
                    .follow(|target| destinations.options(target, &self.paths));
            }
        }
        if let Some((prefixes, routed)) = changes.prefixes {
            self.node.tell(ToHolder::Capture { prefixes, routed });
        }
    }

    /// Finds the session with the host behind `destination` for the holder, or opens one.
    fn connect(&mut self, id: u64, destination: SocketAddr) {
        let sender = self.link.sender();
        let reply = move |found| {
            // If the holder has ended, so does this.
            let _ = sender.send(ToHolder::Connected { id, found });
        };
        let Some(destinations) = &self.destinations else {
            return reply(Found::Direct);
        };
        let Some(target) = destinations.find(destination) else {
            return reply(Found::Direct);
        };
        // The end of the session, of which the holder learns over the same link, must come later.
        let answer = Answer::new(move |found| {
            reply(match found {
                Ok(Connect::Mptcp(peer)) => Found::Peer(peer.address(0)),
                Ok(Connect::Quic(_)) => Found::Stream,
                Err(reason) => Found::Failed(reason),
            });
        });
        self.ask(target, answer);
    }

    /// Finds the session with the host behind a destination of packets, or opens one.
    fn find(&mut self, find: Find) {
        let destinations = self.destinations.as_ref();
        let target = destinations.and_then(|all| all.find_host(find.destination));
        let Some(target) = target else {
            // The task that asked may have ended.
            let _ = find.answer.send(None);
            return;
        };
        let answer = Answer::new(move |found| {
            let _ = find.answer.send(Some(found.map(Connect::peer)));
        });
        self.ask(target, answer);
    }

    /// Asks where connections to the host behind `target` go; the answer comes once a path to it is
    /// connected.
    fn ask(&mut self, target: Target, answer: Answer) {
        // An error was the answer.
        let _ = self.request(target, Request::Connect(answer));
    }

    /// Carries a connection of a program that the holder has handed over.
    fn carry(&mut self, handed: Handed) {
        let destination = handed.ends.destination;
        let destinations = self.destinations.as_ref();
        let target = destinations.and_then(|destinations| destinations.find(destination));
        let Some(target) = target else {
            // The map has changed since the holder asked.
            return handed.refuse();
        };
        let carried = match self.node.budget().take() {
            Some(permit) => self.request(target, Request::Carry(handed, permit)),
            None => {
                handed.refuse();
                Err(self.node.budget().exhausted())
            }
        };
        if let Err(error) = carried {
            let failure = Some(format!("to {destination}: {error}"));
            self.node.tell(ToHolder::StreamEnded {
                was_set_up: false,
                failure,
            });
        }
    }

    /// Sends a request to the session with `target`, which is opened if there is none.
    fn request(&mut self, target: Target, request: Request) -> Result<(), String> {
        let (destinations, paths) = (self.destinations.as_ref(), &self.paths);
        self.clients.request(target, request, |target| {
            destinations.map_or_else(
                || Ok(paths.clone()),
                |destinations| destinations.options(target, paths),
            )
        })
    }

    fn report(&mut self, answer: oneshot::Sender<Vec<SessionReport>>) {
        let waiting = self.clients.report();
        let (of_server, served) = oneshot::channel();
        let _ = self.server.send(of_server);
        tokio::spawn(async move {
            let mut sessions = Vec::new();
            for session in waiting {
                sessions.extend(session.await);
            }
            sessions.extend(served.await.unwrap_or_default());
            let _ = answer.send(sessions);
        });
    }
}
