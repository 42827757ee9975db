//! The program in whole networks.
//!
//! The networks need root, or the right to make user namespaces; otherwise the tests print that
//! they were skipped.

#![allow(clippy::unwrap_used)]

mod bulk;
mod clock;
mod container;
mod content;
mod coordinator;
mod doctor;
mod engines;
mod export;
mod flood;
mod image;
mod joining;
mod kill;
mod lab;
mod limit;
mod limits_only;
mod listing;
mod machine;
mod offer;
mod outlast;
mod paths;
mod podman;
mod pods;
mod queue;
mod reference;
mod shim;
mod shim_run;
mod speed;
mod support;
mod transfer;
mod xdp;
