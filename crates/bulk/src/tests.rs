//! Whole transfers between two hosts in one process.

mod content;
mod reach;
