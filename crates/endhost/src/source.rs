//! Where paths come from, and what is known about this AS.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use sciparse::identifier::isd_asn::IsdAsn;

use crate::daemon::Daemon;
use crate::path::Path;
use crate::service::SourceError;
use crate::standalone::Standalone;

/// The AS this host is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalAs {
    /// Its number.
    pub isd_as: IsdAsn,
    /// Whether it is a core AS of its ISD.
    pub core: bool,
    /// The largest SCION packet inside it, in bytes.
    pub mtu: u16,
}

/// What a host needs to know about its AS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) local: LocalAs,
    /// The UDP ports routers deliver to.
    pub(crate) ports: RangeInclusive<u16>,
    /// The underlay addresses of the border routers by interface.
    pub(crate) routers: BTreeMap<u16, SocketAddr>,
}

/// Where paths come from.
pub(crate) enum Source {
    /// The SCION daemon makes them.
    Daemon(Box<Daemon>),
    /// This host makes them, of the control service's segments.
    Standalone(Standalone),
}

/// How new an answer must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    /// What the source has will do.
    Known,
    /// It must look for new paths.
    New,
}

impl Source {
    /// What it knows about this AS.
    pub(crate) async fn facts(&self) -> Result<Facts, SourceError> {
        match self {
            Self::Daemon(daemon) => {
                let (local, ports, routers) =
                    tokio::try_join!(daemon.local_as(), daemon.port_range(), daemon.interfaces())?;
                Ok(Facts {
                    local,
                    ports,
                    routers,
                })
            }
            Self::Standalone(standalone) => Ok(standalone.facts()),
        }
    }

    /// The paths to `dst`, in its order.
    pub(crate) async fn paths(&self, dst: IsdAsn, age: Age) -> Result<Vec<Path>, SourceError> {
        match self {
            Self::Daemon(daemon) => daemon.paths(dst, age == Age::New).await,
            Self::Standalone(standalone) => standalone.paths(dst, age).await,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Daemon(daemon) => daemon.service().fmt(f),
            Self::Standalone(standalone) => standalone.fmt(f),
        }
    }
}
