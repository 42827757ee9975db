use hawser_path::{Interface, Metadata};

use super::*;
use crate::swarm::policy::REFUSED_PAUSE;

/// A path to AS 2 over the given interfaces of AS 1, one hop each: those with a number in common
/// overlap.
pub(in crate::swarm) fn path(ids: &[u16]) -> Arc<hawser_path::Path> {
    let isd_as = |n: usize| format!("1-ff00:0:{n}").parse().unwrap();
    let mut interfaces = Vec::new();
    for (n, id) in ids.iter().enumerate() {
        let next = if n + 1 == ids.len() { 99 } else { n + 2 };
        interfaces.push(Interface {
            isd_as: isd_as(n + 1),
            id: *id,
        });
        interfaces.push(Interface {
            isd_as: isd_as(next),
            id: *id,
        });
    }
    let path = hawser_path::Path::new(isd_as(1), isd_as(99), interfaces, Metadata::default());
    Arc::new(path.unwrap())
}

/// A path of one hop that announces this latency.
fn announced(id: u16, latency: Duration) -> Arc<hawser_path::Path> {
    let plain = path(&[id]);
    let metadata = Metadata {
        latency: vec![Some(latency)],
        ..Metadata::default()
    };
    let (from, to) = (plain.interfaces[0].isd_as, plain.interfaces[1].isd_as);
    let path = hawser_path::Path::new(from, to, plain.interfaces.clone(), metadata);
    Arc::new(path.unwrap())
}

pub(in crate::swarm) fn remote(select: Select, most: usize) -> Remote<Arc<hawser_path::Path>> {
    let addr = "1-ff00:0:99,10.0.0.1:1".parse().unwrap();
    let policy = None;
    Remote::new(
        addr,
        Choice {
            select,
            most,
            policy,
        },
        false,
    )
}

fn taken<P>(remote: &Remote<P>) -> Vec<Fingerprint> {
    let paths = remote.paths.iter().filter(|(_, path)| path.taken);
    paths.map(|(fingerprint, _)| *fingerprint).collect()
}

impl Remote<Arc<hawser_path::Path>> {
    /// The endhost offers paths that all fit.
    pub fn offer_fit(&mut self, offers: &[Arc<hawser_path::Path>], now: Instant) -> Withdrawn {
        self.offer(offers, |_| Ok(()), now)
    }
}

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_measured_latency_goes_before_the_announced() {
    let mut remote = remote("latency".parse().unwrap(), 1);
    let (one, two) = (announced(1, MS), announced(2, 5 * MS));
    let now = Instant::now();
    remote.offer_fit(&[one.clone(), two.clone()], now);
    let (one, two) = (one.fingerprint(), two.fingerprint());
    assert_eq!(taken(&remote), [one]);
    remote.connected(one, 1, 100 * MS);
    assert_eq!(taken(&remote), [two]);
    // Until the other is connected, what works goes on.
    assert!(remote.surplus().is_empty());
    remote.connected(two, 2, 20 * MS);
    assert_eq!(taken(&remote), [two]);
    assert_eq!(remote.surplus(), [1]);
    // What was once measured stays known, so the choice does not swing.
    remote.connected(two, 3, 30 * MS);
    assert_eq!(taken(&remote), [two]);
}

#[test]
fn all_taken_paths_are_due_at_once() {
    let mut remote = remote(Select::disjoint(), 4);
    let now = Instant::now();
    remote.offer_fit(&[path(&[1]), path(&[2]), path(&[1, 3])], now);
    assert_eq!(remote.due(now).len(), 2);
    assert_eq!(remote.due(now), taken(&remote));
    let left = remote.paths.values().find(|path| !path.taken).unwrap();
    assert!(left.decision.is_some());
}

#[test]
fn a_path_that_fails_is_dialed_after_growing_pauses_and_replaced() {
    let mut remote = remote(Select::shortest(), 1);
    let start = Instant::now();
    let (short, long) = (path(&[1]), path(&[2, 3]));
    let (short, long) = (short.fingerprint(), {
        remote.offer_fit(&[short, long.clone()], start);
        long.fingerprint()
    });
    let mut now = start;
    let mut pauses = Vec::new();
    for _ in 0..8 {
        remote.failed(short, "no answer".into(), Duration::ZERO, now);
        let due = (0..)
            .map(|ms| now + ms * MS)
            .find(|at| remote.due(*at).contains(&short));
        pauses.push(due.unwrap() - now);
        now = due.unwrap();
    }
    assert!(pauses.is_sorted());
    assert!(*pauses.last().unwrap() <= Duration::from_secs(5));
    assert_eq!(taken(&remote), [long]);
    assert!(remote.trouble().contains("no answer"));
    // It answers at last: it is taken again, the other is surplus.
    remote.connected(long, 1, MS);
    assert!(remote.surplus().is_empty());
    remote.connected(short, 2, MS);
    assert_eq!(taken(&remote), [short]);
    assert_eq!(remote.surplus(), [1]);
}

