//! Sealed datagrams: keys, numbers, and the replay window (`docs/bulk-protocol.md`, *Keys* and
//! *Datagrams*).
//!
//! A [`Sealer`] numbers, encrypts and authenticates the packets of one direction of a subflow, an
//! [`Opener`] at the other end gives each of them back once. What packets carry is their user's: a
//! payload of any bytes, and a [`Kind`] in clear text.

mod cipher;
mod header;
mod keys;
mod opener;
mod sealer;
mod window;

#[cfg(test)]
mod tests;

pub use self::cipher::Cipher;
pub use self::header::{HEADER, Kind, SubflowId, kind, subflow_id};
pub use self::keys::SECRET;
pub use self::opener::{Opened, Opener, Rejected, Rejections};
pub use self::sealer::Sealer;

/// Bytes of the authentication tag at the end of each packet.
pub const TAG: usize = 16;
