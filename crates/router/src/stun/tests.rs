use proptest::prelude::*;

use super::*;

/// The sample request of RFC 5769, section 2.1, with six attributes.
const SAMPLE: &str = "000100582112a442b7e7a701bc34d686fa87dfae\
    802200105354554e207465737420636c69656e74\
    002400046e0001ff80290008932ff9b151263b36\
    000600096576746a3a68367659202020\
    000800149aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a2\
    80280004e57a3bcf";

/// The attributes XOR-MAPPED-ADDRESS of the sample responses, sections 2.2 and 2.3, for requests
/// with the transaction ID of [`SAMPLE`].
const MAPPED: [(&str, &str); 2] = [
    ("192.0.2.1:32853", "002000080001a147e112a643"),
    (
        "[2001:db8:1234:5678:11:2233:4455:6677]:32853",
        "002000140002a1470113a9faa5d3f179bc25f4b5bed2b9d9",
    ),
];

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks_exact(2);
    let byte = |pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

/// A message with attributes, without a fingerprint.
fn message(kind: u16, transaction: [u8; 12], attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut message = kind.to_be_bytes().to_vec();
    message.extend([0; 2]);
    message.extend(COOKIE);
    message.extend(transaction);
    for (kind, value) in attributes {
        write_attribute(&mut message, *kind, value);
    }
    let length = message.len() - HEADER;
    set_length(&mut message, length);
    message
}

/// The same with a fingerprint.
fn fingerprinted(mut message: Vec<u8>) -> Vec<u8> {
    let length = message.len() - HEADER + FINGERPRINT_LENGTH;
    set_length(&mut message, length);
    let value = checksum(&message);
    write_attribute(&mut message, FINGERPRINT, &value);
    message
}

fn answer(request: &[u8], from: &str) -> Result<Vec<u8>, StunError> {
    // What the buffer had before does not matter.
    let mut out = vec![7; 99];
    let from = from.parse().unwrap();
    BindingRequest::parse(request)?.write_answer(from, &mut out);
    Ok(out)
}

#[test]
fn the_sample_request_is_read_and_its_fingerprint_verified() {
    let sample = bytes(SAMPLE);
    let request = BindingRequest::parse(&sample).unwrap();
    assert!(request.fingerprint);
    // PRIORITY is of ICE, and must be comprehended.
    assert_eq!(request.unknown, [Some(0x24), None, None, None]);
    // With another type the fingerprint would be an attribute that is ignored.
    let kind = sample.len() - FINGERPRINT_LENGTH..sample.len() - FINGERPRINT_LENGTH + 2;
    for at in (0..sample.len()).filter(|at| !kind.contains(at)) {
        let mut changed = sample.clone();
        changed[at] ^= 1;
        let read = is_stun(&changed).then(|| BindingRequest::parse(&changed));
        assert!(!matches!(read, Some(Ok(_))), "byte {at}");
    }
}

#[test]
fn answers_have_the_address_as_in_the_sample_responses() {
    let transaction: [u8; 12] = bytes(SAMPLE)[8..20].try_into().unwrap();
    let request = message(REQUEST, transaction, &[]);
    for (from, mapped) in MAPPED {
        let got = answer(&request, from).unwrap();
        let mapped = bytes(mapped);
        assert_eq!(got[..2], [1, 1]);
        assert_eq!(usize::from(u16_at(&got, 2)), mapped.len());
        assert_eq!(got[4..20], request[4..20]);
        assert_eq!(got[20..], mapped);
        // One with a fingerprint is answered with one.
        let got = answer(&fingerprinted(request.clone()), from).unwrap();
        let plain = message(SUCCESS, transaction, &[]);
        let expected = fingerprinted([plain, mapped].concat());
        assert_eq!(got, expected);
    }
    // An IPv4 address in the form that sockets of both families have it.
    let got = answer(&request, "[::ffff:192.0.2.1]:32853").unwrap();
    assert_eq!(got[20..], bytes(MAPPED[0].1));
}

#[test]
fn attributes_of_others_are_ignored_unless_they_must_be_comprehended() {
    let software = (0x8022, &b"a client"[..]);
    let user = (0x0006, &b"somebody"[..]);
    let request = message(REQUEST, [5; 12], &[software, user]);
    assert_eq!(answer(&request, "10.0.0.1:9").unwrap()[..2], [1, 1]);
    let change = (0x0003, &[0, 0, 0, 6][..]);
    let odd = (0x0000, &[1, 2, 3][..]);
    let more: Vec<(u16, &[u8])> = (0x0040..0x0060).map(|kind| (kind, &[][..])).collect();
    let few = message(REQUEST, [5; 12], &[software, change, odd, change]);
    let many = message(REQUEST, [5; 12], &[&[change, odd][..], &more[..]].concat());
    let head = bytes("0009000400000414000a");
    for (request, list) in [(few, "000400030000"), (many, "00080003000000400041")] {
        let got = answer(&request, "10.0.0.1:9").unwrap();
        assert_eq!(got[..2], [1, 0x11]);
        assert_eq!(got[4..20], request[4..20]);
        assert_eq!(got[20..], [head.clone(), bytes(list)].concat());
        assert_eq!(usize::from(u16_at(&got, 2)), got.len() - 20);
    }
}

