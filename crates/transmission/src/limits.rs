//! Bounds, times and versions of the RPC.

use std::time::Duration;

/// The most bytes of a request: metainfo of 24 MiB in base64. An answer has no bound but the
/// torrents there are.
pub const MAX_BODY: usize = 32 << 20;

/// The most values of a request, such as indices of files. A value may take a hundred times the
/// memory of its text.
pub const MAX_VALUES: usize = 1 << 18;

/// How long a change makes a torrent recently active, and a removed one is listed.
pub const RECENT: Duration = Duration::from_secs(60);

/// The version of the RPC, `rpc-version-semver`.
pub const RPC_VERSION: &str = "6.0.0";
