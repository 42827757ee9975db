use std::collections::BTreeMap;

use fastrand::Rng;
use proptest::prelude::*;

use super::*;
use crate::testing::request;

const EVERY: Reach = Reach {
    ipv4: true,
    ipv6: true,
    scion: true,
};
const IP: Reach = Reach {
    scion: false,
    ..EVERY
};

struct Tracker {
    swarms: Swarms,
    now: Instant,
}

impl Tracker {
    fn new(options: SwarmOptions) -> Self {
        let now = Instant::now();
        let options = SwarmOptions {
            requests_per_minute: 0,
            ..options
        };
        let swarms = Swarms::new(options, &[9; 32], Rng::with_seed(4), now);
        Self { swarms, now }
    }

    fn announce(&mut self, from: &str, reach: Reach, request: &AnnounceRequest) -> Answer {
        let client = Client {
            addr: from.parse().expect("a peer"),
            reach,
        };
        let answer = self.swarms.announce(client, request, self.now);
        answer.expect("an answer")
    }

    fn leecher(&mut self, from: &str, reach: Reach) -> Vec<String> {
        let port = from.rsplit(':').next().and_then(|port| port.parse().ok());
        let answer = self.announce(from, reach, &request(1, port.expect("a port")));
        texts(&answer)
    }
}

fn texts(answer: &Answer) -> Vec<String> {
    let mut texts: Vec<_> = answer.peers.iter().map(ToString::to_string).collect();
    texts.sort();
    texts
}

#[test]
fn clients_are_given_what_they_reach() {
    let mut tracker = Tracker::new(SwarmOptions::default());
    assert!(tracker.leecher("10.0.0.1:1", IP).is_empty());
    assert_eq!(tracker.leecher("[fd00::1]:2", IP), ["10.0.0.1:1"]);
    let scion_only = Reach {
        scion: true,
        ..Reach::default()
    };
    let scion = "1-ff00:0:110,10.0.0.9:3";
    assert!(tracker.leecher(scion, scion_only).is_empty());
    assert_eq!(tracker.leecher("10.0.0.1:1", IP), ["[fd00::1]:2"]);
    assert_eq!(tracker.leecher("10.0.0.2:4", EVERY).len(), 3);
    // A client over IP that names its SCION address is given to both.
    let both = AnnounceRequest {
        scion: Some("1-ff00:0:111,10.0.0.3:6".parse().expect("an address")),
        ..request(1, 5)
    };
    let answer = tracker.announce("10.0.0.3:77", EVERY, &both);
    assert_eq!(
        texts(&answer),
        [
            "1-ff00:0:110,10.0.0.9:3",
            "10.0.0.1:1",
            "10.0.0.2:4",
            "[fd00::1]:2"
        ]
    );
    assert_eq!(answer.external_ip, Some([10, 0, 0, 3].into()));
    assert_eq!((answer.complete, answer.incomplete), (Some(0), Some(5)));
    assert_eq!(
        tracker.leecher(scion, scion_only),
        ["1-ff00:0:111,10.0.0.3:6"]
    );
    assert!(
        tracker
            .leecher("10.0.0.1:1", IP)
            .contains(&"10.0.0.3:5".to_owned())
    );
    let v4 = Reach {
        ipv4: true,
        ..Reach::default()
    };
    assert_eq!(
        tracker.leecher("10.0.0.1:1", v4),
        ["10.0.0.2:4", "10.0.0.3:5"]
    );
}

#[test]
fn the_port_of_a_client_over_scion_is_the_one_it_listens_at() {
    let mut tracker = Tracker::new(SwarmOptions::default());
    let named = |scion: &str| AnnounceRequest {
        scion: Some(scion.parse().expect("an address")),
        ..request(1, 7)
    };
    tracker.announce("1-ff00:0:110,10.0.0.1:40000", EVERY, &request(1, 7));
    tracker.announce(
        "1-ff00:0:110,10.0.0.1:40000",
        EVERY,
        &named("1-ff00:0:110,10.0.0.1:8"),
    );
    let answer = tracker.announce("1-ff00:0:111,10.0.0.2:1", EVERY, &request(1, 1));
    assert_eq!(
        texts(&answer),
        ["1-ff00:0:110,10.0.0.1:7", "1-ff00:0:110,10.0.0.1:8"]
    );
}

