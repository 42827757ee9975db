//! Random bytes for everything that reads bytes from outside.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fastrand::Rng;
use hawser_address::PeerAddr;
use hawser_fuzz::fuzz;
use sha2::{Digest, Sha256};

use crate::message::http::{
    self, announce_url, parse_announce, parse_scrape, read_answer, read_scrape, scrape_query,
};
use crate::message::udp::{Form, MAX_PAYLOAD, UdpAnnounce, UdpAnswer, UdpRequest};
use crate::message::{AnnounceRequest, Answer, Scraped};
use crate::respond::{http_reply, udp_reply};
use crate::swarms::{SwarmOptions, Swarms};
use crate::testing::request;
use crate::url::TrackerUrl;

fn scion_request() -> AnnounceRequest {
    AnnounceRequest {
        scion: "1-ff00:0:110,10.0.0.1:6881".parse().ok(),
        num_want: Some(30),
        ..request(1, 6881)
    }
}

fn answer() -> Answer {
    let peers = ["1-ff00:0:110,10.0.0.1:6881", "10.0.0.1:6881", "[fd00::1]:1"];
    Answer {
        interval: Some(Duration::from_secs(1800)),
        complete: Some(1),
        incomplete: Some(2),
        peers: peers.map(|peer| peer.parse().expect("a peer")).to_vec(),
        ..Answer::default()
    }
}

fn swarms(now: Instant) -> Swarms {
    let options = SwarmOptions {
        requests_per_minute: 0,
        peers: 50,
        ..SwarmOptions::default()
    };
    Swarms::new(options, &[3; 32], Rng::with_seed(3), now)
}

