//! Tests with the kernel, in network namespaces of their own.

mod network;
mod redirect;
