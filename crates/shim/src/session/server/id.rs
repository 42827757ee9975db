//! How sessions of other hosts are told apart.

use hawser_keys::PeerKey;

/// Which session: that of the host with this key which it has given this tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SessionId {
    pub key: PeerKey,
    pub tag: u64,
}
