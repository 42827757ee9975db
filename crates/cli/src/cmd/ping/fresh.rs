//! A path over which packets are sent for long: kept from expiring.

use std::sync::Arc;

use hawser_endhost::{Endhost, Path};
use tokio::sync::watch;

/// A path and its renewals, over the same interfaces.
pub struct Fresh {
    path: Path,
    offered: watch::Receiver<Arc<Vec<Path>>>,
}

impl Fresh {
    /// Keeps `path` of `host` from expiring.
    pub fn new(host: &Endhost, path: Path) -> Self {
        let offered = host.watch(path.info().dst);
        Self { path, offered }
    }

    /// The path as it was offered last. While it is not offered, as when a link is down, the last one
    /// that was: its packets show when it works again, or why it does not.
    pub fn now(&mut self) -> Path {
        if let Some(renewed) = renewal(&self.path, &self.offered.borrow()) {
            self.path = renewed;
        }
        self.path.clone()
    }
}

/// The newest of `offered` that has the same interfaces as `path`.
fn renewal(path: &Path, offered: &[Path]) -> Option<Path> {
    let same = |one: &&Path| one.fingerprint() == path.fingerprint();
    let newest = offered.iter().filter(same).max_by_key(|one| one.expiry());
    newest.cloned()
}

#[cfg(test)]
mod tests {
    use hawser_endhost::IsdAsn;
    use hawser_path::Metadata;

    use super::*;

    /// A path from one AS to another over an interface of each, which expires at `expiry`.
    fn path(interface: u8, expiry: u64) -> Path {
        let src: IsdAsn = "1-ff00:0:110".parse().unwrap();
        let dst: IsdAsn = "1-ff00:0:111".parse().unwrap();
        let over = [format!("{src}#{interface}"), format!("{dst}#2")];
        let over = over.map(|text| text.parse().unwrap());
        let metadata = Metadata {
            mtu: 1472,
            expiry,
            ..Metadata::default()
        };
        let info = hawser_path::Path::new(src, dst, over.into(), metadata).unwrap();
        // Two hops in construction direction (SCION header specification, "Path Type: SCION").
        let mut raw = (2u32 << 12).to_be_bytes().to_vec();
        raw.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        for (ingress, egress) in [(0, interface), (2, 0)] {
            raw.extend([0, 63, 0, ingress, 0, egress, 0, 0, 0, 0, 0, 0]);
        }
        Path::new(info, raw, Some("127.0.0.1:30042".parse().unwrap())).unwrap()
    }

    #[test]
    fn the_renewal_of_a_path_has_its_interfaces() {
        let old = path(1, 100);
        let offered = [path(7, 900), path(1, 200), path(1, 300)];
        assert_eq!(renewal(&old, &offered), Some(path(1, 300)));
        assert_eq!(renewal(&old, &offered[..1]), None);
        assert_eq!(renewal(&old, &[]), None);
    }
}
