//! Names of hosts.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::time::timeout;

use crate::error::AnnounceError;

/// Longest wait for the addresses of a name.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(20);

/// The addresses of a host, at least one.
pub(super) async fn resolve(name: &str, port: u16) -> Result<Vec<SocketAddr>, AnnounceError> {
    let failed = |error| AnnounceError::Resolve {
        host: name.to_owned(),
        error,
    };
    let found = timeout(RESOLVE_TIMEOUT, lookup_host((name, port))).await;
    let found = found.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let addrs: Vec<_> = found.map_err(failed)?.collect();
    match addrs.is_empty() {
        true => Err(failed(io::ErrorKind::NotFound.into())),
        false => Ok(addrs),
    }
}
