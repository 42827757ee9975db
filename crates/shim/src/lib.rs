//! Unmodified TCP programs over several SCION paths.
