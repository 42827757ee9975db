//! The task that watches lanes: it turns faults and outages into doubts about them.

use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use hawser_packet::ScmpError;
use tokio::sync::{broadcast, mpsc};

use super::doubt::{Doubt, LaneEnd};
use super::flow::Flow;
use super::lane::{self, Lane};
use super::shared::Fault;
use crate::outage::Outage;
use crate::sync::lock;

/// The lanes of one socket.
#[derive(Debug, Default)]
pub(super) struct Registry(Mutex<Vec<Weak<lane::Inner>>>);

impl Registry {
    pub(super) fn add(&self, lane: &Lane) {
        let mut lanes = lock(&self.0);
        lanes.retain(|lane| lane.strong_count() > 0);
        lanes.push(Arc::downgrade(&lane.0));
    }

    fn all(&self) -> Vec<Lane> {
        let lanes = lock(&self.0);
        lanes.iter().filter_map(Weak::upgrade).map(Lane).collect()
    }

    /// Casts doubt on every lane whose path `outage` cuts.
    fn cut(&self, outage: Outage) {
        for lane in self.all() {
            if lane.is_cut_by(&outage) == Some(true) {
                lane.doubt(Doubt {
                    end: LaneEnd::PathDown(outage),
                    outage: None,
                    max_payload: None,
                });
            }
        }
    }

    /// Casts doubt on the lanes over `flow`, because of `error`.
    fn report(&self, flow: &Arc<Flow>, error: ScmpError) {
        let outage = Outage::of(&error);
        let max_payload = match error {
            ScmpError::PacketTooBig { mtu } => Some(flow.headers().max_payload(mtu).into()),
            _ => None,
        };
        for lane in self.all() {
            // So far only the interface ids of the outage were compared.
            let elsewhere = outage.and_then(|outage| lane.is_cut_by(&outage)) == Some(false);
            if elsewhere || !Arc::ptr_eq(lane.flow(), flow) || lane.is_doubted() {
                continue;
            }
            if !flow.takes_report(Instant::now()) {
                return;
            }
            lane.doubt(Doubt {
                end: outage.map_or(LaneEnd::Unreachable(error), LaneEnd::PathDown),
                outage,
                max_payload,
            });
        }
    }

    fn handle(&self, fault: Fault) {
        match fault {
            Fault::Report { flow, error } => self.report(&flow, error),
            Fault::Send { flow, message } => {
                for lane in self.all() {
                    if lane.flow().id == flow {
                        lane.finish(LaneEnd::Socket {
                            remote: lane.remote(),
                            message: message.clone(),
                        });
                    }
                }
            }
        }
    }
}

/// Watches the lanes of `registry` until all lanes, senders and the receiver of the socket are
/// dropped.
pub(super) async fn run(
    registry: Arc<Registry>,
    mut outages: broadcast::Receiver<Outage>,
    mut faults: mpsc::Receiver<Fault>,
) {
    loop {
        tokio::select! {
            fault = faults.recv() => match fault {
                Some(fault) => registry.handle(fault),
                None => return,
            },
            outage = outages.recv() => match outage {
                Ok(outage) => registry.cut(outage),
                // Missed outages are reported again by the next packets that meet them.
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return,
            },
        }
    }
}
