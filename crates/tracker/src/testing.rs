//! Values for tests.

use std::net::IpAddr;
use std::time::Duration;

use hawser_address::{IsdAsn, PeerAddr, ScionAddr};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::message::{AnnounceRequest, Answer, Event};

pub(crate) fn any_scion() -> impl Strategy<Value = ScionAddr> {
    (1u64..9, 1u64..1 << 48, any_host(), 1u16..)
        .prop_map(|(isd, asn, ip, port)| ScionAddr::new(IsdAsn(isd << 48 | asn), (ip, port).into()))
}

/// The address of one host.
fn any_host() -> impl Strategy<Value = IpAddr> {
    let one_host = |ip: IpAddr| match ip.to_canonical() {
        ip if PeerAddr::Ip((ip, 1).into()).is_reachable() => ip,
        _ => IpAddr::from([10, 0, 0, 1]),
    };
    any::<IpAddr>().prop_map(one_host)
}

pub(crate) fn any_peer() -> impl Strategy<Value = PeerAddr> {
    let ip = (any_host(), 1u16..).prop_map(|(ip, port)| PeerAddr::Ip((ip, port).into()));
    prop_oneof![ip, any_scion().prop_map(PeerAddr::Scion)]
}

pub(crate) fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::None),
        Just(Event::Started),
        Just(Event::Stopped),
        Just(Event::Completed),
    ]
}

pub(crate) fn any_request() -> impl Strategy<Value = AnnounceRequest> {
    let numbers = (any::<u16>(), any::<[u64; 3]>(), any::<u32>());
    let others = (
        any_event(),
        proptest::option::of(0u32..1000),
        proptest::option::of(any_scion()),
        proptest::option::of(vec(any::<u8>(), 0..20)),
    );
    (any::<[u8; 20]>(), any::<[u8; 20]>(), numbers, others).prop_map(
        |(info_hash, peer_id, (port, [uploaded, downloaded, left], key), others)| {
            let (event, num_want, scion, tracker_id) = others;
            AnnounceRequest {
                info_hash,
                peer_id,
                port,
                uploaded,
                downloaded,
                left,
                event,
                num_want,
                key,
                scion,
                tracker_id,
            }
        },
    )
}

pub(crate) fn any_answer() -> impl Strategy<Value = Answer> {
    let seconds = || proptest::option::of((1..100_000u64).prop_map(Duration::from_secs));
    let count = || proptest::option::of(0..u32::MAX);
    (
        seconds(),
        seconds(),
        (count(), count()),
        vec(any_peer(), 0..30),
        proptest::option::of("[a-z ]{1,20}[a-z]"),
        proptest::option::of(vec(any::<u8>(), 0..20)),
        proptest::option::of(any::<IpAddr>()),
    )
        .prop_map(
            |(interval, min_interval, counts, peers, warning, tracker_id, ip)| Answer {
                interval,
                min_interval,
                complete: counts.0,
                incomplete: counts.1,
                peers,
                warning: warning.map(|text| text.trim().to_owned()),
                tracker_id,
                external_ip: ip.map(|ip| ip.to_canonical()),
            },
        )
}

/// A leecher's announce of torrent `torrent` at port `port`.
pub(crate) fn request(torrent: u8, port: u16) -> AnnounceRequest {
    AnnounceRequest {
        info_hash: [torrent; 20],
        peer_id: [b'p'; 20],
        port,
        uploaded: 0,
        downloaded: 0,
        left: 1,
        event: Event::None,
        num_want: None,
        key: 0,
        scion: None,
        tracker_id: None,
    }
}
