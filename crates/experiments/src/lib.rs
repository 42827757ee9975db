//! The papers' experiments and the demo, with their figures.
//!
//! Every experiment is a [`shape::Experiment`]: places with their beds, cases that take turns, what one
//! run shows, columns and a figure. [`shape::run`] runs any of them; nothing here prints: an observer
//! receives the [`shape::Progress`].
//!
//! Those of the [`CATALOG`] are [`Downloads`] and declared: a [`DownloadExperiment`] compares variants, of
//! which each has a network, seeders, downloads and possibly cross traffic. The demo is one of them, and
//! [`DemoReport`] its result. [`bulk`] has the experiments on bulk transfer, [`mptcp`] that on TCP programs,
//! [`bad_path`] that on every transfer over two good paths and a bad one, [`limit`] that on link limits;
//! [`throughput`], [`scale`], [`clients`] and [`round_trips`] measure speed and its cost instead, [`ases`] what
//! an AS of a lab costs.
//!
//! # Adding an experiment
//!
//! One that compares downloads is a function of 15 to 40 lines beside those in `catalog/`, which returns a
//! [`DownloadExperiment`], and an entry of five lines in [`CATALOG`]. The rest follows from it: help and
//! completions of `hawser bench`, progress, table, JSON and figure.
//!
//! Any other one is a file here with a type that says what is measured, its implementation of
//! [`shape::Experiment`] and its columns, about 70 lines if it has no figure; a file with its arguments in
//! `crates/cli/src/cmd/bench/`, about 25 lines; and five lines in `crates/cli/src/cmd/bench.rs`. The test
//! bed has the network with its hosts, and servers and transfers by every means that others use.
//!
//! Comments cite the papers by number and section; `ARCHITECTURE.md` lists them.

pub mod ases;
pub mod bad_path;
mod bed;
pub mod bulk;
mod catalog;
pub mod ceiling;
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
pub mod round_trips;
mod samples;
pub mod scale;
mod scratch;
pub mod shape;
mod switches;
mod thread;
pub mod throughput;
mod transfer;
mod window;

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
pub use self::transfer::{
    Sample, TransferBytes, TransferCost, TransferPath, TransferReport, TransferWebSeed,
};
