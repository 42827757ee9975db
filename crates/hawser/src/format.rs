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
}
