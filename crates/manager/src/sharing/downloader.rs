//! One downloader and the paths to it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hawser_path::{Decision, Fingerprint, Path, Policy, Reason, Select, select};

use crate::backoff::{Backoff, Failure, Pace};
use crate::order::{Action, SubflowId};
use crate::path_set::Carried;
use crate::policy::denied;

/// Longest time in which none of the assigned paths is connected before a downloader is served over
/// the connections it opened itself. Data over these crosses links that other downloaders were
/// assigned.
const GRACE: Duration = Duration::from_secs(1);

/// A downloader.
#[derive(Debug)]
pub(super) struct Downloader<P> {
    /// Most paths it accepts.
    pub max: usize,
    /// Whether nothing is sent to it for now.
    pub is_choked: bool,
    pub paths: BTreeMap<Fingerprint, PathState<P>>,
    /// Whether the paths that may be assigned to it changed since the last assignment.
    pub changed: bool,
    /// Since when paths are assigned to it and none of them is connected.
    unserved_since: Option<Instant>,
    fallback: Fallback,
}

/// A path to a downloader: offered, connected, or both.
#[derive(Debug)]
pub(super) struct PathState<P> {
    /// The path as it is offered now; `None` if it is not.
    pub offered: Option<P>,
    /// Why the policy does not allow it.
    pub denied: Option<Reason>,
    /// Why nothing can be sent over it.
    unfit: Option<Reason>,
    backoff: Backoff,
    /// Why it last failed.
    trouble: String,
    pub subflows: Vec<Subflow>,
    /// The decision last returned as a change.
    pub reported: Option<Decision>,
}

/// A connection, or an attempt at one.
#[derive(Debug)]
pub(super) struct Subflow {
    pub id: SubflowId,
    /// Whether it was dialed from here, rather than opened by the downloader.
    pub is_dialed: bool,
    pub use_: Use,
    /// The bytes that it had carried when the time slot began, if it could be used then.
    mark: Option<u64>,
}

/// The current use of a subflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Dialing,
    /// Connected, without an order so far that says whether it is used.
    Unknown,
    Used,
    Held,
}

/// Which subflows are used although their paths are not assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fallback {
    /// None.
    No,
    /// Those that the downloader opened: none of its assigned paths is connected.
    Accepted,
    /// All: nothing can be assigned to it.
    All,
}

impl<P: AsRef<Path> + Clone> Downloader<P> {
    /// A downloader that accepts at most `max` paths, without any path so far.
    pub fn new(max: usize) -> Self {
        Self {
            max,
            is_choked: false,
            paths: BTreeMap::new(),
            changed: false,
            unserved_since: None,
            fallback: Fallback::No,
        }
    }

    /// The state of a path, which may be new.
    pub fn path(&mut self, path: Fingerprint) -> &mut PathState<P> {
        self.paths.entry(path).or_insert_with(PathState::new)
    }

    /// Sets the paths that are offered.
    pub fn offer(&mut self, paths: &[P], fits: impl Fn(&P) -> Result<(), String>) {
        for state in self.paths.values_mut() {
            state.offered = None;
        }
        for path in paths {
            let state = self.path(path.as_ref().fingerprint());
            state.offered = Some(path.clone());
            state.unfit = fits(path).err().map(|why| Reason::Unfit { why });
        }
        self.forget_unused();
        self.changed = true;
    }

    /// Lets the policy judge the offered paths, all of them together.
    pub fn judge(&mut self, policy: Option<&Policy>) {
        let paths = self.paths.values();
        let offered: Vec<P> = paths.filter_map(|it| it.offered.clone()).collect();
        let mut denied = denied(policy, &offered);
        for (path, state) in &mut self.paths {
            state.denied = denied.remove(path);
        }
        self.changed = true;
    }

    /// The paths that may be assigned to it, best first.
    pub fn available(&self, by: &Select) -> Vec<Path> {
        if self.is_choked {
            return Vec::new();
        }
        let states = self.paths.values().filter(|state| state.is_available());
        let paths: Vec<&Path> = states
            .filter_map(|state| state.offered.as_ref().map(AsRef::as_ref))
            .collect();
        let ranked = select(&paths, &by.ranking(), usize::MAX).taken;
        ranked.into_iter().map(|at| paths[at].clone()).collect()
    }

    /// Marks a dialed subflow as connected.
    pub fn connected(&mut self, path: Fingerprint, id: SubflowId) {
        let state = self.path(path);
        state.backoff.reset();
        state.reported = None;
        let mut subflows = state.subflows.iter_mut();
        if let Some(subflow) = subflows.find(|subflow| subflow.id == id) {
            subflow.use_ = Use::Used;
        }
    }

