use std::net::SocketAddr;

use hawser_endhost::wire::{Quote, Route};
use hawser_endhost::{Path, ScionAddr};
use hawser_path::Interface;
use proptest::prelude::*;

use super::*;
use crate::routes::{InUse, Routes};

fn addr(text: &str) -> ScionAddr {
    text.parse().unwrap()
}

fn local() -> ScionAddr {
    addr("1-ff00:0:1,10.0.0.1:31000")
}

fn peer() -> ScionAddr {
    addr("1-ff00:0:2,10.0.0.2:31001")
}

/// A route over interfaces 7 and 8 whose hop fields were made at `time`.
fn route(time: u8) -> Route {
    let mut raw = (2u32 << 12).to_be_bytes().to_vec();
    raw.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, time]);
    for (ingress, egress) in [(0u16, 7u16), (8, 0)] {
        raw.extend_from_slice(&[0, 63]);
        raw.extend_from_slice(&ingress.to_be_bytes());
        raw.extend_from_slice(&egress.to_be_bytes());
        raw.extend_from_slice(&[time; 6]);
    }
    let interface = |at: ScionAddr, id| {
        let isd_as = at.isd_as;
        Interface { isd_as, id }
    };
    let interfaces = vec![interface(local(), 7), interface(peer(), 8)];
    let (src, dst) = (local().isd_as, peer().isd_as);
    let info = hawser_path::Path::new(src, dst, interfaces, Default::default()).unwrap();
    let router: SocketAddr = "10.0.0.9:30042".parse().unwrap();
    let path = Path::new(info, raw, Some(router)).unwrap();
    Route::new(local(), peer(), &path).unwrap()
}

const SHORT: [u8; 9] = [0x40, 1, 2, 3, 4, 5, 6, 7, 8];

/// A way that packets with the connection id in [`SHORT`] are sent over.
fn sending() -> (SentIds, InUse) {
    let used = Arc::new(Routes::default()).take(route(1), &[7, 8], 1);
    let ids = SentIds::default();
    ids.add(ConnectionId::of(&SHORT).unwrap(), used.way());
    (ids, used)
}

/// A packet with this beginning of 1200 bytes for QUIC.
fn packet(route: &Route, begins: &[u8]) -> Vec<u8> {
    let (mut payload, mut packet) = (begins.to_vec(), Vec::new());
    payload.resize(1200, 0x55);
    route.write(&payload, 0, &mut packet);
    packet
}

fn counts(ids: &SentIds, error: ScmpError, quoted: &[u8]) -> bool {
    let quote = Quote::parse(quoted).unwrap();
    ids.way_of(&Report { error, quote }, local().isd_as)
        .is_some()
}

const UNREACHABLE: ScmpError = ScmpError::DestinationUnreachable { code: 0 };

#[test]
fn ids_are_found_in_long_and_short_headers() {
    let id = ConnectionId::of(&SHORT);
    assert!(id.is_some());
    let long = |length: u8, id: &[u8]| [&[0xc0, 0, 0, 0, 1, length][..], id].concat();
    assert_eq!(ConnectionId::of(&long(8, &SHORT[1..])), id);
    let longer = [&SHORT[1..], &[9; 12]].concat();
    assert_eq!(ConnectionId::of(&long(20, &longer)), id);
    for too_short in [&SHORT[..8], &[], &long(7, &SHORT[1..]), &long(0, &[])] {
        assert_eq!(ConnectionId::of(too_short), None, "{too_short:?}");
    }
    assert_eq!(ConnectionId::of(&long(20, &SHORT[1..])), None, "cut short");
}

