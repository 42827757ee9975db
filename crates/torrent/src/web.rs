//! Web seeds: web servers that have the content of a torrent, under URLs that it names (BEP 19).
//!
//! A web seed is to the [`Picker`](crate::picker::Picker) a connection to a peer that has everything. What
//! differs is how it is asked: for runs of adjacent pieces, one run at a time, each of a few seconds, as each
//! costs a request over HTTP for every file in it. [`WebSeeds`] decides, without I/O and clock, which web seed
//! is asked for what and when again after a failure; [`fetch()`] carries one run out. What arrives is verified
//! as what peers send is: a web seed that has sent wrong data is not used any more, all else is
//! tried again.

mod fetch;
mod places;
mod seed;
mod seeds;
#[cfg(test)]
mod tests;

pub(crate) use self::fetch::{Fetch, Parts, fetch};
pub(crate) use self::seed::{Failure, RunId};
pub(crate) use self::seeds::{Run, SeedId, WebOrder, WebSeeds};
