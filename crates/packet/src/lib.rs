//! SCION, UDP and SCMP bytes: headers, paths, hop MACs, messages and checksums, read and written in
//! place.
//!
//! Routers and hosts handle hundreds of thousands of packets a second, so nothing here allocates
//! per packet, except for SCMP messages. Sources: SCION header specification; SCMP specification;
//! for hop MACs, SCION dataplane specification. Packets, paths and MACs of other implementations
//! stand recorded in the tests.

mod bytes;
mod checksum;
pub mod header;
mod malformed;
pub mod number;
mod packet;
pub mod path;
mod quote;
pub mod scmp;
mod template;
#[cfg(test)]
mod testing;

pub use self::checksum::Checksum;
pub use self::header::{Header, Host};
pub use self::malformed::{HeaderLength, Malformed, MalformedPath};
pub use self::packet::{Packet, UDP_HEADER, Udp};
pub use self::quote::Quote;
pub use self::scmp::{Body, Scmp, ScmpError};
pub use self::template::Template;