#[test]
fn a_client_over_scion_is_told_that_an_address_of_another_host_is_not_stored() {
    let mut tracker = Tracker::new(SwarmOptions::default());
    let named = |scion: &str| AnnounceRequest {
        scion: Some(scion.parse().expect("an address")),
        ..request(1, 7)
    };
    for other in ["1-ff00:0:110,10.0.0.1:9", "1-ff00:0:111,10.0.0.2:9"] {
        let client = Client {
            addr: "1-ff00:0:110,10.0.0.2:40000".parse().expect("a peer"),
            reach: EVERY,
        };
        let refused = tracker.swarms.announce(client, &named(other), tracker.now);
        assert_eq!(refused, Err(Refusal::ForeignHost));
    }
    let counters = tracker.swarms.counters();
    assert_eq!((counters.not_stored, counters.peers), (2, 0));
}

#[test]
fn a_foreign_scion_host_is_refused_if_wanted() {
    for (same_host, given) in [(true, 0), (false, 1)] {
        let mut tracker = Tracker::new(SwarmOptions {
            same_host,
            ..SwarmOptions::default()
        });
        let named = AnnounceRequest {
            scion: Some("1-ff00:0:110,10.0.0.99:7".parse().expect("an address")),
            ..request(1, 5)
        };
        let answer = tracker.announce("10.0.0.1:1", EVERY, &named);
        assert_eq!(answer.warning.is_some(), same_host);
        let answer = tracker.announce("10.0.0.2:1", EVERY, &request(1, 5));
        let scion = answer.peers.iter().filter(|peer| peer.scion().is_some());
        assert_eq!(scion.count(), given);
    }
}

#[test]
fn seeders_are_not_given_to_seeders() {
    let mut tracker = Tracker::new(SwarmOptions::default());
    let seeder = |port| AnnounceRequest {
        left: 0,
        ..request(1, port)
    };
    tracker.announce("10.0.0.1:1", IP, &seeder(1));
    let answer = tracker.announce("10.0.0.2:1", IP, &seeder(2));
    assert!(answer.peers.is_empty());
    assert_eq!((answer.complete, answer.incomplete), (Some(2), Some(0)));
    let answer = tracker.announce("10.0.0.3:1", IP, &request(1, 3));
    assert_eq!(texts(&answer), ["10.0.0.1:1", "10.0.0.2:2"]);
    let answer = tracker.announce("10.0.0.2:1", IP, &seeder(2));
    assert_eq!(texts(&answer), ["10.0.0.3:3"]);
}

#[test]
fn downloads_are_counted_once() {
    let mut tracker = Tracker::new(SwarmOptions::default());
    let completed = AnnounceRequest {
        left: 0,
        event: Event::Completed,
        ..request(1, 1)
    };
    let downloaded = |tracker: &mut Tracker| {
        let from = "10.9.9.9:1".parse().expect("a peer");
        tracker
            .swarms
            .scrape(from, &[[1; 20]], tracker.now)
            .expect("numbers")[0]
    };
    // It was never a leecher here.
    tracker.announce("10.0.0.2:1", IP, &completed);
    assert_eq!(downloaded(&mut tracker).downloaded, 0);
    tracker.announce("10.0.0.1:1", IP, &request(1, 1));
    tracker.announce("10.0.0.1:1", IP, &completed);
    tracker.announce("10.0.0.1:1", IP, &completed);
    let expected = Scraped {
        complete: 2,
        downloaded: 1,
        incomplete: 0,
    };
    assert_eq!(downloaded(&mut tracker), expected);
    let stopped = AnnounceRequest {
        event: Event::Stopped,
        ..completed
    };
    let answer = tracker.announce("10.0.0.1:1", IP, &stopped);
    assert!(answer.peers.is_empty() && answer.complete == Some(1));
    tracker.announce("10.0.0.1:1", IP, &stopped);
    tracker.announce("10.0.0.2:1", IP, &stopped);
    assert_eq!(downloaded(&mut tracker), Scraped::default());
    assert_eq!(tracker.swarms.counters().torrents, 0);
}

#[test]
fn answers_have_at_most_what_is_wanted() {
    let mut tracker = Tracker::new(SwarmOptions {
        max_num_want: 60,
        ..SwarmOptions::default()
    });
    for host in 0..200 {
        tracker.leecher(&format!("10.0.0.{host}:1"), IP);
    }
    for host in 0..20 {
        tracker.leecher(&format!("1-ff00:0:110,10.0.0.{host}:1"), EVERY);
    }
    let mut given = |num_want, reach| {
        let request = AnnounceRequest {
            num_want,
            ..request(1, 1)
        };
        let answer = tracker.announce("10.0.0.1:1", reach, &request);
        let scion = answer.peers.iter().filter(|peer| peer.scion().is_some());
        (scion.count(), answer.peers.len())
    };
    assert_eq!(given(None, IP), (0, 50));
    assert_eq!(given(Some(1000), IP), (0, 60));
    assert_eq!(given(Some(0), EVERY), (0, 0));
    assert_eq!(given(Some(10), EVERY), (5, 10));
    assert_eq!(given(Some(60), EVERY), (20, 60));
}

