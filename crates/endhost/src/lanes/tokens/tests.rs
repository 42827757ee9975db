use std::net::SocketAddr;

use hawser_address::ScionAddr;
use hawser_packet::{Quote, ScmpError};
use hawser_path::Interface;
use proptest::prelude::*;

use super::*;
use crate::headers::Headers;
use crate::lanes::table::{FlowUse, Flows};
use crate::path::Path;

fn addr(text: &str) -> ScionAddr {
    text.parse().unwrap()
}

fn local() -> ScionAddr {
    addr("1-ff00:0:1,10.0.0.1:31000")
}

fn peer() -> ScionAddr {
    addr("1-ff00:0:2,10.0.0.2:31001")
}

/// Headers with a path over interfaces 7 and 8 whose hop fields were made at `time`.
fn headers(time: u8) -> Headers {
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
    Headers::new(local(), peer(), &path).unwrap()
}

/// A payload begins with a byte of flags, then its token.
const FORMAT: PacketFormat = PacketFormat {
    token: |payload| payload.get(1..)?.first_chunk().copied(),
    min_payload: 1200,
};
const BEGIN: [u8; 9] = [0x40, 1, 2, 3, 4, 5, 6, 7, 8];

fn token(payload: &[u8]) -> Option<Token> {
    (FORMAT.token)(payload)
}

/// A flow that carries packets with the token in [`BEGIN`].
fn sending() -> (Tokens, FlowUse) {
    let used = Arc::new(Flows::default()).open(headers(1), &[7, 8], 1);
    let tokens = Tokens::default();
    tokens.add(token(&BEGIN).unwrap(), &used.flow);
    (tokens, used)
}

/// A packet with a payload of 1200 bytes that begins with `begins`.
fn packet(headers: &Headers, begins: &[u8]) -> Vec<u8> {
    let (mut payload, mut packet) = (begins.to_vec(), Vec::new());
    payload.resize(1200, 0x55);
    headers.write(&payload, 0, &mut packet);
    packet
}

fn counts(tokens: &Tokens, error: ScmpError, quoted: &[u8]) -> bool {
    let quote = Quote::parse(quoted).unwrap();
    tokens
        .flow_of(&Report { error, quote }, &FORMAT, local().isd_as)
        .is_some()
}

const UNREACHABLE: ScmpError = ScmpError::DestinationUnreachable { code: 0 };

#[test]
fn only_quotes_of_sent_packets_count() {
    let (tokens, used) = sending();
    let sent = packet(&headers(1), &BEGIN);
    assert!(counts(&tokens, UNREACHABLE, &sent));
    let whole = sent.len();
    let begin = whole - 1200;
    assert!(counts(&tokens, UNREACHABLE, &sent[..begin + 9]));
    assert!(
        !counts(&tokens, UNREACHABLE, &sent[..begin + 8]),
        "too short"
    );
    // Destination AS and host, path timestamp, interface, MAC, destination port, token.
    let hop = begin - 8 - 12;
    for byte in [
        15,
        31,
        hop - 12 - 1,
        hop + 3,
        hop + 6,
        begin - 5,
        begin + 1,
        begin + 8,
    ] {
        let mut other = sent.clone();
        other[byte] ^= 1;
        assert!(!counts(&tokens, UNREACHABLE, &other), "byte {byte}");
    }
    assert!(
        !counts(&tokens, UNREACHABLE, &packet(&headers(1), &[0; 9])),
        "invented"
    );
    let again = token(&BEGIN).unwrap();
    tokens.add(again, &used.flow);
    tokens.remove(again);
    assert!(
        counts(&tokens, UNREACHABLE, &sent),
        "another still sends with it"
    );
    tokens.remove(again);
    assert!(
        !counts(&tokens, UNREACHABLE, &sent),
        "of a sender that is gone"
    );
}

#[test]
fn an_outage_must_be_on_the_path() {
    let (tokens, _used) = sending();
    let sent = packet(&headers(1), &BEGIN);
    let down = |isd_as: IsdAsn, interface| {
        let error = ScmpError::ExternalInterfaceDown { isd_as, interface };
        counts(&tokens, error, &sent)
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
        counts(&tokens, error, &sent)
    };
    assert!(cut(local().isd_as, 0, 7) && cut(peer().isd_as, 8, 0));
    assert!(!cut(local().isd_as, 7, 9) && !cut(peer().isd_as, 7, 8));
}

#[test]
fn an_mtu_below_the_minimum_does_not_count() {
    let (tokens, _used) = sending();
    let sent = packet(&headers(1), &BEGIN);
    let least = u16::try_from(sent.len()).unwrap();
    let too_big = |mtu| counts(&tokens, ScmpError::PacketTooBig { mtu }, &sent);
    assert!(too_big(least));
    for mtu in [0, 1, 1200, least - 1] {
        assert!(!too_big(mtu), "{mtu}");
    }
}

#[test]
fn the_smallest_mtu_of_scion_counts() {
    let (tokens, _used) = sending();
    // As long headers as IPv6 hosts have: more than 1280 bytes in all.
    let mut sent = Vec::new();
    let payload = [&BEGIN[..], &[0x55; 1240]].concat();
    headers(1).write(&payload, 0, &mut sent);
    assert!(sent.len() > 1280);
    let too_big = |mtu| counts(&tokens, ScmpError::PacketTooBig { mtu }, &sent);
    assert!(too_big(1280));
}

#[test]
fn the_path_before_a_refresh_still_counts() {
    let (tokens, used) = sending();
    let refused = ScmpError::ParameterProblem {
        code: 52,
        pointer: 0,
    };
    let [old, new] = [1, 2].map(|time| packet(&headers(time), &BEGIN));
    assert!(counts(&tokens, refused, &old));
    used.flow.refresh(headers(2), 2);
    // A refresh with the same path does not remove the previous one.
    used.flow.refresh(headers(2), 2);
    assert!(counts(&tokens, UNREACHABLE, &old) && counts(&tokens, UNREACHABLE, &new));
    assert!(!counts(&tokens, refused, &old), "it is not in use any more");
    assert!(counts(&tokens, refused, &new));
    used.flow.refresh(headers(3), 3);
    assert!(!counts(&tokens, UNREACHABLE, &old));
}

proptest! {
    #[test]
    fn random_bytes_are_not_a_sent_packet(begins in prop::collection::vec(any::<u8>(), 0..40)) {
        let (tokens, _used) = sending();
        let known = token(&begins) == token(&BEGIN);
        let quoted = packet(&headers(1), &begins);
        prop_assert!(known || !counts(&tokens, UNREACHABLE, &quoted));
    }
}
