//! Random bytes for everything that reads bytes from outside.

use hawser_fuzz::fuzz;

use crate::{Magnet, MetadataMessage};

#[test]
fn any_link_is_read_or_refused() {
    let hash = "c12fe1c06bba254a9dc9f519b335aa7c1367a88a";
    let valid = [
        format!(
            "magnet:?xt=urn:btih:{hash}&dn=a%20b&tr=udp%3A%2F%2Fa%3A1&so=1-2,7\
             &x.pe=1-ff00:0:110,10.0.0.1:6881&x.pe=peer.example:1&ws=http%3A%2F%2Fa%2F"
        ),
        format!("magnet:?xt=urn:btmh:1220{hash}{}", &hash[..24]),
        "magnet:?xt=urn:btih:YEX6DQDLXISUVHOJ6UM3GNNKPQJWPKEK".to_owned(),
    ];
    fuzz(&valid.map(String::into_bytes), |input| {
        let text = String::from_utf8_lossy(input);
        match text.parse::<Magnet>() {
            Ok(magnet) => {
                assert!(!magnet.info_hashes.is_empty());
                assert_eq!(magnet.to_string().parse(), Ok(magnet));
            }
            Err(error) => assert_eq!(error.to_string().lines().count(), 1),
        }
    });
}

#[test]
fn any_message_is_read_or_refused() {
    let valid = [
        MetadataMessage::Request { piece: 7 }.encode(),
        MetadataMessage::Reject { piece: 7 }.encode(),
        MetadataMessage::Data {
            piece: 7,
            total: Some(200_000),
            bytes: b"de",
        }
        .encode(),
    ];
    fuzz(&valid, |input| {
        if let Ok(Some(message)) = MetadataMessage::parse(input) {
            assert_eq!(MetadataMessage::parse(&message.encode()), Ok(Some(message)));
        }
    });
}
