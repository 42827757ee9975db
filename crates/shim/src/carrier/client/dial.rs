//! Connecting to the other host.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_endhost::{Path, ScionAddr};
use hawser_keys::{PeerKey, ServerKeyError};
use hawser_manager::{Failure, SubflowId};
use hawser_session::Remote;
use thiserror::Error;
use tokio::sync::mpsc;

use super::hold::Hold;
use super::{ClientSession, HEAD_START, OpenLane, Use, trust};
use crate::address::Block;
use crate::carrier::control::Control;
use crate::carrier::node::{Node, Side};
use crate::carrier::underlay::Underlay;
use crate::choice::CarrierSet;
use crate::link::Role;
use crate::protocol::{Message, Open, RefusalCode};

/// Why a session cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub(crate) enum SessionError {
    #[error("no path to {peer} works: {reason}")]
    NoPath { peer: ScionAddr, reason: String },
    #[error("{peer} does not answer within {} s: {reason}", .after.as_secs())]
    Silent {
        peer: ScionAddr,
        after: Duration,
        reason: String,
    },
    #[error(transparent)]
    Key(#[from] ServerKeyError),
    #[error(
        "{peer} shows the key {key}, another one than over other paths (possible man-in-the-middle)"
    )]
    OtherKey { peer: ScionAddr, key: PeerKey },
    #[error("{peer} refuses: {text}")]
    Refused {
        peer: ScionAddr,
        code: RefusalCode,
        text: String,
    },
    #[error("the key {key} of {peer} is no longer trusted here")]
    Distrusted { peer: ScionAddr, key: PeerKey },
    #[error("{peer} breaks the protocol: it sends a message at the wrong time")]
    Protocol { peer: ScionAddr },
}

/// The outcome of a dial over plain IP.
pub(super) enum Dialed {
    Connected(Use, Box<(Control, Underlay)>),
    Failed(Use, String),
    Fatal(SessionError),
}

/// The other host, as it is dialed over paths.
pub(super) struct Peer {
    pub node: Node,
    pub peer: ScionAddr,
    /// The key that it has shown.
    pub key: Option<PeerKey>,
}

impl Remote for Peer {
    type Path = Path;
    /// The inner error is the path's, the outer one the peer's.
    type Outcome = Result<Result<Control, String>, SessionError>;

    fn fits(&self, path: &Path) -> Result<(), String> {
        let fits = self.node.scion().quic.fits(self.peer, path);
        fits.map_err(|error| error.to_string())
    }

    fn dial(&self, path: Path) -> impl Future<Output = Self::Outcome> + Send + 'static {
        dial(self.node.clone(), self.peer, path, self.key)
    }
}

impl ClientSession {
    /// Handles the outcome of a dial over a path, if there is one.
    pub(super) fn on_path_dialed(
        &mut self,
        dialed: Option<(SubflowId, <Peer as Remote>::Outcome)>,
    ) -> Result<(), SessionError> {
        let Some((subflow, outcome)) = dialed else {
            return Ok(());
        };
        let of = Use::Path(subflow);
        match outcome? {
            Ok(control) => self.connected(of, control, self.node.scion().clone()),
            Err(error) => self.not_connected(of, error),
        }
        Ok(())
    }

    /// Dials over plain IP if that is due.
    pub(super) fn dial_plain_ip(&mut self) {
        let is_hopeful = self.last_error.is_none() && self.began.elapsed() < HEAD_START;
        let guesses = self.known.is_none() && !is_hopeful;
        let to = (self.beside.as_mut()).and_then(|beside| beside.dial(guesses, Instant::now()));
        let Some(to) = to else { return };
        let (node, peer) = (self.node.clone(), self.peer);
        let (results, expected) = (self.dialed.0.clone(), self.known.as_ref().map(|one| one.0));
        tokio::spawn(async move {
            let of = Use::PlainIp(to);
            let dialed = match dial_plain_ip(&node, peer, to, expected).await {
                Ok(connected) => Dialed::Connected(of, Box::new(connected)),
                Err(failed) => Dialed::Failed(of, failed),
            };
            let _ = results.send(dialed);
        });
    }

    /// Handles the outcome of a dial over plain IP, or the end of trust.
    pub(super) fn on_dialed(&mut self, dialed: Dialed) -> Result<(), SessionError> {
        match dialed {
            Dialed::Connected(of, connected) => {
                let (control, underlay) = *connected;
                self.connected(of, control, underlay);
            }
            Dialed::Failed(of, error) => self.not_connected(of, error),
            Dialed::Fatal(error) => return Err(error),
        }
        Ok(())
    }

    fn not_connected(&mut self, of: Use, error: String) {
        self.last_error = Some(error.clone());
        self.lost(of, Failure::Failed, error);
    }

