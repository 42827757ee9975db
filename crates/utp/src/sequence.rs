//! Sequence numbers without their wrap: inside they count up in 64 bits, packets have the lower 16.

/// Where numbers begin inside, so that there is room below the first one of a connection.
pub(crate) const FIRST_EPOCH: u64 = 1 << 32;

/// The number with these lower 16 bits that is nearest to `near`.
pub(crate) fn expand(near: u64, low: u16) -> u64 {
    let ahead = low.wrapping_sub(near as u16).cast_signed();
    near.wrapping_add_signed(ahead.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_near_the_last_one_survive_the_wrap(
            near in FIRST_EPOCH..FIRST_EPOCH + (1 << 20), ahead in -32768..32768i64,
        ) {
            let number = near.wrapping_add_signed(ahead);
            prop_assert_eq!(expand(near, number as u16), number);
        }
    }
}
