//! Message Stream Encryption (MSE, also called protocol encryption, PE), which many BitTorrent
//! programs use over TCP. Source: Vuze's wiki, "Message Stream Encryption".
//!
//! It hides the protocol from those who look at packets. It is no protection from anybody who knows
//! the info-hash, or who answers in the place of the peer: RC4 is weak, the numbers are short, and
//! nobody is authenticated. So the random numbers of [`fastrand`] are good enough for it.
//!
//! - [`Initiator`], [`Responder`]: the two sides of the handshake. Bytes in, bytes out; no I/O.
//! - [`Cipher`]: one direction of an encrypted stream.
//! - [`Policy`]: which connections are encrypted, and [`sniff()`]: whether one that was accepted is.

mod cipher;
mod dh;
mod handshake;
mod policy;
mod sniff;

pub use self::cipher::{Cipher, SkeyHash};
pub use self::handshake::{
    Ciphers, Crypto, Established, HandshakeError, Initiator, Received, Responder,
};
pub use self::policy::{Method, Methods, Policy, PolicyParseError, Wire};
pub use self::sniff::{Sniffed, sniff};
