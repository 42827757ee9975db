//! The features of dependencies that all crates of hawser have in common: nothing else.
//!
//! Cargo compiles a dependency with the features that the selected crates ask for. Every crate depends
//! on this one for its tests, so that `cargo test -p CRATE`, `cargo test --workspace` and `cargo run`
//! ask for the same, and nothing is compiled twice. `scripts/unify-features` writes the manifest.
