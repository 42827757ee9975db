//! Paths to other ASes, kept fresh.

use std::ops::RangeInclusive;
use std::sync::Arc;

use hawser_path::Interface;
use sciparse::identifier::isd_asn::IsdAsn;
use thiserror::Error;
use tokio::sync::watch;

use crate::daemon::{Daemon, DaemonError};
use crate::path::Path;

/// A host in an AS.
#[derive(Clone)]
pub struct Endhost {}

/// Why the endhost could not start.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum EndhostError {
    /// The daemon gave no answer.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
}

/// Why there are no paths.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum PathsError {
    /// The daemon gave no answer.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// The daemon knows no path.
    #[error("no path to {dst}")]
    NoPath {
        /// Where to.
        dst: IsdAsn,
    },
}

impl Endhost {
    /// Asks the daemon who we are.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn new(_daemon: Daemon) -> Result<Self, EndhostError> {
        unimplemented!()
    }

    /// The AS this host is in.
    pub fn local_as(&self) -> IsdAsn {
        unimplemented!()
    }

    /// UDP ports the routers deliver to.
    pub fn port_range(&self) -> RangeInclusive<u16> {
        unimplemented!()
    }

    /// The paths to `dst`.
    ///
    /// # Errors
    /// When there is none.
    pub async fn paths(&self, _dst: IsdAsn) -> Result<Vec<Path>, PathsError> {
        unimplemented!()
    }

    /// The paths to `dst`, as they change. Empty until known.
    pub fn watch(&self, _dst: IsdAsn) -> watch::Receiver<Arc<Vec<Path>>> {
        unimplemented!()
    }

    /// Takes every path over `interface` out at once.
    pub fn report_down(&self, _interface: Interface) {
        unimplemented!()
    }
}
