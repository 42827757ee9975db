//! The torrents of a host: which there are, their state on disk, running them.
//!
//! - [`Torrents`]: which torrent runs when, without I/O.
//! - [`Record`]: what is kept of a torrent; [`StateFolder`]: the records on disk.

mod record;
mod state;
mod torrents;

pub use self::record::{
    Choice, Dates, MAX_LABEL_BYTES, MAX_LABELS, MAX_NAME_BYTES, MAX_PEERS, Origin, Outcome,
    Pending, Record, SeedChoice, SeedLimit, Totals, parse_hash,
};
pub use self::state::{Damaged, StateError, StateFolder};
pub use self::torrents::{
    Bounds, CommandError, MAX_TORRENTS, Move, Now, Order, Status, Torrents, Traffic,
};