#[test]
fn all_peers_are_given_about_equally_often() {
    let mut tracker = Tracker::new(SwarmOptions::default());
    for host in 0..100 {
        tracker.leecher(&format!("10.0.1.{host}:1"), IP);
    }
    let mut counts = BTreeMap::new();
    for _ in 0..1000 {
        for peer in tracker.leecher("10.0.0.1:1", IP) {
            *counts.entry(peer).or_insert(0) += 1;
        }
    }
    assert_eq!(counts.len(), 100);
    assert!(
        counts.values().all(|count| (400..600).contains(count)),
        "{counts:?}"
    );
}

#[test]
fn a_ranking_is_obeyed() {
    struct Near;
    impl Rank for Near {
        fn rank(&self, client: PeerAddr, candidate: PeerAddr) -> u64 {
            let (client, candidate) = (client.ip(), candidate.ip());
            u64::from(client.map(|it| it.port()) == candidate.map(|it| it.port()))
        }
    }
    let mut tracker = Tracker::new(SwarmOptions::default());
    tracker.swarms = tracker.swarms.with_rank(Box::new(Near));
    for host in 0..30 {
        tracker.leecher(&format!("10.0.1.{host}:{}", host % 3 + 1), IP);
    }
    let few = AnnounceRequest {
        num_want: Some(10),
        ..request(1, 2)
    };
    let answer = tracker.announce("10.0.0.1:1", IP, &few);
    assert_eq!(answer.peers.len(), 10);
    assert!(texts(&answer).iter().all(|peer| peer.ends_with(":2")));
}

#[test]
fn memory_is_bounded() {
    let options = SwarmOptions {
        torrents: 3,
        peers: 12,
        peers_per_torrent: 5,
        peers_per_network: 4,
        peers_per_torrent_and_network: 2,
        ..SwarmOptions::default()
    };
    let mut tracker = Tracker::new(options.clone());
    let not_stored = |tracker: &mut Tracker, torrent: u8, from: &str, port: u16| {
        tracker.announce(from, IP, &request(torrent, port));
        tracker.swarms.counters().not_stored
    };
    // Of one network and torrent.
    assert_eq!(not_stored(&mut tracker, 1, "10.0.0.1:1", 1), 0);
    assert_eq!(not_stored(&mut tracker, 1, "10.0.0.1:1", 2), 0);
    assert_eq!(not_stored(&mut tracker, 1, "10.0.0.1:1", 3), 1);
    // A known one can announce again.
    assert_eq!(not_stored(&mut tracker, 1, "10.0.0.1:1", 2), 1);
    // Of one network.
    assert_eq!(not_stored(&mut tracker, 2, "10.0.0.1:1", 1), 1);
    assert_eq!(not_stored(&mut tracker, 2, "10.0.0.1:1", 2), 1);
    assert_eq!(not_stored(&mut tracker, 3, "10.0.0.1:1", 2), 2);
    // Of one torrent.
    for host in 2..6 {
        not_stored(&mut tracker, 1, &format!("10.0.0.{host}:1"), 1);
    }
    assert_eq!(tracker.swarms.counters().not_stored, 3);
    // Torrents.
    assert_eq!(not_stored(&mut tracker, 3, "10.0.0.7:1", 1), 3);
    assert_eq!(not_stored(&mut tracker, 4, "10.0.0.7:1", 1), 4);
    // Without a port there is no peer.
    assert_eq!(not_stored(&mut tracker, 3, "10.0.0.8:1", 0), 5);
    assert_eq!(tracker.swarms.counters().peers, 8);
    // Peers.
    for host in 10..20 {
        not_stored(&mut tracker, 2 + host % 2, &format!("10.0.0.{host}:1"), 1);
    }
    assert_eq!(tracker.swarms.counters().peers, 12);
    // All of them expire, and then there is room again.
    tracker.now += options.interval * 2;
    tracker.swarms.advance(tracker.now);
    let counters = tracker.swarms.counters();
    assert_eq!(
        (counters.peers, counters.torrents, counters.expired),
        (0, 0, 12)
    );
    assert_eq!(tracker.swarms.next_due(), None);
    let before = counters.not_stored;
    assert_eq!(not_stored(&mut tracker, 4, "10.0.0.1:1", 3), before);
}

