use proptest::prelude::*;

use super::*;

const CIPHERS: [Cipher; 2] = [Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305];

fn secret(seed: u8) -> [u8; SECRET] {
    std::array::from_fn(|at| (at as u8).wrapping_mul(31) ^ seed)
}

fn pair(cipher: Cipher) -> (Sealer, Opener) {
    let secret = secret(1);
    (Sealer::new(cipher, &secret), Opener::new(cipher, &secret))
}

fn probe(sealer: &mut Sealer) -> Vec<u8> {
    let mut packet = Vec::new();
    sealer.seal_probe(&mut packet, 40);
    packet
}

fn open(opener: &mut Opener, packet: &[u8]) -> Result<u64, Rejected> {
    let mut scratch = Vec::new();
    opener
        .open(packet, &mut scratch)
        .map(|opened| opened.number)
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
fn sealed_bytes_are_those_of_the_specification() {
    // Computed apart from this code: HKDF-Expand over HMAC-SHA256 by Python, and
    // AES-128-GCM by OpenSSL.
    let (mut sealer, _) = pair(Cipher::Aes128Gcm);
    let mut out = Vec::new();
    sealer.seal_data(&mut out, 5, b"content", 100, false);
    let hex: String = out.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        hex,
        "01e1fe1f3c5d7a9bb80000000027c32f65021fe17ee046d546fdcab6a6860a9475a8eead732f3180372976f4"
    );
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
fn keys_change_and_overtaken_packets_open() {
    let (mut sealer, mut opener) = pair(Cipher::preferred());
    // As if 2^23 packets had been sealed and received.
    let packets: Vec<_> = (0..4)
        .map(|phase| {
            sealer.next = sealer.key_end - 2;
            assert_eq!(sealer.phase, phase % 2 == 1);
            let last = [probe(&mut sealer), probe(&mut sealer)];
            // The next packet takes the next key.
            probe(&mut sealer);
            last
        })
        .collect();
    let first = |phase: u64| (phase + 1) * PACKETS_PER_KEY - 2;
    assert_eq!(open(&mut opener, &packets[0][0]), Ok(first(0)));
    let after = |sealer: &mut Sealer, next| {
        sealer.next = next;
        probe(sealer)
    };
    // The next key, while packets of this one are on their path.
    let (mut sealer, _) = pair(Cipher::preferred());
    sealer.next = first(0);
    let old = [probe(&mut sealer), probe(&mut sealer)];
    let new = [probe(&mut sealer), probe(&mut sealer)];
    assert_eq!(open(&mut opener, &new[1]), Ok(first(0) + 3));
    assert_eq!(open(&mut opener, &old[1]), Ok(first(0) + 1));
    assert_eq!(open(&mut opener, &new[0]), Ok(first(0) + 2));
    assert_eq!(open(&mut opener, &old[0]), Err(Rejected::Replayed));
    // The two phases after it.
    assert_eq!(open(&mut opener, &packets[1][0]), Ok(first(1)));
    assert_eq!(open(&mut opener, &packets[2][1]), Ok(first(2) + 1));
    assert_eq!(open(&mut opener, &packets[2][0]), Ok(first(2)));
    assert_eq!(open(&mut opener, &packets[3][0]), Ok(first(3)));
    let last = after(&mut sealer, first(0) + 10);
    assert_eq!(open(&mut opener, &last), Err(Rejected::TooOld));
}

#[test]
fn only_packets_that_open_change_the_window() {
    let (mut sealer, mut opener) = pair(Cipher::preferred());
    let packets: Vec<_> = (0..3).map(|_| probe(&mut sealer)).collect();
    assert_eq!(open(&mut opener, &packets[0]), Ok(0));
    // A forged number far ahead must not push the window beyond those that are to come.
    let mut forged = packets[1].clone();
    forged[9..13].copy_from_slice(&0x7000_0000_u32.to_be_bytes());
    assert_eq!(open(&mut opener, &forged), Err(Rejected::Forged));
    // A forged phase must not change the keys.
    let mut forged = packets[1].clone();
    forged[0] ^= 1 << 3;
    assert_eq!(open(&mut opener, &forged), Err(Rejected::Forged));
    assert_eq!(open(&mut opener, &packets[1]), Ok(1));
    assert_eq!(open(&mut opener, &packets[1]), Err(Rejected::Replayed));
    sealer.next = WINDOW_END;
    assert_eq!(open(&mut opener, &probe(&mut sealer)), Ok(WINDOW_END));
    assert_eq!(open(&mut opener, &packets[2]), Err(Rejected::TooOld));
    let mut other = Opener::new(Cipher::preferred(), &secret(2));
    assert_eq!(open(&mut other, &packets[2]), Err(Rejected::OtherSubflow));
    let counted = opener.rejections();
    assert_eq!(
        (counted.forged, counted.replayed, counted.too_old),
        (2, 1, 1)
    );
    assert_eq!(counted.total(), 4);
}

/// The number that makes 2 too old.
const WINDOW_END: u64 = 2 + window::WINDOW;

#[test]
fn authentic_packets_that_break_the_protocol_are_malformed() {
    let (mut sealer, mut opener) = pair(Cipher::preferred());
    let payloads: [&[u8]; 3] = [&[0; 7], &[0; 8], &[0xff; 9]];
    for payload in payloads {
        let mut packet = Vec::new();
        sealer.seal(&mut packet, Kind::Data, false, |out| out.extend(payload));
        assert!(matches!(
            open(&mut opener, &packet),
            Err(Rejected::Malformed(_))
        ));
    }
    assert_eq!(opener.rejections().malformed, 3);
}

proptest! {
    #[test]
    fn no_bit_of_a_packet_can_be_changed(
        content in prop::collection::vec(any::<u8>(), 1..100),
        bit: prop::sample::Index,
        cipher in 0..2_usize,
    ) {
        let (mut sealer, mut opener) = pair(CIPHERS[cipher]);
        let mut packet = Vec::new();
        sealer.seal_data(&mut packet, 9, &content, 1000, false);
        let bit = bit.index(packet.len() * 8);
        packet[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(open(&mut opener, &packet).is_err());
        packet[bit / 8] ^= 1 << (bit % 8);
        for length in 0..packet.len() {
            prop_assert!(open(&mut opener, &packet[..length]).is_err());
        }
        prop_assert_eq!(open(&mut opener, &packet), Ok(0));
    }
}
