//! The papers' experiments and the demo, with their figures.
//!
//! Every experiment has the shape of [`shape`]; those of the catalog are declared: a
//! [`DownloadExperiment`] compares variants: each has a network, seeders, downloads and possibly cross
//! traffic. A [`Session`] brings the networks up in a lab, runs the `hawser` program in them, and
//! returns an [`Outcome`], from which a [`Report`] or a [`DemoReport`] (JSON) or a figure
//! ([`plot`]) is made. [`bulk`] has the experiments on bulk transfer, [`mptcp`] that on TCP programs,
//! [`bad_path`] that on every transfer over two good paths and a bad one,
//! [`limit`] that on link limits;
//! [`throughput`], [`scale`] and [`clients`] measure speed and its cost instead. Nothing here prints: an
//! observer receives the progress as [`Event`]s.
//!
//! Comments cite the papers by number and section; `ARCHITECTURE.md` lists them.

pub mod bad_path;
mod bed;
pub mod bulk;
mod catalog;
mod ceiling;
pub mod clients;
mod content;
mod cpu;
mod cross;
mod demo;
mod downloads;
mod error;
mod experiment;
pub mod limit;
mod memory;
pub mod mptcp;
mod network;
mod numbers;
mod papers;
mod plot;
mod samples;
pub mod scale;
mod scratch;
pub mod shape;
mod stage;
mod thread;
pub mod throughput;
mod transfer;

pub use self::catalog::{CATALOG, DEMO_TOPOLOGIES, Entry, demo};
pub use self::cross::send as send_cross_traffic;
pub use self::demo::{DemoReport, DemoRun, PathUse};
pub use self::downloads::{Downloads, Options, Run};
pub use self::error::ExperimentError;
pub use self::experiment::{
    Download, DownloadExperiment, Headline, Means, PLAIN_TCP, Rival, Variant, Window,
};
pub use self::memory::peak as peak_memory;
pub use self::scratch::sweep;
pub use self::transfer::{Sample, TransferPath, TransferReport};
