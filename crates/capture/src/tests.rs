//! Tests with the kernel, in network namespaces of their own.

mod group;
mod network;
pub mod process;
mod redirect;
mod routes;
