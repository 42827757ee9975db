//! What changes an AS while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use hawser_bundle::Bundle;
use serde::Serialize;
use tokio::sync::oneshot;

/// An address that takes the place of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Moved {
    pub from: IpAddr,
    pub to: IpAddr,
}

/// What a coordinator has sent, or this machine has found.
pub(crate) enum Update {
    /// A configuration; the answer says whether it is installed.
    Configuration(Box<Bundle>, oneshot::Sender<bool>),
    /// There is no configuration now.
    Nothing,
    /// The segments of the network; the answer says whether they are written.
    Segments(Vec<u8>, oneshot::Sender<bool>),
    /// The addresses of neighbours that are known by names, by interface: all that are known. The answer
    /// says whether they are in force.
    Neighbours(BTreeMap<u16, SocketAddr>, oneshot::Sender<bool>),
    /// The addresses of links that this machine lacks now, with what takes their places. The answer says
    /// whether what follows from them is done.
    Moved(BTreeSet<Moved>, oneshot::Sender<bool>),
}
