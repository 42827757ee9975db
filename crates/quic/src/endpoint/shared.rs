//! What connections in and out of one endpoint need.

use std::sync::Arc;
use std::time::Instant;

use hawser_endhost::lanes::{Lane, Lanes};
use noq::ServerConfig;

use crate::accept_task::AcceptTask;
use crate::close::CloseReason;
use crate::config::Config;
use crate::congestion::Factory;
use crate::connection::Connection;
use crate::connection::inner::Inner;
use crate::progress::Progress;
use crate::tls::Identity;
use crate::transport::{Mtu, transport};

/// Most connections being set up at the same time; peers of more have to try again.
pub(super) const HANDSHAKES: usize = 256;
/// Bytes kept of what a peer sends before its connection is accepted.
const EARLY: u64 = 16 << 10;

pub(super) struct Shared {
    pub(super) quic: noq::Endpoint,
    pub(super) lanes: Lanes,
    pub(super) identity: Identity,
    pub(super) config: Config,
}

impl Shared {
    /// A connection that QUIC has set up since `began`.
    pub(super) fn connection(
        &self,
        quic: noq::Connection,
        lane: Lane,
        progress: Progress,
        task: Arc<AcceptTask>,
        began: Instant,
    ) -> Result<Connection, CloseReason> {
        // Packets got through both ways.
        lane.report_alive(began);
        let inner = Inner::new(quic, lane, progress, self.config.idle_timeout, task)?;
        Ok(Connection::new(inner))
    }
}

pub(super) fn server_config(
    identity: &Identity,
    config: &Config,
    mtu: Mtu,
    congestion: Factory,
) -> ServerConfig {
    let mut server = ServerConfig::with_crypto(Arc::clone(&identity.server) as _);
    server.transport_config(transport(config, mtu, congestion));
    // A connection stays on its path.
    server.migration(false);
    // Peers send again what does not fit before their connections are accepted.
    server
        .max_incoming(HANDSHAKES * 2)
        .incoming_buffer_size(EARLY)
        .incoming_buffer_size_total(EARLY * HANDSHAKES as u64);
    server
}
