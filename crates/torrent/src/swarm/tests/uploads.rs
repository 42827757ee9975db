//! Uploaders that choose paths and connect back (001, section VI).

use std::collections::BTreeSet;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;

use super::*;
use crate::progress::{PathProgress, Progress, SeedProgress};
use crate::testing::{Neck, Shape, State, TestPath, scion_addr};
use crate::transport::Stream;
use crate::wire::{BLOCK, Decoder, HANDSHAKE_BYTES, Handshake, Multipath, PeerId, Request, encode};
use crate::{PathState, SelectBy};

/// Waits until `so` holds for the progress.
async fn until<P>(progress: &mut watch::Receiver<P>, so: impl FnMut(&P) -> bool) {
    let waited = tokio::time::timeout(PATIENCE, progress.wait_for(so)).await;
    waited.expect("it never comes to that").unwrap();
}

/// 001, figure 9: the seeder at host 9 reaches every leecher over AS 101 and over AS 102, each of
/// which carries `rate` Mbit/s for all leechers together.
struct Figure {
    net: Net,
    stage: Stage,
    necks: [Neck; 2],
    seed: Option<Seed>,
    progress: watch::Receiver<SeedProgress>,
}

const SEEDER: u16 = 9;
const VIA: [u16; 2] = [101, 102];

impl Figure {
    async fn new(size: usize, rate: f64) -> Self {
        let net = Net::default();
        let stage = Stage::one_file(size, 65536);
        let seed = stage.seed(&net.host(SEEDER)).await;
        Self {
            net,
            stage,
            necks: [Neck::mbit(rate), Neck::mbit(rate)],
            progress: seed.progress(),
            seed: Some(seed),
        }
    }

    /// Both paths between the seeder and leecher `n`, as the leecher sees them.
    fn paths(&self, n: u16) -> [TestPath; 2] {
        let shape = Shape {
            rate: None,
            delay: Duration::from_millis(2),
        };
        [0, 1].map(|at| {
            let neck = Some(&self.necks[at]);
            self.net.between(n, VIA[at], SEEDER, shape, neck)
        })
    }

    /// A leecher at host `n` that lets the uploader choose.
    fn get(&self, n: u16) -> Leecher {
        let paths = self.paths(n);
        let options = selected_by(SelectBy::Uploader);
        let dir = self.stage.dir.path().join(format!("get{n}"));
        let download = Download::over(
            self.net.host(n),
            self.stage.metainfo.clone(),
            dir.clone(),
            vec![addr(SEEDER)],
            options,
        );
        Leecher {
            dir,
            paths,
            progress: download.progress(),
            download,
        }
    }

    /// Waits until the seeder has assigned each leecher one of the given choices of its two paths.
    async fn until_given(&mut self, want: &[(u16, &[&[usize]])]) {
        until(&mut self.progress, |progress| {
            want.iter()
                .all(|(n, any)| any.contains(&&given(progress, *n)[..]))
        })
        .await;
    }

    fn check(&self, leecher: &Path) {
        let read = |path: PathBuf| fs::read(path.join("file.bin")).unwrap();
        assert!(read(self.stage.dir.path().join("seed")) == read(leecher.to_owned()));
    }
}

struct Leecher {
    dir: PathBuf,
    paths: [TestPath; 2],
    download: Download,
    progress: watch::Receiver<Progress>,
}

impl Leecher {
    /// The progress of one of its paths.
    fn path(&self, at: usize) -> Option<PathProgress> {
        let name = self.paths[at].fingerprint();
        let progress = self.progress.borrow();
        let mut of = progress.paths.iter().filter(|p| p.fingerprint == name);
        let found = of.next().cloned();
        assert!(of.next().is_none(), "shown twice: {progress:?}");
        found
    }
}

