//! Which files of a watched folder are read when, without I/O: what is in the folder in, names out.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

/// Time without a change after which a file is taken for whole.
pub(super) const SETTLE_TIME: Duration = Duration::from_secs(2);
/// Time without a change after which a file that cannot be read as a torrent is taken for invalid: a program
/// that writes it slowly may pause for less.
pub(super) const GIVE_UP_TIME: Duration = Duration::from_secs(30);
/// Time after which a file is tried again that the daemon could not take.
pub(super) const RETRY_TIME: Duration = Duration::from_secs(60);
/// Most files that are observed at once; others wait until some of them are renamed.
pub(super) const MAX_CANDIDATES: usize = 1000;

/// What is known of a file, of which `S` tells one state from another.
#[derive(Debug)]
struct Candidate<S> {
    stamp: S,
    /// Since when it has not changed.
    since: Duration,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is read when it has not changed for this time.
    Settles(Duration),
    /// It is tried again at this time.
    Refused(Duration),
    /// It is not read again, unless it changes.
    Done,
}

/// What becomes of a file that is not a torrent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    /// It may be written still: it is read once more.
    Incomplete,
    /// It has not changed for long enough.
    Invalid,
}

/// The files of a watched folder.
#[derive(Debug)]
pub(super) struct Candidates<S> {
    known: BTreeMap<OsString, Candidate<S>>,
}

impl<S> Default for Candidates<S> {
    fn default() -> Self {
        Self {
            known: BTreeMap::new(),
        }
    }
}

impl<S: PartialEq> Candidates<S> {
    /// Compares what is in the folder now with what was there before, and returns the names of the files
    /// that are to be read now, in their order. Files that are not found any more are forgotten.
    pub fn observe(
        &mut self,
        found: impl IntoIterator<Item = (OsString, S)>,
        now: Duration,
    ) -> Vec<OsString> {
        let mut before = std::mem::take(&mut self.known);
        for (name, stamp) in found {
            let known = before.remove(&name);
            let is_room = self.known.len() < MAX_CANDIDATES;
            let candidate = match known {
                Some(known) if known.stamp == stamp => known,
                None if !is_room => continue,
                _ => Candidate {
                    stamp,
                    since: now,
                    state: State::Settles(SETTLE_TIME),
                },
            };
            self.known.insert(name, candidate);
        }
        let due = |candidate: &Candidate<S>| match candidate.state {
            State::Settles(time) => now >= candidate.since.saturating_add(time),
            State::Refused(at) => now >= at,
            State::Done => false,
        };
        let due = self.known.iter().filter(|(_, candidate)| due(candidate));
        due.map(|(name, _)| name.clone()).collect()
    }

    /// A file that was to be read is not a torrent.
    pub fn on_unparsable(&mut self, name: &OsString, now: Duration) -> Judgement {
        let Some(candidate) = self.known.get_mut(name) else {
            return Judgement::Incomplete;
        };
        match now >= candidate.since.saturating_add(GIVE_UP_TIME) {
            true => {
                candidate.state = State::Done;
                Judgement::Invalid
            }
            false => {
                candidate.state = State::Settles(GIVE_UP_TIME);
                Judgement::Incomplete
            }
        }
    }

    /// A file could not be taken for now. Returns whether that is news.
    pub fn on_refused(&mut self, name: &OsString, now: Duration) -> bool {
        let Some(candidate) = self.known.get_mut(name) else {
            return true;
        };
        let is_news = !matches!(candidate.state, State::Refused(_));
        candidate.state = State::Refused(now.saturating_add(RETRY_TIME));
        is_news
    }

