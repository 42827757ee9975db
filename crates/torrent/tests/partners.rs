//! Partners of our own making that answer late, twice or never, and that ask so: over TCP, and over
//! SCION with two paths to each of them.
//!
//! Each test prints how long it took: `cargo test -p hawser-torrent --test partners -- --nocapture`.
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod content;
#[path = "partners/leechers.rs"]
mod leechers;
mod scripted;
#[path = "partners/seeders.rs"]
mod seeders;
#[path = "partners/site.rs"]
mod site;
#[path = "../../endhost/tests/hosts/toy.rs"]
mod toy;
