//! What a QUIC endpoint can be told.

use std::time::Duration;

/// Settings of an endpoint. The defaults suit a file transfer between sites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    pub(crate) alpn: Vec<u8>,
    pub(crate) idle_timeout: Duration,
    pub(crate) handshake_timeout: Duration,
    pub(crate) keep_alive: Option<Duration>,
    pub(crate) max_streams: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            alpn: b"hawser-bt/1".to_vec(),
            idle_timeout: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(5),
            keep_alive: Some(Duration::from_millis(250)),
            max_streams: 100,
        }
    }
}

impl Config {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The application protocol both sides must name (TLS ALPN); `hawser-bt/1` unless set.
    pub fn with_alpn(mut self, alpn: impl Into<Vec<u8>>) -> Self {
        self.alpn = alpn.into();
        self
    }

    /// How long a connection may hear nothing before it counts as dead; 10 s unless set. The
    /// shorter of both sides' settings counts.
    pub fn with_idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// How long setting a connection up may take; 5 s unless set.
    pub fn with_handshake_timeout(mut self, timeout: Duration) -> Self {
        self.handshake_timeout = timeout;
        self
    }

    /// How long to be silent before sending a sign of life; 250 ms unless set, `None` for never.
    ///
    /// A router tells of a dead link only when a packet wants over it, so this bounds how long a
    /// side that only receives goes without noticing.
    pub fn with_keep_alive(mut self, interval: Option<Duration>) -> Self {
        self.keep_alive = interval;
        self
    }

    /// How many streams the peer may have open at a time; 100 unless set.
    pub fn with_max_streams(mut self, streams: u32) -> Self {
        self.max_streams = streams;
        self
    }
}
