//! Requests over UDP, and over SCION/UDP.

use std::sync::Arc;

use hawser_tracker::udp_reply;
use tokio::time::{Instant, sleep};

use super::shared::Shared;
use crate::datagrams::{Datagrams, RECEIVE_RETRY_INTERVAL};

/// Answers requests.
pub(super) async fn serve(socket: Arc<dyn Datagrams>, swarms: Shared) {
    loop {
        let Ok((from, packet)) = socket.receive().await else {
            sleep(RECEIVE_RETRY_INTERVAL).await;
            continue;
        };
        let reply = udp_reply(&mut swarms.lock(), from, &packet, Instant::now().into_std());
        // A client whose answer is lost asks again.
        if let Some(reply) = reply
            && let Err(error) = socket.send(from, &reply).await
        {
            tracing::debug!("an answer to {from} could not be sent: {error}");
        }
    }
}
