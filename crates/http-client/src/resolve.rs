//! Names of hosts.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::time::timeout;

/// Longest wait for the addresses of a name.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(20);

/// The addresses of a host, at least one.
///
/// # Errors
/// If it has none, or they are not known within 20 s.
pub async fn resolve(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let found = timeout(RESOLVE_TIMEOUT, lookup_host((name, port))).await;
    let found = found.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let addrs: Vec<_> = found?.collect();
    match addrs.is_empty() {
        true => Err(io::ErrorKind::NotFound.into()),
        false => Ok(addrs),
    }
}
