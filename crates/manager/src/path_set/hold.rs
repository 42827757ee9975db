//! Which connected paths are held: they stay connected, and carry nothing.

use std::time::{Duration, Instant};

use hawser_path::{Decision, Path, Reason};

use super::entry::{Entries, PathStatus};

/// Decides which paths are held: those whose round trip is longer by more than `most` than the shortest
/// one of those that deliver. They are used again when it is longer by less than two thirds of that.
/// Returns whether that changes anything.
pub(super) fn judge_lag<P: AsRef<Path>>(entries: &mut Entries<P>, most: Duration) -> bool {
    let rtt = |entry: &PathStatus<P>| entry.weighable()?.lag.rtt();
    let loses = |entry: &&PathStatus<P>| entry.open.is_some_and(|open| open.loss.is_held());
    let all = entries.values();
    let Some(best) = all.filter(|entry| !loses(entry)).filter_map(rtt).min() else {
        return false;
    };
    let mut has_changed = false;
    for entry in entries.values_mut() {
        let Some(rtt) = rtt(entry) else { continue };
        let Some(open) = &mut entry.open else {
            continue;
        };
        let more = match open.lag.is_held() {
            true => most * 2 / 3,
            false => most,
        };
        let is_held = rtt > best + more;
        if !open.lag.set_held(is_held) {
            continue;
        }
        has_changed = true;
        let reason = Reason::Lags { rtt, best };
        if is_held || !open.loss.is_held() {
            entry.decisions.weighed = is_held.then(|| Decision::waiting(reason));
        }
    }
    has_changed
}

/// Decides which paths are held: a path is held while it loses more than its share of packets allows, and
/// at least twice as many as one that stays in use. It is tried again from time to time, and when no other
/// delivers. Returns whether that changes anything.
pub(super) fn judge_loss<P: AsRef<Path>>(entries: &mut Entries<P>, now: Instant) -> bool {
    let used = |entry: &PathStatus<P>| entry.weighable().filter(|open| !open.loss.is_held());
    let used: Vec<_> = entries.values().filter_map(used).collect();
    let best = used.iter().filter_map(|open| open.loss.share());
    let best = best.min_by(f64::total_cmp);
    let mut has_changed = false;
    for entry in entries.values_mut() {
        if entry.weighable().is_none() {
            continue;
        }
        let Some(open) = &mut entry.open else {
            continue;
        };
        let is_due = open.loss.held_until().is_some_and(|until| until <= now);
        if open.loss.is_held() && (is_due || used.is_empty()) {
            open.loss.release();
            if !open.lag.is_held() {
                entry.decisions.weighed = None;
            }
            has_changed = true;
            continue;
        }
        let (Some(share), Some(best)) = (open.loss.share(), best) else {
            continue;
        };
        if open.loss.is_held() || !open.loss.is_lossy() || best * 2.0 > share {
            continue;
        }
        open.loss.hold(now);
        let [share_ppm, best_ppm] = [share, best].map(|share| (share * 1e6) as u32);
        let reason = Reason::Loses {
            share_ppm,
            best_ppm,
        };
        entry.decisions.weighed = Some(Decision::waiting(reason));
        has_changed = true;
    }
    has_changed
}
