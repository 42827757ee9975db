use super::*;
use crate::outage::HOLD;

/// A path to nowhere that expires `left` seconds from now.
fn path(left: u64) -> Path {
    let src: IsdAsn = "1-ff00:0:110".parse().unwrap();
    let dst: IsdAsn = "1-ff00:0:111".parse().unwrap();
    let metadata = hawser_path::Metadata {
        mtu: 1472,
        expiry: unix_now() + left,
        ..Default::default()
    };
    let over = ["1-ff00:0:110#1", "1-ff00:0:111#2"].map(|text| text.parse().unwrap());
    let info = hawser_path::Path::new(src, dst, over.into(), metadata).unwrap();
    // Two hops in construction direction (SCION header specification, "Path Type: SCION").
    let mut raw = (2u32 << 12).to_be_bytes().to_vec();
    raw.extend([1, 0, 0, 0, 0, 0, 0, 0]);
    for (ingress, egress) in [(0u8, 1u8), (2, 0)] {
        raw.extend([0, 63, 0, ingress, 0, egress, 0, 0, 0, 0, 0, 0]);
    }
    Path::new(info, raw, Some("127.0.0.1:30042".parse().unwrap())).unwrap()
}

fn cache() -> (PathCache, IsdAsn) {
    let local = LocalAs {
        isd_as: "1-ff00:0:110".parse().unwrap(),
        core: false,
        mtu: 1472,
    };
    (PathCache::new(local), "1-ff00:0:111".parse().unwrap())
}

#[test]
fn long_lived_paths_are_renewed_some_time_before_they_expire() {
    let offered = Instant::now();
    let (_, at) = renewal(unix_now() + 3600, offered).unwrap();
    // `renewal` reads the clock a little later.
    let spare = Duration::from_secs(3600) - (at - offered);
    assert!(spare >= BEFORE_EXPIRY && spare <= BEFORE_EXPIRY + Duration::from_secs(60));
}

#[test]
fn short_lived_paths_are_renewed_at_half_their_lifetime() {
    let offered = Instant::now();
    let (_, at) = renewal(unix_now() + 30, offered).unwrap();
    assert!(at - offered <= Duration::from_secs(15));
    let past = unix_now() - 1;
    assert_eq!(renewal(past, offered), Some((past, offered)));
}

#[test]
fn paths_close_to_their_expiry_are_requested_again() {
    let (mut cache, dst) = cache();
    cache.want(dst);
    let (due, next) = cache.plan();
    assert_eq!(due, [(dst, Freshness::Cached)]);
    assert!(next.is_some(), "its answer changes no plan");
    assert_eq!(cache.plan().0, [], "it is being asked for");
    let long_ago = Instant::now().checked_sub(WATCHED_INTERVAL).unwrap();
    cache
        .update(dst, long_ago, Freshness::Cached, Ok(vec![path(0)]))
        .unwrap();
    cache.done(dst);
    assert_eq!(cache.plan().0, [(dst, Freshness::New)]);
    cache
        .update(dst, Instant::now(), Freshness::New, Ok(vec![path(3600)]))
        .unwrap();
    cache.done(dst);
    let (due, next) = cache.plan();
    assert_eq!(due, []);
    assert!(next.is_some());
}

#[test]
fn a_late_answer_does_not_replace_a_newer_one() {
    let (mut cache, dst) = cache();
    cache.want(dst);
    let early = Instant::now();
    let late = early + Duration::from_millis(1);
    cache
        .update(dst, late, Freshness::Cached, Ok(vec![path(3600)]))
        .unwrap();
    cache
        .update(dst, early, Freshness::Cached, Ok(Vec::new()))
        .unwrap();
    assert_eq!(cache.usable(dst).0.len(), 1);
}

