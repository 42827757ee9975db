//! What a node reports while it runs.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::Serialize;

/// A service of an AS.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "String")]
pub enum ServiceName {
    /// The border router with this name in `topology.json`.
    Router(String),
    /// The control service.
    Control,
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Router(name) => write!(f, "border router {name}"),
            Self::Control => f.write_str("control service"),
        }
    }
}

impl From<ServiceName> for String {
    fn from(name: ServiceName) -> Self {
        name.to_string()
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// All services run and the limits are in force.
    Ready {
        /// The version of the configuration.
        version: u64,
    },
    /// The answer to a probe of readiness, when it differs from the one before.
    Health {
        /// Whether it is ready.
        ready: bool,
        /// What is missing; nothing if it is ready.
        reasons: Vec<String>,
    },
    /// A service wrote a line to its standard error.
    Said {
        /// The service.
        service: ServiceName,
        /// The line.
        line: String,
    },
    /// A service ended, and is started again after a wait.
    Ended {
        /// The service.
        service: ServiceName,
        /// Its exit status.
        how: String,
        /// The wait in milliseconds.
        #[serde(rename = "again_after_ms", serialize_with = "millis")]
        again_after: Duration,
    },
    /// A new version of the configuration was received.
    Changed {
        /// The version.
        version: u64,
        /// Whether the services start again; otherwise limits and links changed, and what stays as it
        /// is goes on.
        restart: bool,
    },
    /// New segments have come.
    Segments,
    /// The coordinator has no configuration for this host now: the services are stopped.
    Nothing,
    /// The limits cannot be put into force; this is tried again.
    LimitsFailed {
        /// Why.
        reason: String,
    },
    /// The limits of a link alone cannot be put into force; this is tried again. Reported once for
    /// each reason.
    LinkFailed {
        /// The name of the link.
        link: String,
        /// Why.
        reason: String,
    },
    /// The name of a neighbour was resolved, to an address that it did not have before.
    NeighbourAt {
        /// The interface of the link.
        interface: u16,
        /// The address.
        address: SocketAddr,
    },
    /// The name of a neighbour cannot be resolved: its last address stays, and this is tried again.
    /// Reported once until it can be.
    NeighbourUnknown {
        /// The interface of the link.
        interface: u16,
        /// The name, with a port.
        name: String,
        /// Why.
        reason: String,
    },
    /// This machine lacks an address that links need, and has another one in its place: the coordinator
    /// is told.
    Moved {
        /// The address that is gone.
        from: IpAddr,
        /// What takes its place.
        to: IpAddr,
    },
    /// The coordinator did not take another address; this is tried again. Reported once for each
    /// address.
    NotMoved {
        /// The address.
        to: IpAddr,
        /// Why.
        reason: String,
    },
    /// The coordinator cannot be reached, or refuses this host; this is tried again. Reported once
    /// until it works again.
    Coordinator {
        /// Why.
        reason: String,
    },
    /// The coordinator answers again.
    CoordinatorBack,
    /// Another machine runs the same AS. Reported once until it does not any more.
    OtherMachine {
        /// Its address, as the coordinator sees it.
        address: String,
    },
    /// A configuration that came cannot be used: the one before stays.
    NotInstalled {
        /// Why.
        reason: String,
    },
}

fn millis<S: serde::Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}