#[test]
fn a_refused_path_is_replaced_and_dialed_again_after_a_minute() {
    let mut remote = remote(Select::shortest(), 1);
    let now = Instant::now();
    let (short, long) = (path(&[1]), path(&[2, 3]));
    remote.offer_fit(&[short.clone(), long.clone()], now);
    let (short, long) = (short.fingerprint(), long.fingerprint());
    remote.refused(short, "it says so".into(), REFUSED_PAUSE, now);
    assert_eq!(REFUSED_PAUSE, Duration::from_secs(60));
    assert_eq!(taken(&remote), [long]);
    let is_due = |at| remote.due(at).contains(&short);
    assert!(!is_due(now + REFUSED_PAUSE - MS) && is_due(now + REFUSED_PAUSE));
    assert_eq!(
        remote.paths[&short].last_error.as_deref(),
        Some("it says so")
    );
}

#[test]
fn a_path_offered_again_is_due_at_once() {
    let mut remote = remote(Select::disjoint(), 4);
    let now = Instant::now();
    let (one, two) = (path(&[1]), path(&[2]));
    remote.offer_fit(&[one.clone(), two.clone()], now);
    remote.connected(one.fingerprint(), 1, MS);
    remote.connected(two.fingerprint(), 2, MS);
    let withdrawn = remote.offer_fit(std::slice::from_ref(&two), now);
    assert_eq!(withdrawn.conns, [1]);
    if let Some(path) = remote.paths.get_mut(&one.fingerprint()) {
        path.link.conn = None;
    }
    for _ in 0..9 {
        remote.failed(one.fingerprint(), "down".into(), Duration::ZERO, now);
    }
    assert_eq!(remote.due(now + 60_000 * MS), []);
    remote.offer_fit(&[one.clone(), two], now);
    assert_eq!(remote.due(now), [one.fingerprint()]);
}

#[test]
fn a_stalled_path_is_replaced_probed_and_taken_again() {
    let mut remote = remote(Select::shortest(), 1);
    let now = Instant::now();
    let (short, long) = (path(&[1]), path(&[2, 3]));
    remote.offer_fit(&[short.clone(), long.clone()], now);
    remote.connected(short.fingerprint(), 1, MS);
    assert_eq!(remote.due(now), []);
    remote.stalled(short.fingerprint(), now);
    let mut due = remote.due(now);
    due.sort();
    let mut both = [short.fingerprint(), long.fingerprint()];
    both.sort();
    assert_eq!(due, both);
    remote.connected(long.fingerprint(), 2, MS);
    // It may recover: it is not closed.
    assert!(remote.surplus().is_empty());
    remote.recovered(short.fingerprint());
    assert_eq!(taken(&remote), [short.fingerprint()]);
    assert_eq!(remote.surplus(), [2]);
}

#[test]
fn when_every_path_fails_all_are_still_tried() {
    let mut remote = remote(Select::disjoint(), 4);
    let now = Instant::now();
    let paths = [path(&[1]), path(&[2])];
    remote.offer_fit(&paths, now);
    for path in &paths {
        remote.failed(path.fingerprint(), "no".into(), Duration::ZERO, now);
        remote.failed(path.fingerprint(), "no".into(), Duration::ZERO, now);
    }
    assert_eq!(taken(&remote).len(), 2);
    assert_eq!(remote.due(now + 60_000 * MS).len(), 2);
    remote.banned = Some("bad".into());
    assert_eq!(remote.due(now + 60_000 * MS), []);
}

#[test]
fn what_the_policy_does_not_keep_is_not_dialed() {
    let mut remote = remote(Select::shortest(), 4);
    remote.choice.policy = Some(Policy::new().with_acl("- 1-ff00:0:2; +".parse().unwrap()));
    let (kept, denied) = (path(&[1]), path(&[2, 2]));
    let now = Instant::now();
    remote.offer_fit(&[denied.clone(), kept.clone()], now);
    assert_eq!(remote.due(now), [kept.fingerprint()]);
    let decision = remote.paths[&denied.fingerprint()].decision.clone();
    assert_eq!(
        decision.unwrap().to_string(),
        "left: policy: acl entry \"- 1-ff00:0:2\" at 1-ff00:0:2#2"
    );
    assert!(!remote.is_hopeless());
    remote.offer_fit(std::slice::from_ref(&denied), now);
    remote.paths.remove(&kept.fingerprint());
    assert!(remote.is_hopeless());
    assert!(remote.trouble().starts_with("policy: acl"));
}

#[test]
fn what_the_policy_does_not_keep_any_more_is_closed() {
    let mut remote = remote(Select::shortest(), 4);
    // The shorter path is worth more, so the longer one may be used only while that is away.
    let policies = "
        both: {options: [{weight: 2, policy: {extends: [short]}}, {weight: 1, policy: {extends: [all]}}]}
        short: {acl: ['- 1-ff00:0:2', '+']}
        all: {acl: ['+']}";
    let policies = hawser_path::Policies::parse(policies).unwrap();
    remote.choice.policy = Some(policies.policy("both").unwrap().clone());
    let (short, long) = (path(&[1]), path(&[2, 2]));
    let now = Instant::now();
    remote.offer_fit(std::slice::from_ref(&long), now);
    assert_eq!(remote.due(now), [long.fingerprint()]);
    remote.connected(long.fingerprint(), 7, MS);
    let withdrawn = remote.offer_fit(&[short.clone(), long.clone()], now);
    assert_eq!(withdrawn.denied, [7]);
    assert!(withdrawn.conns.is_empty());
    assert_eq!(taken(&remote), [short.fingerprint()]);
}
