//! The metrics of the daemon.

use std::collections::BTreeMap;

use hawser_http::{MetricKind, Metrics};

use super::Daemon;
use crate::error::ClientError;

/// The metrics, as Prometheus reads them.
///
/// # Errors
/// [`ClientError::Stopping`].
pub(super) async fn text(daemon: &Daemon) -> Result<String, ClientError> {
    let client = &daemon.inner.client;
    let (views, transferred) = (client.views().await?, client.transferred().await?);
    let (mut counts, mut down, mut up, mut peers) = (BTreeMap::new(), 0, 0, 0);
    for view in &views {
        *counts.entry(view.status.name()).or_insert(0_usize) += 1;
        let rates = view.rates();
        down += rates.down;
        up += rates.up;
        peers += rates.peers;
    }
    let mut metrics = Metrics::default();
    let (gauge, counter) = (MetricKind::Gauge, MetricKind::Counter);
    let mut torrents = metrics.add(
        "hawser_daemon_torrents",
        gauge,
        "Torrents, by what they do.",
    );
    for (status, count) in &counts {
        torrents.value(&[("status", status)], count);
    }
    for (name, kind, help, value) in [
        (
            "hawser_daemon_peers",
            gauge,
            "Path-level peers that are connected.",
            peers as u64,
        ),
        (
            "hawser_daemon_download_bits_per_second",
            gauge,
            "Rate of blocks received.",
            down,
        ),
        (
            "hawser_daemon_upload_bits_per_second",
            gauge,
            "Rate of blocks sent.",
            up,
        ),
        (
            "hawser_daemon_downloaded_bytes_total",
            counter,
            "Bytes of blocks received since the start.",
            transferred.downloaded,
        ),
        (
            "hawser_daemon_uploaded_bytes_total",
            counter,
            "Bytes of blocks sent since the start.",
            transferred.uploaded,
        ),
    ] {
        metrics.add(name, kind, help).value(&[], value);
    }
    Ok(metrics.into_text())
}
