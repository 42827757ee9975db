//! How many peers the torrents of a host may be connected to: each of them, and all together.

use serde::{Deserialize, Serialize};

/// Of the peers of all torrents, one in this many is left free for torrents that have few, where the limit is
/// reached.
const RESERVE: usize = 8;

/// Limits of peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeerLimits {
    /// Most peers of all torrents together.
    pub all: usize,
    /// Most peers of a torrent that does not say.
    pub each: usize,
}

impl Default for PeerLimits {
    fn default() -> Self {
        Self {
            all: 10_000,
            each: 1_500,
        }
    }
}

/// A change of limits of peers. What is `None` stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PeerChanges {
    /// Most peers of all torrents together.
    pub all: Option<usize>,
    /// Most peers of a torrent that does not say.
    pub each: Option<usize>,
}

impl PeerChanges {
    /// Makes the change.
    pub fn apply(self, limits: &mut PeerLimits) {
        limits.all = self.all.unwrap_or(limits.all);
        limits.each = self.each.unwrap_or(limits.each);
    }
}

/// The peers of a torrent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peers {
    /// How many are connected.
    pub connected: usize,
    /// How many may be, whatever others have.
    pub most: usize,
}

/// How many peers each torrent may have, so that all together have no more than `all`.
///
/// Torrents with few peers keep them, those with many have alike numbers where there are too many. What is left
/// is for torrents that lost none, with another `turn` for others of them. So there is a part of the limit that
/// is left where it is reached, and a new torrent finds room, though it may take some turns.
pub(crate) fn share(all: usize, torrents: &[Peers], turn: usize) -> Vec<usize> {
    let most = |peers: &Peers| peers.most.min(all);
    let sum = |numbers: &[usize]| {
        numbers
            .iter()
            .fold(0_usize, |sum, one| sum.saturating_add(*one))
    };
    let wanted: Vec<usize> = torrents.iter().map(most).collect();
    if sum(&wanted) <= all {
        return wanted;
    }
    let had = torrents.iter().zip(&wanted);
    let had: Vec<usize> = had
        .map(|(peers, most)| peers.connected.min(*most))
        .collect();
    let reserve = (all / RESERVE).min(torrents.len());
    let kept = fill(all - reserve, &had, turn);
    let room = wanted.iter().zip(&had).zip(&kept);
    let room: Vec<usize> = room
        .map(|((most, had), kept)| if kept < had { 0 } else { most - kept })
        .collect();
    let more = fill(all - sum(&kept), &room, turn);
    kept.iter()
        .zip(&more)
        .map(|(kept, more)| kept + more)
        .collect()
}

/// Gives to each what it wants, as far as there is as much: the same to all that want more than that, and of what
/// cannot be divided one to each, from that on whose `turn` it is.
fn fill(amount: usize, wants: &[usize], turn: usize) -> Vec<usize> {
    let mut ascending = wants.to_vec();
    ascending.sort_unstable();
    let (mut left, mut level) = (amount, usize::MAX);
    for (index, want) in ascending.iter().enumerate() {
        let even = left / (wants.len() - index);
        if *want > even {
            (level, left) = (even, left % (wants.len() - index));
            break;
        }
        left -= want;
    }
    let mut given: Vec<usize> = wants.iter().map(|want| *want.min(&level)).collect();
    if level < usize::MAX {
        for index in 0..wants.len() {
            let index = (index + turn % wants.len()) % wants.len();
            if left > 0 && wants[index] > level {
                given[index] += 1;
                left -= 1;
            }
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn peers(connected: usize, most: usize) -> Peers {
        Peers { connected, most }
    }

    #[test]
    fn where_there_is_room_each_has_its_own_limit() {
        assert!(share(100, &[], 0).is_empty());
        assert_eq!(share(100, &[peers(7, 60), peers(90, 40)], 0), [60, 40]);
        assert_eq!(share(100, &[peers(7, usize::MAX)], 0), [100]);
    }

    #[test]
    fn those_with_most_peers_give_way_and_new_torrents_find_room() {
        let shared = share(80, &[peers(60, 500), peers(20, 500), peers(0, 500)], 0);
        // One in eight is left free, for as many as there are torrents.
        assert_eq!(shared.iter().sum::<usize>(), 80);
        assert_eq!(shared[0], 57);
        assert!(shared[1] > 20 && shared[2] > 0, "{shared:?}");
    }

    #[test]
    fn torrents_that_can_use_them_come_to_have_alike_numbers() {
        let mut connected = vec![200, 0, 0, 3];
        // The last one finds no more than three.
        let found = [500, 500, 500, 3];
        for turn in 0..1000 {
            let torrents: Vec<_> = connected.iter().map(|has| peers(*has, 500)).collect();
            let shared = share(200, &torrents, turn);
            connected = shared
                .iter()
                .zip(found)
                .map(|(most, found)| *most.min(&found))
                .collect();
        }
        assert_eq!(connected[3], 3);
        assert!(
            connected[..3].iter().all(|has| (60..=70).contains(has)),
            "{connected:?}"
        );
    }

    proptest! {
        #[test]
        fn no_more_are_shared_than_there_may_be(
            all in 0..300_usize,
            torrents in prop::collection::vec((0..200_usize, 0..200_usize), 0..20),
            turn in any::<usize>(),
        ) {
            let torrents: Vec<Peers> =
                torrents.into_iter().map(|(connected, most)| peers(connected, most)).collect();
            let shared = share(all, &torrents, turn);
            prop_assert_eq!(shared.len(), torrents.len());
            let sum: usize = shared.iter().sum();
            prop_assert!(sum <= all);
            let wanted: usize = torrents.iter().map(|peers| peers.most.min(all)).sum();
            // Nothing is left unused but what none may have that lost some.
            let loses = |(peers, share): (&Peers, &usize)| *share < peers.connected.min(peers.most).min(all);
            let any_loses = torrents.iter().zip(&shared).any(loses);
            prop_assert!(sum == all.min(wanted) || any_loses, "{sum} of {all}: {shared:?}");
            for (peers, share) in torrents.iter().zip(&shared) {
                prop_assert!(*share <= peers.most);
            }
            // None loses some while another keeps more.
            let least = torrents.iter().zip(&shared).filter(|pair| loses(*pair)).map(|(_, share)| *share).min();
            if let Some(least) = least {
                for (peers, share) in torrents.iter().zip(&shared) {
                    let kept = peers.connected.min(peers.most).min(all).min(*share);
                    prop_assert!(kept <= least + 1, "{torrents:?} {shared:?}");
                }
            }
        }
    }
}
