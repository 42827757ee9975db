use super::*;

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
    let (due, _) = cache.plan();
    assert_eq!(due, [(dst, Freshness::Cached)]);
    assert_eq!(cache.plan().0, [], "it is being asked for");
    let long_ago = Instant::now().checked_sub(WATCHED).unwrap();
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
