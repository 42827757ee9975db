//! A client of the SCION daemon of this AS (gRPC, `proto.daemon.v1.DaemonService`).

pub(crate) mod convert;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use hawser_address::IsdAsn;
use hawser_proto::daemon::{AS, ASRequest, INTERFACES, PATHS, PORT_RANGE, PathsRequest};
use hawser_proto::well_known::Empty;
use tokio::sync::OnceCell;

use crate::local_as::LocalAs;
use crate::path::Path;
pub use crate::service::DEFAULT_ADDRESS;
use crate::service::{Caller, Service, SourceError, valid};

/// The environment variables that name the daemon, in order of precedence.
pub(crate) const ENVIRONMENT: [&str; 2] = ["SCION_DAEMON", "SCION_DAEMON_ADDRESS"];

/// A client of the daemon. It connects with the first call, and again after the daemon was
/// restarted.
pub struct Daemon {
    pub(crate) caller: Caller,
    local: OnceCell<LocalAs>,
}

impl Daemon {
    /// A client of the daemon at `address`: `HOST:PORT`, or `default` for [`DEFAULT_ADDRESS`].
    ///
    /// # Errors
    /// [`SourceError::Address`] when `address` is invalid.
    pub fn connect(address: &str) -> Result<Self, SourceError> {
        let address = match address {
            "default" => DEFAULT_ADDRESS,
            given => given,
        };
        let bad = || SourceError::Address(address.into());
        let (host, port) = address.rsplit_once(':').ok_or_else(bad)?;
        if host.is_empty() || port.parse::<u16>().is_err() {
            return Err(bad());
        }
        let service = Service::Daemon(address.into());
        let caller = Caller::new(service).ok_or_else(bad)?;
        Ok(Self {
            caller,
            local: OnceCell::new(),
        })
    }

    /// The AS this host is in. The daemon is queried once.
    ///
    /// # Errors
    /// [`SourceError`] when there is no usable answer.
    pub async fn local_as(&self) -> Result<LocalAs, SourceError> {
        let request = ASRequest::default();
        let ask = || self.caller.required(AS, &request, convert::local_as);
        self.local.get_or_try_init(ask).await.copied()
    }

    /// The underlay addresses of this AS's border routers by interface.
    ///
    /// # Errors
    /// [`SourceError`] when there is no usable answer.
    pub async fn interfaces(&self) -> Result<BTreeMap<u16, SocketAddr>, SourceError> {
        let read = convert::interfaces;
        self.caller.required(INTERFACES, &Empty {}, read).await
    }

    /// The UDP ports routers of this AS deliver to directly.
    ///
    /// # Errors
    /// [`SourceError`] when there is no usable answer.
    pub async fn port_range(&self) -> Result<RangeInclusive<u16>, SourceError> {
        let read = convert::port_range;
        self.caller.required(PORT_RANGE, &Empty {}, read).await
    }

    /// The paths to `dst`, in the daemon's order; `refresh` makes the daemon look for new ones. An
    /// ISD without an AS (`1-0`) stands for each of its core ASes.
    /// Invalid paths are left out with a warning.
    ///
    /// # Errors
    /// [`SourceError`] when there is no usable answer.
    pub async fn paths(&self, dst: IsdAsn, refresh: bool) -> Result<Vec<Path>, SourceError> {
        let src = self.local_as().await?.isd_as;
        let request = PathsRequest {
            source_isd_as: src.to_u64(),
            destination_isd_as: dst.to_u64(),
            refresh,
            ..PathsRequest::default()
        };
        // Some daemons answer "not found", others an empty list.
        let answer = self.caller.optional(PATHS, &request).await?;
        let offered = answer.unwrap_or_default().paths.into_iter();
        let offered = offered.map(|path| convert::path(src, dst, path));
        valid(
            offered,
            &format!("the daemon offers invalid paths to {dst}"),
        )
        .map_err(|error| self.caller.invalid(PATHS.name(), error))
    }
}
