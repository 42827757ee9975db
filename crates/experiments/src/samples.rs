//! Bytes over time, and rates from them.

use crate::transfer::Sample;

/// Seconds between two points of [`Samples`] that add up several downloads.
const STEP: f64 = 0.1;

/// The bytes of one or several downloads together, by seconds since their start.
#[derive(Debug, Clone, Default)]
pub struct Samples(pub(crate) Vec<(f64, f64)>);

impl Samples {
    /// Adds up downloads that started together.
    pub(crate) fn sum(downloads: &[&[Sample]]) -> Self {
        let series: Vec<Self> = downloads.iter().map(|one| Self::of(one)).collect();
        Self::together(&series)
    }

    /// Adds up series with a common start.
    pub(crate) fn together(series: &[Self]) -> Self {
        let end = series.iter().map(Self::end).fold(0.0, f64::max);
        let steps = (end / STEP).ceil() as usize;
        let point = |step| {
            let time = (step as f64 * STEP).min(end);
            (time, series.iter().map(|one| one.at(time)).sum())
        };
        Self((0..=steps).map(point).collect())
    }

    pub(crate) fn of(samples: &[Sample]) -> Self {
        let points = samples.iter().map(|s| (s.seconds, s.bytes as f64));
        Self(std::iter::once((0.0, 0.0)).chain(points).collect())
    }

    /// The bytes over one path, by its fingerprint.
    pub(crate) fn of_path(samples: &[Sample], fingerprint: &str) -> Self {
        let bytes = |sample: &Sample| sample.paths.get(fingerprint).copied().unwrap_or_default();
        let points = samples.iter().map(|s| (s.seconds, bytes(s) as f64));
        Self(std::iter::once((0.0, 0.0)).chain(points).collect())
    }

    /// The same series, begun `seconds` later: nothing was carried before.
    pub(crate) fn later(self, seconds: f64) -> Self {
        let points = self
            .0
            .into_iter()
            .map(|(time, bytes)| (time + seconds, bytes));
        Self(std::iter::once((0.0, 0.0)).chain(points).collect())
    }

    /// The last recorded second.
    pub(crate) fn end(&self) -> f64 {
        self.0.last().map_or(0.0, |(time, _)| *time)
    }

    /// The bytes of all samples.
    pub(crate) fn total(&self) -> f64 {
        self.0.last().map_or(0.0, |(_, bytes)| *bytes)
    }

    /// The bytes at `time`, interpolated between two points.
    pub(crate) fn at(&self, time: f64) -> f64 {
        interpolate(&self.0, time)
    }

    /// The time at which this many bytes had arrived.
    pub(crate) fn time_of(&self, bytes: f64) -> f64 {
        let swapped: Vec<_> = self.0.iter().map(|&(time, bytes)| (bytes, time)).collect();
        interpolate(&swapped, bytes)
    }

    /// The goodput between two times, in Mbit/s.
    pub(crate) fn rate(&self, from: f64, to: f64) -> f64 {
        (self.at(to) - self.at(from)) * 8e-6 / (to - from).max(1e-9)
    }

    /// The longest time between two times in which no byte was added, in seconds, and when it ended. It
    /// counts from the last sample before it to the first one after.
    pub(crate) fn longest_pause(&self, from: f64, to: f64) -> (f64, f64) {
        let (mut since, mut bytes) = (from, self.at(from));
        let mut longest = (0.0, from);
        let within = self.0.iter().filter(|point| (from..to).contains(&point.0));
        for &(time, now) in within.chain(&[(to, f64::INFINITY)]) {
            if now > bytes {
                if time - since > longest.0 {
                    longest = (time - since, time);
                }
                (since, bytes) = (time, now);
            }
        }
        longest
    }

    /// Seconds after `from` until one second passes at `wanted` Mbit/s or more; infinite if none
    /// does.
    pub(crate) fn recovery(&self, from: f64, wanted: f64) -> f64 {
        let mut time = from;
        while time + 1.0 <= self.end() {
            if self.rate(time, time + 1.0) >= wanted {
                return time - from;
            }
            time += STEP;
        }
        f64::INFINITY
    }
}

/// The value of an increasing function at `x`, given its points in order.
fn interpolate(points: &[(f64, f64)], x: f64) -> f64 {
    let (before, after) = points.split_at(points.partition_point(|point| point.0 < x));
    match (before.last(), after.first()) {
        (Some((x0, y0)), Some((x1, y1))) if x1 > x0 => y0 + (y1 - y0) * (x - x0) / (x1 - x0),
        (_, Some((_, y))) | (Some((_, y)), None) => *y,
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_between_points() {
        // 1 MB/s for 10 s, then half of that for 10 s, then 1 MB/s.
        let points = (0..=300).map(|step| {
            let t = f64::from(step) / 10.0;
            let slow = (t - 10.0).clamp(0.0, 10.0);
            (t, 1e6 * (t - slow / 2.0))
        });
        let samples = Samples(points.collect());
        assert!((samples.rate(2.0, 9.95) - 8.0).abs() < 1e-6);
        assert!((samples.rate(10.0, 20.0) - 4.0).abs() < 1e-6);
        assert!(samples.recovery(20.0, 7.2) < 0.15);
        assert!(samples.recovery(20.0, 8.8).is_infinite());
        assert_eq!(samples.at(99.0), samples.at(30.0));
        assert!((samples.time_of(12.5e6) - 15.0).abs() < 1e-6);
        assert_eq!(Samples::default().at(1.0), 0.0);
    }

    #[test]
    fn the_longest_pause_is_found_within_its_time() {
        // Nothing from 2 to 5 s and from 6 to 10 s, with samples all the time.
        let points = (0..=100).map(|step| {
            let t = f64::from(step) / 10.0;
            (t, 1e6 * (t.min(2.0) + (t - 5.0).clamp(0.0, 1.0)))
        });
        let samples = Samples(points.collect());
        let (pause, ended) = samples.longest_pause(1.0, 6.0);
        assert!((pause - 3.1).abs() < 1e-6 && (ended - 5.1).abs() < 1e-6);
        // The end of the time ends a pause.
        assert!((samples.longest_pause(1.0, 10.0).0 - 4.0).abs() < 1e-6);
        assert!((samples.longest_pause(3.0, 5.5).0 - 2.1).abs() < 1e-6);
    }

    #[test]
    fn downloads_are_added_up() {
        let sample = |seconds: f64, bytes| Sample {
            seconds,
            bytes,
            ..Sample::default()
        };
        let (one, two) = ([sample(1.0, 100)], [sample(2.0, 400)]);
        let both = Samples::sum(&[&one, &two]);
        assert_eq!(both.at(1.0), 300.0);
        assert_eq!(both.at(2.0), 500.0);
        assert_eq!((both.end(), both.total()), (2.0, 500.0));
    }
}
