//! The selection: which of the offered paths are taken, and how requests keep to the shares of the
//! bytes that it gives to paths (`spread:N%`).
//!
//! Requested bytes count as carried: a fast path does not run ahead of a slow one, it waits. The
//! shares take precedence over speed.

use std::collections::BTreeMap;

use hawser_path::{Decision, Fingerprint, Measured, Path, Reason, select_measured};

use super::entry::{Entries, PathStatus};
use super::options::PathOptions;
use crate::order::SubflowId;

/// A path may carry this many bytes more than its share. Requests are for whole blocks, one after
/// another: without slack, only one path at a time could have requests. 256 KiB fill a newly
/// connected path until the others have requests too.
const SLACK: u64 = 256 << 10;

/// The slack is this part of all bytes (one in 100) if that is more: shares are in whole per cent,
/// and a path need not wait for every hiccup of another.
const SLACK_PART: u64 = 100;

/// Shares are floats: the largest difference between equal ones.
const PRECISION: f64 = 1e-9;

/// How many more bytes may be requested over a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes not requested over another path: they add to all bytes.
    pub new: u64,
    /// Bytes also requested over another path: they most likely arrive only once.
    pub again: u64,
}

impl Room {
    /// The room of a path without a share.
    pub const ANY: Self = Self {
        new: u64::MAX,
        again: u64::MAX,
    };

    const NONE: Self = Self { new: 0, again: 0 };

    /// The room of a path with a `share`, 0 to 1, over which `here` of `all` bytes were received or
    /// are requested.
    fn of(share: f64, here: u64, all: u64) -> Self {
        if share <= PRECISION {
            return Self::NONE;
        }
        if share >= 1.0 - PRECISION {
            return Self::ANY;
        }
        let slack = SLACK.max(all / SLACK_PART);
        let left = share * all as f64 + slack as f64 - here as f64;
        // Casts of negative values are 0.
        Self {
            new: (left / (1.0 - share)) as u64,
            again: left as u64,
        }
    }
}

/// Runs the selection over the usable paths that do not keep failing, or over all usable paths if
/// all keep failing.
pub(super) fn choose<P: AsRef<Path> + Clone>(entries: &mut Entries<P>, options: &PathOptions) {
    let mut all = entries.values();
    let connectable = all.any(|e| e.is_fit() && !e.backoff.is_replaced());
    let usable = |e: &&PathStatus<P>| e.is_fit() && !(connectable && e.backoff.is_replaced());
    let usable = || entries.values().filter(usable);
    let paths: Vec<P> = usable().map(|entry| entry.path.clone()).collect();
    let fingerprints: Vec<_> = usable().map(|entry| entry.fingerprint).collect();
    let rtts = usable().map(|entry| entry.rtt);
    let measured: Vec<_> = rtts.map(|rtt| Measured { rtt, rate: None }).collect();
    let most = match options.contact_only {
        true => 1,
        false => options.subflows.max(1),
    };
    let selection = select_measured(&paths, &measured, &options.select, most);
    let taken = selection.taken.iter().map(|at| fingerprints[*at]);
    let shares = selection.shares.map(|shares| taken.zip(shares).collect());
    assign(entries, shares.as_ref());
    for entry in entries.values_mut() {
        entry.taken = false;
        entry.decisions.selected = None;
    }
    for (at, decision) in selection.decisions.into_iter().enumerate() {
        let Some(entry) = entries.get_mut(&fingerprints[at]) else {
            continue;
        };
        entry.taken = selection.taken.contains(&at);
        entry.decisions.selected = Some(match options.contact_only && !entry.taken {
            true => Decision::left(Reason::RemoteChooses),
            false => decision,
        });
    }
    // Paths on trial give way to selected ones.
    let mut room = most.saturating_sub(selection.taken.len());
    for entry in entries.values_mut() {
        entry.sensed &= !entry.taken && room > 0;
        room -= usize::from(entry.sensed);
    }
}

/// Gives shares to these paths and 0 to all others; with `None`, no path has a share. New shares
/// are of the bytes still to come, so that a path that takes another's place does not have to make
/// up for earlier ones.
fn assign<P>(entries: &mut Entries<P>, shares: Option<&BTreeMap<Fingerprint, f64>>) {
    let given = |path: &Fingerprint| shares.map(|shares| shares.get(path).copied().unwrap_or(0.0));
    let changed = entries.iter().any(|(path, entry)| {
        let (before, now) = (entry.quota.share.unwrap_or(0.0), given(path).unwrap_or(0.0));
        (before - now).abs() > PRECISION
    });
    for (path, entry) in entries {
        entry.quota.share = given(path);
        if changed {
            entry.quota.from = entry.bytes;
        }
    }
}

/// How much more may be requested over a path. `requested` returns how many bytes are requested
/// over a subflow; `doubles` bytes are requested more than once.
pub(super) fn room<P>(
    entries: &Entries<P>,
    of: Fingerprint,
    requested: impl Fn(SubflowId) -> u64,
    doubles: u64,
) -> Room {
    let Some(share) = entries.get(&of).and_then(|entry| entry.quota.share) else {
        return Room::ANY;
    };
    let (mut here, mut all) = (0, 0);
    for (path, entry) in entries {
        // Bytes over paths without a share make no room for others.
        if entry.quota.share.is_none_or(|share| share <= PRECISION) {
            continue;
        }
        let requested = entry.open.map_or(0, |open| requested(open.subflow));
        let came = entry.bytes - entry.quota.from;
        if *path == of {
            here = came + requested;
            all += here;
        } else {
            // Requests over a path that are never answered must not let others run far ahead.
            all += came + requested.min(came + SLACK);
        }
    }
    // Of two requests for the same bytes only one delivers them.
    Room::of(share, here, all.saturating_sub(doubles))
}

#[cfg(test)]
mod tests;
