//! Networks of `.topo` files as files for Kubernetes, podman and containerlab.
//!
//! [`export`] writes, for each AS of a network, the archive with which `hawser as join` runs it on
//! another machine: its keys and nobody else's, its links with their addresses, rate, delay, jitter,
//! loss and MTU. Around them it writes what the other program takes: manifests for `kubectl apply -k`,
//! pods for `podman kube play`, or the topology files of containerlab, one for each host. The segments of the network, which no AS
//! could make with its own keys alone, are made here; they live for 23 h, and another export
//! renews them.
//!
//! What is exported is planned without I/O: names, addresses and ports (`plan`), placement on hosts
//! (`partition`), manifests (`kubernetes`), topology files (`containerlab`). Only `keys`, `segments` and
//! `tree` read and write files. An export into a folder that has one already changes
//! what differs only: keys stay, unless other ASes are core or have other roles; segments stay
//! until half of their lifetime is over; files that are needed no more are removed, and files that no
//! export wrote are never touched.

mod archive;
mod containerlab;
mod error;
mod export;
mod hosts;
mod index;
mod keys;
mod kubernetes;
mod name;
mod partition;
mod plan;
mod readme;
mod segments;
mod tree;

pub use self::error::ExportError;
pub use self::export::{Exported, Options, Requests, Target, export};
pub use self::hosts::{Host, Hosts};
