//! Random bytes for what peers send.

use bytes::Bytes;
use hawser_fuzz::fuzz;
use hawser_merkle::HashRange;

use super::{
    AddrKind, BLOCK, Decoder, Exchange, ExtendedHandshake, HashRequest, Message, Multipath,
    Request, encode,
};

/// Number of pieces of the torrent that messages are for.
const PIECES: u32 = 20;

fn request() -> HashRequest {
    HashRequest {
        root: [7; 32],
        range: HashRange::proven(1, 2, 2, 5),
    }
}

#[test]
fn any_messages_are_read_or_refused() {
    let request_of_block = Request {
        piece: 1,
        begin: BLOCK,
        length: BLOCK,
    };
    let messages = [
        vec![
            Message::Unchoke,
            Message::Have(3),
            Message::Request(request_of_block),
        ],
        vec![
            Message::Bitfield(Bytes::from_static(&[0xff, 0, 0xf0])),
            Message::KeepAlive,
        ],
        vec![
            Message::HashRequest(request()),
            Message::HashReject(request()),
        ],
        vec![
            Message::Hashes(request(), vec![[1; 32]; 5]),
            Message::Interested,
        ],
        vec![Message::Extended {
            id: 0,
            payload: Bytes::from_static(b"d1:md11:ut_metadatai2eee"),
        }],
    ];
    let valid = messages.map(|messages| {
        let mut out = Vec::new();
        messages
            .iter()
            .for_each(|message| encode(message, &mut out));
        out
    });
    fuzz(&valid, |input| {
        let mut decoder = Decoder::new(PIECES);
        decoder.buffer(input.len()).extend_from_slice(input);
        while let Ok(Some(message)) = decoder.next_message() {
            let mut out = Vec::new();
            encode(&message, &mut out);
            let mut again = Decoder::new(PIECES);
            again.buffer(out.len()).extend_from_slice(&out);
            assert_eq!(again.next_message(), Ok(Some(message)));
        }
    });
}

#[test]
fn any_extension_message_is_read_or_refused() {
    let valid = [
        "d1:md11:ut_metadatai2e6:ut_pexi1ee13:metadata_sizei31235e1:pi6881e4:reqqi250e1:v6:hawsere",
        "d5:added6:abcdef7:added.f1:x6:added618:abcdefghijklmnopqr7:dropped6:abcdefe",
        "d4:addr14:aaaaaaaabbbbcc5:pathsi4ee",
    ];
    fuzz(&valid.map(|text| text.as_bytes().to_vec()), |input| {
        let _ = ExtendedHandshake::decode(input);
        let _ = Multipath::decode(input);
        let _ = Exchange::decode(input, AddrKind::Ip);
        let _ = Exchange::decode(input, AddrKind::Scion);
    });
}
