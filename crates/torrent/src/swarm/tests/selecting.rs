//! Downloads of some of the files.

use sha1::{Digest, Sha1};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use super::*;
use crate::bitfield::Bitfield;
use crate::wire::{Decoder, HANDSHAKE_BYTES, Handshake, PeerId, encode};
use crate::{PeerSource, Priority, SeedLimits, SelectError, Selection, SelectionError};

/// Bytes of a piece.
const PIECE: u32 = 32768;

/// Three files; pieces cross from each into the next one.
fn three() -> Stage {
    let files = [("set/a", 100_000), ("set/b", 200_000), ("set/c", 50_000)];
    Stage::new(&files, PIECE)
}

/// The file at this index, and no other.
fn only(file: usize) -> Selection {
    Selection::none().with_file(file, Priority::Normal)
}

fn selecting(files: Selection) -> DownloadOptions {
    DownloadOptions {
        files,
        ..DownloadOptions::default()
    }
}

/// The same, which waits for peers to be found.
fn finding_with(files: Selection) -> DownloadOptions {
    DownloadOptions {
        finds_peers: true,
        ..selecting(files)
    }
}

impl Stage {
    fn fetched(&self, file: usize) -> PathBuf {
        self.target().join(&self.metainfo.files[file].path)
    }

    /// Checks that these files were fetched, and no others were created.
    fn check_only(&self, files: &[usize]) {
        for (index, file) in self.metainfo.files.iter().enumerate() {
            let path = self.fetched(index);
            match files.contains(&index) {
                true => {
                    let original = fs::read(self.dir.path().join("seed").join(&file.path));
                    assert!(fs::read(path).unwrap() == original.unwrap(), "{index}");
                }
                false => assert!(!path.exists(), "{index}"),
            }
        }
    }

