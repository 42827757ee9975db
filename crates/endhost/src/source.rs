//! The source of a host's paths.

use std::fmt;

use futures_util::future::BoxFuture;
use hawser_address::IsdAsn;

use crate::daemon::Daemon;
use crate::local_as::LocalTopology;
use crate::path::Path;
use crate::plain_ip;
use crate::service::{Freshness, SourceError};
use crate::standalone::Standalone;

/// The source of a host's paths.
pub(crate) enum Source {
    /// The SCION daemon, which combines segments itself.
    Daemon(Box<Daemon>),
    /// This host, which combines the control service's segments.
    Standalone(Standalone),
    /// None: this host is on plain IP.
    PlainIp,
}

// Futures are boxed so that the code of requests is in this crate alone, and not once more in each crate
// that waits for paths.
impl Source {
    /// The source's description of this AS.
    pub(crate) fn local_topology(&self) -> BoxFuture<'_, Result<LocalTopology, SourceError>> {
        Box::pin(async move {
            match self {
                Self::Daemon(daemon) => {
                    let (local, ports, routers) = tokio::try_join!(
                        daemon.local_as(),
                        daemon.port_range(),
                        daemon.interfaces()
                    )?;
                    Ok(LocalTopology {
                        local,
                        ports,
                        routers,
                    })
                }
                Self::Standalone(standalone) => Ok(standalone.topology.clone()),
                Self::PlainIp => Ok(plain_ip::topology()),
            }
        })
    }

    /// The paths to `dst`, in the order of the source.
    pub(crate) fn paths(
        &self,
        dst: IsdAsn,
        freshness: Freshness,
    ) -> BoxFuture<'_, Result<Vec<Path>, SourceError>> {
        Box::pin(async move {
            match self {
                Self::Daemon(daemon) => daemon.paths(dst, freshness == Freshness::New).await,
                Self::Standalone(standalone) => standalone.paths(dst, freshness).await,
                Self::PlainIp => Ok(Vec::new()),
            }
        })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Daemon(daemon) => daemon.caller.service.fmt(f),
            Self::Standalone(standalone) => standalone.fmt(f),
            Self::PlainIp => f.write_str("plain IP"),
        }
    }
}
