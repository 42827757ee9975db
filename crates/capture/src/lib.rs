//! Which packets of this host are captured.
//!
//! TCP connections to given prefixes are redirected to a listener by a table of nf_tables
//! ([`Redirect`]), which vanishes with the process that made it.
//!
//! All calls block, for less than a millisecond, and act on the network namespace of the calling
//! thread.

mod nftables;
mod original;
mod prefixes;
mod redirect;
#[cfg(test)]
mod tests;
mod wanted;

pub use self::original::original_destination;
pub use self::prefixes::{PrefixError, check};
pub use self::redirect::{Redirect, RedirectError};
pub use self::wanted::{Gateway, Manner, Scope, Wanted};
