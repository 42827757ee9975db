//! Many torrents over the same sockets.

use std::path::PathBuf;
use std::sync::Arc;

use hawser_address::PeerAddr;
use tokio::task::JoinHandle;

use crate::download::Download;
use crate::error::{DownloadError, SeedError};
use crate::gate::{Gate, Member};
use crate::metainfo::{InfoHash, Metainfo};
use crate::network::Network;
use crate::options::{DownloadOptions, SeedOptions};
use crate::rate::{RateLimits, SessionRates};
use crate::seed::Seed;
use crate::transport::Transport;

/// Any number of torrents, each once, that share the sockets of a [`Network`]: connections of peers go to
/// the torrent that they name, and those that name none of them are refused.
///
/// It may be dropped while torrents run; then no peer can connect to them any more.
#[derive(Debug)]
pub struct Session {
    network: Network,
    gate: Arc<Gate>,
    rates: SessionRates,
    accepts: JoinHandle<()>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.accepts.abort();
    }
}

impl Session {
    /// Without torrents, over the sockets of `network`, which is for this session alone.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new(network: Network) -> Self {
        let (gate, accepts) = open(network.clone());
        Self {
            network,
            gate,
            rates: SessionRates::unlimited(),
            accepts,
        }
    }

    /// Sets how fast all torrents together send and receive, from now on. At first there is no limit.
    /// Each torrent may have limits of its own.
    pub fn set_limits(&self, limits: RateLimits) {
        self.rates.set(limits);
    }

    /// Starts a download, as [`Download::start`] does.
    ///
    /// # Errors
    /// [`DownloadError::Duplicate`], if the session has the torrent already.
    pub fn download(
        &self,
        metainfo: Metainfo,
        dir: PathBuf,
        peers: Vec<PeerAddr>,
        options: DownloadOptions,
    ) -> Result<Download, DownloadError> {
        let member = self.member(metainfo.wire_hashes());
        let member = member.ok_or(DownloadError::Duplicate(metainfo.info_hash))?;
        Ok(Download::over(member, metainfo, dir, peers, options))
    }

    /// Starts to seed, as [`Seed::start`] does.
    ///
    /// # Errors
    /// Those of [`Seed::start`], and [`SeedError::Duplicate`], if the session has the torrent already.
    pub async fn seed(
        &self,
        metainfo: Metainfo,
        content: PathBuf,
        options: SeedOptions,
        checked: impl FnMut(u64, u64) + Send + 'static,
    ) -> Result<Seed, SeedError> {
        let member = self.member(metainfo.wire_hashes());
        let member = member.ok_or(SeedError::Duplicate(metainfo.info_hash))?;
        Seed::over(member, metainfo, content, options, checked).await
    }

    fn member(&self, info_hashes: Arc<[InfoHash]>) -> Option<Member<Network>> {
        member(&self.gate, &self.network, &self.rates, info_hashes)
    }
}

/// A gate for the connections that peers open, and the task that passes them on.
fn open<T: Transport>(transport: T) -> (Arc<Gate>, JoinHandle<()>) {
    let gate = Arc::new(Gate::default());
    let accepts = tokio::spawn(Arc::clone(&gate).run(transport));
    (gate, accepts)
}

