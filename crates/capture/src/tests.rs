//! Tests with the kernel, in network namespaces of their own.

mod gateway;
mod group;
mod input;
mod life;
pub mod network;
pub mod process;
mod redirect;
mod routes;
