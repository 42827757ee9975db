//! What handshakes end with.

use thiserror::Error;

use crate::cipher::Cipher;

/// The ciphers of a connection.
#[derive(Debug)]
pub struct Ciphers {
    /// For bytes that are received.
    pub read: Cipher,
    /// For bytes to send.
    pub write: Cipher,
}

/// How data is sent after the handshake.
#[derive(Debug)]
pub enum Crypto {
    /// As it is.
    Plain,
    /// Encrypted with RC4.
    Rc4(Box<Ciphers>),
}

/// A handshake that has ended well.
#[derive(Debug)]
pub struct Established {
    /// The torrent.
    pub info_hash: [u8; 20],
    /// How data is sent and received from now on.
    pub crypto: Crypto,
    /// The first bytes of the stream that the peer sends, decrypted (IA): up to 65,535. Only the
    /// side that dialed can send some.
    pub initial: Vec<u8>,
}

/// What became of bytes that were received.
#[derive(Debug)]
pub struct Received {
    /// How many of them belong to the handshake. Those after its end are data: to be decrypted, if
    /// data is encrypted.
    pub used: usize,
    /// The end of the handshake, once.
    pub established: Option<Established>,
}

/// Why a handshake failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The initial payload does not fit.
    #[error("an initial payload of {0} bytes: it may have 65535")]
    InitialTooLong(usize),
    /// The first bytes are not a key with which a secret can be made.
    #[error("the peer sent no key for an encrypted connection")]
    Key,
    /// What follows the first pad did not come.
    #[error("the peer does not continue the encrypted handshake, or is there for another torrent")]
    NoSync,
    /// The peer names a torrent that is not known.
    #[error("the peer asks for a torrent that is not served here")]
    UnknownTorrent,
    /// The encrypted part does not begin with the verification constant.
    #[error("the encrypted handshake of the peer cannot be decrypted")]
    Constant,
    /// A pad is longer than 512 bytes.
    #[error("a pad of {0} bytes in the encrypted handshake: it may have 512")]
    Pad(u16),
    /// The peer offers no method that the policy accepts.
    #[error("the peer offers methods of encryption {0:#x}: none is accepted here")]
    Provided(u32),
    /// The peer selected something else than one of the methods offered.
    #[error("the peer selected methods of encryption {0:#x}, which were not offered")]
    Selected(u32),
}
