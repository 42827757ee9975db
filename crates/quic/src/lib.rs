//! QUIC connections, each pinned to one SCION path.
