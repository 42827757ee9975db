//! Numbers as people read them.

use std::time::Duration;

/// Bytes with a binary unit: `32.0 MiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{count} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// A rate in bit/s with a decimal unit: `26.1 Mbit/s`.
pub fn rate(bits: f64) -> String {
    match bits {
        b if b >= 1e9 => format!("{:.2} Gbit/s", b / 1e9),
        b if b >= 1e6 => format!("{:.1} Mbit/s", b / 1e6),
        b if b >= 1e3 => format!("{:.1} kbit/s", b / 1e3),
        b => format!("{b:.0} bit/s"),
    }
}

/// A time in milliseconds: `20.3 ms`.
pub fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// A time in milliseconds as `scion ping` prints it: `0.788ms`.
pub fn exact_millis(time: Duration) -> String {
    format!("{:.3}ms", time.as_secs_f64() * 1e3)
}

/// A time in milliseconds as reports for programs have it, to the microsecond.
pub fn rounded_millis(time: Duration) -> f64 {
    ((time.as_nanos() + 500) / 1000) as f64 / 1e3
}

/// A time as Go writes it, and so scionproto's programs: `0s`, `1.5ms`, `5h59m57s`.
pub fn go_duration(time: Duration) -> String {
    /// So many of a unit, with its decimal fraction.
    fn of(nanos: u128, digits: u32, unit: &str) -> String {
        let scale = 10u128.pow(digits);
        let (whole, rest) = (nanos / scale, nanos % scale);
        let fraction = format!(".{rest:0digits$}", digits = digits as usize);
        let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
        format!("{whole}{fraction}{unit}")
    }
    let (nanos, minute) = (time.as_nanos(), 60_000_000_000);
    match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => of(nanos, 3, "µs"),
        1_000_000..1_000_000_000 => of(nanos, 6, "ms"),
        _ => {
            let seconds = of(nanos % minute, 9, "s");
            match (nanos / minute / 60, nanos / minute % 60) {
                (0, 0) => seconds,
                (0, minutes) => format!("{minutes}m{seconds}"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_fit_the_number() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(32 << 20), "32.0 MiB");
        assert_eq!(rate(26.1e6), "26.1 Mbit/s");
        assert_eq!(rate(9.4e9), "9.40 Gbit/s");
        assert_eq!(millis(Duration::from_micros(20_300)), "20.3 ms");
    }

    #[test]
    fn times_are_written_as_go_does() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_500, "1.5µs"),
            (20_000_000, "20ms"),
            (1_000_001, "1.000001ms"),
            (1_500_000_000, "1.5s"),
            (60_000_000_000, "1m0s"),
            (21_597_000_000_000, "5h59m57s"),
            (3_600_000_000_001, "1h0m0.000000001s"),
        ] {
            assert_eq!(go_duration(Duration::from_nanos(nanos)), text);
        }
        assert_eq!(exact_millis(Duration::from_nanos(788_400)), "0.788ms");
        assert_eq!(rounded_millis(Duration::from_nanos(788_400)), 0.788);
    }
}
