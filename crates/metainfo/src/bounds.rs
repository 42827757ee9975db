//! Bounds of what is read from torrents, and of what is made.

/// Largest `.torrent` read, in bytes.
pub const MAX_METAINFO_BYTES: usize = 16 << 20;
/// Largest `.torrent` made, in bytes.
pub const MAX_CREATED_BYTES: usize = 10 << 20;
/// Smallest piece length accepted, in bytes.
pub const MIN_PIECE_LENGTH: u32 = 1 << 10;
/// Largest piece length accepted, in bytes.
pub const MAX_PIECE_LENGTH: u32 = 128 << 20;
