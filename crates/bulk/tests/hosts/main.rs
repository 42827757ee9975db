//! Transfers between hosts of a toy network, in one process. One program, as the network takes longer
//! to compile than the tests.
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod flights;
mod refusals;
#[path = "../../../endhost/tests/hosts/toy.rs"]
mod toy;
