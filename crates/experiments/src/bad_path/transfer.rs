//! What transfers.

use crate::shape::choices;

choices! {
    /// What transfers.
    Transfer, "transfer" {
        /// A download by `hawser get` from one `hawser seed`.
        Get = "get",
        /// A bulk transfer by `hawser send` to a `hawser receive` that discards it.
        Send = "send",
        /// A TCP program through `hawser shim up --carrier quic`.
        ShimQuic = "shim-quic",
        /// A TCP program through `hawser shim up --carrier mptcp`.
        ShimMptcp = "shim-mptcp",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::assert_named;

    #[test]
    fn names_are_read_back_and_others_are_refused() {
        assert_named::<Transfer>();
    }
}
