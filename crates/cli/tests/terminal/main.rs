//! The screen that a person sees: the program in a pseudo-terminal, with a terminal emulator.

#![allow(clippy::unwrap_used)]

mod demo;
mod get;
mod peer;
mod plain;
mod pty;
