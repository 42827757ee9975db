//! What a session of another host has here: its lanes, its streams, its slots.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hawser_keys::PeerKey;
use hawser_session::message_queue;
use tokio::sync::mpsc;

use super::greeting::Greeted;
use crate::address::Slot;
use crate::carrier::control;
use crate::carrier::node::Node;
use crate::carrier::report::{self, RetiredPaths};
use crate::carrier::streams::{self, Accepted, Connections};
use crate::link::ToHolder;
use crate::plane::Plane;
use crate::plane::lane::{LaneEvent, LaneKey, LaneTable, NewLane, SealedLane};
use crate::protocol::{Epoch, Message, Role, SlotEpoch, Status};
use crate::report::{Failovers, PathReport, SessionReport};
use crate::session::{Refusal, ServerSession};

/// Where what happens to lanes goes: messages of their connections, and events.
type Inboxes = (
    mpsc::Sender<(LaneKey, Message)>,
    mpsc::UnboundedSender<(LaneKey, LaneEvent)>,
);

/// What a session has here.
pub(super) struct DrivenSession {
    pub table: Arc<LaneTable>,
    pub lanes: BTreeMap<LaneKey, Arc<SealedLane>>,
    /// The streams that the peer opens, and those of them that are connections.
    pub accepted: Arc<Accepted>,
    connections: Connections,
    failovers: Failovers,
    lost: RetiredPaths,
}

impl DrivenSession {
    pub(super) fn new(table: Arc<LaneTable>) -> Self {
        Self {
            table,
            lanes: BTreeMap::new(),
            accepted: Arc::default(),
            connections: Connections::default(),
            failovers: Failovers::default(),
            lost: RetiredPaths::default(),
        }
    }

    /// Adds the lane of a connection of the host `from`, which gets the `answer` first. Until datagrams
    /// get through, the connection carries its slot.
    pub(super) fn add(
        &mut self,
        node: &Node,
        key: LaneKey,
        greeted: Greeted,
        answer: Message,
        from: String,
        (received, events): Inboxes,
    ) {
        let connection = greeted.control.connection().clone();
        let mut remote = connection.peer();
        remote.host.set_port(greeted.open.port);
        // The lane bounds it.
        let (messages, outgoing) = message_queue();
        let lane = node.plane().add(NewLane {
            key,
            keys: greeted.keys,
            remote,
            table: Arc::clone(&self.table),
            sender: greeted.underlay.lanes().sender(),
            messages,
            events,
        });
        lane.set_rtt(connection.stats().rtt);
        lane.send(answer);
        self.table.learn(greeted.open.bound(), &lane);
        let opened = {
            let (node, connections) = (node.clone(), self.connections.clone());
            move || accept_streams(from.clone(), connections.clone(), node.clone())
        };
        let accepted = Arc::clone(&self.accepted);
        tokio::spawn(streams::accept_path(
            accepted,
            Arc::clone(&lane),
            connection,
            opened,
        ));
        tokio::spawn(control::run(
            greeted.control,
            Arc::clone(&lane),
            outgoing,
            received,
        ));
        self.lanes.insert(key, lane);
    }

    /// Follows the side that dials, which has put this slot on a lane. Returns whether that is new.
    pub(super) fn learn(&self, bound: SlotEpoch, key: LaneKey) -> bool {
        let lane = self.lanes.get(&key);
        lane.is_some_and(|lane| self.table.learn(bound, lane))
    }

    /// Closes a lane that has failed. Returns the slots that it had.
    pub(super) fn close(
        &mut self,
        plane: &Plane,
        key: LaneKey,
        reason: &str,
    ) -> Vec<(Slot, Epoch)> {
        let Some(lane) = self.lanes.remove(&key) else {
            return Vec::new();
        };
        self.failovers.record(&lane, None, reason);
        self.lost
            .add(PathReport::of(&lane, None, self.sent_over(key)));
        plane.remove(&lane)
    }

    /// Ends its connections, streams and lanes; with a `refusal`, which the other host gets, at once,
    /// though there is still something to be delivered here.
    pub(super) fn end(&self, node: &Node, reason: String, refusal: Option<&Refusal>) {
        match refusal {
            None => self.accepted.leave(),
            Some(_) => {
                if let Some(instance) = self.accepted.current() {
                    instance.streams.end(Status::Untrusted);
                    instance.end();
                }
            }
        }
        let plane = node.plane();
        for lane in self.lanes.values() {
            if let Some(refusal) = refusal {
                lane.close_with(refusal.message());
            }
            plane.remove(lane);
        }
        plane.remove_session(&self.table);
        node.tell(ToHolder::Ended {
            peer: self.table.peer.address(0),
            role: Role::Server,
            reason,
            at_once: refusal.is_some(),
        });
    }

    /// Bytes of streams sent over a lane.
    fn sent_over(&self, lane: LaneKey) -> u64 {
        let streams = self.accepted.current();
        streams.map_or(0, |instance| instance.streams.sent_over(lane.0))
    }

    /// The status report of the session, which is that of the host with this key.
    pub(super) fn report(&self, key: PeerKey, session: &ServerSession) -> SessionReport {
        let address = self.table.peer.address(0);
        let lanes = self.lanes.values();
        let path = |lane: &Arc<SealedLane>| PathReport::of(lane, None, self.sent_over(lane.key));
        SessionReport {
            peer: report::peer(session.peer()),
            key: Some(key.to_string()),
            role: Role::Server,
            address: Some(address),
            carrier: session.carriers().to_string(),
            streams: self.connections.report(address, Role::Server),
            paths: lanes.map(path).collect(),
            shared: Vec::new(),
            lost: self.lost.to_reports(),
            failovers: self.failovers.clone(),
            unsent_packets: self.table.unsent.load(Ordering::Relaxed),
            decisions: Vec::new(),
            error: None,
            totals: None,
        }
    }
}

/// Serves the streams that the host `from` opens.
fn accept_streams(
    from: String,
    connections: Connections,
    node: Node,
) -> mpsc::UnboundedSender<streams::Stream> {
    // Bounded by how many streams the peer may have open.
    let (opened, mut accepted) = mpsc::unbounded_channel::<streams::Stream>();
    tokio::spawn(async move {
        while let Some(stream) = accepted.recv().await {
            let (from, connections, node) = (from.clone(), connections.clone(), node.clone());
            let Some(permit) = node.budget().take() else {
                stream.reset(Status::Unreachable);
                let failure = Some(format!("from {from}: {}", node.budget().exhausted()));
                node.tell(ToHolder::StreamEnded {
                    was_set_up: false,
                    failure,
                });
                continue;
            };
            tokio::spawn(async move {
                let _permit = permit;
                streams::serve(stream, from, connections, node).await;
            });
        }
    });
    opened
}
