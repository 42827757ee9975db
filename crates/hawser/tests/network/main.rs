//! The program in whole networks of its own.
//!
//! They need root, or the right to make user namespaces; where there is neither they say that they
//! were skipped.

#![allow(clippy::unwrap_used)]

mod flood;
mod kill;
mod lab;
mod paths;
mod support;
mod transfer;
