//! nf_tables objects, and their changes over netlink (`linux/netfilter/nf_tables.h`).

mod attribute;
mod change;
mod list;
mod rule;
mod socket;
mod table;

pub(crate) use self::change::{Ownership, Request, Target, changes, removal, replacement};
pub(crate) use self::list::base_chains;
pub(crate) use self::rule::{Family, Field, Rejection, Rule, Statement};
pub(crate) use self::socket::{CommitError, Socket};
pub(crate) use self::table::{Chain, ChainKind, Hook, Interval, Set, Table};