    /// Removes a subflow. The path failed if the subflow was dialed and no other one is connected.
    pub fn lost(
        &mut self,
        path: Fingerprint,
        id: SubflowId,
        failure: Failure,
        why: &str,
        now: Instant,
    ) -> Option<Subflow> {
        let state = self.paths.get_mut(&path)?;
        let at = state.subflows.iter().position(|subflow| subflow.id == id)?;
        let gone = state.subflows.remove(at);
        if gone.is_dialed && !state.is_up() {
            state.backoff.fail(failure, Duration::ZERO, now);
            why.clone_into(&mut state.trouble);
            self.changed = true;
        }
        self.forget_unused();
        Some(gone)
    }

    /// Ends the pauses that are over. Returns whether anything was due.
    pub fn wake(&mut self, now: Instant) -> bool {
        let is_due = self.due().is_some_and(|due| due <= now);
        for state in self.paths.values_mut() {
            self.changed |= state.backoff.end(now);
        }
        is_due
    }

    /// When anything is due even if nothing happens.
    pub fn due(&self) -> Option<Instant> {
        let waits = self.fallback == Fallback::No;
        let unserved = self.unserved_since.filter(|_| waits);
        let paths = self.paths.values();
        let pauses = paths.filter_map(|state| state.backoff.until());
        pauses.chain(unserved.map(|since| since + GRACE)).min()
    }

    /// Decides which subflows are used although their paths are not assigned, while `assigned` are.
    pub fn fallback(&mut self, assigned: &[Fingerprint], now: Instant) -> Fallback {
        let is_up = |path| self.paths.get(path).is_some_and(PathState::is_up);
        self.unserved_since = match assigned.is_empty() || assigned.iter().any(is_up) {
            true => None,
            false => self.unserved_since.or(Some(now)),
        };
        let is_over = |since| now.saturating_duration_since(since) >= GRACE;
        self.fallback = if self.is_choked {
            Fallback::No
        } else if !self.paths.values().any(PathState::is_available) {
            Fallback::All
        } else if self.unserved_since.is_some_and(is_over) {
            Fallback::Accepted
        } else {
            Fallback::No
        };
        self.fallback
    }

    /// Whether anything is connected, or being dialed, over a path.
    pub fn has_subflow(&self, path: &Fingerprint) -> bool {
        let state = self.paths.get(path);
        state.is_some_and(|state| !state.subflows.is_empty())
    }

    /// Forgets the paths that are neither offered nor used.
    pub fn forget_unused(&mut self) {
        self.paths
            .retain(|_, state| state.offered.is_some() || !state.subflows.is_empty());
    }
}

impl<P> PathState<P> {
    fn new() -> Self {
        Self {
            offered: None,
            denied: None,
            unfit: None,
            backoff: Backoff::new(Pace::Assigned),
            trouble: String::new(),
            subflows: Vec::new(),
            reported: None,
        }
    }

    /// Whether it has a connection.
    pub fn is_up(&self) -> bool {
        let mut subflows = self.subflows.iter();
        subflows.any(|subflow| subflow.use_ != Use::Dialing)
    }

    fn is_available(&self) -> bool {
        self.offered.is_some() && self.unavailable().is_none()
    }

    /// Why it may not be assigned.
    fn unavailable(&self) -> Option<Reason> {
        let trouble = self.backoff.until().map(|_| Reason::Unfit {
            why: self.trouble.clone(),
        });
        let known = self.denied.as_ref().or(self.unfit.as_ref());
        known.cloned().or(trouble)
    }

    /// The decision about it: that of the assignment, `assigned`, unless it cannot be assigned, or
    /// its downloader is choked; `None` if it is not offered.
    pub fn decision(
        &self,
        is_choked: bool,
        assigned: impl FnOnce() -> Option<Decision>,
    ) -> Option<Decision> {
        self.offered.as_ref()?;
        match self.unavailable() {
            Some(reason) => Some(Decision::left(reason)),
            None if is_choked => Some(Decision::waiting(Reason::NoSlot)),
            None => assigned(),
        }
    }

    /// Takes out a subflow that was dialed and is held.
    pub fn take_held(&mut self) -> Option<Subflow> {
        let is_held = |subflow: &Subflow| subflow.is_dialed && subflow.use_ == Use::Held;
        let at = self.subflows.iter().position(is_held)?;
        Some(self.subflows.remove(at))
    }

    /// The bytes it carried in the time slot that ends; `None` if it was not used for the whole
    /// slot.
    pub fn end_slot(&mut self, mut carried: impl FnMut(SubflowId) -> Carried) -> Option<u64> {
        let mut sum = None;
        let used = |subflow: &&mut Subflow| subflow.use_ == Use::Used;
        for subflow in self.subflows.iter_mut().filter(used) {
            let Carried { bytes, usable } = carried(subflow.id);
            if let Some(before) = subflow.mark.replace(bytes).filter(|_| usable) {
                *sum.get_or_insert(0) += bytes.saturating_sub(before);
            }
        }
        sum
    }
}

impl Subflow {
    /// A subflow that is being dialed, or that the downloader opened.
    pub fn new(id: SubflowId, use_: Use) -> Self {
        Self {
            id,
            is_dialed: use_ == Use::Dialing,
            use_,
            mark: None,
        }
    }

