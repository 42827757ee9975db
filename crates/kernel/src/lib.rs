//! The system calls that several crates need: netlink, network namespaces, RPC over Unix sockets.
