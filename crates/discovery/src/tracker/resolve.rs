//! Names of hosts.

use std::io;
use std::net::SocketAddr;

use tokio::net::lookup_host;

use crate::error::AnnounceError;

/// The addresses of a host, at least one.
pub(super) async fn resolve(name: &str, port: u16) -> Result<Vec<SocketAddr>, AnnounceError> {
    let failed = |error| AnnounceError::Resolve {
        host: name.to_owned(),
        error,
    };
    let addrs: Vec<_> = lookup_host((name, port)).await.map_err(failed)?.collect();
    match addrs.is_empty() {
        true => Err(failed(io::ErrorKind::NotFound.into())),
        false => Ok(addrs),
    }
}
