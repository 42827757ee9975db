//! Rates, times and losses as text, as in `tc` and `ip`.

use std::time::Duration;

/// An error of parsing a rate, time or loss. The message names the text, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct QuantityError(String);

/// Splits a text into its number and its unit, in lower case.
fn split(text: &str) -> Option<(f64, String)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    number
        .is_finite()
        .then(|| (number, text[end..].trim().to_ascii_lowercase()))
}

fn not_a(expected: &str, text: &str) -> QuantityError {
    QuantityError(format!("{text:?} is not a {expected}"))
}

/// Reads a rate in bit/s: `10mbit`, `2.5gbit`, `800kbit`, `1000bit`, or a bare number of bit/s.
/// Units are decimal, as in `tc`.
///
/// # Errors
/// When `text` is not a rate between 8 bit/s and 1 Pbit/s.
pub fn parse_rate(text: &str) -> Result<u64, QuantityError> {
    let wrong = || not_a("rate: write for example 10mbit, 2.5gbit or 800kbit", text);
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let unit = unit.strip_suffix("/s").unwrap_or(&unit);
    let scale = match unit {
        "" | "bit" => 1.0,
        "kbit" => 1e3,
        "mbit" => 1e6,
        "gbit" => 1e9,
        "tbit" => 1e12,
        _ => return Err(wrong()),
    };
    let rate = number * scale;
    // A link below one byte per second is practically down.
    if !(8.0..=1e15).contains(&rate) {
        return Err(wrong());
    }
    Ok(rate.round() as u64)
}

/// Reads a time: `20ms`, `500us`, `1s`, `0`.
///
/// # Errors
/// When `text` is not a time of at most an hour. A number other than 0 needs a unit, because `tc`
/// and `ip` assume different ones.
pub fn parse_duration(text: &str) -> Result<Duration, QuantityError> {
    let wrong = || not_a("time: write for example 20ms, 500us or 1s", text);
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let scale = match unit.as_str() {
        "s" => 1.0,
        "ms" => 1e-3,
        "us" | "µs" => 1e-6,
        "" if number == 0.0 => 0.0,
        _ => return Err(wrong()),
    };
    let seconds = number * scale;
    // An hour is far above the delay of any link, and far below any overflow.
    if seconds > 3600.0 {
        return Err(wrong());
    }
    Ok(Duration::from_nanos((seconds * 1e9).round() as u64))
}

/// Reads a time that may be long: `30m`, `1.5h`, `7d`, and `90s` and `500ms` like
/// [`parse_duration`].
///
/// # Errors
/// When `text` is not a time.
pub fn parse_long_duration(text: &str) -> Result<Duration, QuantityError> {
    const UNITS: [(&str, f64); 5] = [
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
        ("d", 86_400.0),
    ];
    let mut units = UNITS.into_iter();
    let number = units.find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)));
    let digits = |text: &&str| text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let number = number.filter(|(text, _)| digits(text));
    let time = number.and_then(|(text, scale)| {
        let number: f64 = text.parse().ok()?;
        Duration::try_from_secs_f64(number * scale).ok()
    });
    time.ok_or_else(|| not_a("time: write for example 30m, 1.5h or 90s", text))
}

/// Reads how long something is tried again: a time as [`parse_long_duration`] reads it, or `0` for
/// never.
///
/// # Errors
/// When `text` is neither.
pub fn parse_retry(text: &str) -> Result<Duration, QuantityError> {
    match text {
        "0" => Ok(Duration::ZERO),
        text => parse_long_duration(text),
    }
}

/// Reads a loss, such as `0.1%`, `100%` or `0`, as a fraction between 0 and 1.
///
/// # Errors
/// When `text` is not a loss.
pub fn parse_loss(text: &str) -> Result<f64, QuantityError> {
    let wrong = || {
        not_a(
            "loss: write a share between 0% and 100%, for example 0.1%",
            text,
        )
    };
    let (number, unit) = split(text).ok_or_else(wrong)?;
    match unit.as_str() {
        "%" if (0.0..=100.0).contains(&number) => Ok(number / 100.0),
        "" if number == 0.0 => Ok(0.0),
        _ => Err(wrong()),
    }
}

/// Writes a rate so that [`parse_rate`] reads it back.
pub fn format_rate(rate: u64) -> String {
    for (scale, unit) in [(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1000, "kbit")] {
        if rate >= scale {
            let value = rate as f64 / scale as f64;
            return format!("{value}{unit}");
        }
    }
    format!("{rate}bit")
}

