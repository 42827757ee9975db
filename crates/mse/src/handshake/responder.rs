//! The side that accepts.

use fastrand::Rng;

use super::input::Input;
use super::outcome::{Ciphers, Crypto, Established, HandshakeError, Received};
use super::{MAX_PAD, VC, random_pad};
use crate::cipher::{Cipher, SkeyHash, sync_hash};
use crate::dh::{KEY_BYTES, PrivateKey};
use crate::policy::{Method, Methods, Policy};

/// What is awaited.
#[derive(Debug, Clone, Copy)]
enum State {
    /// The key of the peer.
    Key,
    /// The hash of the secret, after the pad.
    Sync,
    /// The masked hash of the info-hash.
    Skey,
    /// The verification constant, the methods offered, and the length of the second pad.
    Provide,
    /// The second pad, of this length, and the length of the initial payload.
    Pad(usize, Method),
    /// The initial payload, of this length.
    Initial(usize, Method),
    /// Nothing.
    Over,
}

/// The handshake of the side that accepts: report what is received, send [`Self::take_output`], and
/// so on.
#[derive(Debug)]
pub struct Responder {
    policy: Policy,
    key: PrivateKey,
    first_pad: Vec<u8>,
    /// Length of the second pad.
    second_pad: u16,
    secret: [u8; KEY_BYTES],
    info_hash: [u8; 20],
    ciphers: Option<Box<Ciphers>>,
    state: State,
    input: Input,
    output: Vec<u8>,
}

impl Responder {
    /// Begins. `policy` says which of the methods offered is selected.
    pub fn new(policy: Policy, random: &mut Rng) -> Self {
        Self {
            policy,
            key: PrivateKey::random(random),
            first_pad: random_pad(random),
            second_pad: random.u16(..=MAX_PAD as u16),
            secret: [0; KEY_BYTES],
            info_hash: [0; 20],
            ciphers: None,
            state: State::Key,
            input: Input::default(),
            output: Vec::new(),
        }
    }

    /// The bytes to send now.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Takes received bytes. Once it has ended or failed it takes none. `find` says which info-hash
    /// the peer means, if it is known here; see [`SkeyHash::find`].
    ///
    /// # Errors
    /// If the peer does not follow the protocol, means no known torrent, or offers no method that
    /// the policy accepts.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        find: impl FnMut(SkeyHash) -> Option<[u8; 20]>,
    ) -> Result<Received, HandshakeError> {
        let mut rest = bytes;
        let result = self.take(&mut rest, find);
        if !matches!(result, Ok(None)) {
            self.state = State::Over;
        }
        Ok(Received {
            established: result?,
            used: bytes.len() - rest.len(),
        })
    }

    fn take(
        &mut self,
        rest: &mut &[u8],
        mut find: impl FnMut(SkeyHash) -> Option<[u8; 20]>,
    ) -> Result<Option<Established>, HandshakeError> {
        loop {
            match self.state {
                State::Key => {
                    let Some(key) = self.input.take_array(rest) else {
                        return Ok(None);
                    };
                    self.secret = self.key.secret(&key).ok_or(HandshakeError::Key)?;
                    self.output.extend_from_slice(&self.key.public());
                    self.output.append(&mut self.first_pad);
                    self.state = State::Sync;
                }
                State::Sync => {
                    if !self.input.seek(rest, &sync_hash(&self.secret))? {
                        return Ok(None);
                    }
                    self.state = State::Skey;
                }
                State::Skey => {
                    let Some(masked) = self.input.take_array(rest) else {
                        return Ok(None);
                    };
                    let shown = SkeyHash(masked).mask(&self.secret);
                    self.info_hash = find(shown).ok_or(HandshakeError::UnknownTorrent)?;
                    self.ciphers = Some(Box::new(Ciphers {
                        read: Cipher::of_initiator(&self.secret, &self.info_hash),
                        write: Cipher::of_responder(&self.secret, &self.info_hash),
                    }));
                    self.state = State::Provide;
                }
                State::Provide => {
                    let Some(bytes) = self.input.take(rest, VC.len() + 6) else {
                        return Ok(None);
                    };
                    let bytes = self.decrypt(bytes);
                    let Some((VC, &[a, b, c, d, e, f])) = split(&bytes) else {
                        return Err(HandshakeError::Constant);
                    };
                    let provided = Methods(u32::from_be_bytes([a, b, c, d]));
                    let method = self.policy.select(provided);
                    let method = method.ok_or(HandshakeError::Provided(provided.0))?;
                    let pad = u16::from_be_bytes([e, f]);
                    if usize::from(pad) > MAX_PAD {
                        return Err(HandshakeError::Pad(pad));
                    }
                    self.state = State::Pad(pad.into(), method);
                }
                State::Pad(pad, method) => {
                    let Some(bytes) = self.input.take(rest, pad + 2) else {
                        return Ok(None);
                    };
                    let bytes = self.decrypt(bytes);
                    let length = bytes.last_chunk().map(|it| u16::from_be_bytes(*it));
                    self.answer(method);
                    self.state = State::Initial(length.unwrap_or(0).into(), method);
                }
                State::Initial(length, method) => {
                    let Some(bytes) = self.input.take(rest, length) else {
                        return Ok(None);
                    };
                    let initial = self.decrypt(bytes);
                    let ciphers = self.ciphers.take();
                    let crypto = match method {
                        Method::Plain => Some(Crypto::Plain),
                        Method::Rc4 => ciphers.map(Crypto::Rc4),
                    };
                    return Ok(crypto.map(|crypto| Established {
                        info_hash: self.info_hash,
                        crypto,
                        initial,
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

    /// Answers the methods offered.
    fn answer(&mut self, method: Method) {
        let begin = self.output.len();
        self.output.extend_from_slice(&VC);
        self.output
            .extend_from_slice(&Methods::from(method).0.to_be_bytes());
        self.output
            .extend_from_slice(&self.second_pad.to_be_bytes());
        let end = self.output.len() + usize::from(self.second_pad);
        self.output.resize(end, 0);
        if let Some(ciphers) = &mut self.ciphers {
            ciphers.write.apply(&mut self.output[begin..]);
        }
    }

    /// Number of received bytes that it keeps.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.input.len()
    }
}

/// The verification constant and what follows it.
fn split(bytes: &[u8]) -> Option<([u8; VC.len()], &[u8; 6])> {
    let (constant, rest) = bytes.split_first_chunk()?;
    Some((*constant, rest.first_chunk()?))
}
