//! The selection: which of the offered paths are taken.

use hawser_path::{Decision, Measured, Path, Reason, select_measured};

use super::entry::Entries;
use super::options::PathOptions;
use super::share;

/// Runs the selection anew, over the paths that can be connected; over all that may be dialed when
/// none can.
pub(super) fn choose<P: AsRef<Path> + Clone>(entries: &mut Entries<P>, options: &PathOptions) {
    let connectable = entries
        .values()
        .any(|e| e.is_fit() && !e.backoff.is_replaced());
    let (mut fingerprints, mut paths, mut measured) = (Vec::new(), Vec::new(), Vec::new());
    for (fingerprint, entry) in entries.iter() {
        if entry.is_fit() && !(connectable && entry.backoff.is_replaced()) {
            fingerprints.push(*fingerprint);
            paths.push(entry.path.clone());
            measured.push(Measured {
                rtt: entry.rtt,
                rate: None,
            });
        }
    }
    let most = match options.contact_only {
        true => 1,
        false => options.subflows.max(1),
    };
    let selection = select_measured(&paths, &measured, &options.select, most);
    let taken = selection.taken.iter().map(|at| fingerprints[*at]);
    let shares = selection.shares.map(|shares| taken.zip(shares).collect());
    share::assign(entries, shares.as_ref());
    for entry in entries.values_mut() {
        entry.taken = false;
        entry.selected = None;
    }
    for (at, decision) in selection.decisions.into_iter().enumerate() {
        let Some(entry) = entries.get_mut(&fingerprints[at]) else {
            continue;
        };
        entry.taken = selection.taken.contains(&at);
        entry.selected = Some(match options.contact_only && !entry.taken {
            true => Decision::left(Reason::RemoteChooses),
            false => decision,
        });
    }
    // What is used on trial gives way to what is selected.
    let mut room = most.saturating_sub(selection.taken.len());
    for entry in entries.values_mut() {
        entry.sensed &= !entry.taken && room > 0;
        room -= usize::from(entry.sensed);
    }
}
