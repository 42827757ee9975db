//! The settings of endpoints and connections.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hawser_congestion::Congestion;
use hawser_kernel::pace::BusyPoll;
use hawser_keys::Identity;
use noq_proto::{MtuDiscoveryConfig, TransportConfig, VarInt};

use crate::congestion::Factory;
use crate::driver;

/// The smallest packet size that QUIC works with, in bytes (RFC 9000, 14).
///
/// SCION's smallest MTU, 1280 bytes, leaves less than that after the headers. As with scionproto's
/// programs, packets are then larger than the path's MTU, and the IP below fragments them.
pub(crate) const MIN_MTU: u16 = 1200;
/// Most streams the peer may have open at a time.
const MAX_STREAMS: u32 = 100;
/// The round-trip time assumed until one is measured. The first packet is sent again after three
/// times that, needlessly where the path is longer.
const INITIAL_RTT: Duration = Duration::from_millis(100);

/// Settings of an endpoint. The defaults suit a file transfer between sites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The key to show to peers. By default the endpoint makes one for itself, which ends with it.
    pub identity: Option<Identity>,
    /// The application protocol both sides must name (TLS ALPN). Each protocol sets its own; `hawser` by
    /// default, for tests and examples.
    pub alpn: Vec<u8>,
    /// How long a connection stays open without a packet from the peer; 10 s by default. The
    /// shorter of both sides' settings counts.
    pub idle_timeout: Duration,
    /// Longest time for setting a connection up, without that in which this process did not run; 5 s by
    /// default.
    pub handshake_timeout: Duration,
    /// Time without other packets after which one is sent to keep the connection alive; 250 ms by
    /// default, `None` for never.
    ///
    /// A router reports a dead link only in answer to a packet, so this bounds the time in which a
    /// side that only receives does not notice one.
    pub keep_alive: Option<Duration>,
    /// Threads that decrypt and answer packets beside the one that receives them, each for
    /// connections of its own. By default a quarter of the processors, 7 at most: none below four.
    pub workers: usize,
    /// How connections control congestion; [`Congestion::Auto`] by default.
    pub congestion: Congestion,
    /// Bytes of streams that a connection takes at least and keeps until they are acknowledged,
    /// however small its congestion window is; 1 MiB by default. What it takes can no longer be sent
    /// over another connection.
    pub least_send_window: u64,
    /// Bytes of datagrams (RFC 9221) that may wait to be read, and as many to be sent; the oldest are
    /// dropped for new ones. `None` by default: the peer may not send any.
    pub datagrams: Option<usize>,
    /// How long the thread that receives looks for packets again at once after traffic, before it waits;
    /// changes of it hold at once. Off by default.
    pub busy_poll: BusyPoll,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            identity: None,
            alpn: b"hawser".to_vec(),
            idle_timeout: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(5),
            keep_alive: Some(Duration::from_millis(250)),
            workers: thread::available_parallelism()
                .map_or(0, |count| count.get() / 4)
                .min(7),
            congestion: Congestion::Auto,
            least_send_window: 1 << 20,
            datagrams: None,
            busy_poll: BusyPoll::default(),
        }
    }
}

/// How large packets may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mtu {
    /// The QUIC packet size that the path's announced MTU allows, in bytes.
    Known(u16),
    /// The path is unknown here: the size is searched for, up to this one, in bytes.
    UpTo(u16),
}

/// Settings for one connection, whose path takes packets of `mtu`.
pub(crate) fn transport(config: &Config, mtu: Mtu, congestion: Factory) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    let idle = VarInt::try_from(config.idle_timeout.as_millis()).unwrap_or(VarInt::MAX);
    let window = |bytes| VarInt::try_from(bytes).unwrap_or(VarInt::MAX);
    transport
        .max_concurrent_bidi_streams(MAX_STREAMS.into())
        .max_concurrent_uni_streams(0u32.into())
        .max_idle_timeout(Some(idle.into()))
        .keep_alive_interval(config.keep_alive)
        .initial_rtt(INITIAL_RTT)
        .congestion_controller_factory(Arc::new(congestion))
        // The driver adapts the connection's window, which bounds what all its streams hold.
        .stream_receive_window(window(driver::MAX_WINDOW))
        .receive_window(window(driver::MIN_WINDOW))
        .datagram_receive_buffer_size(config.datagrams)
        .datagram_send_buffer_size(config.datagrams.unwrap_or_default())
        // Fewer acknowledgements would save work, but noq 1.4.0 writes the frame that requests them
        // without checking that it fits: after a lost handshake packet it panics.
        .ack_frequency_config(None);
    match mtu {
        // The ASes on the path announce the MTU: it is neither searched for nor reduced.
        Mtu::Known(mtu) => transport
            .initial_mtu(mtu)
            .min_mtu(mtu)
            .mtu_discovery_config(None),
        Mtu::UpTo(mtu) => {
            let mut discovery = MtuDiscoveryConfig::default();
            discovery.upper_bound(mtu);
            transport.mtu_discovery_config(Some(discovery))
        }
    };
    Arc::new(transport)
}
