//! Whether plain IP meets the network that SCION packets meet.

use std::time::Duration;

use crate::error::ExperimentError;

/// The most by which the round trip over plain IP may differ from that of the links.
const TOLERANCE: Duration = Duration::from_millis(2);

/// Refuses to compare with TCP that does not meet the links' delay.
pub fn check_round_trip(measured: Duration, links: Duration) -> Result<(), ExperimentError> {
    if measured.abs_diff(links) <= TOLERANCE {
        return Ok(());
    }
    Err(ExperimentError::Step(format!(
        "plain IP has a round trip of {:.1} ms where the links have {} ms: TCP would not be comparable (leave it out)",
        measured.as_secs_f64() * 1e3,
        links.as_millis()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_round_trip_is_refused() {
        let links = Duration::from_millis(194);
        assert!(check_round_trip(links + Duration::from_micros(900), links).is_ok());
        let error = check_round_trip(Duration::from_micros(100), links).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("0.1 ms") && text.contains("194 ms"), "{text}");
        assert!(check_round_trip(2 * links, links).is_err());
    }
}
