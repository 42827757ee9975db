//! The services that an AS announces in its entry of a segment.
//!
//! `scion-protobuf` does not support the extension and drops it, so this reads it from the bytes
//! (scionproto, `seg_extensions.proto`: `DiscoveryExtension`).

use std::net::SocketAddr;

use hawser_path::Discovery;
use scion_protobuf::buffa::DecodeError;
use scion_protobuf::buffa::encoding::{Tag, WireType, decode_varint, skip_field};

/// `ASEntrySignedBody.extensions`.
const EXTENSIONS: u32 = 6;
/// `PathSegmentExtensions.discovery`.
const DISCOVERY: u32 = 3;
/// `DiscoveryExtension.control_service_addresses`.
const CONTROL: u32 = 2;
/// `DiscoveryExtension.discovery_service_addresses`.
const SERVICES: u32 = 3;

/// The services that the body of an AS entry, an encoded `ASEntrySignedBody`, announces. Invalid
/// addresses are left out.
pub(crate) fn discovery(body: &[u8]) -> Result<Discovery, DecodeError> {
    let mut found = Discovery::default();
    for extensions in fields(body, EXTENSIONS)? {
        for discovery in fields(extensions, DISCOVERY)? {
            for (number, list) in [
                (CONTROL, &mut found.control_services),
                (SERVICES, &mut found.discovery_services),
            ] {
                let texts = fields(discovery, number)?.into_iter();
                let texts = texts.filter_map(|text| std::str::from_utf8(text).ok());
                list.extend(texts.filter_map(|text| text.parse::<SocketAddr>().ok()));
            }
        }
    }
    Ok(found)
}

/// The length-delimited values (messages, strings, bytes) of a field of a message.
fn fields(mut message: &[u8], number: u32) -> Result<Vec<&[u8]>, DecodeError> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let tag = Tag::decode(&mut message)?;
        if tag.field_number() != number || tag.wire_type() != WireType::LengthDelimited {
            skip_field(tag, &mut message)?;
            continue;
        }
        let length = decode_varint(&mut message)?;
        let length = usize::try_from(length).map_err(|_| DecodeError::UnexpectedEof)?;
        let (value, rest) = message
            .split_at_checked(length)
            .ok_or(DecodeError::UnexpectedEof)?;
        found.push(value);
        message = rest;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A length-delimited field.
    fn field(number: u32, value: &[u8]) -> Vec<u8> {
        let length = u8::try_from(value.len()).unwrap();
        let tag = u8::try_from(number << 3 | 2).unwrap();
        [&[tag, length][..], value].concat()
    }

    fn announced(texts: &[(u32, &[u8])]) -> Vec<u8> {
        let texts = texts.iter().map(|(number, text)| field(*number, text));
        let version = vec![8, 1];
        let discovery = [vec![version], texts.collect()].concat().concat();
        // The extensions follow an AS number and precede an MTU.
        let extensions = field(EXTENSIONS, &field(DISCOVERY, &discovery));
        [vec![8, 77], extensions, vec![40, 100]].concat()
    }

    #[test]
    fn valid_addresses_are_read_and_others_left_out() {
        let body = announced(&[
            (CONTROL, b"10.0.0.1:30252"),
            (SERVICES, b"[fd00::1]:8041"),
            (CONTROL, b"10.0.0.2"),
            (SERVICES, b"\xff"),
            (7, b"10.0.0.3:1"),
            (CONTROL, b"10.0.0.4:30252"),
        ]);
        let found = discovery(&body).unwrap();
        let read = |texts: &[&str]| texts.iter().map(|t| t.parse().unwrap()).collect();
        let expected = Discovery {
            control_services: read(&["10.0.0.1:30252", "10.0.0.4:30252"]),
            discovery_services: read(&["[fd00::1]:8041"]),
        };
        assert_eq!(found, expected);
        assert_eq!(discovery(&[]).unwrap(), Discovery::default());
        // Truncate the body inside the extension.
        for length in 3..body.len() - 2 {
            assert!(discovery(&body[..length]).is_err(), "{length}");
        }
    }

    proptest! {
        #[test]
        fn reading_any_bytes_never_panics(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            at: prop::sample::Index,
            to: u8,
        ) {
            let _ = discovery(&bytes);
            let _ = discovery(&field(EXTENSIONS, &bytes));
            let mut body = announced(&[(CONTROL, b"10.0.0.1:30252"), (SERVICES, &bytes)]);
            let at = at.index(body.len());
            body[at] = to;
            let _ = discovery(&body);
        }
    }
}
