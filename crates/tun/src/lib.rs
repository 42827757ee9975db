//! TUN devices with offloads: large packets cut into segments, and segments merged again.