#[test]
fn what_is_not_a_binding_request_gets_no_answer() {
    let unsupported = [SUCCESS, ERROR, 0x0011, 0x0003, 0x3fff];
    for kind in unsupported {
        let read = BindingRequest::parse(&message(kind, [1; 12], &[]));
        assert_eq!(read, Err(StunError::Unsupported), "{kind:#x}");
    }
    let good = fingerprinted(message(REQUEST, [1; 12], &[(0x8022, b"client")]));
    assert!(BindingRequest::parse(&good).is_ok());
    let mut malformed: Vec<Vec<u8>> = (20..good.len()).map(|n| good[..n].to_vec()).collect();
    malformed.push([&good[..], &[0; 4]].concat());
    // A fingerprint that is not the last attribute, or too short.
    malformed.push(fingerprinted(good.clone()));
    malformed.push(message(REQUEST, [1; 12], &[(FINGERPRINT, &[])]));
    // Attributes that go beyond the message.
    let mut beyond = message(REQUEST, [1; 12], &[(0x8022, b"client")]);
    beyond[23] = 9;
    malformed.push(beyond);
    for bytes in malformed {
        let read = BindingRequest::parse(&bytes);
        assert_eq!(read, Err(StunError::Malformed), "{bytes:02x?}");
    }
    let longest = message(REQUEST, [1; 12], &[(0x8022, &[1; MAX_MESSAGE - 24])]);
    assert!(is_stun(&longest) && BindingRequest::parse(&longest).is_ok());
    let longer = message(REQUEST, [1; 12], &[(0x8022, &[1; MAX_MESSAGE - 20])]);
    assert!(!is_stun(&longer));
    assert_eq!(BindingRequest::parse(&longer), Err(StunError::Malformed));
    // The top bits tell STUN from other protocols.
    let mut other = good;
    other[0] |= 0x40;
    assert!(!is_stun(&other));
}

#[test]
fn any_bytes_are_read_without_panic() {
    let bare = message(REQUEST, [9; 12], &[]);
    let valid = [bytes(SAMPLE), fingerprinted(bare.clone()), bare];
    let mut read = 0;
    hawser_fuzz::fuzz(&valid, |input| {
        if answer(input, "[fd00::1]:31000").is_ok_and(|out| out.len() <= input.len() + MAX_GAIN) {
            read += 1;
        }
    });
    assert!(read > 0, "no input was valid");
}

fn attributes() -> impl Strategy<Value = Vec<(u16, Vec<u8>)>> {
    let kind = any::<u16>().prop_filter("not the last", |kind| *kind != FINGERPRINT);
    let value = prop::collection::vec(any::<u8>(), 0..40);
    prop::collection::vec((kind, value), 0..12)
}

proptest! {
    #[test]
    fn each_request_is_answered_within_the_bound(
        transaction: [u8; 12],
        list in attributes(),
        with_fingerprint: bool,
        ip: std::net::IpAddr,
        port: u16,
    ) {
        let list: Vec<_> = list.iter().map(|(kind, value)| (*kind, &value[..])).collect();
        let mut request = message(REQUEST, transaction, &list);
        if with_fingerprint {
            request = fingerprinted(request);
        }
        let from = SocketAddr::new(ip, port);
        let got = answer(&request, &from.to_string()).unwrap();
        prop_assert!(got.len() <= request.len() + MAX_GAIN);
        prop_assert_eq!(&got[4..20], &request[4..20]);
        // It is itself a message, but no request: two routers cannot answer each other forever.
        prop_assert!(is_stun(&got));
        prop_assert_eq!(BindingRequest::parse(&got), Err(StunError::Unsupported));
        let mut rest = &got[20..];
        let mut last = 0;
        while let Some((kind, _, next)) = attribute(rest).unwrap() {
            (last, rest) = (kind, next);
        }
        prop_assert_eq!(last == FINGERPRINT, with_fingerprint);
        if with_fingerprint {
            let covered = got.len() - FINGERPRINT_LENGTH;
            prop_assert_eq!(&got[covered + 4..], &checksum(&got[..covered])[..]);
        }
    }

    #[test]
    fn reading_any_bytes_never_panics(mut message in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = BindingRequest::parse(&message);
        if message.len() >= HEADER {
            message[..2].copy_from_slice(&REQUEST.to_be_bytes());
            message[4..8].copy_from_slice(&COOKIE);
            let length = message.len() - HEADER;
            set_length(&mut message, length);
            let _ = BindingRequest::parse(&message);
        }
    }
}