/// Writes a time so that [`parse_duration`] reads it back.
pub fn format_duration(time: Duration) -> String {
    let (micros, rest) = (time.as_micros(), time.subsec_nanos() % 1000);
    if rest > 0 {
        let fraction = format!("{rest:03}");
        format!("{micros}.{}us", fraction.trim_end_matches('0'))
    } else if micros == 0 {
        "0".to_owned()
    } else if micros.is_multiple_of(1_000_000) {
        format!("{}s", micros / 1_000_000)
    } else if micros.is_multiple_of(1000) {
        format!("{}ms", micros / 1000)
    } else {
        format!("{micros}us")
    }
}

/// Writes a time for people, in its largest unit, rounded down: `3 days`, `an hour`, `5 seconds`.
pub fn rough_duration(seconds: u64) -> String {
    const UNITS: [(u64, &str, &str); 4] = [
        (86_400, "a day", "days"),
        (3600, "an hour", "hours"),
        (60, "a minute", "minutes"),
        (1, "a second", "seconds"),
    ];
    let unit = UNITS.iter().find(|(length, ..)| seconds >= *length);
    match unit.map(|(length, one, many)| (seconds / length, one, many)) {
        Some((1, one, _)) => (*one).to_owned(),
        Some((count, _, many)) => format!("{count} {many}"),
        None => "0 seconds".to_owned(),
    }
}

/// Writes a loss with the fewest digits from which [`parse_loss`] reads the same value.
pub fn format_loss(loss: f64) -> String {
    let percent = loss * 100.0;
    // Multiplying the fraction by 100 may have caused a rounding error.
    (0..=17)
        .map(|digits| format!("{percent:.digits$}%"))
        .find(|text| parse_loss(text) == Ok(loss))
        .unwrap_or_else(|| format!("{percent}%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rough_times_have_one_unit() {
        for (seconds, text) in [
            (0, "0 seconds"),
            (1, "a second"),
            (59, "59 seconds"),
            (119, "a minute"),
            (7199, "an hour"),
            (7200, "2 hours"),
            (86_400, "a day"),
            (3 * 86_400 + 5, "3 days"),
        ] {
            assert_eq!(rough_duration(seconds), text);
        }
    }

    #[test]
    fn trying_again_takes_a_time_or_0() {
        assert_eq!(parse_retry("0"), Ok(Duration::ZERO));
        assert_eq!(parse_retry("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(parse_retry("1.5h"), Ok(Duration::from_secs(5400)));
        for wrong in ["", "5", "-1m", "forever"] {
            assert!(parse_retry(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn rates_are_decimal_bits() {
        assert_eq!(parse_rate("10mbit"), Ok(10_000_000));
        assert_eq!(parse_rate("2.5Gbit"), Ok(2_500_000_000));
        assert_eq!(parse_rate("800 kbit"), Ok(800_000));
        assert_eq!(parse_rate("10mbit/s"), Ok(10_000_000));
        assert_eq!(parse_rate("1000"), Ok(1000));
        for wrong in ["", "0", "0mbit", "fast", "10mb", "-1mbit", "mbit", "1e9"] {
            assert!(parse_rate(wrong).is_err(), "{wrong:?} was accepted");
        }
    }

    #[test]
    fn times_need_a_unit() {
        assert_eq!(parse_duration("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(parse_duration("0.5ms"), Ok(Duration::from_micros(500)));
        assert_eq!(parse_duration("0"), Ok(Duration::ZERO));
        for wrong in ["20", "ms", "-5ms", "2h", "99999s"] {
            assert!(parse_duration(wrong).is_err(), "{wrong:?} was accepted");
        }
    }

    #[test]
    fn losses_are_percentages() {
        assert_eq!(parse_loss("0.1%"), Ok(0.001));
        assert_eq!(parse_loss("100%"), Ok(1.0));
        for wrong in ["101%", "0.5", "-1%", "%", "NaN%"] {
            assert!(parse_loss(wrong).is_err(), "{wrong:?} was accepted");
        }
    }

    #[test]
    fn written_quantities_are_read_back() {
        for rate in [8, 999, 1000, 10_000_000, 2_500_000_000, 123_456_789] {
            assert_eq!(parse_rate(&format_rate(rate)), Ok(rate));
        }
        for micros in [0, 1, 1500, 20_000, 3_000_000] {
            let time = Duration::from_micros(micros);
            assert_eq!(parse_duration(&format_duration(time)), Ok(time));
        }
        assert_eq!(format_duration(Duration::from_nanos(1_500)), "1.5us");
        for text in ["0%", "0.1%", "0.3%", "2.5%", "7%", "33.333%", "100%"] {
            assert_eq!(format_loss(parse_loss(text).unwrap()), text);
        }
    }
}
