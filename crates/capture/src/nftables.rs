//! nf_tables objects, and their changes over netlink (`linux/netfilter/nf_tables.h`).

mod attribute;
mod change;
mod rule;
mod socket;
mod table;

pub(crate) use self::change::{Request, Target, changes, removal};
pub(crate) use self::rule::{Family, Field, Statement};
pub(crate) use self::socket::{CommitError, Socket};
pub(crate) use self::table::{Chain, Hook, Interval, Kind, Set, Table};