#[test]
fn refusals_are_counted() {
    let now = Instant::now();
    let options = SwarmOptions {
        allowed: Some([[1; 20]].into()),
        requests_per_minute: 2,
        ..SwarmOptions::default()
    };
    let mut swarms = Swarms::new(options, &[1; 32], Rng::with_seed(1), now);
    let client = Client {
        addr: "10.0.0.1:1".parse().expect("a peer"),
        reach: IP,
    };
    let mut announce = |torrent| {
        swarms
            .announce(client, &request(torrent, 1), now)
            .map(|_| ())
    };
    assert_eq!(announce(1), Ok(()));
    assert_eq!(announce(2), Err(Refusal::NotAllowed));
    assert_eq!(announce(1), Ok(()));
    assert_eq!(announce(1), Ok(()));
    assert_eq!(announce(1), Err(Refusal::TooMany));
    let scraped = swarms.scrape(client.addr, &[[1; 20]], now);
    assert_eq!(scraped, Err(Refusal::TooMany));
    let counters = swarms.counters();
    assert_eq!(
        (counters.announces, counters.limited, counters.not_allowed),
        (3, 2, 1)
    );
    swarms.allow(None);
    let later = now + Duration::from_secs(60);
    assert!(swarms.announce(client, &request(2, 1), later).is_ok());
}

/// A peer of the model: its list entries and whether it is a seeder.
type Model = BTreeMap<(u8, PeerAddr), (Option<ScionAddr>, bool, Instant)>;

#[derive(Debug, Clone)]
struct Announce {
    torrent: u8,
    host: u8,
    scion: bool,
    claims: bool,
    port: u16,
    seeder: bool,
    event: Event,
    wait: u16,
}

fn any_announce() -> impl Strategy<Value = Announce> {
    let event = crate::testing::any_event();
    let place = (0u8..3, 0u8..12, 0u16..3);
    (place, any::<[bool; 3]>(), event, 0u16..200).prop_map(
        |((torrent, host, port), [scion, claims, seeder], event, wait)| Announce {
            torrent,
            host,
            scion,
            claims,
            port,
            seeder,
            event,
            wait,
        },
    )
}

