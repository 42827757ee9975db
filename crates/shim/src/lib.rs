//! Unmodified TCP programs over several SCION paths.

pub mod map;

/// The UDP port of a shim, unless its host's entry in the map names another one. It is in the range
/// of ports that routers deliver to (31000 to 32767).
pub const DEFAULT_PORT: u16 = 31800;