    /// Nothing more is to be done with a file, unless it changes.
    pub fn on_done(&mut self, name: &OsString) {
        if let Some(candidate) = self.known.get_mut(name) {
            candidate.state = State::Done;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn a_file_is_read_once_it_does_not_change() {
        let (mut files, name) = (Candidates::default(), OsString::from("a.torrent"));
        let mut at = |second, stamp| files.observe([(name.clone(), stamp)], seconds(second));
        assert!(at(0, 1).is_empty() && at(1, 2).is_empty() && at(2, 2).is_empty());
        assert_eq!(at(3, 2), std::slice::from_ref(&name));
        assert_eq!(
            files.on_unparsable(&name, seconds(3)),
            Judgement::Incomplete
        );
        let mut at = |second, stamp| files.observe([(name.clone(), stamp)], seconds(second));
        // It is written further after a pause.
        assert!(at(20, 3).is_empty());
        assert_eq!(at(22, 3).len(), 1);
        assert_eq!(
            files.on_unparsable(&name, seconds(22)),
            Judgement::Incomplete
        );
        let mut at = |second, stamp| files.observe([(name.clone(), stamp)], seconds(second));
        assert!(at(49, 3).is_empty());
        assert_eq!(at(50, 3).len(), 1);
        assert_eq!(files.on_unparsable(&name, seconds(50)), Judgement::Invalid);
        let mut at = |second, stamp| files.observe([(name.clone(), stamp)], seconds(second));
        assert!(at(1000, 3).is_empty());
        assert!(at(1001, 4).is_empty());
        assert_eq!(at(1003, 4).len(), 1);
    }

    #[test]
    fn what_is_refused_is_reported_once_and_tried_again() {
        let (mut files, name) = (Candidates::default(), OsString::from("a.torrent"));
        let mut now = 0;
        for news in [true, false, false] {
            let tried = loop {
                now += 1;
                if !files.observe([(name.clone(), ())], seconds(now)).is_empty() {
                    break now;
                }
                assert!(now < 1000);
            };
            assert_eq!(files.on_refused(&name, seconds(tried)), news);
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Write(u8),
        Remove(u8),
        Wait(u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..4_u8).prop_map(Step::Write),
            (0..4_u8).prop_map(Step::Remove),
            (0..40_u8).prop_map(Step::Wait),
        ]
    }

    proptest! {
        /// No file is read that has changed a moment ago, each is read in the end, and one that is done is
        /// not read again before it changes.
        #[test]
        fn files_are_read_when_they_are_whole(steps in prop::collection::vec((step(), 0..4_u8), 1..80)) {
            let mut files = Candidates::default();
            // The stamp of each file, when it was written, and whether it is done.
            let mut disk: HashMap<OsString, (u64, Duration, bool)> = HashMap::new();
            let (mut now, mut stamp) = (Duration::ZERO, 0);
            for (step, outcome) in steps {
                match step {
                    Step::Write(file) => {
                        stamp += 1;
                        disk.insert(file.to_string().into(), (stamp, now, false));
                    }
                    Step::Remove(file) => drop(disk.remove(&OsString::from(file.to_string()))),
                    Step::Wait(time) => now += seconds(time.into()),
                }
                let found = disk.iter().map(|(name, (stamp, ..))| (name.clone(), *stamp));
                let due = files.observe(found.collect::<Vec<_>>(), now);
                for name in due {
                    let (_, written, done) = disk.get_mut(&name).expect("a file that is there");
                    prop_assert!(!*done && now >= *written + SETTLE_TIME);
                    match outcome {
                        0 => {
                            let judgement = files.on_unparsable(&name, now);
                            *done = judgement == Judgement::Invalid;
                            prop_assert!(!*done || now >= *written + GIVE_UP_TIME);
                        }
                        1 => drop(files.on_refused(&name, now)),
                        2 => {
                            files.on_done(&name);
                            *done = true;
                        }
                        _ => drop(disk.remove(&name)),
                    }
                }
                prop_assert!(files.known.len() <= MAX_CANDIDATES);
            }
            // What is neither done nor gone is read in the end.
            let found: Vec<_> = disk.iter().map(|(name, (stamp, ..))| (name.clone(), *stamp)).collect();
            files.observe(found.clone(), now);
            let due = files.observe(found, now + RETRY_TIME + GIVE_UP_TIME);
            prop_assert_eq!(due.len(), disk.values().filter(|(_, _, done)| !done).count());
        }
    }

    #[test]
    fn only_so_many_files_are_remembered() {
        let mut files = Candidates::default();
        let all: Vec<_> = (0..MAX_CANDIDATES + 10)
            .map(|file| (OsString::from(format!("{file:05}")), 0))
            .collect();
        files.observe(all.clone(), seconds(0));
        assert_eq!(files.observe(all.clone(), seconds(9)).len(), MAX_CANDIDATES);
        // Once the first are renamed the others are seen.
        let others = all.into_iter().skip(MAX_CANDIDATES);
        assert_eq!(files.observe(others.clone(), seconds(10)).len(), 0);
        assert_eq!(files.observe(others, seconds(12)).len(), 10);
    }
}
