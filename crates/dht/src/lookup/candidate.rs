//! A node that may be asked in a lookup.

use crate::address::Address;
use crate::id::Id;
use crate::secure::{Standing, standing};

/// How a candidate became known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    /// From the own routing table, or given.
    Own,
    /// A node that was asked as the one with this number named it.
    Node { number: u32, depth: u32 },
}

impl Via {
    /// The number as a bit; none for an own candidate.
    pub fn bits(self) -> u128 {
        match self {
            Self::Own => 0,
            Self::Node { number, .. } => 1 << number,
        }
    }
}

/// A candidate.
#[derive(Debug)]
pub(super) struct Candidate<A> {
    pub id: Option<Id>,
    /// To the target; the maximum if the id is not known.
    pub distance: Id,
    pub addr: A,
    /// `None` while the id is not known.
    pub standing: Option<Standing>,
    /// Whether it is from the own routing table, or was given.
    pub is_own: bool,
    /// The numbers of the nodes that named it, as bits.
    pub named_by: u128,
    /// Steps from the own routing table, 1 for a candidate from there.
    pub depth: u32,
    pub state: State,
}

/// What is known of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    New,
    /// It was asked as the one with this number.
    Asked {
        number: u32,
    },
    /// It was asked long ago, and may answer yet.
    Late {
        number: u32,
    },
    Answered {
        number: u32,
        token: Option<Vec<u8>>,
    },
    Failed,
}

impl<A: Address> Candidate<A> {
    /// A candidate without an id.
    pub fn new(addr: A, via: Via) -> Self {
        Self {
            id: None,
            distance: Id::MAX,
            addr,
            standing: None,
            is_own: via == Via::Own,
            named_by: via.bits(),
            depth: match via {
                Via::Own => 1,
                Via::Node { depth, .. } => depth + 1,
            },
            state: State::New,
        }
    }

    pub fn set_id(&mut self, id: Option<Id>, target: Id) {
        self.id = id;
        self.distance = id.map_or(Id::MAX, |id| id.distance(target));
        self.standing = id.map(|id| standing(self.addr, id));
    }

    /// How many bits its id shares with the target.
    pub fn shared_bits(&self) -> u32 {
        self.distance.shared_bits(Id([0; Id::LEN]))
    }
}
