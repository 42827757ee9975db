use super::*;

const CIPHERS: [Cipher; 2] = [Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305];

const SECRETS: [u8; SECRET] = [7; SECRET];

fn pair(cipher: Cipher) -> (Sealer, Opener) {
    (Sealer::new(cipher, &SECRETS), Opener::new(cipher, &SECRETS))
}

#[test]
fn a_batch_has_a_constant_stride_and_opens() {
    for cipher in CIPHERS {
        let (mut sealer, mut opener) = pair(cipher);
        let content: Vec<u8> = (0..250).collect();
        let mut out = Vec::new();
        assert_eq!(sealer.seal_data(&mut out, 1000, &content, 100, true), 0..3);
        assert_eq!(sealer.next_number(), 3);
        let packets: Vec<&[u8]> = out.chunks(137).collect();
        assert_eq!(packets.len(), 3);
        let mut scratch = Vec::new();
        for (index, packet) in packets.iter().enumerate() {
            let opened = opener.open(packet, &mut scratch).unwrap();
            let from = index * 100;
            let content = &content[from..(from + 100).min(250)];
            let position = 1000 + from as u64;
            assert_eq!(opened.payload, Payload::Data { position, content });
            assert_eq!((opened.number, opened.ask), (index as u64, index == 2));
        }
        assert_eq!(opener.rejections(), Rejections::default());
    }
}

#[test]
fn payloads_have_the_specified_bytes() {
    let (mut sealer, _) = pair(Cipher::preferred());
    let mut opener = hawser_seal::Opener::new(Cipher::preferred(), &SECRETS);
    let (mut out, mut scratch) = (Vec::new(), Vec::new());
    sealer.seal_data(&mut out, 0x0102, b"content", 100, false);
    let opened = opener.open(&out, &mut scratch).unwrap();
    assert_eq!(opened.kind.number(), 1);
    assert_eq!(opened.payload, b"\0\0\0\0\0\0\x01\x02content");
    out.clear();
    sealer.seal_ack(&mut out, &Ack::of(5), 100);
    let opened = opener.open(&out, &mut scratch).unwrap();
    assert_eq!(opened.kind.number(), 2);
    assert_eq!(opened.payload, [5, 0, 0, 0, 1, 0]);
    out.clear();
    sealer.seal_probe(&mut out, 33);
    let opened = opener.open(&out, &mut scratch).unwrap();
    assert_eq!(opened.kind.number(), 3);
    assert_eq!(opened.payload, [0; 4]);
}

#[test]
fn acknowledgements_and_probes_open() {
    let (mut sealer, mut opener) = pair(Cipher::preferred());
    let ack = Ack::of(77);
    let (mut out, mut scratch) = (Vec::new(), Vec::new());
    assert_eq!(sealer.seal_ack(&mut out, &ack, 100), 0);
    let opened = opener.open(&out, &mut scratch).unwrap();
    assert_eq!((opened.payload, opened.ask), (Payload::Ack(ack), false));
    out.clear();
    assert_eq!(sealer.seal_probe(&mut out, 1400), 1);
    assert_eq!(out.len(), 1400);
    let opened = opener.open(&out, &mut scratch).unwrap();
    assert_eq!(opened.payload, Payload::Probe { size: 1400 });
    assert!(opened.ask);
}

#[test]
fn authentic_packets_that_break_the_protocol_are_malformed() {
    let (mut sealer, mut opener) = pair(Cipher::preferred());
    let unknown = Kind::new(4).unwrap();
    let payloads: [(Kind, &[u8]); 4] = [
        (DATA, &[0; 7]),
        (DATA, &[0; 8]),
        (DATA, &[0xff; 9]),
        (unknown, &[0; 9]),
    ];
    let mut scratch = Vec::new();
    for (kind, payload) in payloads {
        let mut packet = Vec::new();
        sealer
            .0
            .seal(&mut packet, kind, false, |out| out.extend(payload));
        let opened = opener.open(&packet, &mut scratch);
        assert!(matches!(opened, Err(Rejected::Malformed(_))));
        let again = opener.open(&packet, &mut scratch);
        assert_eq!(
            again,
            Err(Rejected::Sealed(hawser_seal::Rejected::Replayed))
        );
    }
    let rejections = opener.rejections();
    assert_eq!((rejections.malformed, rejections.total()), (4, 8));
}

#[test]
fn only_packets_have_tokens() {
    let (mut sealer, _) = pair(Cipher::preferred());
    let mut probe = Vec::new();
    sealer.seal_probe(&mut probe, 29);
    assert_eq!((FORMAT.token)(&probe[..9]), Some(sealer.subflow_id()));
    assert_eq!((FORMAT.token)(&probe[..8]), None);
    // A kind that this version does not have.
    assert_eq!((FORMAT.token)(&[4; 20]), None);
    // QUIC has the second highest bit set in every packet.
    assert_eq!((FORMAT.token)(&[0x40; 20]), None);
}
