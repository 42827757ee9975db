//! The clock of this host, against what others made, and when.

use super::ago;
use crate::code::Code;
use crate::facts::Facts;
use crate::finding::Finding;
use crate::time::utc;

/// Difference of clocks, in seconds, that does no harm in a SCION network (SCION control plane,
/// "Clock skew").
const SKEW: u64 = 300;

const SET: &str = "set it, and keep it set: `timedatectl set-ntp true` or chrony";

pub(super) fn check(facts: &Facts, findings: &mut Vec<Finding>) {
    let now = facts.now;
    if let Some((made, what)) = newest(facts).filter(|(made, _)| *made > now + SKEW) {
        findings.push(Finding::error(
            Code::ClockBehind,
            format!(
                "the clock of this host shows {}, but {what} is valid only from {}: it is at least \
                 {} behind",
                utc(now),
                utc(made),
                ago(now, made)
            ),
            SET,
        ));
    }
    let offered = facts.offer.as_ref().and_then(|o| o.paths.as_ref().ok());
    let expiries = offered.into_iter().flatten().map(|(_, expiry)| *expiry);
    if let Some(last) = expiries.max().filter(|last| *last <= now) {
        let source = facts.network().map_or("the daemon", |n| &n.source);
        findings.push(Finding::error(
            Code::ClockAhead,
            format!(
                "the clock of this host shows {}, and every path that {source} offers has expired, \
                 the last at {}, {} ago",
                utc(now),
                utc(last),
                ago(now, last)
            ),
            format!(
                "if the clock is ahead, {SET}; if it is right, the control service of the AS gets \
                 no new segments: look at its log"
            ),
        ));
    }
}

/// The latest beginning of validity of all things seen, and the thing.
fn newest(facts: &Facts) -> Option<(u64, String)> {
    let items = facts.trust.iter().filter_map(|one| one.item.as_ref().ok());
    let items = items.map(|item| (item.not_before, item.name.clone()));
    let offer = facts.offer.as_ref();
    let paths = offer.into_iter().flat_map(|offer| {
        let paths = offer.paths.as_deref().unwrap_or_default().iter();
        paths.map(|(made, _)| (*made, format!("a path to {}", offer.to)))
    });
    items.chain(paths).max_by_key(|(made, _)| *made)
}
