//! Numbers for people.

use std::time::Duration;

use console::{measure_text_width, truncate_str};

/// Shortest bar that is drawn, in columns.
const SHORTEST_BAR: usize = 8;

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

/// A rate in bit/s that somebody has set: `10 Mbit/s`, `2.5 Gbit/s`.
pub fn limit(rate: u64) -> String {
    let (scale, unit) = match rate {
        1_000_000_000.. => (1e9, "Gbit/s"),
        1_000_000.. => (1e6, "Mbit/s"),
        1_000.. => (1e3, "kbit/s"),
        _ => (1.0, "bit/s"),
    };
    let value = (rate as f64 / scale * 1000.0).round() / 1000.0;
    format!("{value} {unit}")
}

/// A rate in Mbit/s, as [`rate`] writes it.
pub fn mbit(mbit: f64) -> String {
    rate(mbit * 1e6)
}

/// The ASes on a path: `1 hop`, `4 hops`; empty if unknown.
pub fn hops(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => "1 hop".to_owned(),
        _ => format!("{count} hops"),
    }
}

/// The completed share: ` 45 %  14.4 of 32.0 MiB`.
pub fn share(done: u64, total: u64) -> String {
    // Rounded down, so that 100 % means all.
    let percent = (u128::from(done) * 100).checked_div(u128::from(total));
    let (done, whole) = (bytes(done), bytes(total));
    let done = match (done.split_once(' '), whole.split_once(' ')) {
        (Some((count, unit)), Some((_, same))) if unit == same => count,
        _ => &done,
    };
    format!("{:>3} %  {done} of {whole}", percent.unwrap_or(100))
}

/// Remaining time: `12 s left`, `1m05s left`, `3h20m left`.
pub fn left(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s left"),
        (0, _) => format!("{minutes}m{:02}s left", seconds % 60),
        (1..100, _) => format!("{hours}h{minutes:02}m left"),
        _ => String::new(),
    }
}

/// A name, a bar if there is room for one, and the text after it, one column narrower than
/// `columns`.
pub fn bar(name: &str, done: u64, total: u64, tail: &str, columns: usize) -> String {
    let name = truncate_str(name, columns / 4, "…");
    let words = measure_text_width(&name) + measure_text_width(tail) + 5;
    let room = columns.saturating_sub(words);
    if room < SHORTEST_BAR {
        let left = columns.saturating_sub(measure_text_width(tail) + 3);
        let name = truncate_str(&name, left.max(SHORTEST_BAR), "…");
        return format!("{name}  {tail}").trim_end().to_owned();
    }
    let full = match total {
        0 => room,
        _ => (room as u128 * u128::from(done.min(total)) / u128::from(total)) as usize,
    };
    let (full, rest) = ("█".repeat(full), "░".repeat(room - full));
    format!("{name}  {full}{rest}  {tail}")
        .trim_end()
        .to_owned()
}

/// Breaks a line between words where it is wider than `columns`, and indents the lines that follow.
pub fn wrapped(line: &str, columns: usize, indent: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = line;
    let mut start = "";
    let spaces = " ".repeat(indent);
    loop {
        let room = columns.saturating_sub(start.len()).max(1);
        let mut width = 0;
        let over = rest.char_indices().find(|(_, c)| {
            width += measure_text_width(c.encode_utf8(&mut [0; 4]));
            width > room
        });
        let Some((over, _)) = over else {
            lines.push(format!("{start}{rest}"));
            return lines;
        };
        // The space after the last word that fits, but no space that the line begins with.
        let begin = rest.len() - rest.trim_start().len();
        let at = rest[..over].rfind(' ').filter(|at| *at > begin);
        let at = at.or_else(|| Some(begin + rest[begin..].find(' ')?));
        let Some(at) = at else {
            lines.push(format!("{start}{rest}"));
            return lines;
        };
        lines.push(format!("{start}{}", rest[..at].trim_end()));
        rest = rest[at..].trim_start();
        start = &spaces;
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

/// A time in milliseconds for programs, to the microsecond.
pub fn rounded_millis(time: Duration) -> f64 {
    ((time.as_nanos() + 500) / 1000) as f64 / 1e3
}

/// A time in the format of Go and so of scionproto's programs: `0s`, `1.5ms`, `5h59m57s`.
pub fn go_duration(time: Duration) -> String {
    /// A number of units, with its decimal fraction.
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
        assert_eq!(limit(100_000_000), "100 Mbit/s");
        assert_eq!(limit(2_500_000_000), "2.5 Gbit/s");
        assert_eq!(hops(1), "1 hop");
        assert_eq!(hops(4), "4 hops");
        assert_eq!(left(Duration::from_secs(65)), "1m05s left");
        assert_eq!(left(Duration::from_secs(12_000)), "3h20m left");
        assert_eq!(millis(Duration::from_micros(20_300)), "20.3 ms");
    }

    #[test]
    fn a_bar_fills_the_row() {
        let tail = share(1 << 20, 4 << 20);
        assert_eq!(tail, " 25 %  1.0 of 4.0 MiB");
        let text = bar("data", 1 << 20, 4 << 20, &tail, 46);
        assert_eq!(text, "data  ████░░░░░░░░░░░░   25 %  1.0 of 4.0 MiB");
        assert_eq!(measure_text_width(&text), 45);
        assert_eq!(bar("data", 1, 4, &tail, 30), "data   25 %  1.0 of 4.0 MiB");
        assert_eq!(share(0, 0), "100 %  0 of 0 B");
        assert_eq!(share(999, 1 << 20), "  0 %  999 B of 1.0 MiB");
    }

    #[test]
    fn long_lines_break_between_words() {
        let text = "  ab cd efghijklm no";
        assert_eq!(wrapped(text, 20, 4), [text]);
        assert_eq!(wrapped(text, 9, 4), ["  ab cd", "    efghijklm", "    no"]);
        assert_eq!(wrapped("日本 日本", 6, 0), ["日本", "日本"]);
    }

    #[test]
    fn times_have_the_format_of_go() {
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
