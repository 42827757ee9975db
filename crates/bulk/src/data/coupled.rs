//! Coupled rate control of all subflows over which this host sends, of all sessions.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hawser_congestion::Coupling;
use hawser_endhost::IsdAsn;
use hawser_endhost::lanes::Lane;
use hawser_path::Interface;

use super::outgoing::Outgoing;
use super::subflow::Subflows;
use super::{SessionKey, SubflowKey};

/// Interval of observations.
const OBSERVE_INTERVAL: Duration = Duration::from_millis(10);

/// A subflow, among those of all sessions.
type Id = (SessionKey, SubflowKey);

/// The subflows over which this host sends, and the links that they share.
pub(super) struct Coupled {
    coupling: Coupling<Id, Interface>,
    /// The last observation; `None` if subflows have come or gone since.
    observed: Option<Instant>,
}

impl Coupled {
    pub(super) fn new() -> Self {
        Self {
            coupling: Coupling::default(),
            observed: None,
        }
    }

    /// Adds a subflow of a host in the AS `local`.
    pub(super) fn add(&mut self, id: Id, lane: Option<&Lane>, local: IsdAsn) {
        let interfaces = lane.map(|lane| interfaces(lane, local));
        self.coupling.add(id, interfaces.unwrap_or_default());
        self.observed = None;
    }

    pub(super) fn remove(&mut self, id: Id) {
        self.coupling.remove(id);
        self.observed = None;
    }

    /// Observes the subflows of these sessions, if it is time, and informs their rate control.
    pub(super) fn observe<'a>(
        &mut self,
        now: Instant,
        sessions: impl Iterator<Item = (SessionKey, (&'a mut Outgoing, &'a Subflows))>,
    ) {
        let is_early = |at: Instant| now.saturating_duration_since(at) < OBSERVE_INTERVAL;
        if self.observed.is_some_and(is_early) {
            return;
        }
        let is_new = self.observed.replace(now).is_none();
        let mut sessions: BTreeMap<_, _> = sessions.collect();
        for (session, (outgoing, subflows)) in &sessions {
            for (key, subflow) in subflows.iter() {
                if let Some(rtt) = outgoing.rtt(key) {
                    let delivered = subflow.traffic.delivered;
                    (self.coupling).delivered(now, (*session, key), delivered, rtt);
                }
            }
        }
        if is_new {
            for ((session, subflow), share) in self.coupling.shares() {
                if let Some((outgoing, _)) = sessions.get_mut(&session) {
                    outgoing.couple(subflow, share);
                }
            }
        }
        for ((session, subflow), rate) in self.coupling.take(now) {
            tracing::trace!(?session, ?subflow, rate, "takes what others gave up");
            if let Some((outgoing, _)) = sessions.get_mut(&session) {
                outgoing.take(subflow, rate);
            }
        }
    }
}

/// The interfaces that a lane's path crosses. Of a path that the remote chose and that is unknown here
/// they are those at both ends.
fn interfaces(lane: &Lane, local: IsdAsn) -> Vec<Interface> {
    if let Some(path) = lane.path() {
        return path.info().interfaces.clone();
    }
    let ids = &lane.flow().interfaces;
    let ends = [(local, ids.first()), (lane.remote().isd_as, ids.last())];
    let ends = ends.into_iter();
    ends.filter_map(|(isd_as, id)| Some(Interface { isd_as, id: *id? }))
        .collect()
}
