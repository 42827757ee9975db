//! How many limits a change touches.

use crate::change::Change;
use crate::state::{Host, KernelState};

/// How many limits, each of one direction, were added, changed and removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// New ones.
    pub added: usize,
    /// Those whose rate or queue is another.
    pub changed: usize,
    /// Those that are gone.
    pub removed: usize,
    /// Requests to the kernel; 0 if no changes were needed.
    pub requests: usize,
}

impl Summary {
    /// What `changes` do to `found`.
    pub(super) fn of(changes: &[Change], found: &KernelState) -> Self {
        let mut summary = Self {
            requests: changes.len(),
            ..Self::default()
        };
        let classes = |host| found.shapers.get(&host).map_or(0, |one| one.classes.len());
        let mut put = None;
        for change in changes {
            match *change {
                Change::PutClass {
                    host, minor, new, ..
                } => {
                    put = Some((host, minor));
                    match new {
                        true => summary.added += 1,
                        false => summary.changed += 1,
                    }
                }
                Change::PutQueue { host, minor, .. } if put != Some((host, minor)) => {
                    summary.changed += 1;
                }
                Change::DelClass { .. } => summary.removed += 1,
                Change::DelRoot(host) => summary.removed += classes(host),
                Change::DelIfb(ifb) => summary.removed += classes(Host::Ifb(ifb)),
                _ => {}
            }
        }
        summary
    }

    pub(super) fn add(&mut self, other: Self) {
        self.added += other.added;
        self.changed += other.changed;
        self.removed += other.removed;
        self.requests += other.requests;
    }
}
