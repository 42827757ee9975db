//! The bulk protocol, without I/O and without a clock (`PROTOCOL.md`).
