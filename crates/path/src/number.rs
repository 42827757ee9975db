//! Numbers as they are written in policies and strategies.

/// A number up to 65535 in decimal digits; `parse` alone would let a sign through.
pub(crate) fn number(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}
