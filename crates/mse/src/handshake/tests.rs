use fastrand::Rng;
use hawser_fuzz::fuzz;
use proptest::prelude::*;

use super::*;
use crate::cipher::SkeyHash;
use crate::policy::{Methods, Policy};

const HASH: [u8; 20] = *b"an info-hash of 20 b";

/// Most bytes kept before the peer has shown that it knows the info-hash: a pad and a hash.
const MAX_KEPT: usize = MAX_PAD + 20;

fn initiator(provided: Methods, initial: &[u8], seed: u64) -> Initiator {
    Initiator::new(HASH, provided, initial.to_vec(), &mut Rng::with_seed(seed)).unwrap()
}

fn responder(policy: Policy, seed: u64) -> Responder {
    Responder::new(policy, &mut Rng::with_seed(seed))
}

fn find(shown: SkeyHash) -> Option<[u8; 20]> {
    shown.find(&[[1; 20], HASH, [2; 20]])
}

/// One direction of a connection. Bytes are taken from it in chunks of random length.
struct Pipe {
    bytes: Vec<u8>,
    random: Rng,
    /// Longest chunk.
    longest: usize,
}

impl Pipe {
    fn chunk(&mut self) -> &[u8] {
        let length = self.random.usize(1..=self.longest);
        &self.bytes[..length.min(self.bytes.len())]
    }
}

/// Runs both sides until both have ended. Returns how, and the bytes that follow in each direction.
fn run(
    mut a: Initiator,
    mut b: Responder,
    data: [&[u8]; 2],
    longest: usize,
    seed: u64,
) -> Result<[(Established, Vec<u8>); 2], HandshakeError> {
    let pipe = |seed| Pipe {
        bytes: Vec::new(),
        random: Rng::with_seed(seed),
        longest,
    };
    let (mut to_b, mut to_a) = (pipe(seed), pipe(!seed));
    let [mut of_a, mut of_b]: [Option<Established>; 2] = [None, None];
    let [mut sent_a, mut sent_b] = [false; 2];
    for _ in 0..10_000 {
        to_b.bytes.extend(a.take_output());
        to_a.bytes.extend(b.take_output());
        // Each side sends data as soon as it may.
        for (established, pipe, data, sent) in [
            (&mut of_a, &mut to_b, data[0], &mut sent_a),
            (&mut of_b, &mut to_a, data[1], &mut sent_b),
        ] {
            if let Some(established) = established
                && !std::mem::replace(sent, true)
            {
                let mut data = data.to_vec();
                if let Crypto::Rc4(ciphers) = &mut established.crypto {
                    ciphers.write.apply(&mut data);
                }
                pipe.bytes.extend(data);
            }
        }
        if of_b.is_none() {
            let received = b.receive(to_b.chunk(), find)?;
            to_b.bytes.drain(..received.used);
            of_b = received.established;
        }
        if of_a.is_none() {
            let received = a.receive(to_a.chunk())?;
            to_a.bytes.drain(..received.used);
            of_a = received.established;
            assert!(a.kept() <= MAX_KEPT);
        }
        if sent_a && sent_b {
            let (of_a, of_b) = (of_a.expect("ended"), of_b.expect("ended"));
            return Ok([(of_a, to_a.bytes), (of_b, to_b.bytes)]);
        }
    }
    panic!("the handshake never ends: {a:?} {b:?}");
}

/// Decrypts what was received.
fn opened((established, mut bytes): (Established, Vec<u8>)) -> Vec<u8> {
    if let Crypto::Rc4(mut ciphers) = established.crypto {
        ciphers.read.apply(&mut bytes);
    }
    [established.initial, bytes].concat()
}

#[test]
fn the_policies_decide_the_method() {
    use Policy::{Allow, Disable, Prefer, Require};

    for (dials, accepts, is_encrypted) in [
        (Allow, Allow, false),
        (Allow, Prefer, true),
        (Prefer, Require, true),
        (Require, Allow, true),
    ] {
        let sides = (initiator(dials.provide(), &[], 1), responder(accepts, 2));
        let [(a, _), (b, _)] = run(sides.0, sides.1, [b"", b""], 100, 3).unwrap();
        for side in [a, b] {
            assert_eq!(matches!(side.crypto, Crypto::Rc4(_)), is_encrypted);
            assert_eq!(side.info_hash, HASH);
        }
    }
    let disabled = run(
        initiator(Allow.provide(), &[], 1),
        responder(Disable, 2),
        [b"", b""],
        100,
        3,
    );
    assert_eq!(disabled.unwrap_err(), HandshakeError::Provided(3));
    let plain = Methods(1);
    let refused = run(
        initiator(plain, &[], 1),
        responder(Require, 2),
        [b"", b""],
        100,
        3,
    );
    assert_eq!(refused.unwrap_err(), HandshakeError::Provided(1));
}

