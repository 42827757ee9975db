//! The clock of this place.

use std::time::SystemTime;

/// Minutes since the last midnight at which a Sunday began, by the time zone of this host, as of `now`; that of
/// UTC for a time that has no date there.
pub fn minute_of_week(now: SystemTime) -> u16 {
    let since = now.duration_since(SystemTime::UNIX_EPOCH);
    let seconds = since.map_or(0, |since| since.as_secs());
    let seconds = libc::time_t::try_from(seconds).unwrap_or(libc::time_t::MAX);
    // SAFETY: `tm` has numbers and a pointer, for which zero is a value.
    let mut local: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: `tzset` takes nothing, and the C library locks what it sets.
    unsafe { tzset() };
    // SAFETY: both pointers are to values that live until the call is over.
    let known = unsafe { !libc::localtime_r(&raw const seconds, &raw mut local).is_null() };
    match known {
        true => minute(local.tm_wday, local.tm_hour, local.tm_min),
        // The first of January 1970 was a Thursday.
        false => u16::try_from((seconds / 60 + 4 * 24 * 60) % (7 * 24 * 60)).unwrap_or(0),
    }
}

fn minute(day: i32, hour: i32, minute: i32) -> u16 {
    u16::try_from((day * 24 + hour) * 60 + minute).unwrap_or(0)
}

unsafe extern "C" {
    fn tzset();
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_is_the_time_that_the_host_shows() {
        // Dates of summer and of winter, at whatever place this runs.
        for seconds in [0, 1_700_000_000, 1_720_000_000_u64] {
            let now = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            let date = Command::new("date")
                .args(["-d", &format!("@{seconds}"), "+%w %H %M"])
                .output();
            let shown = String::from_utf8(date.unwrap().stdout).unwrap();
            let [day, hour, minutes] = shown
                .split_whitespace()
                .map(|number| number.parse().unwrap())
                .collect::<Vec<i32>>()[..]
            else {
                panic!("{shown}");
            };
            assert_eq!(minute_of_week(now), minute(day, hour, minutes), "{seconds}");
        }
    }
}
