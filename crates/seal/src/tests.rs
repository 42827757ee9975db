use proptest::prelude::*;

use crate::sealer::PACKETS_PER_KEY;
use crate::window::WINDOW;
use crate::{Cipher, HEADER, Kind, Opened, Opener, Rejected, Rejections, SECRET, Sealer, TAG};

const CIPHERS: [Cipher; 2] = [Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305];

const KIND: Kind = Kind::new(1).expect("1 to 7");

fn secret(seed: u8) -> [u8; SECRET] {
    std::array::from_fn(|at| (at as u8).wrapping_mul(31) ^ seed)
}

fn pair(cipher: Cipher) -> (Sealer, Opener) {
    let secret = secret(1);
    (Sealer::new(cipher, &secret), Opener::new(cipher, &secret))
}

fn seal(sealer: &mut Sealer, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    sealer.seal(&mut packet, KIND, false, |out| {
        out.extend_from_slice(payload)
    });
    packet
}

fn probe(sealer: &mut Sealer) -> Vec<u8> {
    seal(sealer, &[0; 11])
}

fn open(opener: &mut Opener, packet: &[u8]) -> Result<u64, Rejected> {
    let mut scratch = Vec::new();
    opener
        .open(packet, &mut scratch)
        .map(|opened| opened.number)
}

#[test]
fn packets_are_appended_and_open() {
    for cipher in [CIPHERS[0], CIPHERS[1], Cipher::Null] {
        let (mut sealer, mut opener) = pair(cipher);
        assert_eq!(sealer.subflow_id(), opener.subflow_id());
        let (mut out, mut opened) = (Vec::new(), vec![0xee]);
        for number in 0..7 {
            assert_eq!(sealer.next_number(), number);
            let kind = Kind::new(1 + number as u8).unwrap();
            let payload = vec![number as u8; 10 * number as usize];
            let start = out.len();
            let sealed = sealer.seal(&mut out, kind, number == 3, |out| out.extend(&payload));
            assert_eq!(sealed, number);
            let packet = &out[start..];
            assert_eq!(packet.len(), payload.len() + cipher.overhead());
            let before = opened.clone();
            let expected = Opened {
                number,
                kind,
                ask: number == 3,
                payload: &mut payload.clone(),
            };
            assert_eq!(opener.open_into(packet, &mut opened), Ok(expected));
            assert_eq!(opened, [before, payload].concat());
            assert_eq!(open(&mut opener, packet), Err(Rejected::Replayed));
        }
        let replayed = Rejections {
            replayed: 7,
            ..Rejections::default()
        };
        assert_eq!(opener.rejections(), replayed);
    }
}

#[test]
fn sealed_bytes_are_those_of_the_specification() {
    // Computed apart from this code: HKDF-Expand over HMAC-SHA256 by Python, and
    // AES-128-GCM by OpenSSL.
    let (mut sealer, _) = pair(Cipher::Aes128Gcm);
    let packet = seal(&mut sealer, b"\0\0\0\0\0\0\0\x05content");
    let hex: String = packet.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        hex,
        "01e1fe1f3c5d7a9bb80000000027c32f65021fe17ee046d546fdcab6a6860a9475a8eead732f3180372976f4"
    );
}

#[test]
fn packets_of_the_null_cipher_are_in_clear_text() {
    let (mut sealer, mut opener) = pair(Cipher::Null);
    let packet = seal(&mut sealer, b"content");
    assert_eq!(packet[HEADER..], *b"content");
    assert_eq!(
        open(&mut opener, &packet[..HEADER - 1]),
        Err(Rejected::NotAPacket)
    );
    sealer.next = PACKETS_PER_KEY;
    let next = probe(&mut sealer);
    assert_eq!(open(&mut opener, &next), Ok(PACKETS_PER_KEY));
    assert_eq!(open(&mut opener, &packet), Err(Rejected::TooOld));
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
const WINDOW_END: u64 = 2 + WINDOW;

proptest! {
    #[test]
    fn no_bit_of_a_packet_can_be_changed(
        content in prop::collection::vec(any::<u8>(), 1..100),
        bit: prop::sample::Index,
        cipher in 0..2_usize,
    ) {
        let (mut sealer, mut opener) = pair(CIPHERS[cipher]);
        let mut packet = seal(&mut sealer, &content);
        let bit = bit.index(packet.len() * 8);
        packet[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(open(&mut opener, &packet).is_err());
        packet[bit / 8] ^= 1 << (bit % 8);
        for length in 0..packet.len() {
            prop_assert!(open(&mut opener, &packet[..length]).is_err());
        }
        prop_assert_eq!(open(&mut opener, &packet), Ok(0));
    }

    #[test]
    fn rejected_packets_leave_the_buffer_as_it_was(
        cipher in 0..2_usize,
        packet in prop::collection::vec(any::<u8>(), 0..100),
        begins in 0..=HEADER,
        out in prop::collection::vec(any::<u8>(), 0..10),
    ) {
        let (mut sealer, mut opener) = pair(CIPHERS[cipher]);
        // As far into the header as it is a packet's, so that every check is reached.
        let valid = seal(&mut sealer, b"content");
        let mut packet = packet;
        let begins = begins.min(packet.len());
        packet[..begins].copy_from_slice(&valid[..begins]);
        let mut appended = out.clone();
        let opened = opener.open_into(&packet, &mut appended);
        let expected = if begins < HEADER || packet.len() < HEADER + TAG {
            opened.is_err()
        } else {
            opened == Err(Rejected::Forged)
        };
        prop_assert!(expected, "{:?}", opened);
        prop_assert_eq!(appended, out);
        prop_assert_eq!(opener.rejections().total(), 1);
        prop_assert_eq!(open(&mut opener, &valid), Ok(0));
    }
}
