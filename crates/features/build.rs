//! Cargo looks at the build dependencies of crates with a build script only.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
