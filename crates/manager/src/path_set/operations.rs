//! Random operations on a set, with invariants after each.