#[test]
fn encrypted_bytes_do_not_show_the_data() {
    let data = [&[7; 500][..], &[8; 500]];
    let sides = (
        initiator(Methods(2), &[9; 68], 1),
        responder(Policy::Prefer, 2),
    );
    let [a, b] = run(sides.0, sides.1, data, 1000, 3).unwrap();
    assert_eq!((a.1.len(), b.1.len()), (500, 500));
    assert!(!a.1.windows(3).any(|it| it == [8; 3]));
    assert!(!b.1.windows(3).any(|it| it == [7; 3]));
    assert_eq!(opened(a), data[1]);
    assert_eq!(opened(b), [&[9; 68][..], data[0]].concat());
}

#[test]
fn what_is_no_handshake_is_refused_with_bounded_memory() {
    let mut b = responder(Policy::Prefer, 1);
    assert_eq!(b.receive(&[0; 96], find).unwrap_err(), HandshakeError::Key);
    // Once it has failed it takes nothing.
    assert_eq!(b.receive(&[0; 96], find).unwrap().used, 0);

    let mut b = responder(Policy::Prefer, 1);
    assert!(
        b.take_output().is_empty(),
        "nothing before the peer has sent a key"
    );
    let mut taken = 0;
    let error = loop {
        match b.receive(&[0x47], find) {
            Ok(received) => taken += received.used,
            Err(error) => break error,
        }
        assert!(b.kept() <= MAX_KEPT);
    };
    assert_eq!((error, taken), (HandshakeError::NoSync, 96 + MAX_KEPT - 1));

    let mut a = initiator(Methods::ALL, &[], 1);
    let error = a.receive(&[0x47; 2000]).unwrap_err();
    assert_eq!(error, HandshakeError::NoSync);
    let mut random = Rng::with_seed(1);
    let long = Initiator::new(HASH, Methods::ALL, vec![0; 65_536], &mut random);
    assert_eq!(long.unwrap_err(), HandshakeError::InitialTooLong(65_536));
}

#[test]
fn a_peer_for_another_torrent_is_refused() {
    let (mut a, mut b) = (initiator(Methods::ALL, &[], 1), responder(Policy::Allow, 2));
    b.receive(&a.take_output(), |_| None).unwrap();
    a.receive(&b.take_output()).unwrap();
    let refused = b.receive(&a.take_output(), |_| None).unwrap_err();
    assert_eq!(refused, HandshakeError::UnknownTorrent);
}

/// What a side receives in a handshake that ends well.
fn transcripts() -> [Vec<Vec<u8>>; 2] {
    let mut transcripts = [Vec::new(), Vec::new()];
    for initial in [&b""[..], &[5; 68]] {
        let (mut a, mut b) = (
            initiator(Methods::ALL, initial, 1),
            responder(Policy::Prefer, 2),
        );
        let (mut to_a, mut to_b) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let (of_a, of_b) = (a.take_output(), b.take_output());
            b.receive(&of_a, find).unwrap();
            a.receive(&of_b).unwrap();
            to_b.extend(of_a);
            to_a.extend(of_b);
        }
        transcripts[0].push(to_a);
        transcripts[1].push(to_b);
    }
    transcripts
}

#[test]
fn any_bytes_end_a_handshake_or_fail_it() {
    let [to_a, to_b] = transcripts();
    fuzz(&to_a, |input| {
        let mut a = initiator(Methods::ALL, &[], 1);
        if let Ok(received) = a.receive(input) {
            assert!(received.used <= input.len());
        }
    });
    fuzz(&to_b, |input| {
        let mut b = responder(Policy::Prefer, 2);
        if let Ok(received) = b.receive(input, find) {
            assert!(received.used <= input.len());
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn both_ends_agree_whatever_the_pads_and_chunks(
        provided in 1..=3u32,
        prefers: bool,
        initial in prop::collection::vec(any::<u8>(), 0..200),
        data: [Vec<u8>; 2],
        longest in 1..700usize,
        seed: u64,
    ) {
        let provided = Methods(provided);
        let policy = if prefers { Policy::Prefer } else { Policy::Allow };
        let a = initiator(provided, &initial, seed);
        let b = responder(policy, seed.wrapping_add(1));
        let [of_a, of_b] = run(a, b, [&data[0], &data[1]], longest, seed).unwrap();
        let is_encrypted = |side: &(Established, Vec<u8>)| matches!(side.0.crypto, Crypto::Rc4(_));
        prop_assert_eq!(is_encrypted(&of_a), is_encrypted(&of_b));
        let expected = policy.select(provided) == Some(crate::policy::Method::Rc4);
        prop_assert_eq!(is_encrypted(&of_a), expected);
        prop_assert_eq!(opened(of_a), &data[1][..]);
        prop_assert_eq!(opened(of_b), [initial, data[0].clone()].concat());
    }
}