/// Which of a leecher's paths are connected and assigned to it by the seeder.
fn given(progress: &SeedProgress, n: u16) -> Vec<usize> {
    let mut given = BTreeSet::new();
    for peer in progress.peers.iter().filter(|p| p.peer == addr(n)) {
        let used = |decision: &crate::Decision| decision.verdict == hawser_path::Verdict::Taken;
        for (at, via) in VIA.into_iter().enumerate() {
            let interface = |of: u16, id| hawser_path::Interface {
                isd_as: scion_addr(of).isd_as,
                id,
            };
            let name = hawser_path::Fingerprint::of(&[
                interface(SEEDER, via),
                interface(via, SEEDER),
                interface(via, n),
                interface(n, via),
            ]);
            if peer.fingerprint == name && peer.decision.as_ref().is_some_and(used) {
                given.insert(at);
            }
        }
    }
    given.into_iter().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_uploader_dials_the_remaining_paths_of_a_single_leecher() {
    let figure = Figure::new(3_000_000, 16.0).await;
    let leecher = figure.get(1);
    let mut progress = leecher.progress.clone();
    until(&mut progress, |p| {
        let carries = |path: &&PathProgress| path.decision.is_some() && path.bytes > 200_000;
        p.paths.iter().filter(carries).count() == 2
    })
    .await;
    let both = [0, 1].map(|at| leecher.path(at).unwrap());
    assert!(both.iter().all(|path| path.hops == 3), "{both:?}");
    let by_uploader = |path: &PathProgress| {
        let decision = path.decision.as_ref().unwrap().to_string();
        decision.starts_with("taken: by the uploader: ")
    };
    assert!(both.iter().all(by_uploader), "{both:?}");
    let Leecher { dir, download, .. } = leecher;
    let summary = finish(download).await.unwrap();
    figure.check(&dir);
    assert_eq!(summary.paths.len(), 2, "{summary:?}");
    assert!(summary.paths.iter().all(|path| path.hops == 3));
    assert!(summary.paths.iter().any(|path| path.interfaces.len() == 4));
    // The leecher dialed one path, the seeder the other; there was no other dial.
    let dials = figure.net.dials();
    let to = |n| dials.iter().filter(|(to, _)| *to == addr(n)).count();
    assert_eq!((to(SEEDER), to(1)), (1, 1), "{dials:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_leechers_get_a_path_each_and_the_remaining_one_both() {
    let mut figure = Figure::new(6_000_000, 16.0).await;
    let one = figure.get(1);
    figure.until_given(&[(1, &[&[0, 1]])]).await;
    let two = figure.get(2);
    figure
        .until_given(&[(1, &[&[0], &[1]]), (2, &[&[0], &[1]])])
        .await;
    let progress = figure.progress.borrow().clone();
    let (first, second) = (given(&progress, 1), given(&progress, 2));
    assert_ne!(first, second);
    // The path assigned to the other leecher waits: connected, with nothing requested over it.
    let mut waits = one.progress.clone();
    let taken = 1 - first[0];
    let name = one.paths[taken].fingerprint();
    until(&mut waits, |p| {
        p.paths
            .iter()
            .any(|path| path.fingerprint == name && path.state == PathState::Idle)
    })
    .await;
    assert!(one.path(taken).unwrap().rtt.is_some());
    let waiting = progress
        .peers
        .iter()
        .filter_map(|peer| peer.decision.as_ref())
        .filter(|decision| decision.verdict != hawser_path::Verdict::Taken);
    assert!(waiting.count() > 0, "{progress:?}");
    // A third leecher must wait or take turns, but breaks nothing.
    let third = figure.get(3);
    let mut joined = figure.progress.clone();
    until(&mut joined, |p| {
        p.peers.iter().any(|peer| peer.peer == addr(3))
    })
    .await;
    drop(third.download);
    one.download.stop();
    assert!(finish(one.download).await.is_err());
    figure.until_given(&[(2, &[&[0, 1]])]).await;
    finish(two.download).await.unwrap();
    figure.check(&two.dir);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_goes_down_is_assigned_again_when_it_is_up() {
    let mut figure = Figure::new(4_000_000, 16.0).await;
    let leecher = figure.get(1);
    figure.until_given(&[(1, &[&[0, 1]])]).await;
    figure.net.set(&leecher.paths[1], State::Down);
    figure.until_given(&[(1, &[&[0]])]).await;
    figure.net.set(&leecher.paths[1], State::Up);
    figure.until_given(&[(1, &[&[0, 1]])]).await;
    finish(leecher.download).await.unwrap();
    figure.check(&leecher.dir);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_uploader_that_restarts_is_dialed_again() {
    let mut figure = Figure::new(4_000_000, 16.0).await;
    let leecher = figure.get(1);
    figure.until_given(&[(1, &[&[0, 1]])]).await;
    figure.net.remove_host(SEEDER);
    figure.seed.take().unwrap().stop().await.unwrap();
    let mut progress = leecher.progress.clone();
    until(&mut progress, |p| {
        p.paths.iter().all(|path| path.rtt.is_none())
    })
    .await;
    let seed = figure.stage.seed(&figure.net.host(SEEDER)).await;
    figure.progress = seed.progress();
    figure.until_given(&[(1, &[&[0, 1]])]).await;
    finish(leecher.download).await.unwrap();
    figure.check(&leecher.dir);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_uploader_without_paths_serves_over_accepted_connections() {
    let net = Net::default();
    let stage = Stage::one_file(2_000_000, 65536);
    let _seed = stage.seed(&net.host(1)).await;
    // Only the leecher knows the paths.
    net.path(1, FAST);
    net.path(1, FAST);
    let options = selected_by(SelectBy::Uploader);
    let summary = finish(stage.download_with(&net.host(0), &[1], options))
        .await
        .unwrap();
    stage.check();
    assert_eq!(summary.paths.len(), 1);
    assert_eq!(net.dials().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_downloader_chooses_where_the_uploader_does_not() {
    let net = Net::default();
    let stage = Stage::one_file(2_000_000, 65536);
    let content = stage.dir.path().join("seed/file.bin");
    let options = SeedOptions {
        select_by: SelectBy::Downloader,
        ..SeedOptions::default()
    };
    let host = net.host(1);
    let seed = Seed::over(host, stage.metainfo.clone(), content, options, |_, _| {});
    let _seed = seed.await.unwrap();
    net.path(1, mbit(16.0, 2));
    net.path(1, mbit(16.0, 2));
    let options = selected_by(SelectBy::Uploader);
    let summary = finish(stage.download_with(&net.host(0), &[1], options))
        .await
        .unwrap();
    stage.check();
    assert_eq!(summary.paths.len(), 2);
}

/// Connects to the seeder over the first path of host `n`, and sends a handshake and `says`.
async fn speak(
    figure: &Figure,
    n: u16,
    extended: bool,
    says: &[Message],
) -> (Arc<dyn Connection>, Stream) {
    let [path, _] = figure.paths(n);
    let connection = figure.net.host(n).dial(addr(SEEDER), path).await.unwrap();
    let (read, mut write) = connection.stream().await.unwrap();
    let handshake = Handshake {
        info_hash: figure.stage.metainfo.info_hash,
        peer_id: PeerId::random(),
        extended,
        dht: false,
        version_two: false,
    };
    let mut out = handshake.encode().to_vec();
    encode(&Message::Interested, &mut out);
    says.iter().for_each(|message| encode(message, &mut out));
    write.write_all(&out).await.unwrap();
    (connection, (read, write))
}

/// Requests a block as soon as it is unchoked, and waits until the block arrives.
async fn is_served(figure: &Figure, n: u16, extended: bool, says: &[Message]) {
    let (_connection, (mut read, mut write)) = speak(figure, n, extended, says).await;
    read.read_exact(&mut [0; HANDSHAKE_BYTES]).await.unwrap();
    let mut decoder = Decoder::new(figure.stage.metainfo.pieces.count());
    let served = async {
        loop {
            while let Some(message) = decoder.next_message().unwrap() {
                match message {
                    Message::Unchoke => {
                        let mut out = Vec::new();
                        let (piece, begin, length) = (0, 0, BLOCK);
                        let request = Request {
                            piece,
                            begin,
                            length,
                        };
                        encode(&Message::Request(request), &mut out);
                        write.write_all(&out).await.unwrap();
                    }
                    Message::Piece { .. } => return,
                    _ => {}
                }
            }
            let read = read.read_buf(decoder.buffer(4096)).await.unwrap();
            assert!(read > 0, "the seeder hung up");
        }
    };
    let served = tokio::time::timeout(PATIENCE, served).await;
    served.expect("the seeder does not serve");
}

fn extended(id: u8, payload: Vec<u8>) -> Message {
    Message::Extended {
        id,
        payload: payload.into(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dialed_peer_gets_the_extended_handshake_before_it_answers() {
    let net = Net::default();
    let stage = Stage::one_file(100_000, 16384);
    let peer = net.host(1);
    net.path(1, FAST);
    let options = selected_by(SelectBy::Uploader);
    let _download = stage.download_with(&net.host(0), &[1], options);
    let introduced = async {
        let connection = peer.accept().await.unwrap();
        let (mut read, _write) = connection.stream().await.unwrap();
        read.read_exact(&mut [0; HANDSHAKE_BYTES]).await.unwrap();
        let mut decoder = Decoder::new(stage.metainfo.pieces.count());
        let mut said = Vec::new();
        loop {
            match decoder.next_message().unwrap() {
                Some(Message::Extended { id: 0, payload }) => {
                    return (said, ExtendedHandshake::decode(&payload).unwrap());
                }
                Some(message) => said.push(message),
                None => drop(read.read_buf(decoder.buffer(4096)).await.unwrap()),
            }
        }
    };
    let (said, introduction) = tokio::time::timeout(PATIENCE, introduced).await.unwrap();
    assert_eq!(said, [Message::Interested]);
    assert!(introduction.multipath.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_without_the_extension_are_served() {
    let figure = Figure::new(500_000, 100.0).await;
    is_served(&figure, 1, false, &[]).await;
    // Sends no extended handshake, although it announces support.
    is_served(&figure, 2, true, &[]).await;
    let other = ExtendedHandshake::default().encode();
    is_served(&figure, 3, true, &[extended(0, other)]).await;
    // Lists the extension, but never offers itself as a downloader.
    let ours = ExtendedHandshake {
        multipath: Some(9),
        ..ExtendedHandshake::default()
    };
    is_served(&figure, 4, true, &[extended(0, ours.encode())]).await;
    let back = figure.net.dials().into_iter();
    assert_eq!(back.filter(|(to, _)| *to != addr(SEEDER)).count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_of_a_foreign_address_is_refused_and_the_peer_served() {
    let figure = Figure::new(500_000, 100.0).await;
    figure.paths(2);
    let victim = figure.net.host(2);
    let ours = ExtendedHandshake {
        multipath: Some(9),
        ..ExtendedHandshake::default()
    };
    let lie = Multipath::Offer {
        addr: scion_addr(2),
        paths: 4,
    };
    let says = [extended(0, ours.encode()), extended(1, lie.encode())];
    is_served(&figure, 1, true, &says).await;
    let back = figure.net.dials().into_iter();
    assert_eq!(back.filter(|(to, _)| *to != addr(SEEDER)).count(), 0);
    let dialed = tokio::time::timeout(Duration::from_millis(10), victim.accept()).await;
    assert!(dialed.is_err(), "the victim was dialed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_message_ends_only_its_own_connection() {
    let figure = Figure::new(500_000, 100.0).await;
    let bad = extended(1, b"not bencode".to_vec());
    let (_connection, (mut read, _write)) = speak(&figure, 1, true, &[bad]).await;
    let ended = tokio::time::timeout(PATIENCE, read.read_to_end(&mut Vec::new())).await;
    assert!(ended.is_ok(), "the seeder did not hang up");
    is_served(&figure, 2, false, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leechers_choose_paths_for_each_other() {
    let net = Net::default();
    let stage = Stage::one_file(2_000_000, 32768);
    for via in VIA {
        net.between(1, via, 2, mbit(40.0, 2), None);
    }
    let whole = fs::read(stage.dir.path().join("seed/file.bin")).unwrap();
    let start = |n: u16, peer: u16, range: std::ops::Range<usize>| {
        let mut bytes = vec![0; whole.len()];
        bytes[range.clone()].copy_from_slice(&whole[range]);
        let dir = stage.dir.path().join(n.to_string());
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("file.bin"), bytes).unwrap();
        let options = selected_by(SelectBy::Uploader);
        let (metainfo, peers) = (stage.metainfo.clone(), vec![addr(peer)]);
        Download::over(net.host(n), metainfo, dir, peers, options)
    };
    let one = start(1, 2, 0..1_000_000);
    let two = start(2, 1, 900_000..2_000_000);
    // The first to finish leaves, perhaps before the other has everything.
    let (summary, n) = tokio::select! {
        summary = finish(one) => (summary.unwrap(), 1),
        summary = finish(two) => (summary.unwrap(), 2),
    };
    assert!(summary.fetched_bytes > 0 && summary.resumed_bytes > 0);
    let got = fs::read(stage.dir.path().join(format!("{n}/file.bin"))).unwrap();
    assert!(got == whole);
}