/// The transport of one torrent; `None` if the gate has the torrent already.
fn member<T: Transport>(
    gate: &Arc<Gate>,
    transport: &T,
    rates: &SessionRates,
    info_hashes: Arc<[InfoHash]>,
) -> Option<Member<T>> {
    Some(Member {
        entrance: Arc::new(gate.open(info_hashes)?),
        transport: transport.clone(),
        rates: rates.clone(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;
    use crate::testing::{FAST, Net, addr};
    use crate::{CreateOptions, create};

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A torrent of a file with this byte, in a folder.
    fn torrent(dir: &std::path::Path, byte: u8) -> Metainfo {
        let content = dir.join(format!("{byte}.bin"));
        fs::write(&content, vec![byte; 300_000]).unwrap();
        let torrent = create(&content, &CreateOptions::default(), |_, _| {}).unwrap();
        Metainfo::parse(&torrent).unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn connections_go_to_the_torrent_that_they_name() {
        let dir = tempfile::tempdir().unwrap();
        let net = Net::default();
        net.path(1, FAST);
        let (gate, _accepts) = open(net.host(1));
        let rates = SessionRates::unlimited();
        let mut seeds = Vec::new();
        for byte in 1..=3 {
            let metainfo = torrent(dir.path(), byte);
            let hashes = metainfo.wire_hashes();
            let member = member(&gate, &net.host_handle(1), &rates, hashes).unwrap();
            let content = dir.path().join(format!("{byte}.bin"));
            let seed = Seed::over(member, metainfo, content, SeedOptions::default(), |_, _| {});
            seeds.push(seed.await.unwrap());
        }
        for byte in 1..=3 {
            let metainfo = torrent(dir.path(), byte);
            let to = dir.path().join("get");
            let options = DownloadOptions::default();
            let download = Download::over(net.host(0), metainfo, to, vec![addr(1)], options);
            let waited = tokio::time::timeout(PATIENCE, download.wait()).await;
            waited.expect("it hangs").unwrap();
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn peers_name_a_hybrid_by_either_of_its_info_hashes() {
        let dir = tempfile::tempdir().unwrap();
        let net = Net::default();
        net.path(1, FAST);
        let (gate, _accepts) = open(net.host(1));
        let rates = SessionRates::unlimited();
        let mut metainfo = torrent(dir.path(), 1);
        metainfo.info_hash_v2 = Some([9; 32]);
        let member = member(&gate, &net.host_handle(1), &rates, metainfo.wire_hashes()).unwrap();
        let (content, options) = (dir.path().join("1.bin"), SeedOptions::default());
        let seed = Seed::over(member, metainfo.clone(), content, options, |_, _| {});
        let _seed = seed.await.unwrap();
        for (to, named) in [("1", metainfo.info_hash), ("2", InfoHash([9; 20]))] {
            let mut of_one_version = metainfo.clone();
            (of_one_version.info_hash, of_one_version.info_hash_v2) = (named, None);
            let (to, options) = (dir.path().join(to), DownloadOptions::default());
            let peers = vec![addr(1)];
            let download = Download::over(net.host(0), of_one_version, to, peers, options);
            let waited = tokio::time::timeout(PATIENCE, download.wait()).await;
            // The answer names no other torrent.
            waited.expect("it hangs").unwrap();
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn peers_that_name_no_torrent_keep_nobody_out() {
        let dir = tempfile::tempdir().unwrap();
        let net = Net::default();
        let (gate, _accepts) = open(net.host(1));
        let rates = SessionRates::unlimited();
        let metainfo = torrent(dir.path(), 1);
        let hashes = metainfo.wire_hashes();
        let member = member(&gate, &net.host_handle(1), &rates, hashes).unwrap();
        let (content, options) = (dir.path().join("1.bin"), SeedOptions::default());
        let seed = Seed::over(member, metainfo.clone(), content, options, |_, _| {});
        let _seed = seed.await.unwrap();
        let (rogue, path) = (net.host(2), net.between(2, 201, 1, FAST, None));
        let mut nameless = Vec::new();
        for _ in 0..500 {
            nameless.push(rogue.dial(addr(1), path.clone()).await.unwrap());
        }
        let path = net.between(0, 101, 1, FAST, None);
        let (to, options) = (dir.path().join("get"), DownloadOptions::default());
        let download = Download::over(net.host(0), metainfo, to, vec![addr(1)], options);
        let waited = tokio::time::timeout(PATIENCE * 5, download.wait()).await;
        waited.expect("the honest peer is not served").unwrap();
        // It was let in at once, and the gate has closed what was beyond its bound.
        let dials = net.dials().into_iter();
        let dials = dials.filter(|(_, of)| *of == path.fingerprint());
        assert_eq!(dials.count(), 1);
        let open = nameless.iter().filter(|one| one.close_reason().is_none());
        assert!(open.count() <= 200);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn all_torrents_keep_to_the_limit_of_the_session_together() {
        let dir = tempfile::tempdir().unwrap();
        let net = Net::default();
        net.path(1, FAST);
        let (gate, _accepts) = open(net.host(1));
        let rates = SessionRates::unlimited();
        let limit = 600_000;
        rates.set(RateLimits {
            upload: Some(limit),
            download: None,
        });
        let (mut seeds, mut downloads) = (Vec::new(), Vec::new());
        let began = std::time::Instant::now();
        for byte in 1..=3 {
            let metainfo = torrent(dir.path(), byte);
            let info_hash = metainfo.wire_hashes();
            let member = member(&gate, &net.host_handle(1), &rates, info_hash).unwrap();
            let content = dir.path().join(format!("{byte}.bin"));
            let options = SeedOptions::default();
            let seed = Seed::over(member, metainfo.clone(), content, options, |_, _| {});
            seeds.push(seed.await.unwrap());
            let to = dir.path().join(format!("get{byte}"));
            let options = DownloadOptions::default();
            let host = net.host(u16::from(byte) + 1);
            downloads.push(Download::over(host, metainfo, to, vec![addr(1)], options));
        }
        let mut fetched = 0;
        for download in downloads {
            let waited = tokio::time::timeout(PATIENCE, download.wait()).await;
            fetched += waited.expect("it hangs").unwrap().fetched_bytes;
        }
        // 50 ms and a turn more.
        let time = began.elapsed().as_secs_f64() + 0.05;
        let allowed = limit as f64 * time + 2.0 * 16384.0;
        assert!(fetched as f64 <= allowed, "{fetched} of {allowed}");
        assert_eq!(fetched, 900_000);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_torrent_is_there_once_and_others_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let net = Net::default();
        net.path(1, FAST);
        let (gate, _accepts) = open(net.host(1));
        let rates = SessionRates::unlimited();
        let metainfo = torrent(dir.path(), 1);
        let hashes = || metainfo.wire_hashes();
        let first = member(&gate, &net.host_handle(1), &rates, hashes()).unwrap();
        assert!(member(&gate, &net.host_handle(1), &rates, hashes()).is_none());
        // A peer that names another torrent learns that it is not here.
        let (to, options) = (dir.path().join("get"), DownloadOptions::default());
        let other = torrent(dir.path(), 2);
        let download = Download::over(net.host(0), other, to, vec![addr(1)], options);
        let waited = tokio::time::timeout(PATIENCE, download.wait()).await;
        let error = waited.expect("it hangs").unwrap_err();
        assert!(matches!(error, DownloadError::AllDropped(_)), "{error}");
        drop(first);
        assert!(member(&gate, &net.host_handle(1), &rates, hashes()).is_some());
    }
}
