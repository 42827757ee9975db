//! The kernel's MPTCP: sockets, their subflows, and the path manager in user space.
