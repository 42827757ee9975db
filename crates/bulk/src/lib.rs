//! Bulk transfer: a data set from one host to another over several SCION paths at once (003,
//! section 4, *Hercules*).
//!
//! - [`protocol`]: what is sent when, without I/O and without a clock.
//! - [`content`]: files as one run of bytes, verified range by range.
//! - [`keys`]: the keys of hosts, and the short code in their place.

pub mod content;
pub mod keys;
pub mod protocol;
