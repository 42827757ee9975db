//! The services that an AS announces in its entry of a segment, so that others need not ask its
//! routers where they are (scionproto, `seg_extensions.proto`: `DiscoveryExtension`).
//!
//! `scion-protobuf` does not have the extension, so this writes its bytes; `hawser-segment` reads
//! them.

use hawser_path::Discovery;
use hawser_topology::AsTopology;
use scion_protobuf::buffa::Message;
use scion_protobuf::buffa::encoding::{Tag, WireType, encode_varint};
use scion_protobuf::proto::control_plane::v1::{ASEntrySignedBody, PathSegmentExtensions};

/// `ASEntrySignedBody.extensions`, its last field.
const EXTENSIONS: u32 = 6;
/// `PathSegmentExtensions.discovery`.
const DISCOVERY: u32 = 3;
/// `DiscoveryExtension.version`, and the only one so far.
const VERSION: u32 = 1;
const VERSION_1: u64 = 1;
/// `DiscoveryExtension.control_service_addresses`.
const CONTROL: u32 = 2;
/// `DiscoveryExtension.discovery_service_addresses`.
const SERVICES: u32 = 3;

/// The services that an AS announces: those in its `topology.json`.
pub fn announced(topology: &AsTopology) -> Discovery {
    Discovery {
        control_services: topology.control_service.values().copied().collect(),
        discovery_services: topology.discovery_service.values().copied().collect(),
    }
}

/// The encoded body of an AS entry with `extensions`, and with the extension that announces
/// `services` if there are any.
pub(crate) fn encode(
    body: &ASEntrySignedBody,
    extensions: &PathSegmentExtensions,
    services: &Discovery,
) -> Vec<u8> {
    let mut extensions = extensions.encode_to_vec();
    if *services != Discovery::default() {
        let mut discovery = Vec::new();
        Tag::new(VERSION, WireType::Varint).encode(&mut discovery);
        encode_varint(VERSION_1, &mut discovery);
        for (number, list) in [
            (CONTROL, &services.control_services),
            (SERVICES, &services.discovery_services),
        ] {
            for address in list {
                add(number, address.to_string().as_bytes(), &mut discovery);
            }
        }
        add(DISCOVERY, &discovery, &mut extensions);
    }
    let mut bytes = body.encode_to_vec();
    add(EXTENSIONS, &extensions, &mut bytes);
    bytes
}

/// Adds a length-delimited field to a message.
fn add(number: u32, value: &[u8], to: &mut Vec<u8>) {
    Tag::new(number, WireType::LengthDelimited).encode(to);
    // A usize has at most 64 bits.
    encode_varint(value.len() as u64, to);
    to.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use scion_protobuf::buffa::MessageField;
    use scion_protobuf::proto::control_plane::v1::StaticInfoExtension;

    #[test]
    fn the_body_is_that_of_protobuf_with_the_extension_added() {
        let extensions = PathSegmentExtensions {
            static_info: MessageField::some(StaticInfoExtension {
                note: "a note".to_owned(),
                ..StaticInfoExtension::default()
            }),
            ..PathSegmentExtensions::default()
        };
        let body = ASEntrySignedBody {
            isd_as: 7,
            mtu: 1400,
            ..ASEntrySignedBody::default()
        };
        let mut whole = body.clone();
        whole.extensions = MessageField::some(extensions.clone());
        let none = encode(&body, &extensions, &Discovery::default());
        assert_eq!(none, whole.encode_to_vec());
        let services = Discovery {
            control_services: vec!["10.0.0.1:1".parse().unwrap()],
            discovery_services: vec!["[fd00::1]:2".parse().unwrap()],
        };
        let with = encode(&body, &extensions, &services);
        let decoded = ASEntrySignedBody::decode_from_slice(&with).unwrap();
        assert_eq!(decoded.isd_as, 7);
        assert_eq!(decoded.extensions.static_info.note, "a note");
        // Protobuf's own encoding of `{1: 1, 2: "10.0.0.1:1", 3: "[fd00::1]:2"}` as field 3.
        let tail = b"\x1a\x1b\x08\x01\x12\x0a10.0.0.1:1\x1a\x0b[fd00::1]:2";
        assert!(with.ends_with(tail), "{with:02x?}");
        assert_eq!(with.len(), none.len() + tail.len());
    }
}
