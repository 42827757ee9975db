//! Keeping to the shares of the bytes that the selection gives to paths (`spread:N%`).
//!
//! What a path carries counts with what is asked for over it: a fast path does not run ahead of a
//! slow one, it waits. How the bytes are spread goes before speed.

use std::collections::BTreeMap;

use hawser_path::Fingerprint;

use super::Swarm;
use super::conn::Origin;
use super::remote::Remote;
use crate::picker::ConnId;
use crate::transport::Transport;
use crate::wire::BLOCK;

/// A path may carry so many blocks more than its share. Blocks come whole and one after another:
/// without any slack only one path could be asked at a time. 256 KiB fill the pipe of a path that
/// has just been connected until the others are asked too.
const SLACK_BLOCKS: u64 = 16;

/// Or this part of all bytes, if that is more: shares are said in whole per cent, and a path needs
/// not wait for every hiccup of another.
const SLACK_PART: u64 = 100;

/// Shares are floats: those that are no further apart are the same.
const PRECISION: f64 = 1e-9;

/// How many blocks more may be asked for over a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    /// Blocks not asked for elsewhere: they add to all bytes.
    pub new: usize,
    /// Blocks asked for elsewhere too, which most likely come only once.
    pub again: usize,
}

impl Room {
    /// For a path without a share.
    pub const ANY: Self = Self {
        new: usize::MAX,
        again: usize::MAX,
    };

    const NONE: Self = Self { new: 0, again: 0 };
}

/// For a path with a `share`, 0 to 1, over which `here` of `all` bytes came or are asked for.
fn room(share: f64, here: u64, all: u64) -> Room {
    if share <= PRECISION {
        return Room::NONE;
    }
    if share >= 1.0 - PRECISION {
        return Room::ANY;
    }
    let slack = (SLACK_BLOCKS * u64::from(BLOCK)).max(all / SLACK_PART);
    let left = (share * all as f64 + slack as f64 - here as f64) / f64::from(BLOCK);
    // Casts of what is below 0 are 0.
    Room {
        new: (left / (1.0 - share)) as usize,
        again: left as usize,
    }
}

impl<P> Remote<P> {
    /// Whether each path has a share.
    pub fn has_shares(&self) -> bool {
        // All have one, or none has.
        let first = self.paths.values().next();
        first.is_some_and(|path| path.share.is_some())
    }

    /// Gives shares to these paths and none to others; `None` leaves them to carry what they can.
    /// New shares are of what is still to come, so that a path that takes another's place does not
    /// have to make up for what came before.
    pub fn share_out(&mut self, shares: Option<&BTreeMap<Fingerprint, f64>>) {
        let given =
            |path: &Fingerprint| shares.map(|shares| shares.get(path).copied().unwrap_or(0.0));
        let changed = self.paths.iter().any(|(fingerprint, path)| {
            let (before, now) = (path.share.unwrap_or(0.0), given(fingerprint).unwrap_or(0.0));
            (before - now).abs() > PRECISION
        });
        for (fingerprint, path) in &mut self.paths {
            path.share = given(fingerprint);
            if changed {
                path.shared_from = path.bytes;
            }
        }
    }

    /// What more may be asked for over a path, where `asked` tells how many blocks are over a
    /// connection and at most `doubles` of them are asked for more than once.
    pub fn room(&self, of: Fingerprint, asked: impl Fn(ConnId) -> usize, doubles: u64) -> Room {
        let Some(share) = self.paths.get(&of).and_then(|path| path.share) else {
            return Room::ANY;
        };
        let (mut here, mut all) = (0, 0);
        for (fingerprint, path) in &self.paths {
            // What comes over paths that have no share any more makes no room for others.
            if path.share.is_none_or(|share| share <= PRECISION) {
                continue;
            }
            let asked = path.link.conn.map_or(0, &asked) as u64;
            let came = path.bytes - path.shared_from;
            let carried = came + asked * u64::from(BLOCK);
            if *fingerprint == of {
                here = carried;
                all += carried;
            } else {
                // What a path was asked for and never brings must not let others run far ahead.
                let likely = came / u64::from(BLOCK) + SLACK_BLOCKS;
                all += came + asked.min(likely) * u64::from(BLOCK);
            }
        }
        // One of two that are asked for the same block will not bring it.
        room(share, here, all.saturating_sub(doubles * u64::from(BLOCK)))
    }
}

impl<T: Transport> Swarm<T> {
    /// Whether what is asked for over one path decides what may be over another.
    pub(super) fn any_shares(&self) -> bool {
        self.remotes.iter().any(Remote::has_shares)
    }

    /// What more may be asked for over a connection.
    pub(super) fn room(&self, id: ConnId) -> Room {
        let Some(Origin::Dialed(remote, fingerprint)) = self.conns.get(&id).map(|c| c.origin)
        else {
            return Room::ANY;
        };
        let remote = &self.remotes[remote];
        if !remote.has_shares() {
            return Room::ANY;
        }
        let asked = self.conns.keys().map(|id| self.picker.asked(*id) as u64);
        let doubles = asked
            .sum::<u64>()
            .saturating_sub(self.picker.asked_blocks());
        remote.room(fingerprint, |id| self.picker.asked(id), doubles)
    }
}

#[cfg(test)]
mod tests;
