//! How peers are found.
