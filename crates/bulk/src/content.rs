//! The content of a transfer: files as one run of bytes, verified range by range.
