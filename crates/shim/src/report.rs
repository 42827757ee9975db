//! What holder and carrier report, as it is printed and sent between processes.

mod connection;
mod holder;
mod session;
mod totals;
mod traffic;

use std::time::{SystemTime, UNIX_EPOCH};

pub use self::connection::{ConnectionReport, SubflowReport, SubflowState};
pub use self::holder::{FailureReport, HolderReport, SessionTotals};
pub use self::session::{
    CarrierReport, DecisionReport, Failover, Failovers, PathReport, PathState, SessionReport,
    StreamsReport,
};
pub use self::totals::Totals;
pub use self::traffic::{PacketCounts, Traffic};

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}
