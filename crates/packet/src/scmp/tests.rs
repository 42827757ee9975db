use hawser_address::{IsdAsn, ScionAddr};
use proptest::prelude::*;

use super::*;
use crate::template::Template;
use crate::testing::{addr, bytes};

const US: &str = "1-ff00:0:1,10.0.0.1:31000";
const PEER: &str = "1-ff00:0:1,10.0.0.2:31001";

fn template(from: &str, to: &str) -> Template {
    Template::new(addr(from), addr(to), &[]).unwrap()
}

/// A packet from `US`, as a router quotes it.
fn ours() -> Vec<u8> {
    let mut packet = vec![];
    template(US, PEER).write(&[7; 500], 0, &mut packet);
    packet
}

/// Messages without checksum, as `sciparse` 0.8.6 writes them: the errors up to the packet that they
/// quote.
const UNREACHABLE: &str = "0104000000000000";
const TOO_BIG: &str = "0200000000000514";
const EXPIRED: &str = "043400000000002a";
const DOWN: &str = "050000000001ff00000000010000000000000007";
const CUT: &str = "060000000001ff000000000100000000000000070000000000000008";
const ECHO: [&str; 2] = ["8000000079180009616263", "8100000079180009616263"];
const TRACEROUTE_REQUEST: &str = "820000007918000900000000000000000000000000000000";
const TRACEROUTE_REPLY: &str = "83000000791800090001ff00000000010000000000000029";

