//! The time that several transfers at once take together.

use std::time::{Duration, Instant};

/// A transfer with the moment at which it was over.
pub(crate) struct Ended<T> {
    pub it: T,
    at: Instant,
}

/// Awaits a transfer.
pub(crate) async fn ended<T, E>(
    transfer: impl Future<Output = Result<T, E>>,
) -> Result<Ended<T>, E> {
    let it = transfer.await?;
    Ok(Ended {
        it,
        at: Instant::now(),
    })
}

/// The time in seconds from the start of the first of these transfers, which took `seconds` each, to the end
/// of the last one; 0 for none. They do not begin together: with many processes the first ones are over
/// before the last ones begin, and by the time of the longest all would seem faster than they are.
pub(crate) fn window<T>(transfers: &[Ended<T>], seconds: impl Fn(&T) -> f64) -> f64 {
    let start = |transfer: &Ended<T>| {
        let time = Duration::try_from_secs_f64(seconds(&transfer.it)).unwrap_or_default();
        transfer.at.checked_sub(time).unwrap_or(transfer.at)
    };
    let first = transfers.iter().map(start).min();
    let last = transfers.iter().map(|transfer| transfer.at).max();
    let time = first.zip(last).map(|(first, last)| last - first);
    time.unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_from_the_first_start_to_the_last_end() {
        let now = Instant::now();
        let all = [(5, 2.0), (6, 1.0), (4, 2.5)].map(|(second, seconds)| Ended {
            it: seconds,
            at: now + Duration::from_secs(second),
        });
        assert!((window(&all, |seconds| *seconds) - 4.5).abs() < 1e-6);
        assert!((window(&all[..1], |seconds| *seconds) - 2.0).abs() < 1e-6);
        assert!(window::<f64>(&[], |seconds| *seconds).abs() < 1e-6);
    }
}
