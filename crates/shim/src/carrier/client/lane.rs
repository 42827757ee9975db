//! The lanes of a session with their connections, and its streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hawser_endhost::Path;
use hawser_quic::Connection;
use hawser_session::{MessageQueue, message_queue};
use hawser_streams::Side as StreamSide;
use tokio::sync::mpsc;

use super::dial::Dialed;
use super::{ClientDriver, trust};
use crate::address::Block;
use crate::address::Slot;
use crate::carrier::control::{self, Control};
use crate::carrier::node::Side;
use crate::carrier::streams::{self, Connections, Instance};
use crate::carrier::underlay::Underlay;
use crate::choice::{CarrierKind, CarrierSet};
use crate::plane::lane::{LaneKey, NewLane, SealedLane};
use crate::protocol::{Epoch, Message, Open, Role};
use crate::session::{DialError, Figures};

/// A lane of the session, or one that may become one.
pub(super) struct DrivenLane {
    pub lane: Arc<SealedLane>,
    pub connection: Connection,
    pub underlay: Underlay,
    pub path: Path,
    /// The number of its cipher.
    cipher: u8,
    /// What works its connection once it is opened. Messages wait as [`SealedLane`] bounds them.
    unopened: Option<(Control, MessageQueue<Message>)>,
}

impl DrivenLane {
    /// Whether it takes part in the session.
    pub(super) fn is_opened(&self) -> bool {
        self.unopened.is_none()
    }

    /// What is measured of it, over which `stream_bytes` were sent for streams.
    pub(super) fn figures(&self, stream_bytes: u64) -> Figures {
        let counters = &self.lane.counters;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // What streams have received over a path counts at the other side.
        let datagrams = count(&counters.sent_bytes) + count(&counters.received_bytes);
        Figures {
            rtt: self.lane.rtt(),
            // Read first: so none is taken for lost that arrives meanwhile.
            arrived: count(&counters.received_packets),
            sent: self.lane.opener().sent(),
            carried: datagrams + stream_bytes,
        }
    }
}

/// The streams of the session.
pub(super) struct Streaming {
    pub instance: Arc<Instance>,
    pub connections: Connections,
}

impl Default for Streaming {
    fn default() -> Self {
        Self {
            instance: new_instance(),
            connections: Connections::default(),
        }
    }
}

impl Streaming {
    /// Begins anew: the other side has lost them.
    pub(super) fn renew(&mut self) {
        self.instance.end();
        self.instance = new_instance();
    }
}

/// Streams of this process, that the other side has not seen.
fn new_instance() -> Arc<Instance> {
    // It stays empty, and so is bounded: the other side opens none.
    let (opened, _) = mpsc::unbounded_channel();
    let number = fastrand::u64(..);
    Arc::new(Instance::new(StreamSide::Opens, number, opened))
}

impl ClientDriver {
    /// Makes the lane over the path of a connection, which nothing uses yet.
    pub(super) fn make_lane(
        &mut self,
        dialed: Dialed,
    ) -> Result<(LaneKey, Path, Duration), DialError> {
        let Dialed { control, underlay } = dialed;
        let connection = control.connection().clone();
        let (Some(path), Ok(keys)) = (
            connection.path(),
            self.node.lane_keys(&connection, Side::Client),
        ) else {
            return Err(DialError::Path("the connection has ended".to_owned()));
        };
        let (cipher, rtt) = (keys.cipher.to_u8(), connection.stats().rtt);
        let table = Arc::clone(self.table.get_or_insert_with(|| {
            let key = connection.peer_key();
            let (node, peer) = (self.node.clone(), self.target.shim);
            self.trust.spawn(trust::watch(node, peer, key));
            let block = Block::of(&key, self.target.tag());
            self.node.plane().session(block, Role::Client)
        }));
        // `SealedLane` bounds what waits.
        let (messages, outgoing) = message_queue();
        let plane = self.node.plane();
        let lane = plane.add(NewLane {
            key: plane.next_lane(),
            keys,
            remote: connection.peer(),
            table,
            sender: underlay.lanes().sender(),
            messages,
            events: self.inboxes.events.0.clone(),
        });
        lane.set_rtt(rtt);
        let key = lane.key;
        let driven = DrivenLane {
            lane,
            connection,
            underlay,
            path: path.clone(),
            cipher,
            unopened: Some((control, outgoing)),
        };
        self.lanes.insert(key, driven);
        Ok((key, path, rtt))
    }

    /// Opens a lane at the other host, under this slot.
    pub(super) fn open(&mut self, key: LaneKey, slot: Slot, epoch: Epoch) {
        let Some(one) = self.lanes.get_mut(&key) else {
            return;
        };
        let Some((control, outgoing)) = one.unopened.take() else {
            return;
        };
        one.lane.send(Message::Open(Open {
            cipher: one.cipher,
            port: one.underlay.port(),
            // Sessions for several targets may lead to one host.
            tag: self.node.tag() ^ self.target.tag(),
            slot,
            epoch,
            carriers: CarrierSet::of(self.node.carrier()),
        }));
        if let Ok(largest) = one.underlay.largest(one.connection.peer(), &one.path) {
            one.lane.set_datagram(largest.into());
        }
        self.node.report_mtu(&one.lane);
        one.lane.table.bind(slot, epoch, &one.lane);
        let received = self.inboxes.received.0.clone();
        tokio::spawn(control::run(
            control,
            Arc::clone(&one.lane),
            outgoing,
            received,
        ));
        self.carry_over(key);
    }

    /// Opens the path of a lane, whose datagrams the other host takes at this port.
    ///
    /// # Errors
    /// When the path does not lead there, for people.
    pub(super) fn open_path(&self, key: LaneKey, port: u16) -> Result<(), String> {
        let Some(one) = self.lanes.get(&key) else {
            return Ok(());
        };
        let mut remote = one.lane.remote;
        remote.host.set_port(port);
        let opened = one.underlay.open(&one.lane, remote, one.path.clone());
        opened.map_err(|error| error.to_string())
    }

    /// Sends the frames of streams over a lane's connection.
    pub(super) fn carry_over(&self, key: LaneKey) {
        if self.node.carrier() != CarrierKind::Quic {
            return;
        }
        if let Some(one) = self.lanes.get(&key) {
            let (lane, connection) = (Arc::clone(&one.lane), one.connection.clone());
            let instance = Arc::clone(&self.streaming.instance);
            tokio::spawn(streams::open_path(instance, lane, connection));
        }
    }
}