/// Reads the recorded error `head` about the packet `quoted`.
fn read(head: &str, quoted: &[u8]) -> (ScmpError, Option<ScionAddr>, Option<ScionAddr>) {
    let message = [&bytes(head)[..], quoted].concat();
    let packet = template(PEER, US).scmp(&message);
    let packet = Packet::parse(&packet).unwrap();
    assert_eq!(packet.payload()[4..], message[4..]);
    match Scmp::parse(&packet).unwrap() {
        Scmp::Error { error, quote } => {
            let ends = quote.map(|quote| (quote.src, quote.dst)).unzip();
            (error, ends.0, ends.1)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn errors_are_read_with_the_packet_they_quote() {
    let isd_as = addr(US).isd_as;
    let (src, dst) = (Some(addr(US)), Some(addr(PEER)));
    for (head, error) in [
        (UNREACHABLE, ScmpError::DestinationUnreachable { code: 4 }),
        (TOO_BIG, ScmpError::PacketTooBig { mtu: 1300 }),
        (
            EXPIRED,
            ScmpError::ParameterProblem {
                code: 52,
                pointer: 42,
            },
        ),
        (
            DOWN,
            ScmpError::ExternalInterfaceDown {
                isd_as,
                interface: 7,
            },
        ),
        (
            CUT,
            ScmpError::InternalConnectivityDown {
                isd_as,
                ingress: 7,
                egress: 8,
            },
        ),
    ] {
        assert_eq!(read(head, &ours()), (error, src, dst));
        let mut written = Vec::new();
        error.write(&mut written);
        assert_eq!(written, bytes(head));
    }
}

#[test]
fn requests_and_replies_are_written_and_read_as_recorded() {
    let query = |reply, body| Scmp::Query {
        reply,
        id: 31000,
        sequence: 9,
        body,
    };
    let at = |isd_as, interface| Body::Traceroute { isd_as, interface };
    for (recorded, message) in [
        (ECHO[0], query(false, Body::Echo(b"abc"))),
        (ECHO[1], query(true, Body::Echo(b"abc"))),
        (TRACEROUTE_REQUEST, query(false, at(IsdAsn::WILDCARD, 0))),
        (TRACEROUTE_REPLY, query(true, at(addr(US).isd_as, 41))),
    ] {
        assert_eq!(message.to_bytes(), bytes(recorded));
        let packet = template(PEER, US).scmp(&bytes(recorded));
        assert_eq!(Scmp::parse(&Packet::parse(&packet).unwrap()), Ok(message));
    }
}

#[test]
fn a_quote_of_the_headers_is_sufficient() {
    let mut quote = ours();
    quote.truncate(12 + 16 + 8 + 8);
    let (_, src, _) = read(TOO_BIG, &quote);
    assert_eq!(src, Some(addr(US)));
    quote.pop();
    let (_, src, _) = read(TOO_BIG, &quote);
    assert_eq!(src, None);
}

#[test]
fn quoted_requests_are_recognised() {
    let echo = |reply| Scmp::Query {
        reply,
        id: 31000,
        sequence: 9,
        body: Body::Echo(&[0; 32]),
    };
    let traceroute = Scmp::Query {
        reply: false,
        id: 31000,
        sequence: 9,
        body: Body::Traceroute {
            isd_as: IsdAsn::WILDCARD,
            interface: 0,
        },
    };
    for request in [echo(false), traceroute] {
        let mut sent = template(US, PEER).scmp(&request.to_bytes());
        let quote = Quote::parse(&sent).unwrap();
        assert_eq!(
            (quote.src, quote.dst.host.ip()),
            (addr(US), addr(PEER).host.ip())
        );
        assert_eq!(quote.request, Some(9));
        // The same request to a service address.
        sent[9] |= 0x40;
        let quote = Quote::parse(&sent).unwrap();
        assert_eq!((quote.src, quote.request), (addr(US), Some(9)));
        assert!(quote.dst.host.ip().is_unspecified());
    }
    let reply = template(US, PEER).scmp(&echo(true).to_bytes());
    assert_eq!(Quote::parse(&reply), None);
}

#[test]
fn interfaces_beyond_16_bits_are_refused() {
    let mut message = vec![scmp_type::EXTERNAL_INTERFACE_DOWN, 0, 0, 0];
    message.extend_from_slice(&[0; 8]);
    message.extend_from_slice(&0x1_0000u64.to_be_bytes());
    let packet = template(PEER, US).scmp(&message);
    let packet = Packet::parse(&packet).unwrap();
    assert_eq!(Scmp::parse(&packet), Err(Malformed::Length));
}

fn any_error() -> impl Strategy<Value = ScmpError> {
    prop_oneof![
        any::<u8>().prop_map(|code| ScmpError::DestinationUnreachable { code }),
        any::<u16>().prop_map(|mtu| ScmpError::PacketTooBig { mtu }),
        any::<(u8, u16)>()
            .prop_map(|(code, pointer)| ScmpError::ParameterProblem { code, pointer }),
        any::<(u64, u16)>().prop_map(|(isd_as, interface)| ScmpError::ExternalInterfaceDown {
            isd_as: IsdAsn(isd_as),
            interface,
        }),
        any::<(u64, u16, u16)>().prop_map(|(isd_as, ingress, egress)| {
            ScmpError::InternalConnectivityDown {
                isd_as: IsdAsn(isd_as),
                ingress,
                egress,
            }
        }),
        (7u8..128, any::<u8>()).prop_map(|(kind, code)| ScmpError::Other { kind, code }),
    ]
}

proptest! {
    /// Written errors are read unchanged, and errors truncated before the quoted packet are
    /// refused.
    #[test]
    fn errors_are_read_as_written(error in any_error()) {
        let sent = ours();
        let quote = match error {
            ScmpError::Other { .. } => None,
            _ => Quote::parse(&sent),
        };
        let message = Scmp::Error { error, quote };
        let bytes = message.to_bytes();
        let packet = template(PEER, US).scmp(&bytes);
        let packet = Packet::parse(&packet).unwrap();
        prop_assert_eq!(Scmp::parse(&packet), Ok(message));
        for length in 4..error::quote_at(bytes[0]).unwrap_or(4) {
            let packet = template(PEER, US).scmp(&bytes[..length]);
            let cut = Scmp::parse(&Packet::parse(&packet).unwrap());
            // The truncated bytes of "destination unreachable" are unused.
            let unreachable = matches!(error, ScmpError::DestinationUnreachable { .. });
            let expected = match unreachable {
                true => Ok(Scmp::Error { error, quote: None }),
                false => Err(Malformed::Truncated),
            };
            prop_assert_eq!(cut, expected);
        }
    }

    #[test]
    fn echoes_and_traceroutes_are_read_as_written(
        reply: bool, id: u16, sequence: u16, isd_as: u64, interface: u16,
        data in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let echo = Scmp::Query { reply, id, sequence, body: Body::Echo(&data) };
        let isd_as = IsdAsn(isd_as);
        let traceroute = Scmp::Query { reply, id, sequence, body: Body::Traceroute { isd_as, interface } };
        for (message, least) in [(echo, 8), (traceroute, TRACEROUTE)] {
            let bytes = message.to_bytes();
            let packet = template(PEER, US).scmp(&bytes);
            prop_assert_eq!(Scmp::parse(&Packet::parse(&packet).unwrap()), Ok(message));
            for length in 4..least {
                let packet = template(PEER, US).scmp(&bytes[..length]);
                let cut = Scmp::parse(&Packet::parse(&packet).unwrap());
                prop_assert_eq!(cut, Err(Malformed::Truncated));
            }
        }
    }

    #[test]
    fn reading_any_message_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 4..200)) {
        for kind in 0..=255 {
            bytes[0] = kind;
            let packet = template(PEER, US).scmp(&bytes);
            let _ = Scmp::parse(&Packet::parse(&packet).unwrap());
        }
    }
}