    fn part_file(&self) -> PathBuf {
        let name = format!(".{}.parts", self.metainfo.info_hash);
        self.target().join(name)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_not_selected_are_not_created_until_they_are() {
    let net = Net::default();
    let stage = three();
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    let download = stage.download_with(&net.host(0), &[1], selecting(only(0)));
    let progress = download.progress();
    let summary = finish(download).await.unwrap();
    // Four pieces of 32 KiB, the last of which crosses into the second file.
    assert_eq!(summary.fetched_bytes, 4 * u64::from(PIECE));
    stage.check_only(&[0]);
    assert!(stage.part_file().exists());
    let files = progress.borrow().files.clone();
    let shown: Vec<_> = files
        .each
        .iter()
        .map(|it| (it.verified_bytes, it.priority))
        .collect();
    let (skip, rest) = (Priority::Skip, 4 * u64::from(PIECE) - 100_000);
    assert_eq!(
        shown,
        [(100_000, Priority::Normal), (rest, skip), (0, skip)]
    );
    assert_eq!(files.wanted_bytes, 4 * u64::from(PIECE));
    assert_eq!(files.wanted_verified_bytes, files.wanted_bytes);

    let again = stage.download_with(&net.host(0), &[1], selecting(only(2)));
    let summary = finish(again).await.unwrap();
    assert_eq!(summary.resumed_bytes, 4 * u64::from(PIECE));
    stage.check_only(&[0, 2]);
    let all = finish(stage.download(&net.host(0), &[1])).await.unwrap();
    assert!(all.resumed_bytes > summary.resumed_bytes);
    stage.check();
    assert!(!stage.part_file().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_can_be_selected_while_it_runs() {
    let net = Net::default();
    let stage = three();
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    let download = stage.download_with(&net.host(0), &[], finding_with(only(0)));
    let error = download.set_files(only(3)).await.unwrap_err();
    let is_unknown = |error: &SelectError| {
        let SelectError::Selection(error) = error else {
            return false;
        };
        *error == SelectionError::NoSuchFile { file: 3, count: 3 }
    };
    assert!(is_unknown(&error), "{error}");
    // Nothing is fetched before there is a peer.
    let both = only(1).with_file(2, Priority::High);
    download.set_files(both).await.unwrap();
    let mut progress = download.progress();
    let priorities = |progress: &Progress| {
        let each = progress.files.each.iter();
        each.map(|file| file.priority).collect::<Vec<_>>()
    };
    let expected = [Priority::Skip, Priority::Normal, Priority::High];
    let reported = progress.wait_for(|progress| priorities(progress) == expected);
    reported.await.unwrap();
    let found = download.found_peers();
    assert!(found.add(vec![addr(1)], PeerSource::Tracker).await);
    finish(download).await.unwrap();
    stage.check_only(&[1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_the_way_is_named_and_the_selection_stays() {
    let net = Net::default();
    let stage = three();
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    let download = stage.download_with(&net.host(0), &[], finding_with(only(0)));
    // It has looked at the disk after the first selection.
    download.set_files(only(0)).await.unwrap();
    let path = stage.fetched(1);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "mine").unwrap();
    let error = download.set_files(Selection::all()).await.unwrap_err();
    let text = error.to_string();
    let named = path.to_str().unwrap();
    assert!(text.contains(named) && text.contains("move it"), "{text}");
    let found = download.found_peers();
    assert!(found.add(vec![addr(1)], PeerSource::Tracker).await);
    finish(download).await.unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"mine");
    fs::remove_file(path).unwrap();
    stage.check_only(&[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_learn_that_nothing_more_is_wanted() {
    let net = Net::default();
    let stage = three();
    let seed = stage.seed(&net.host(1)).await;
    let middle = net.host(2);
    net.path(1, FAST);
    net.path(2, FAST);
    let options = DownloadOptions {
        seed: Some(SeedLimits::default()),
        ..selecting(only(0))
    };
    let mut partial = stage.download_with(&middle, &[1], options);
    partial.completed().await.unwrap();
    seed.stop().await.unwrap();
    let error = partial.set_files(Selection::all()).await.unwrap_err();
    assert!(matches!(error, SelectError::Complete), "{error}");
    // The peer fetches what there is, and does not wait for what will never come (BEP 21).
    let metainfo = stage.metainfo.clone();
    let to = stage.dir.path().join("last");
    let options = giving_up_after(Duration::from_secs(3600));
    let last = Download::over(net.host(3), metainfo, to, vec![addr(2)], options);
    let progress = last.progress();
    let error = finish(last).await.unwrap_err();
    assert!(matches!(error, DownloadError::Incomplete(_)), "{error}");
    assert_eq!(progress.borrow().verified_bytes, 4 * u64::from(PIECE));
    partial.stop();
    finish(partial).await.unwrap();
}

/// Accepts a connection as a seeder that chokes, and passes on whether the other side is interested.
async fn watch_interest(host: Host, metainfo: Metainfo, interest: mpsc::Sender<bool>) {
    let connection = host.accept().await.unwrap();
    let (mut read, mut write) = connection.stream().await.unwrap();
    let mut theirs = [0; HANDSHAKE_BYTES];
    read.read_exact(&mut theirs).await.unwrap();
    let handshake = Handshake {
        info_hash: metainfo.info_hash,
        peer_id: PeerId::random(),
        extended: true,
        dht: false,
        version_two: false,
    };
    let pieces = metainfo.pieces.count();
    let mut has = Bitfield::empty(pieces);
    has.set(0);
    let mut out = handshake.encode().to_vec();
    let bits = bytes::Bytes::copy_from_slice(has.as_wire());
    encode(&Message::Bitfield(bits), &mut out);
    write.write_all(&out).await.unwrap();
    let mut decoder = Decoder::new(pieces);
    while read.read_buf(decoder.buffer(4096)).await.unwrap() > 0 {
        while let Some(message) = decoder.next_message().unwrap() {
            let change = match message {
                Message::Interested => true,
                Message::NotInterested => false,
                _ => continue,
            };
            interest.send(change).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn interest_is_withdrawn_when_nothing_of_a_peer_is_wanted() {
    let net = Net::default();
    let stage = three();
    net.path(1, FAST);
    let (sender, mut interest) = mpsc::channel(8);
    tokio::spawn(watch_interest(net.host(1), stage.metainfo.clone(), sender));
    let download = stage.download_with(&net.host(0), &[1], finding_with(only(0)));
    let next = tokio::time::timeout(PATIENCE, interest.recv());
    assert_eq!(next.await.unwrap(), Some(true));
    // The peer has the first piece alone.
    download.set_files(only(2)).await.unwrap();
    let next = tokio::time::timeout(PATIENCE, interest.recv());
    assert_eq!(next.await.unwrap(), Some(false));
    download.set_files(Selection::all()).await.unwrap();
    let next = tokio::time::timeout(PATIENCE, interest.recv());
    assert_eq!(next.await.unwrap(), Some(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn padding_is_neither_fetched_nor_shown() {
    let net = Net::default();
    let stage = Stage::new(&[("set/a", 20_000), ("set/b", 10_000)], PIECE);
    // The same files, the second one aligned (BEP 47), and padding alone behind it.
    let read = |name: &str| fs::read(stage.dir.path().join("seed/set").join(name)).unwrap();
    let mut content = read("a");
    content.resize(PIECE as usize, 0);
    content.extend(read("b"));
    content.resize(3 * PIECE as usize, 0);
    let entry = |name: &str, length: usize, attr: &str| {
        let path = format!("{}:{name}", name.len());
        format!("d{attr}6:lengthi{length}e4:pathl{path}ee")
    };
    let (first, last) = (PIECE as usize - 20_000, 2 * PIECE as usize - 10_000);
    let pad = "4:attr1:p";
    let files = [
        entry("a", 20_000, ""),
        entry("pad1", first, pad),
        entry("b", 10_000, ""),
        entry("pad2", last, pad),
    ];
    let head = format!(
        "d4:infod5:filesl{}e4:name3:set12:piece lengthi{PIECE}e6:pieces60:",
        files.concat()
    );
    let mut torrent = head.into_bytes();
    for piece in content.chunks(PIECE as usize) {
        torrent.extend(Sha1::digest(piece));
    }
    torrent.extend(b"ee");
    let metainfo = Metainfo::parse(&torrent).unwrap();
    let stage = Stage { metainfo, ..stage };
    let _seed = stage.seed(&net.host(1)).await;
    net.path(1, FAST);
    let download = stage.download(&net.host(0), &[1]);
    let progress = download.progress();
    finish(download).await.unwrap();
    stage.check_only(&[0, 2]);
    let progress = progress.borrow();
    assert_eq!(progress.fetched_bytes, 20_000 + 10_000);
    assert_eq!(progress.verified_bytes, progress.total_bytes);
    let shown: Vec<_> = progress.files.each.iter().map(|file| file.file).collect();
    assert_eq!(shown, [0, 2]);
}
