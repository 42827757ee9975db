//! How long an answer may take, as clients say it.

use std::time::Duration;

/// Most digits of `grpc-timeout`.
const GRPC_DIGITS: usize = 8;
/// Most digits of `connect-timeout-ms`.
const CONNECT_DIGITS: usize = 10;

/// Reads `grpc-timeout`: digits and a unit. `None` if it is not valid: then there is no timeout.
pub(crate) fn grpc(text: &str) -> Option<Duration> {
    let unit = text.chars().next_back()?;
    let digits = &text[..text.len() - unit.len_utf8()];
    let number = digits_of(digits, GRPC_DIGITS)?;
    Some(match unit {
        'H' => Duration::from_secs(number * 3600),
        'M' => Duration::from_secs(number * 60),
        'S' => Duration::from_secs(number),
        'm' => Duration::from_millis(number),
        'u' => Duration::from_micros(number),
        'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

/// Reads `connect-timeout-ms`: milliseconds. `None` if it is not valid: then there is no timeout.
pub(crate) fn connect(text: &str) -> Option<Duration> {
    digits_of(text, CONNECT_DIGITS).map(Duration::from_millis)
}

fn digits_of(text: &str, most: usize) -> Option<u64> {
    let is = !text.is_empty() && text.len() <= most && text.bytes().all(|b| b.is_ascii_digit());
    is.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_have_their_units() {
        for (text, expected) in [
            ("7H", Some(Duration::from_secs(25_200))),
            ("2M", Some(Duration::from_secs(120))),
            ("1S", Some(Duration::from_secs(1))),
            ("250m", Some(Duration::from_millis(250))),
            ("9u", Some(Duration::from_micros(9))),
            ("0n", Some(Duration::ZERO)),
            ("99999999H", Some(Duration::from_secs(359_999_996_400))),
            ("100000000n", None),
            ("S", None),
            ("", None),
            ("5", None),
            ("5s", None),
            ("-5S", None),
            ("+5S", None),
            ("5é", None),
        ] {
            assert_eq!(grpc(text), expected, "{text}");
        }
        assert_eq!(connect("5000"), Some(Duration::from_secs(5)));
        assert_eq!(
            connect("9999999999"),
            Some(Duration::from_millis(9_999_999_999))
        );
        for invalid in ["", "5S", "-1", "10000000000"] {
            assert_eq!(connect(invalid), None, "{invalid}");
        }
    }
}
