//! The lanes of sealed datagrams, learned from those that opened.

use std::sync::Arc;

use hawser_endhost::ScionAddr;
use hawser_endhost::lanes::{Candidate, FlowId, Lane, LaneDatagram, Lanes};

/// What the datagrams of one receive that opened show of the lanes of their subflows: the side that was
/// dialed learns from them over which lane to answer, and which other path a lane may take.
///
/// It is applied once all of them are read, since lanes cannot be accepted, or take other paths, before.
/// `T` names the subflow, with whatever is to be done once its lane is known.
#[derive(Debug)]
pub struct Sightings<T> {
    first: Vec<First<T>>,
    moved: Vec<Arc<Candidate>>,
}

/// A datagram that opened on a subflow over which none had before.
#[derive(Debug)]
pub struct First<T> {
    /// The subflow.
    pub subflow: T,
    flow: FlowId,
    candidate: Option<Arc<Candidate>>,
}

impl<T> Default for Sightings<T> {
    fn default() -> Self {
        Self {
            first: Vec::new(),
            moved: Vec::new(),
        }
    }
}

impl<T> Sightings<T> {
    /// Records a datagram that opened. Its subflow is `known` if one has before; then `lane` is its lane.
    /// Only for datagrams that were authenticated and had not been received before.
    #[inline]
    pub fn opened(
        &mut self,
        datagram: &LaneDatagram<'_>,
        known: bool,
        lane: Option<&Lane>,
        subflow: impl FnOnce() -> T,
    ) {
        if !known {
            self.first.push(First {
                subflow: subflow(),
                flow: datagram.flow,
                candidate: datagram.candidate.clone(),
            });
        } else if let Some(candidate) = &datagram.candidate
            && lane.is_some_and(|lane| lane.flow().id == candidate.flow())
        {
            self.moved.push(Arc::clone(candidate));
        }
    }

    /// Has lanes take the paths of later datagrams. Returns the first datagrams; one receive may have
    /// several of a subflow.
    pub fn apply(self, lanes: &Lanes) -> Vec<First<T>> {
        for candidate in self.moved {
            lanes.adopt(&candidate);
        }
        self.first
    }
}

impl<T> First<T> {
    /// The lane to the sender, if that is `remote`: addresses are not authenticated, and somebody may have
    /// sent a copy from another one. `None` as well if the flow was removed meanwhile. The peer's next
    /// datagram is another chance.
    pub fn accept(&self, lanes: &Lanes, remote: ScionAddr) -> Option<Lane> {
        let lane = lanes.accept(self.flow, self.candidate.as_deref());
        lane.filter(|lane| lane.remote() == remote)
    }
}

#[cfg(test)]
mod tests;
