//! How addresses of peers are found.

use std::fmt;

/// How the address of a peer was found, the most trusted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum PeerSource {
    /// A person named it, on the command line or in a magnet link.
    Listed,
    /// A tracker (BEPs 3 and 15).
    Tracker,
    /// Local discovery (BEP 14).
    Local,
    /// The DHT (BEP 5).
    Dht,
    /// Another peer (BEP 11, and `scion_pex` for SCION peers).
    Exchange,
}

impl fmt::Display for PeerSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Listed => "listed",
            Self::Tracker => "tracker",
            Self::Local => "local discovery",
            Self::Dht => "DHT",
            Self::Exchange => "peer exchange",
        })
    }
}