    /// Sets whether it is used. Returns the action to order if that is a change.
    pub fn set_used(&mut self, used: bool) -> Option<Action> {
        let (use_, action) = match used {
            true => (Use::Used, Action::Resume),
            false => (Use::Held, Action::Hold),
        };
        if self.use_ == Use::Dialing || self.use_ == use_ {
            return None;
        }
        self.use_ = use_;
        self.mark = None;
        Some(action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sharing::tests::path;

    const MS: Duration = Duration::from_millis(1);

    fn available(downloader: &Downloader<Path>) -> Vec<Fingerprint> {
        let paths = downloader.available(&Select::disjoint());
        paths.iter().map(Path::fingerprint).collect()
    }

    /// A downloader with these paths, which all fit.
    fn downloader(paths: &[Path]) -> Downloader<Path> {
        let mut downloader = Downloader::new(4);
        downloader.offer(paths, |_| Ok(()));
        downloader
    }

    /// Fails a dial over a path.
    fn fail(downloader: &mut Downloader<Path>, path: Fingerprint, failure: Failure, now: Instant) {
        let subflow = Subflow::new(SubflowId(1), Use::Dialing);
        downloader.path(path).subflows.push(subflow);
        downloader.lost(path, SubflowId(1), failure, "lost", now);
    }

    #[test]
    fn paths_are_ranked_and_unfit_ones_left() {
        let (long, short, narrow) = (long_path(3), long_path(2), long_path(1));
        let mut downloader = Downloader::new(4);
        let fits = |path: &Path| match path.links() {
            1 => Err("too narrow".into()),
            _ => Ok(()),
        };
        downloader.offer(&[long.clone(), short.clone(), narrow], fits);
        let ranked = [short.fingerprint(), long.fingerprint()];
        assert_eq!(available(&downloader), ranked);
    }

    #[test]
    fn a_path_that_keeps_failing_is_left_for_growing_pauses() {
        let both = [long_path(1), long_path(2)];
        let [name, other] = [both[0].fingerprint(), both[1].fingerprint()];
        let mut downloader = downloader(&both);
        let mut now = Instant::now();
        let mut pauses = Vec::new();
        for _ in 0..5 {
            fail(&mut downloader, name, Failure::Closed, now);
            // Offering it again does not end the pause.
            downloader.offer(&both, |_| Ok(()));
            let due = downloader.due().unwrap();
            downloader.wake(due - MS);
            assert_eq!(available(&downloader), [other]);
            downloader.changed = false;
            assert!(downloader.wake(due));
            assert!(downloader.changed);
            assert_eq!(available(&downloader), [name, other]);
            pauses.push(due - now);
            now = due;
        }
        assert!(pauses.is_sorted() && pauses[0] < pauses[3], "{pauses:?}");
        let subflow = Subflow::new(SubflowId(2), Use::Dialing);
        downloader.path(name).subflows.push(subflow);
        downloader.connected(name, SubflowId(2));
        downloader.lost(name, SubflowId(2), Failure::Closed, "lost", now);
        assert_eq!(downloader.due(), Some(now + pauses[0]));
    }

    #[test]
    fn a_path_that_the_downloader_refuses_has_the_longest_pause_at_once() {
        let one = long_path(1);
        let name = one.fingerprint();
        let mut downloader = downloader(&[one]);
        let now = Instant::now();
        fail(&mut downloader, name, Failure::Refused, now);
        let longest = Duration::from_secs(60);
        downloader.wake(now + longest - MS);
        assert_eq!(available(&downloader), []);
        let decision = downloader.paths[&name].decision(false, || None).unwrap();
        assert_eq!(decision.to_string(), "left: lost");
        downloader.wake(now + longest);
        assert_eq!(available(&downloader), [name]);
        assert_eq!(downloader.paths[&name].decision(false, || None), None);
    }

    #[test]
    fn a_failed_dial_does_not_count_beside_a_working_connection() {
        let one = path(1, 1, 1, 1);
        let name = one.fingerprint();
        let mut downloader = downloader(&[one]);
        let opened = Subflow::new(SubflowId(2), Use::Unknown);
        downloader.path(name).subflows.push(opened);
        fail(&mut downloader, name, Failure::Failed, Instant::now());
        assert_eq!(available(&downloader), [name]);
        assert_eq!(downloader.due(), None);
    }

    /// A path of this many links, which no other path crosses.
    fn long_path(links: u16) -> Path {
        let isd_as = |n: u16| format!("1-ff00:0:{n}").parse().unwrap();
        let ends = (1..=links).flat_map(|n| [n, n + 1]);
        let interfaces = ends.map(|n| hawser_path::Interface {
            isd_as: isd_as(n),
            id: links,
        });
        let (src, dst) = (isd_as(1), isd_as(links + 1));
        Path::new(src, dst, interfaces.collect(), Default::default()).unwrap()
    }
}
