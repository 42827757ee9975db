//! Sealed datagrams: keys, numbers, and the replay window.
