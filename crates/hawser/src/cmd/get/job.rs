//! What is downloaded, and as which arguments say.

use crate::cli::GetArgs;
use crate::cmd::network::Addresses;

/// A download and its arguments.
pub struct Job {
    /// The torrent's name.
    pub name: String,
    /// Its info-hash, in hex.
    pub info_hash: String,
    /// Bytes of all files.
    pub bytes: u64,
    /// Where peers connect.
    pub addresses: Addresses,
    /// The arguments.
    pub args: GetArgs,
}
