//! `mtu`: the largest packets, as Shila's path selection of that name (002).

use crate::Carbon;
use crate::select::candidate::{Candidate, Rank};
use crate::select::kind::{Rule, StrategyKind};

pub(super) const KIND: StrategyKind = StrategyKind {
    by: "MTU",
    ..StrategyKind::new("mtu", "the largest packets", Rule::Rank(rank))
};

fn rank(path: &Candidate<'_>, _: &Carbon) -> Rank {
    let mtu = path.path.metadata.mtu;
    // 0 stands for a path without announcement.
    let known = mtu > 0;
    Rank {
        strategy: KIND.name,
        known,
        // A larger MTU costs less.
        cost: u64::from(u16::MAX - mtu),
        text: match known {
            true => format!("MTU {mtu} bytes"),
            false => "MTU not announced".to_owned(),
        },
        amount: known.then_some(mtu.into()),
        unit: "bytes",
        parts: Vec::new(),
    }
}
