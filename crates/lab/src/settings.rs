//! The settings of a lab.

use std::time::Duration;

use hawser_topology::IsdAsn;
use serde::{Deserialize, Serialize};

use crate::process::ProcessId;

/// The settings of a lab that its network does not have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// ASes whose border routers the user runs.
    pub no_router: Vec<IsdAsn>,
    /// ASes whose control service the user runs.
    pub no_control: Vec<IsdAsn>,
    /// The life of path segments; `None` for the control service's default.
    pub segment_lifetime: Option<Duration>,
    /// The process that the lab ends with; `None` for a lab that stays.
    #[serde(default)]
    pub owner: Option<ProcessId>,
}