proptest! {
    #[test]
    fn swarms_equal_a_simple_model(steps in proptest::collection::vec(any_announce(), 1..200)) {
        let options = SwarmOptions::default();
        let lifetime = options.interval * 2;
        let mut tracker = Tracker::new(options.clone());
        let mut model = Model::new();
        for step in steps {
            tracker.now += Duration::from_secs(step.wait.into());
            let now = tracker.now;
            let host = SocketAddr::from(([10, 0, 0, step.host], step.port));
            let named = ScionAddr::new("1-ff00:0:110".parse().expect("an AS"), ([10, 1, 0, step.host], 9).into());
            let claimed = step.claims.then_some(named);
            let scion_source = ScionAddr::new(named.isd_as, host);
            let (source, scion) = match step.scion {
                true => (PeerAddr::Scion(scion_source), Some(scion_source).filter(|_| step.port != 0)),
                false => (PeerAddr::Ip(host), claimed),
            };
            let request = AnnounceRequest {
                left: u64::from(!step.seeder),
                event: step.event,
                scion: claimed,
                num_want: Some(1000),
                ..request(step.torrent, step.port)
            };
            let addr = match source {
                PeerAddr::Ip(addr) => PeerAddr::Ip((addr.ip(), 999).into()),
                PeerAddr::Scion(addr) => ScionAddr::new(addr.isd_as, (addr.host.ip(), 999).into()).into(),
            };
            model.retain(|_, (.., seen)| *seen + lifetime > now);
            if step.scion && step.claims {
                // It names another host than its own.
                let refused = tracker.swarms.announce(Client { addr, reach: EVERY }, &request, now);
                prop_assert_eq!(refused, Err(Refusal::ForeignHost));
                continue;
            }
            let key = (step.torrent, source);
            if step.event == Event::Stopped {
                model.remove(&key);
            } else if step.port != 0 || scion.is_some() {
                model.insert(key, (scion, step.seeder, now));
            }
            let answer = tracker.swarms.announce(Client { addr, reach: EVERY }, &request, now);
            let answer = answer.expect("an answer");
            let swarm: Vec<_> = model.iter().filter(|((torrent, _), _)| *torrent == step.torrent).collect();
            let seeders = swarm.iter().filter(|(_, (_, seeder, _))| *seeder).count();
            prop_assert_eq!(answer.complete, Some(seeders as u32));
            prop_assert_eq!(answer.incomplete, Some((swarm.len() - seeders) as u32));
            let mut expected: Vec<PeerAddr> = Vec::new();
            for ((_, other), (scion, seeder, _)) in swarm {
                if *other != source && !(*seeder && step.seeder) {
                    expected.extend(other.ip().filter(|it| it.port() != 0).map(PeerAddr::Ip));
                    expected.extend(scion.map(PeerAddr::Scion));
                }
            }
            if step.event == Event::Stopped {
                expected.clear();
            }
            let mut peers = answer.peers;
            peers.sort();
            expected.sort();
            prop_assert_eq!(peers, expected);
            prop_assert_eq!(tracker.swarms.counters().peers, model.len() as u64);
            // Neither counts of networks nor torrents leak.
            prop_assert_eq!(tracker.swarms.members.iter().count(), model.len());
        }
        // A snapshot has it all.
        let now = tracker.now;
        let bytes = tracker.swarms.snapshot(now);
        let mut restored = Tracker::new(options);
        restored.swarms.restore(&bytes, Duration::ZERO, now).expect("a snapshot");
        prop_assert_eq!(restored.swarms.snapshot(now).len(), bytes.len());
        for swarms in [&mut tracker.swarms, &mut restored.swarms] {
            let hashes = [[0; 20], [1; 20], [2; 20]];
            let from = "10.9.9.9:1".parse().expect("a peer");
            let scraped = swarms.scrape(from, &hashes, now).expect("numbers");
            let counted: u32 = scraped.iter().map(|it| it.complete + it.incomplete).sum();
            prop_assert_eq!(counted as usize, model.values().filter(|(.., seen)| *seen + lifetime > now).count());
            swarms.advance(now + lifetime);
            prop_assert_eq!(swarms.counters().peers, 0);
            prop_assert_eq!(swarms.counters().torrents, 0);
            prop_assert_eq!(swarms.counters().seeders, 0);
        }
    }
}

#[test]
fn snapshots_keep_ages_and_numbers() {
    let mut tracker = Tracker::new(SwarmOptions::default());
    tracker.leecher("10.0.0.1:1", IP);
    tracker.announce(
        "10.0.0.1:1",
        IP,
        &AnnounceRequest {
            left: 0,
            event: Event::Completed,
            ..request(1, 1)
        },
    );
    tracker.now += Duration::from_secs(3000);
    tracker.leecher("10.0.0.2:1", IP);
    let bytes = tracker.swarms.snapshot(tracker.now);
    let restored = |elapsed: u64| {
        let mut other = Tracker::new(SwarmOptions::default());
        // Late enough that ages can be told.
        other.now += Duration::from_secs(100_000);
        let elapsed = Duration::from_secs(elapsed);
        let read = other.swarms.restore(&bytes, elapsed, other.now);
        assert_eq!(read, Ok(()));
        other
    };
    let mut whole = restored(0);
    let from = "10.9.9.9:1".parse().expect("a peer");
    let scraped = whole
        .swarms
        .scrape(from, &[[1; 20]], whole.now)
        .expect("numbers");
    let expected = Scraped {
        complete: 1,
        downloaded: 1,
        incomplete: 1,
    };
    assert_eq!(scraped, [expected]);
    whole.swarms.advance(whole.now + Duration::from_secs(599));
    assert_eq!(whole.swarms.counters().peers, 2);
    whole.swarms.advance(whole.now + Duration::from_secs(600));
    assert_eq!(whole.swarms.counters().peers, 1);
    assert_eq!(restored(600).swarms.counters().peers, 1);
    assert_eq!(restored(3600).swarms.counters().peers, 0);
    assert_eq!(restored(u64::MAX).swarms.counters().peers, 0);
    // What is damaged is refused.
    let mut other = Tracker::new(SwarmOptions::default());
    let mut read = |bytes: &[u8]| other.swarms.restore(bytes, Duration::ZERO, tracker.now);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(read(&damaged).is_err());
        assert!(read(&bytes[..at]).is_err());
    }
    assert_eq!(read(b""), Err(SnapshotError::Magic));
    assert_eq!(other.swarms.counters().peers, 0);
}
