//! Whole transfers between two hosts in one process.

mod codes;
mod content;
mod reach;