#[test]
fn only_what_was_sent_counts() {
    let (ids, used) = sending();
    let sent = packet(&route(1), &SHORT);
    assert!(counts(&ids, UNREACHABLE, &sent));
    let whole = sent.len();
    let headers = whole - 1200;
    assert!(counts(&ids, UNREACHABLE, &sent[..headers + 9]));
    assert!(
        !counts(&ids, UNREACHABLE, &sent[..headers + 8]),
        "too short to tell"
    );
    // Destination AS and host, path timestamp, interface, MAC, destination port, connection id.
    let hop = headers - 8 - 12;
    for byte in [
        15,
        31,
        hop - 12 - 1,
        hop + 3,
        hop + 6,
        headers - 5,
        headers + 1,
        headers + 8,
    ] {
        let mut other = sent.clone();
        other[byte] ^= 1;
        assert!(!counts(&ids, UNREACHABLE, &other), "byte {byte}");
    }
    assert!(
        !counts(&ids, UNREACHABLE, &packet(&route(1), &[0; 9])),
        "invented"
    );
    let id = ConnectionId::of(&SHORT).unwrap();
    ids.add(id, used.way());
    ids.remove(id);
    assert!(
        counts(&ids, UNREACHABLE, &sent),
        "another still sends with it"
    );
    ids.remove(id);
    assert!(
        !counts(&ids, UNREACHABLE, &sent),
        "of a connection that is gone"
    );
}

#[test]
fn what_is_down_must_be_on_the_path() {
    let (ids, _used) = sending();
    let sent = packet(&route(1), &SHORT);
    let down = |isd_as: IsdAsn, interface| {
        let error = ScmpError::ExternalInterfaceDown { isd_as, interface };
        counts(&ids, error, &sent)
    };
    assert!(down(local().isd_as, 7) && down(peer().isd_as, 8));
    assert!(!down(local().isd_as, 8) && !down(peer().isd_as, 7));
    assert!(!down(local().isd_as, 9));
    assert!(!down("1-ff00:0:3".parse().unwrap(), 7));
    let cut = |isd_as, ingress, egress| {
        let error = ScmpError::InternalConnectivityDown {
            isd_as,
            ingress,
            egress,
        };
        counts(&ids, error, &sent)
    };
    assert!(cut(local().isd_as, 0, 7) && cut(peer().isd_as, 8, 0));
    assert!(!cut(local().isd_as, 7, 9) && !cut(peer().isd_as, 7, 8));
}

#[test]
fn no_path_takes_less_than_quic_needs() {
    let (ids, _used) = sending();
    let sent = packet(&route(1), &SHORT);
    let least = u16::try_from(sent.len()).unwrap();
    let too_big = |mtu| counts(&ids, ScmpError::PacketTooBig { mtu }, &sent);
    assert!(too_big(least));
    for mtu in [0, 1, 1200, least - 1] {
        assert!(!too_big(mtu), "{mtu}");
    }
}

#[test]
fn a_refreshed_path_is_known_for_a_while() {
    let (ids, used) = sending();
    let refused = ScmpError::ParameterProblem {
        code: 52,
        pointer: 0,
    };
    let [old, new] = [1, 2].map(|time| packet(&route(time), &SHORT));
    assert!(counts(&ids, refused, &old));
    used.way().refresh(route(2), 2);
    // A refresh that brings nothing new pushes nothing out.
    used.way().refresh(route(2), 2);
    assert!(counts(&ids, UNREACHABLE, &old) && counts(&ids, UNREACHABLE, &new));
    assert!(!counts(&ids, refused, &old), "it is not in use any more");
    assert!(counts(&ids, refused, &new));
    used.way().refresh(route(3), 3);
    assert!(!counts(&ids, UNREACHABLE, &old));
}

#[test]
fn few_errors_are_acted_upon_in_a_time() {
    let start = Instant::now();
    let mut budget = Budget::new(start);
    let mut taken = |after: Duration| (0..50).filter(|_| budget.take(start + after)).count();
    assert_eq!(taken(Duration::ZERO), BURST as usize);
    assert_eq!(taken(EVERY * 5 / 2), 2);
    assert_eq!(taken(EVERY * 600), BURST as usize);
}

proptest! {
    #[test]
    fn any_bytes_are_no_packet_of_ours(begins in prop::collection::vec(any::<u8>(), 0..40)) {
        let (ids, _used) = sending();
        let known = ConnectionId::of(&begins) == ConnectionId::of(&SHORT);
        let quoted = packet(&route(1), &begins);
        prop_assert!(known || !counts(&ids, UNREACHABLE, &quoted));
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Some(id) = ConnectionId::of(&bytes) {
            prop_assert!(bytes.windows(ID).any(|window| window == id.0));
        }
    }
}
