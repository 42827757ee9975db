//! What a SCION network, and one AS of it, look like on disk.
