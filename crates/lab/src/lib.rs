//! A SCION network on one machine.
