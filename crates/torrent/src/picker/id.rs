//! Names of connections and peers.

/// A connection: one path-level peer.
pub(crate) type ConnId = u64;

/// All path-level peers of one peer.
pub(crate) type GroupId = u32;
