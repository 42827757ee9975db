//! TCP programs over several paths: the evaluation of 002 (Shila), on links with limits.
//!
//! [`Mptcp`] lets an ordinary TCP program send through the shim over 1 to 8 paths, QUIC over the same
//! paths, and the program over plain IP, in turn. The [`MptcpTable`] has the goodput beside what headers
//! leave and what Shila reached, the bytes of each packet, and the time in which connections are set
//! up.

mod carrier;
mod figure;
mod headers;
mod run;
mod table;

pub use self::carrier::MptcpCarrier;
pub use self::figure::draw;
pub use self::headers::HeaderRow;
pub use self::run::{Mptcp, MptcpProgress};
pub use self::table::{Connection, MptcpRow, MptcpTable, SetUpRow};
