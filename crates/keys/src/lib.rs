//! The keys of hosts (`docs/bulk-protocol.md`, *Keys*).
//!
//! - [`Identity`]: this host's key pair; [`KeyFile`]: where it is kept.
//! - [`PeerKey`]: what names the key of another host. [`Allowed`] are those that a server lets
//!   connect, [`Known`] those by which a client recognises servers.
//! - [`Revocations`]: which keys in use are no longer among them.
//! - [`Code`]: the short code in place of keys, and the [`Exchange`] that proves it.
//! - [`Trust`]: which of them a client uses.

mod allowed;
mod code;
mod exchange;
mod file;
mod folder;
#[cfg(test)]
mod fuzz;
mod identity;
mod key_file;
mod known;
mod peer_key;
mod revocation;
mod spake2;
mod trust;

pub use self::allowed::{Allowed, StillAllowed};
pub use self::code::{Code, CodeError, NoRandom};
pub use self::exchange::{CODE_EXPORTER, Confirmation, Exchange, Side, WrongCode};
pub use self::file::KeysFileError;
pub use self::folder::{NoFolder, folder};
pub use self::identity::{CertificateError, Identity, KeyError};
pub use self::key_file::{KeyFile, KeyFileError};
pub use self::known::{Known, ServerKeyError};
pub use self::peer_key::{PeerKey, PeerKeyError};
pub use self::revocation::Revocations;
pub use self::spake2::ELEMENT;
pub use self::trust::Trust;
