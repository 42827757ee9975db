//! When a torrent is searched for again.

use std::time::Duration;

use hawser_backoff::Backoff;
use hawser_dht::{ANNOUNCE_INTERVAL, Summary};

/// Shortest and longest pause after a search that did not reach its aim.
const RETRY: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(5 * 60));

/// What a search is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Aim {
    /// Peers are to be found.
    pub finds: bool,
    /// This side is to be announced.
    pub announces: bool,
}

/// When the searches for one torrent are repeated.
#[derive(Debug)]
pub(super) struct Schedule {
    aim: Aim,
    retry: Backoff,
    /// Pauses after searches that found peers.
    again: Backoff,
    /// Whether this side was announced, so that it is probably among the peers that are found.
    is_announced: bool,
}

impl Schedule {
    pub fn new(aim: Aim) -> Self {
        Self {
            aim,
            retry: Backoff::new(RETRY.0, RETRY.1),
            again: Backoff::new(RETRY.0, ANNOUNCE_INTERVAL),
            is_announced: false,
        }
    }

    /// The pause after a search; `None` if it was not begun or its node gave no account of it.
    ///
    /// Peers that begin at the same time search before any of them is announced, and do not find each other, but
    /// perhaps one that was there before. So a search that found peers is also repeated soon, and then ever later.
    pub fn pause(&mut self, summary: Option<Summary>) -> Duration {
        let own = usize::from(self.is_announced);
        self.is_announced |= summary.is_some_and(|summary| summary.announced > 0);
        let has_reached = |summary: Summary| {
            let has_found = !self.aim.finds || summary.peers > own;
            let is_announced = !self.aim.announces || summary.announced > 0;
            summary.answered > 0 && has_found && is_announced
        };
        match summary.is_some_and(has_reached) {
            true => {
                self.retry.reset();
                match self.aim.finds {
                    true => self.again.fail(),
                    false => ANNOUNCE_INTERVAL,
                }
            }
            false => self.retry.fail(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MISSED: [u64; 7] = [10, 20, 40, 80, 160, 300, 300];

    fn schedule(finds: bool, announces: bool) -> Schedule {
        Schedule::new(Aim { finds, announces })
    }

    #[test]
    fn a_search_without_success_is_repeated_soon_and_then_ever_later() {
        let mut missed = schedule(true, true);
        let pauses = MISSED.map(|_| missed.pause(None).as_secs());
        assert_eq!(pauses, MISSED);
        let all = Summary {
            answered: 1,
            peers: 1,
            announced: 1,
            ..Summary::default()
        };
        assert_eq!(missed.pause(Some(all)), RETRY.0);
        assert_eq!(missed.pause(None), RETRY.0);
    }

    #[test]
    fn a_search_that_finds_this_side_alone_has_found_nothing() {
        let mut alone = schedule(true, true);
        let found = |peers| Summary {
            answered: 1,
            peers,
            announced: 1,
            ..Summary::default()
        };
        assert_eq!(alone.pause(Some(found(0))), RETRY.0);
        assert_eq!(alone.pause(Some(found(1))), RETRY.0 * 2);
        assert_eq!(alone.pause(None), RETRY.0 * 4);
        assert_eq!(alone.pause(Some(found(2))), RETRY.0);
    }

    /// Those that began at the same time are not found by the first search.
    #[test]
    fn a_search_that_found_peers_is_repeated_too() {
        let mut eager = schedule(true, true);
        let found = Summary {
            answered: 1,
            peers: 1,
            announced: 1,
            ..Summary::default()
        };
        assert_eq!(eager.pause(Some(found)), RETRY.0);
        let found = Some(Summary { peers: 3, ..found });
        let pauses = [(); 8].map(|()| eager.pause(found).as_secs());
        assert_eq!(pauses, [20, 40, 80, 160, 320, 640, 840, 840]);
        assert_eq!(schedule(false, true).pause(found), ANNOUNCE_INTERVAL);
    }

    proptest! {
        #[test]
        fn only_what_is_wanted_counts(
            finds: bool, announces: bool, answered in 0usize..2, peers in 0usize..2,
            announced in 0usize..2,
        ) {
            let summary = Summary { answered, peers, announced, ..Summary::default() };
            let reached = answered > 0 && (peers > 0 || !finds) && (announced > 0 || !announces);
            let pause = schedule(finds, announces).pause(Some(summary));
            let rare = reached && !finds;
            prop_assert_eq!(pause, if rare { ANNOUNCE_INTERVAL } else { RETRY.0 });
        }
    }
}