fn bytes(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

#[test]
fn any_request_over_http_is_answered() {
    let query = |url: String| bytes(url.trim_start_matches("http://t"));
    let valid = [
        query(announce_url("http://t/announce", &scion_request())),
        query(announce_url("http://t/x/announce?a=b", &request(2, 5))),
        query(scrape_query("http://t/scrape", &[[1; 20], [2; 20]])),
    ];
    let now = Instant::now();
    let mut swarms = swarms(now);
    let from = "10.0.0.9:5".parse().expect("an address");
    fuzz(&valid, |input| {
        let text = String::from_utf8_lossy(input);
        if let Ok(read) = parse_announce(&text) {
            let written = announce_url("http://t/a", &read.request);
            let again = parse_announce(written.split_once('?').expect("a query").1);
            assert_eq!(again.map(|it| it.request), Ok(read.request));
        }
        let _ = parse_scrape(&text);
        let reply = http_reply(&mut swarms, from, &text, now);
        match reply.status {
            200 => {
                let announce = read_answer(&reply.body);
                let refused = matches!(announce, Err(http::AnswerError::Refused { .. }));
                assert!(announce.is_ok() || refused || read_scrape(&reply.body).is_ok());
            }
            status => assert_eq!(status, 404),
        }
        assert!(swarms.counters().peers <= 50);
    });
    assert!(swarms.counters().announces > 0 && swarms.counters().scrapes > 0);
}

#[test]
fn any_answer_over_http_is_read_or_refused() {
    let list = "d8:intervali900e5:peersld2:ip8:10.0.0.14:porti6881eeee";
    let scraped: BTreeMap<_, _> = [([1; 20], Scraped::default())].into();
    let valid = [
        http::write_answer(&answer(), true),
        http::write_answer(&answer(), false),
        bytes(list),
        http::failure("no", crate::message::Retry::Never),
        http::write_scrape(&scraped),
    ];
    fuzz(&valid, |input| {
        if let Ok(answer) = read_answer(input) {
            assert!(answer.peers.iter().all(|peer| peer.is_reachable()));
            assert!(read_answer(&http::write_answer(&answer, true)).is_ok());
        }
        let _ = read_scrape(input);
    });
}

#[test]
fn any_packet_of_a_client_is_answered_or_dropped() {
    let now = Instant::now();
    let mut swarms = swarms(now);
    for from in ["10.0.0.1:5", "[fd00::1]:5", "1-ff00:0:110,10.0.0.1:5"] {
        let from: PeerAddr = from.parse().expect("a peer");
        let connection = swarms.connect(from, now);
        let announce = UdpAnnounce {
            request: scion_request(),
            gives_ip: true,
            url_data: "/announce?a=b".into(),
        };
        let valid = [
            UdpRequest::Connect { transaction: 1 }.write(),
            UdpRequest::Announce {
                connection,
                transaction: 2,
                announce,
            }
            .write(),
            UdpRequest::Scrape {
                connection,
                transaction: 3,
                info_hashes: vec![[1; 20], [2; 20]],
            }
            .write(),
        ];
        fuzz(&valid, |input| {
            if let Ok(read) = UdpRequest::read(input) {
                // But for options, and numbers that mean the same.
                let again = UdpRequest::read(&read.write());
                assert!(again.is_ok());
            }
            let reply = udp_reply(&mut swarms, from, input, now);
            let Some(reply) = reply else {
                return;
            };
            assert!(reply.len() <= MAX_PAYLOAD);
            let (transaction, _) = UdpAnswer::read(&reply, Form::of(from)).expect("an answer");
            assert_eq!(Some(transaction), UdpRequest::transaction(input));
            let proven = input.get(..8) == Some(&connection.to_be_bytes()[..]);
            assert!(proven || reply.len() <= input.len());
        });
    }
    assert!(swarms.counters().announces > 0 && swarms.counters().scrapes > 0);
}

#[test]
fn any_packet_of_a_tracker_is_read_or_refused() {
    for form in [Form::Ipv4, Form::Ipv6, Form::Scion] {
        let valid = [
            UdpAnswer::Connect(7).write(1, form),
            UdpAnswer::Announce(answer()).write(2, form),
            UdpAnswer::Scrape(vec![Scraped::default(); 3]).write(3, form),
            UdpAnswer::Error("no".into()).write(4, form),
        ];
        fuzz(&valid, |input| {
            if let Ok((transaction, answer)) = UdpAnswer::read(input, form) {
                let again = UdpAnswer::read(&answer.write(transaction, form), form);
                assert!(again.is_ok());
            }
        });
    }
}

#[test]
fn any_snapshot_is_read_or_refused() {
    let now = Instant::now();
    let mut full = swarms(now);
    for (torrent, from) in [
        (1, "10.0.0.1:5"),
        (1, "[fd00::1]:5"),
        (2, "1-ff00:0:110,10.0.0.1:5"),
    ] {
        let client = crate::swarms::Client {
            addr: from.parse().expect("a peer"),
            reach: Default::default(),
        };
        let named = AnnounceRequest {
            info_hash: [torrent; 20],
            ..scion_request()
        };
        full.announce(client, &named, now).expect("an answer");
    }
    let whole = full.snapshot(now);
    let content = whole[..whole.len() - 32].to_vec();
    let mut restored = 0;
    fuzz(&[content], |input| {
        assert!(swarms_of(input, now).is_none());
        // With the right checksum.
        let mut summed = input.to_vec();
        summed.extend(Sha256::digest(input));
        if let Some(swarms) = swarms_of(&summed, now) {
            restored += 1;
            assert!(swarms.counters().peers <= 50);
            let again = swarms.snapshot(now);
            assert!(swarms_of(&again, now).is_some());
        }
    });
    assert!(restored > 0);
}

fn swarms_of(bytes: &[u8], now: Instant) -> Option<Swarms> {
    let mut swarms = swarms(now);
    let read = swarms.restore(bytes, Duration::ZERO, now);
    read.ok().map(|()| swarms)
}

#[test]
fn any_url_is_read_or_refused() {
    let valid = [
        "http://t.example/announce?a=b",
        "udp://[1-ff00:0:110,10.0.0.1]:6969/a",
        "https://[fd00::1]:1/",
    ];
    fuzz(&valid.map(bytes), |input| {
        let text = String::from_utf8_lossy(input);
        if let Ok(url) = text.parse::<TrackerUrl>() {
            assert_eq!(url.to_string().parse::<TrackerUrl>(), Ok(url));
        }
        let _ = http::scrape_url(&text);
    });
}
