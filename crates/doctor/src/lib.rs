//! What is wrong with this host in its SCION network, and what to do about it.
//!
//! [`gather()`] looks at the host and returns [`Facts`]: it asks, reads and tries, changes nothing, and
//! judges nothing. [`diagnose`] judges facts: a pure function, with a [`Finding`] for each problem,
//! whose text names the thing and whose remedy says what to do. Each kind of problem has a stable
//! [`Code`].

mod checks;
mod code;
mod facts;
mod finding;
mod gather;
mod time;

pub use self::checks::diagnose;
pub use self::code::Code;
pub use self::facts::{
    Destination, Echo, Facts, Fetch, Folder, Joined, KeyState, Keys, Known, LineFile, Listen,
    Network, NotFetched, Offer, Purpose, Refusal, Rights, Router, RouterAnswer, Sockets, Trust,
    TrustItem, Tun,
};
pub use self::finding::{Finding, Severity};
pub use self::gather::{Options, gather};