    /// Takes a connection into the session.
    fn connected(&mut self, of: Use, control: Control, underlay: Underlay) {
        let connection = control.connection.clone();
        let (Some(path), Ok(keys)) = (
            connection.path(),
            self.node.lane_keys(&connection, Side::Client, None),
        ) else {
            self.lost(of, Failure::Failed, "the connection has ended".to_owned());
            return;
        };
        let peer = connection.peer();
        let cipher = keys.cipher.to_u8();
        let plane = self.node.plane();
        let key = connection.peer_key();
        let (_, table) = self.known.get_or_insert_with(|| {
            let (node, results) = (self.node.clone(), self.dialed.0.clone());
            tokio::spawn(trust::watch(node, self.peer, key, results));
            let peer = Block::of(&key, self.tag);
            (key, plane.session(peer, Role::Client))
        });
        let table = Arc::clone(table);
        self.dialer.remote.key = Some(key);
        let (messages, outgoing) = mpsc::unbounded_channel();
        let lane = plane.add(
            underlay.lanes().sender(),
            keys,
            peer,
            Arc::clone(&table),
            messages,
            self.events.0.clone(),
        );
        // A lane that is to be closed, or does not deliver, gives its slot up.
        let is_path = |of| matches!(of, Use::Path(_));
        let leaves = |one: &&OpenLane| {
            let is_in_vain = one.closes.is_some() || one.stalled;
            is_path(one.of) && is_in_vain && self.slots.has(one.lane.key)
        };
        let leaves = self.open.values().find(leaves);
        if let Some(one) = leaves.filter(|_| is_path(of)) {
            if one.stalled {
                (self.failovers).record(&one.lane, Some(&one.path), "nothing comes back over it");
            }
            self.slots.lose(one.lane.key);
        }
        let Some((slot, epoch)) = self.slots.take(lane.key) else {
            // Of paths the path manager dials no more than there are slots; those that are to be
            // closed have theirs for a while.
            plane.remove(&lane);
            self.lost(of, Failure::Failed, "all slots are in use".to_owned());
            return;
        };
        let open = Open {
            cipher,
            port: underlay.port(),
            // Sessions for several targets may lead to one host.
            tag: self.node.tag() ^ self.tag,
            slot,
            epoch,
            carriers: CarrierSet::of(self.node.carrier()),
        };
        lane.send(Message::Open(open));
        if let Ok(largest) = underlay.largest(peer, &path) {
            lane.set_datagram(largest.into());
        }
        self.node.report_mtu(&lane);
        lane.set_rtt(connection.stats().rtt);
        table.bind(slot, epoch, &lane);
        let received = self.received.0.clone();
        tokio::spawn(control.run(Arc::clone(&lane), outgoing, received));
        let rtt = Some(connection.stats().rtt);
        match of {
            Use::Path(subflow) => self.dialer.paths.connected(subflow, rtt, Instant::now()),
            Use::PlainIp(to) => self.beside.iter_mut().for_each(|one| one.connected(to)),
        }
        let open = OpenLane {
            lane: Arc::clone(&lane),
            connection,
            of,
            underlay,
            path,
            closes: None,
            stalled: false,
            hold: Hold::default(),
        };
        self.open.insert(lane.key, open);
        self.warn_of_shared();
        self.carry_over(lane.key);
        // The holder has the slots before it is given the address.
        self.publish();
        self.answer_waiting();
    }
}

/// Connects to `peer` over `path`. The inner error is the path's, the outer one the peer's.
async fn dial(
    node: Node,
    peer: ScionAddr,
    path: Path,
    expected: Option<PeerKey>,
) -> Result<Result<Control, String>, SessionError> {
    let connection = match node.scion().quic.connect(peer, path).await {
        Ok(connection) => connection,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let key = connection.peer_key();
    node.check(peer, key).map_err(|error| match expected {
        // A further dial may be the first to notice.
        Some(known) if known == key => SessionError::Distrusted { peer, key },
        _ => error.into(),
    })?;
    if expected.is_some_and(|expected| expected != key) {
        return Err(SessionError::OtherKey { peer, key });
    }
    let control = Control::open(connection).await;
    Ok(control.map_err(|error| error.to_string()))
}

/// Connects to `peer` at its address `to` on plain IP. Another key than the peer's is no error of the
/// session: other networks may have hosts with the same address.
async fn dial_plain_ip(
    node: &Node,
    peer: ScionAddr,
    to: SocketAddr,
    expected: Option<PeerKey>,
) -> Result<(Control, Underlay), String> {
    let plain_ip = node.plain_ip().ok_or("plain IP is not allowed")?;
    let (connection, underlay) = plain_ip.connect(to, node.plane()).await?;
    let key = connection.peer_key();
    let checked = node.check(peer, key);
    checked.map_err(|error| format!("plain IP to {to}: {error}"))?;
    if expected.is_some_and(|expected| expected != key) {
        return Err(format!(
            "plain IP to {to}: another host answers, with the key {key}"
        ));
    }
    let control = Control::open(connection).await;
    Ok((control.map_err(|error| error.to_string())?, underlay))
}
