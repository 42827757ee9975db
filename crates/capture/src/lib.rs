//! Which packets of this host are captured.
//!
//! TCP connections to given prefixes are redirected to a listener by a table of nf_tables
//! ([`Redirect`]), which vanishes with the process that made it. Other packets to them are led to a
//! device by a routing table of ours ([`Routes`]). A [`Guard`] rejects what would leave for the same
//! prefixes by other routes, also when that process has ended. A control group ([`Group`]) has the
//! processes of one command, so that only its connections are redirected.
//!
//! All calls block, well below a millisecond unless there are thousands of prefixes, and act on the
//! network namespace of the calling thread.

mod group;
mod guard;
mod input;
mod nftables;
mod original;
mod prefixes;
mod redirect;
mod routes;
#[cfg(test)]
mod tests;
mod wanted;

pub use self::group::{Entry, Group, GroupError};
pub use self::guard::{Guard, Guarded, is_there};
pub use self::input::{DroppingChain, dropping_chains};
pub use self::original::original_destination;
pub use self::prefixes::{PrefixError, check};
pub use self::redirect::{Redirect, RedirectError};
pub use self::routes::{Device, Routes, RoutesError, Target};
pub use self::wanted::{Gateway, Manner, Scope, Wanted};
