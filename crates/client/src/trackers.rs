//! The trackers of a torrent: those that it names, or those that users have set in their place.

use std::hash::{DefaultHasher, Hash, Hasher};

use hawser_magnet::Magnet;
use hawser_tracker::{MAX_TRACKERS, TrackerUrl};

/// Most bytes of all URLs of the trackers of a torrent that users set.
const MAX_BYTES: usize = 64 << 10;

/// Trackers in tiers (BEP 12).
pub type Tiers = Vec<Vec<String>>;

/// A change of the trackers of a torrent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrackerChange {
    /// These are added, each in a tier of its own.
    Add(Vec<String>),
    /// Those of these numbers are removed.
    Remove(Vec<u64>),
    /// Those of these numbers get other URLs.
    Replace(Vec<(u64, String)>),
    /// These take the place of all.
    Set(Tiers),
}

/// The number of a tracker in Transmission's RPC. It depends on its URL alone: a program that has read the list
/// and removes several, one after another, removes those that it means.
pub(crate) fn number(url: &str) -> u64 {
    // It need not be the same in another version: programs ask for the numbers first.
    let mut hasher = DefaultHasher::new();
    url.hash(&mut hasher);
    // Programs may keep it in 32 bits with a sign.
    hasher.finish() & 0x7fff_ffff
}

/// The trackers of a magnet link, each in a tier of its own.
pub(crate) fn of_link(magnet: &Magnet) -> Tiers {
    let trackers = magnet.trackers.iter();
    trackers.map(|url| vec![url.clone()]).collect()
}

/// What changes make of trackers, one after another. A URL that is there stays where it is, and no tier is empty.
pub(crate) fn changed(tiers: &[Vec<String>], changes: &[TrackerChange]) -> Tiers {
    let mut tiers = tiers.to_vec();
    let has = |tiers: &Tiers, url: &String| tiers.iter().flatten().any(|it| it == url);
    for change in changes {
        match change {
            TrackerChange::Add(urls) => {
                for url in urls {
                    if !has(&tiers, url) {
                        tiers.push(vec![url.clone()]);
                    }
                }
            }
            TrackerChange::Remove(numbers) => {
                for tier in &mut tiers {
                    tier.retain(|url| !numbers.contains(&number(url)));
                }
            }
            TrackerChange::Replace(pairs) => {
                for (wanted, url) in pairs {
                    if has(&tiers, url) {
                        continue;
                    }
                    let mut all = tiers.iter_mut().flatten();
                    if let Some(replaced) = all.find(|it| number(it) == *wanted) {
                        replaced.clone_from(url);
                    }
                }
            }
            TrackerChange::Set(others) => {
                tiers = Tiers::new();
                for other in others {
                    let mut tier: Vec<String> = Vec::new();
                    for url in other {
                        if !has(&tiers, url) && !tier.contains(url) {
                            tier.push(url.clone());
                        }
                    }
                    tiers.push(tier);
                }
            }
        }
        tiers.retain(|tier| !tier.is_empty());
    }
    tiers
}

/// What is wrong with trackers in the place of others; `None` if nothing is. Those that a torrent names may be of a kind that
/// is not asked.
pub(crate) fn fault(tiers: &[Vec<String>], before: &[Vec<String>]) -> Option<String> {
    let all = || tiers.iter().flatten();
    if all().count() > MAX_TRACKERS {
        return Some(format!("a torrent has at most {MAX_TRACKERS} trackers"));
    }
    if all().map(String::len).sum::<usize>() > MAX_BYTES {
        return Some(format!(
            "the URLs of the trackers of a torrent have at most {MAX_BYTES} bytes together"
        ));
    }
    let mut new = all().filter(|url| !before.iter().flatten().any(|it| it == *url));
    new.find_map(|url| Some(url.parse::<TrackerUrl>().err()?.to_string()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tiers(tiers: &[&[&str]]) -> Tiers {
        let owned = |tier: &&[&str]| tier.iter().map(|url| (*url).to_owned()).collect();
        tiers.iter().map(owned).collect()
    }

    #[test]
    fn trackers_are_added_removed_and_replaced() {
        let before = tiers(&[&["udp://a:1", "udp://b:1"], &["udp://c:1"]]);
        let after = |change| changed(&before, &[change]);
        let add = TrackerChange::Add(vec!["udp://b:1".into(), "udp://d:1".into()]);
        let added = tiers(&[&["udp://a:1", "udp://b:1"], &["udp://c:1"], &["udp://d:1"]]);
        assert_eq!(after(add), added);
        let [a, b, c] = ["udp://a:1", "udp://b:1", "udp://c:1"].map(number);
        let removed = after(TrackerChange::Remove(vec![c, b, 1]));
        assert_eq!(removed, tiers(&[&["udp://a:1"]]));
        // Neither one that is there, nor for one that is not.
        let pairs = [(b, "udp://d:1"), (a, "udp://c:1"), (1, "udp://e:1")];
        let pairs = pairs.map(|(number, url)| (number, url.to_owned())).to_vec();
        let replaced = after(TrackerChange::Replace(pairs));
        assert_eq!(
            replaced,
            tiers(&[&["udp://a:1", "udp://d:1"], &["udp://c:1"]])
        );
        let set = tiers(&[&["udp://c:1"], &["udp://c:1"], &["udp://e:1", "udp://a:1"]]);
        let expected = tiers(&[&["udp://c:1"], &["udp://e:1", "udp://a:1"]]);
        assert_eq!(after(TrackerChange::Set(set)), expected);
        assert_eq!(after(TrackerChange::Set(Tiers::new())), Tiers::new());
    }

    #[test]
    fn new_trackers_are_checked_and_those_of_the_torrent_are_left() {
        let before = tiers(&[&["wss://a/"]]);
        let with = |url: &str| changed(&before, &[TrackerChange::Add(vec![url.to_owned()])]);
        assert_eq!(fault(&with("http://b/"), &before), None);
        let wrong = fault(&with("wss://b/"), &before).unwrap();
        assert!(wrong.contains("wss://b/"), "{wrong}");
        let long = format!("http://b/{}", "x".repeat(MAX_BYTES));
        assert!(fault(&with(&long), &before).unwrap().contains("bytes"));
        let many = (0..=MAX_TRACKERS).map(|number| vec![format!("http://b/{number}")]);
        let many: Tiers = many.collect();
        assert!(fault(&many, &[]).unwrap().contains("256"));
        assert_eq!(fault(&many[1..], &[]), None);
    }

    fn url() -> impl Strategy<Value = String> {
        (0u8..6).prop_map(|host| format!("udp://{host}:1"))
    }

    fn change() -> impl Strategy<Value = TrackerChange> {
        let urls = || proptest::collection::vec(url(), 0..4);
        let number = || url().prop_map(|url| number(&url));
        prop_oneof![
            urls().prop_map(TrackerChange::Add),
            proptest::collection::vec(number(), 0..3).prop_map(TrackerChange::Remove),
            proptest::collection::vec((number(), url()), 0..3).prop_map(TrackerChange::Replace),
            proptest::collection::vec(urls(), 0..3).prop_map(TrackerChange::Set),
        ]
    }

    proptest! {
        #[test]
        fn no_tracker_is_there_twice_and_no_tier_is_empty(
            changes in proptest::collection::vec(change(), 0..10),
        ) {
            let after = changed(&[], &changes);
            let mut all = after.concat();
            let count = all.len();
            all.sort();
            all.dedup();
            prop_assert_eq!(all.len(), count);
            prop_assert!(after.iter().all(|tier| !tier.is_empty()));
        }
    }
}
