//! QUIC's settings.

use std::sync::Arc;
use std::time::Duration;

use noq::{MtuDiscoveryConfig, TransportConfig, VarInt};

use crate::config::Config;
use crate::congestion::Factory;

/// The smallest packet QUIC is made for (RFC 9000, 14).
pub(crate) const MIN_MTU: u16 = 1200;
/// Full packets a peer may send ahead on one stream. noq 1.4.0 keeps 1024 pieces of a stream that
/// are not read yet, never joins those of full packets, and ends the connection when there are
/// more: because one packet is missing, or because nobody reads for a while. Some are left for
/// pieces of other sizes.
const STREAM_PACKETS: u32 = 960;
/// What a peer may send ahead on all streams of a connection: what a connection costs in memory.
const CONNECTION_WINDOW: u32 = 8 << 20;
/// How long a round trip is taken to be before one was seen. Three times that passes before the
/// first packet is sent again; on a path that is longer, once too often.
const FIRST_RTT: Duration = Duration::from_millis(100);

/// How large packets may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mtu {
    /// The path's announced MTU leaves so many bytes to QUIC.
    Known(u16),
    /// The path is unknown here: to be found out, up to so many bytes.
    UpTo(u16),
}

/// Settings for one connection, whose path takes packets of `mtu`.
pub(crate) fn transport(config: &Config, mtu: Mtu, congestion: Factory) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    let idle = VarInt::try_from(config.idle_timeout.as_millis()).unwrap_or(VarInt::MAX);
    transport
        .max_concurrent_bidi_streams(config.max_streams.into())
        .max_concurrent_uni_streams(0u32.into())
        .max_idle_timeout(Some(idle.into()))
        .keep_alive_interval(config.keep_alive)
        .initial_rtt(FIRST_RTT)
        .congestion_controller_factory(Arc::new(congestion))
        .stream_receive_window(stream_window(mtu).into())
        .receive_window(CONNECTION_WINDOW.into())
        .send_window(CONNECTION_WINDOW.into())
        .datagram_receive_buffer_size(None)
        // Fewer acknowledgements would save work, but noq 1.4.0 writes the frame that asks for them
        // without looking whether it fits: a lost handshake packet then ends in a panic.
        .ack_frequency_config(None);
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

/// What a peer may send ahead on one stream, in bytes.
fn stream_window(mtu: Mtu) -> u32 {
    let packet = match mtu {
        Mtu::Known(mtu) => mtu,
        Mtu::UpTo(_) => MIN_MTU,
    };
    (STREAM_PACKETS * u32::from(packet)).min(CONNECTION_WINDOW)
}
