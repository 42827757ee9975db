//! Which rate control a subflow begins with.

pub use hawser_congestion::Algorithm;
use hawser_congestion::Announced;
use hawser_endhost::Path;

/// What rate control begins with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    pub algorithm: Algorithm,
    pub announced: Announced,
}

impl Start {
    /// For a path that announces what it carries.
    pub(crate) fn of(algorithm: Algorithm, path: &Path, datagram: u16) -> Self {
        let info = path.info();
        let bandwidth = &info.metadata.bandwidth;
        let announced = Announced::of(bandwidth, info.metadata.mtu, datagram, info.latency());
        Self {
            algorithm,
            announced,
        }
    }

    /// For a path that is unknown here.
    pub(crate) fn unknown(algorithm: Algorithm) -> Self {
        Self {
            algorithm,
            announced: Announced::default(),
        }
    }
}
