//! One module for each command, and modules that several of them share.

mod address;
pub mod bench;
mod choose;
mod congestion;
pub mod demo;
mod experiment;
mod files;
pub mod get;
pub mod key;
pub mod lab;
pub mod man;
mod network;
mod path_text;
pub mod paths;
pub mod perf;
pub mod ping;
mod policy;
mod print;
mod process;
mod quantity;
mod reported;
pub mod seed;
mod select;
pub mod service;
pub mod simulate;
pub mod torrent;
pub mod traceroute;
