//! `--busy-poll` of `hawser shim up`.

use std::convert::Infallible;
use std::time::Duration;

use hawser_kernel::pace::BusyPoll;
use hawser_kernel::power::is_on_battery;
use hawser_topology::parse_duration;
use tokio::task::spawn_blocking;

/// The time of `auto`: that of a round trip in a local network. Where one takes longer, a packet that comes
/// later is waited for after that time.
const AUTO: Duration = Duration::from_micros(200);
/// The longest time that may be given. A thread that looks all the time takes a processor.
const MAX: Duration = Duration::from_millis(100);
/// Interval at which it is looked whether the machine runs on a battery.
const POWER_INTERVAL: Duration = Duration::from_secs(10);

/// For how long threads look for packets after traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// For this time, which is 0 for `off`.
    Time(Duration),
    /// For [`AUTO`] as long as the machine does not run on a battery.
    Auto,
}

/// Reads a time, `off` or `auto`.
pub fn parse(text: &str) -> Result<Wanted, String> {
    match (text, parse_duration(text)) {
        ("off", _) => Ok(Wanted::Time(Duration::ZERO)),
        ("auto", _) => Ok(Wanted::Auto),
        (_, Ok(time)) if time <= MAX => Ok(Wanted::Time(time)),
        _ => Err("write off, auto, or a time up to 100ms, for example 200us".to_owned()),
    }
}

/// Sets the time, and changes it with the power.
pub async fn apply(busy_poll: BusyPoll, wanted: Wanted) -> Infallible {
    if let Wanted::Time(time) = wanted {
        busy_poll.set(time);
        return std::future::pending().await;
    }
    loop {
        // A driver may ask the hardware. What is not known counts as a battery.
        let is_on_battery = spawn_blocking(is_on_battery).await.unwrap_or(true);
        busy_poll.set(match is_on_battery {
            true => Duration::ZERO,
            false => AUTO,
        });
        tokio::time::sleep(POWER_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_bound_and_off_is_none() {
        assert_eq!(parse("off"), Ok(Wanted::Time(Duration::ZERO)));
        assert_eq!(parse("auto"), Ok(Wanted::Auto));
        assert_eq!(parse("200us"), Ok(Wanted::Time(AUTO)));
        assert_eq!(parse("100ms"), Ok(Wanted::Time(MAX)));
        for wrong in ["101ms", "1", "on", "", "-1us"] {
            assert!(parse(wrong).unwrap_err().contains("off"), "{wrong:?}");
        }
    }

    #[tokio::test]
    async fn a_time_that_is_given_holds_on_any_power() {
        let busy_poll = BusyPoll::default();
        let time = Duration::from_micros(50);
        let applied = apply(busy_poll.clone(), Wanted::Time(time));
        let applied = tokio::time::timeout(Duration::ZERO, applied);
        assert!(applied.await.is_err());
        assert_eq!(busy_poll.time(), time);
    }
}
