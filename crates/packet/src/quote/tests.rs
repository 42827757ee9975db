use hawser_address::IsdAsn;
use proptest::prelude::*;

use super::*;
use crate::scmp::{Body, Scmp};
use crate::template::Template;
use crate::testing::{addr, raw_path};

const US: &str = "1-ff00:0:1,10.0.0.1:31000";
const PEER: &str = "1-ff00:0:2,10.0.0.2:31001";
/// Offset of the path: after the common and the address header.
const PATH_AT: usize = 12 + 24;
/// Offset of the payload: after a path of one segment with two hops.
const PAYLOAD_AT: usize = PATH_AT + 4 + 8 + 2 * 12;

fn template() -> Template {
    Template::new(addr(US), addr(PEER), &raw_path()).unwrap()
}

fn request() -> Vec<u8> {
    let echo = Scmp::Query {
        reply: false,
        id: 31000,
        sequence: 9,
        body: Body::Echo(&[7; 40]),
    };
    template().scmp(&echo.to_bytes())
}

/// The bits of a byte that routers may change, in a packet with such a path.
fn may_change(byte: usize) -> u8 {
    const SEGMENT_ID: std::ops::Range<usize> = PATH_AT + 6..PATH_AT + 8;
    match byte {
        // The traffic class and the reserved bytes.
        0 => 0x0f,
        1 => 0xf0,
        10 | 11 | PATH_AT => 0xff,
        byte if SEGMENT_ID.contains(&byte) => 0xff,
        byte if byte == PATH_AT + 12 || byte == PATH_AT + 24 => 0b11,
        _ => 0,
    }
}

/// Whether `quoted` is recognised as a quote of `sent`.
fn is_of(quoted: &[u8], sent: &[u8]) -> bool {
    Quote::parse(quoted).is_some_and(|quote| quote.is_of(sent))
}

#[test]
fn a_request_is_recognised_by_all_bits_that_routers_keep() {
    let sent = request();
    for byte in 0..sent.len() {
        for bit in 0..8 {
            let mut quoted = sent.clone();
            quoted[byte] ^= 1 << bit;
            let same = may_change(byte) & 1 << bit != 0;
            assert_eq!(is_of(&quoted, &sent), same, "byte {byte}, bit {bit}");
        }
    }
}

#[test]
fn a_quote_must_reach_the_sequence_number_of_the_request() {
    let sent = request();
    for length in 0..=sent.len() {
        let enough = length >= PAYLOAD_AT + REQUEST;
        assert_eq!(is_of(&sent[..length], &sent), enough, "{length} bytes");
    }
    let mut longer = sent.clone();
    longer.push(0);
    assert!(!is_of(&longer, &sent));
    let trace = Scmp::Query {
        reply: false,
        id: 31000,
        sequence: 9,
        body: Body::Traceroute {
            isd_as: IsdAsn::WILDCARD,
            interface: 0,
        },
    };
    let trace = template().scmp(&trace.to_bytes());
    assert!(is_of(&trace, &trace) && !is_of(&trace, &sent));
}

#[test]
fn the_path_of_a_quote_is_compared_with_the_path_used() {
    let (template, mut sent) = (template(), vec![]);
    template.write(&[3; 100], 2, &mut sent);
    let leads = |packet: &[u8]| {
        Quote::parse(packet).is_some_and(|quote| {
            quote.dst == addr(PEER) && path::same_path(template.path(), quote.path())
        })
    };
    assert!(leads(&sent));
    let quote = Quote::parse(&sent).unwrap();
    assert_eq!((quote.src, quote.dst), (addr(US), addr(PEER)));
    assert_eq!((quote.payload, quote.request), (&[3; 100][..], None));
    assert_eq!(quote.packet_len(), sent.len());
    // A router truncates the quote to what fits.
    sent.truncate(PAYLOAD_AT + 8 + 9);
    let quote = Quote::parse(&sent).unwrap();
    assert_eq!(
        (quote.payload, quote.packet_len()),
        (&[3; 9][..], PAYLOAD_AT + 108)
    );
    let destination = 12..20;
    let peer_host = 28..32;
    for byte in destination.chain(peer_host).chain(PATH_AT..PAYLOAD_AT) {
        let mut other = sent.clone();
        other[byte] ^= 0x80;
        assert_eq!(leads(&other), may_change(byte) & 0x80 != 0, "byte {byte}");
    }
}

proptest! {
    #[test]
    fn random_bytes_are_not_a_valid_quote(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(!is_of(&bytes, &request()));
    }

    /// A changed or truncated quote is recognised only if routers may have made the change.
    #[test]
    fn a_changed_quote_is_not_recognised(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        length in any::<prop::sample::Index>(),
    ) {
        let sent = request();
        let mut quoted = sent.clone();
        quoted.truncate(length.index(sent.len() + 1));
        for (at, mask) in changes {
            let length = quoted.len();
            if length > 0 {
                quoted[at.index(length)] ^= mask;
            }
        }
        let by_routers = (0..quoted.len())
            .all(|at| (quoted[at] ^ sent[at]) & !may_change(at) == 0);
        let enough = quoted.len() >= PAYLOAD_AT + REQUEST;
        prop_assert_eq!(is_of(&quoted, &sent), by_routers && enough);
    }
}
