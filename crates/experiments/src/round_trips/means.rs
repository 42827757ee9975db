//! What carries the bytes.

use crate::shape::choices;

choices! {
    /// What carries the bytes.
    Means, "carrier" {
        /// SCION's own echo requests, a millisecond apart, over one path.
        Ping = "ping",
        /// A TCP program over plain IP.
        Tcp = "tcp",
        /// The same through the shim with `--carrier mptcp`.
        Mptcp = "mptcp",
        /// The same with `--carrier quic`.
        Streams = "shim-quic",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::assert_named;

    #[test]
    fn names_are_read_back_and_others_are_refused() {
        assert_named::<Means>();
    }
}
