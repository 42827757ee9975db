//! The side that dials.

use fastrand::Rng;

use super::input::Input;
use super::outcome::{Ciphers, Crypto, Established, HandshakeError, Received};
use super::{MAX_PAD, VC, random_pad};
use crate::cipher::{Cipher, SkeyHash, sync_hash};
use crate::dh::{KEY_BYTES, PrivateKey};
use crate::policy::{Method, Methods};

/// What is awaited.
#[derive(Debug, Clone, Copy)]
enum State {
    /// The key of the peer.
    Key,
    /// The verification constant, after the pad: how it is encrypted.
    Constant([u8; VC.len()]),
    /// The method selected, and the length of the second pad.
    Select,
    /// The second pad, of this length.
    Pad(usize, Method),
    /// Nothing.
    Over,
}

/// The handshake of the side that dials: send [`Self::take_output`], report what is received, and
/// so on.
#[derive(Debug)]
pub struct Initiator {
    info_hash: [u8; 20],
    provided: Methods,
    key: PrivateKey,
    /// Length of the second pad.
    pad: u16,
    initial: Vec<u8>,
    ciphers: Option<Box<Ciphers>>,
    state: State,
    input: Input,
    output: Vec<u8>,
}

impl Initiator {
    /// Begins. `initial` is the beginning of the data to send (IA), which then travels with the
    /// handshake; it may be empty. `provided` are the methods offered.
    ///
    /// # Errors
    /// If `initial` is longer than 65,535 bytes.
    pub fn new(
        info_hash: [u8; 20],
        provided: Methods,
        initial: Vec<u8>,
        random: &mut Rng,
    ) -> Result<Self, HandshakeError> {
        if initial.len() > usize::from(u16::MAX) {
            return Err(HandshakeError::InitialTooLong(initial.len()));
        }
        let key = PrivateKey::random(random);
        let output = [&key.public()[..], &random_pad(random)].concat();
        Ok(Self {
            info_hash,
            provided,
            key,
            pad: random.u16(..=MAX_PAD as u16),
            initial,
            ciphers: None,
            state: State::Key,
            input: Input::default(),
            output,
        })
    }

    /// The bytes to send now.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Takes received bytes. Once it has ended or failed it takes none.
    ///
    /// # Errors
    /// If the peer does not follow the protocol, or accepts no method offered.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Received, HandshakeError> {
        let mut rest = bytes;
        let result = self.take(&mut rest);
        if !matches!(result, Ok(None)) {
            self.state = State::Over;
        }
        Ok(Received {
            established: result?,
            used: bytes.len() - rest.len(),
        })
    }

    fn take(&mut self, rest: &mut &[u8]) -> Result<Option<Established>, HandshakeError> {
        loop {
            match self.state {
                State::Key => {
                    let Some(key) = self.input.take_array(rest) else {
                        return Ok(None);
                    };
                    let constant = self.answer(&key)?;
                    self.state = State::Constant(constant);
                }
                State::Constant(constant) => {
                    if !self.input.seek(rest, &constant)? {
                        return Ok(None);
                    }
                    self.state = State::Select;
                }
                State::Select => {
                    let Some(bytes) = self.input.take(rest, 6) else {
                        return Ok(None);
                    };
                    let [a, b, c, d, e, f] = self.decrypt(bytes)[..] else {
                        return Ok(None);
                    };
                    let selected = Methods(u32::from_be_bytes([a, b, c, d]));
                    let method = selected.single().filter(|it| self.provided.has(*it));
                    let method = method.ok_or(HandshakeError::Selected(selected.0))?;
                    let pad = u16::from_be_bytes([e, f]);
                    if usize::from(pad) > MAX_PAD {
                        return Err(HandshakeError::Pad(pad));
                    }
                    self.state = State::Pad(pad.into(), method);
                }
                State::Pad(pad, method) => {
                    let Some(bytes) = self.input.take(rest, pad) else {
                        return Ok(None);
                    };
                    self.decrypt(bytes);
                    let ciphers = self.ciphers.take();
                    let crypto = match method {
                        Method::Plain => Some(Crypto::Plain),
                        Method::Rc4 => ciphers.map(Crypto::Rc4),
                    };
                    return Ok(crypto.map(|crypto| Established {
                        info_hash: self.info_hash,
                        crypto,
                        initial: Vec::new(),
                    }));
                }
                State::Over => return Ok(None),
            }
        }
    }

    fn decrypt(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        if let Some(ciphers) = &mut self.ciphers {
            ciphers.read.apply(&mut bytes);
        }
        bytes
    }

    /// Answers the key of the peer. Returns what the peer's encrypted part begins with.
    fn answer(&mut self, key: &[u8; KEY_BYTES]) -> Result<[u8; VC.len()], HandshakeError> {
        let secret = self.key.secret(key).ok_or(HandshakeError::Key)?;
        let mut ciphers = Ciphers {
            read: Cipher::of_responder(&secret, &self.info_hash),
            write: Cipher::of_initiator(&secret, &self.info_hash),
        };
        let mut constant = VC;
        ciphers.read.apply(&mut constant);

        let initial = std::mem::take(&mut self.initial);
        let mut encrypted = Vec::new();
        encrypted.extend_from_slice(&VC);
        encrypted.extend_from_slice(&self.provided.0.to_be_bytes());
        encrypted.extend_from_slice(&self.pad.to_be_bytes());
        encrypted.resize(encrypted.len() + usize::from(self.pad), 0);
        encrypted.extend_from_slice(&(initial.len() as u16).to_be_bytes());
        encrypted.extend_from_slice(&initial);
        ciphers.write.apply(&mut encrypted);
        self.output.extend_from_slice(&sync_hash(&secret));
        let shown = SkeyHash::of(&self.info_hash).mask(&secret);
        self.output.extend_from_slice(&shown.0);
        self.output.extend_from_slice(&encrypted);
        self.ciphers = Some(Box::new(ciphers));
        Ok(constant)
    }

    /// Number of received bytes that it keeps.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.input.len()
    }
}
