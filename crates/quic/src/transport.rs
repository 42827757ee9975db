//! QUIC's settings.

use std::sync::Arc;
use std::time::Duration;

use noq::{AckFrequencyConfig, MtuDiscoveryConfig, TransportConfig, VarInt};

use crate::config::Config;

/// The smallest packet QUIC is made for (RFC 9000, 14).
pub(crate) const MIN_MTU: u16 = 1200;
/// What a peer may send ahead on one stream. With more, one lost packet at a long round-trip time
/// leaves the receiver with more gaps than it keeps, which ends the connection.
const STREAM_WINDOW: u32 = 4 << 20;
/// What a peer may send ahead on all streams of a connection: what a connection costs in memory.
const CONNECTION_WINDOW: u32 = 8 << 20;
/// Packets a peer may receive before it has to acknowledge. At ten, acknowledgements cost a
/// twentieth of what they cost at two, and a 10 Mbit/s link still carries one every 12 ms.
const ACK_EVERY: u32 = 10;
/// How long a peer may wait for more packets before it acknowledges.
const ACK_DELAY: Duration = Duration::from_millis(10);

/// How large packets may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mtu {
    /// The path's announced MTU leaves so many bytes to QUIC.
    Known(u16),
    /// The path is unknown here: to be found out, up to so many bytes.
    UpTo(u16),
}

/// Settings for one connection, whose path takes packets of `mtu`.
pub(crate) fn transport(config: &Config, mtu: Mtu) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    let idle = VarInt::try_from(config.idle_timeout.as_millis()).unwrap_or(VarInt::MAX);
    let mut acks = AckFrequencyConfig::default();
    acks.ack_eliciting_threshold(ACK_EVERY.into())
        .max_ack_delay(Some(ACK_DELAY));
    transport
        .max_concurrent_bidi_streams(config.max_streams.into())
        .max_concurrent_uni_streams(0u32.into())
        .max_idle_timeout(Some(idle.into()))
        .keep_alive_interval(config.keep_alive)
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(CONNECTION_WINDOW.into())
        .send_window(CONNECTION_WINDOW.into())
        .datagram_receive_buffer_size(None)
        .ack_frequency_config(Some(acks));
    match mtu {
        // Announced by those who know: neither searched for nor ever given up.
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
