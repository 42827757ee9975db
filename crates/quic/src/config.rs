//! The settings of an endpoint.

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

    /// How long a connection stays open without a packet from the peer; 10 s unless set. The shorter
    /// of both sides' settings counts.
    pub fn with_idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Longest time for setting a connection up; 5 s unless set.
    pub fn with_handshake_timeout(mut self, timeout: Duration) -> Self {
        self.handshake_timeout = timeout;
        self
    }

    /// After which time without other packets to send one to keep the connection alive; 250 ms unless
    /// set, `None` for never.
    ///
    /// A router reports a dead link only in answer to a packet, so this bounds how long a side that
    /// only receives does not notice one.
    pub fn with_keep_alive(mut self, interval: Option<Duration>) -> Self {
        self.keep_alive = interval;
        self
    }

    /// Most streams the peer may have open at a time; 100 unless set.
    pub fn with_max_streams(mut self, streams: u32) -> Self {
        self.max_streams = streams;
        self
    }
}
