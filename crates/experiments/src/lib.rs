//! The demo and the papers' experiments, with their figures.