#[test]
fn paths_offered_again_are_renewed_no_later() {
    let (mut cache, dst) = cache();
    cache.want(dst);
    let path = path(30);
    let then = Instant::now();
    for (step, freshness) in [
        (0, Freshness::Cached),
        (1, Freshness::Cached),
        (2, Freshness::New),
    ] {
        let asked = then + Duration::from_secs(step);
        cache
            .update(dst, asked, freshness, Ok(vec![path.clone()]))
            .unwrap();
        let (_, renew) = cache.destinations[&dst].renew.unwrap();
        // Without newer paths the next request follows after half of the remaining time.
        assert_eq!(
            renew - then > Duration::from_secs(15),
            freshness == Freshness::New
        );
    }
}

#[test]
fn an_answer_concerns_only_the_paths_that_it_changes() {
    const ASES: u64 = 300;
    let (mut cache, _) = cache();
    let begun = Instant::now();
    let ases: Vec<_> = (1..=ASES).map(|number| IsdAsn(1 << 48 | number)).collect();
    let watchers: Vec<_> = (ases.iter())
        .map(|dst| cache.want(*dst).usable.subscribe())
        .collect();
    let ask = |cache: &mut PathCache, at: Instant| {
        let (due, _) = cache.plan();
        for (dst, freshness) in &due {
            let answer = Ok(vec![path(3600)]);
            cache.update(*dst, at, *freshness, answer).unwrap();
            cache.done(*dst);
            cache.plan();
        }
        due.len()
    };
    assert_eq!(ask(&mut cache, begun), ases.len());
    assert_eq!(cache.published, ases.len());
    assert!(watchers.iter().all(|paths| paths.borrow().len() == 1));
    // Later they are asked for again. Copies that expire later are one change each.
    let long_ago = begun.checked_sub(Duration::from_secs(5));
    (cache.destinations.values_mut()).for_each(|one| one.asked = long_ago);
    assert_eq!(ask(&mut cache, begun), ases.len());
    assert!(cache.published <= 2 * ases.len(), "{}", cache.published);
}

#[test]
fn many_watched_ases_are_requested_less_often() {
    let (mut cache, _) = cache();
    let asked = Instant::now();
    let mut watchers = Vec::new();
    for number in 1..=300 {
        assert!(number > 100 || cache.often(false) == WATCHED_INTERVAL);
        let dst = IsdAsn(1 << 48 | number);
        watchers.push(cache.want(dst).usable.subscribe());
        let answer = Ok(vec![path(3600)]);
        (cache.update(dst, asked, Freshness::Cached, answer)).unwrap();
    }
    let often = cache.often(false);
    assert_eq!(often, 3 * WATCHED_INTERVAL);
    // Requests that were sent together are due one after the other, none of them late.
    let due = |one: &Destination| one.due(false, often, asked).0;
    let dues: std::collections::BTreeSet<_> = cache.destinations.values().map(due).collect();
    assert!(dues.len() > 200, "{}", dues.len());
    assert!(dues.iter().all(|due| *due <= asked + often));
}

/// A daemon that offers a path all the time, as scionproto's does, whatever is down.
#[test]
fn a_path_that_stays_down_is_requested_at_the_end_of_each_hold() {
    let (mut cache, dst) = cache();
    let _watcher = cache.want(dst).usable.subscribe();
    let over = path(3600);
    let outage = Outage::Interface(over.info().interfaces[0]);
    let mut asked = Instant::now();
    for _ in 0..20 {
        cache.plan();
        (cache.update(dst, asked, Freshness::Cached, Ok(vec![over.clone()]))).unwrap();
        assert_eq!(cache.usable(dst).0.len(), 1, "it is tried");
        assert!(!cache.done(dst));
        let reported = Instant::now();
        assert!(cache.report(outage));
        assert_eq!(cache.usable(dst).0.len(), 0);
        let destination = &cache.destinations[&dst];
        let (due, _) = destination.due(true, cache.often(true), reported);
        let hold = due.saturating_duration_since(reported);
        assert!(hold >= HOLD, "{hold:?}");
        assert_eq!(destination.held_until, Some(due));
        asked = due;
    }
}
