//! The papers' measurements, in Mbit/s: the only place for these figures.

/// 001, Fig. 5: two links of 10 Gbit/s.
pub mod fig5 {
    /// BitTorrent over IP, with QUIC.
    pub const OVER_IP: f64 = 1500.0;
    /// One path.
    pub const ONE_PATH: f64 = 1100.0;
    /// Two paths.
    pub const TWO_PATHS: f64 = 2200.0;
}

/// 001, Fig. 8, on the network of Fig. 7a. The text calls the ratio of the two "factor three".
pub mod fig8 {
    /// The two shortest paths, which share a link of 10 Mbit/s.
    pub const NAIVE: f64 = 8.0;
    /// Two disjoint paths.
    pub const DISJOINT: f64 = 26.0;
}

/// 001, Fig. 10, on the network of Fig. 9: two leechers together.
pub mod fig10 {
    /// Each leecher chooses its path: the middle of "7-8 Mbit/s".
    pub const LEECHER_BASED: f64 = 7.5;
    /// The seeder chooses for both.
    pub const UPLOAD_BASED: f64 = 14.0;
}

/// 000, 5.3.1 and 5.3.2: links of 1 Gbit/s, with cross traffic between second 10 and 20.
pub mod congestion {
    /// Two paths, before cross traffic.
    pub const BEFORE: f64 = 1000.0;
    /// QUIC over IP, which uses one path, during cross traffic.
    pub const OVER_IP: f64 = 180.0;
    /// Two paths, one of them congested.
    pub const ONE_CONGESTED: f64 = 900.0;
    /// Two paths, both congested: 150 Mbit/s each.
    pub const BOTH_CONGESTED: f64 = 300.0;
}

/// Goodput of `files` downloads of `gigabytes` each that are all complete after `seconds`.
fn goodput(files: usize, gigabytes: f64, seconds: f64) -> f64 {
    files as f64 * gigabytes * 8e3 / seconds
}

/// 000, Table 5.5: the number of concurrent downloads of 5 GB, and their total goodput.
pub fn concurrent() -> [(usize, f64); 5] {
    let seconds = [(1, 32.3), (2, 51.5), (3, 74.2), (5, 119.5), (10, 245.8)];
    seconds.map(|(count, seconds)| (count, goodput(count, 5.0, seconds)))
}

/// 000, Table 5.6: the gigabytes of each of three concurrent downloads, and their total goodput.
pub fn filesize() -> [(f64, f64); 5] {
    let seconds = [
        (1.0, 13.2),
        (2.5, 32.3),
        (5.0, 74.2),
        (10.0, 167.0),
        (20.0, 409.0),
    ];
    seconds.map(|(gigabytes, seconds)| (gigabytes, goodput(3, gigabytes, seconds)))
}

/// 003, 4 (Hercules): links of 10 Gbit/s.
pub mod hercules {
    /// The links.
    pub const LINK: f64 = 10_000.0;
    /// Fig. 1: two paths, the least total while one of them is congested.
    pub const LEAST: f64 = 7500.0;
    /// Fig. 1: two paths, the total of the whole run.
    pub const OVERALL: f64 = 8600.0;
    /// Fig. 2: Hercules at 194 ms, a lower bound: "above 8 Gbps".
    pub const FAR: f64 = 8000.0;
    /// Fig. 2: one TCP flow at 194 ms, an upper bound: "below 2 Gbps".
    pub const FAR_TCP: f64 = 2000.0;
}

/// A mean and a standard deviation.
pub type Spread = (f64, f64);

/// 002, Performance evaluation (slide 47): goodput and throughput in SCIONLab, 30 s, ten runs over
/// connections inside Europe and overseas.
pub mod shila {
    use super::Spread;

    /// Shila with one path.
    pub const ONE_PATH: [Spread; 2] = [(10.75, 3.28), (17.45, 5.91)];
    /// Shila with eight paths.
    pub const EIGHT_PATHS: [Spread; 2] = [(12.74, 5.53), (19.37, 8.36)];
    /// QUIC over one SCION path.
    pub const QUIC: [Spread; 2] = [(33.31, 3.28), (36.82, 3.62)];
}
