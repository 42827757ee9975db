//! A SCION network on one machine.

mod name;
mod netlink;
mod netns;
mod place;
mod plan;
mod process;
mod routes;
