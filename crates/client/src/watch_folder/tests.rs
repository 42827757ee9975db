//! Files put into a folder, which are looked at when the tests say so.

use hawser_discovery::PeerFinder;
use hawser_torrent::{CreateOptions, Network, create};

use super::*;
use crate::engine::Engine;
use crate::state::StateFolder;
use crate::torrents::Bounds;

const LINK: &str = "magnet:?xt=urn:btih:c12fe1c06bba254a9dc9f519b335aa7c1367a88a";

#[test]
fn files_are_chosen_by_their_names() {
    for (name, kind) in [
        ("a.torrent", Some(Kind::Torrent)),
        ("a.b.TORRENT", Some(Kind::Torrent)),
        ("a.magnet", Some(Kind::Magnet)),
        (".a.torrent", None),
        (".torrent", None),
        ("torrent", None),
        ("a.torrent.added", None),
        ("a.torrent.part", None),
    ] {
        assert_eq!(Kind::of(OsStr::new(name)), kind, "{name}");
    }
}

#[test]
fn links_are_read_line_by_line() {
    let two = format!("\n {LINK}\r\n{LINK}&dn=b\n");
    let read = parse_links(two.as_bytes()).unwrap();
    assert_eq!(read, [LINK.to_owned(), format!("{LINK}&dn=b")]);
    let many = format!("{LINK}\n").repeat(MAX_LINKS + 1);
    for wrong in ["", "\n", "x", &format!("{LINK}\nx"), &LINK[..40], &many] {
        assert!(parse_links(wrong.as_bytes()).is_err(), "{wrong}");
    }
    assert!(parse_links(b"\xff").is_err());
}

#[test]
fn names_that_are_reserved_and_folders_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("empty.torrent"), "").unwrap();
    fs::create_dir(at("folder.torrent")).unwrap();
    fs::write(at("x.txt"), "x").unwrap();
    fs::write(at("b.magnet"), LINK).unwrap();
    fs::write(at("a.torrent"), "d").unwrap();
    std::os::unix::fs::symlink("nowhere", at("c.torrent")).unwrap();
    let names: Vec<_> = list(dir.path()).unwrap();
    let names: Vec<_> = names.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a.torrent", "b.magnet"]);
    assert_eq!(
        read_sources(&at("b.magnet")).unwrap(),
        [Source::Magnet(LINK.into())]
    );
    assert!(matches!(
        read_sources(&at("a.torrent")),
        Err(Fault::Unparsable(_))
    ));
    assert!(matches!(
        read_sources(&at("gone.torrent")),
        Err(Fault::Changed)
    ));
    assert!(list(&at("none")).is_err());
}

/// Looks into a folder at a time of its own.
struct Scans {
    watched: WatchFolder,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Scans {
    fn begin(dir: &Path) -> Self {
        let (state, records, _) = StateFolder::open(&dir.join("state")).unwrap();
        let engine = Engine::new(Network::ip(), PeerFinder::default());
        let stop = CancellationToken::new();
        let (downloads, bounds) = (dir.join("downloads"), Bounds::default());
        let (client, task) =
            Client::start(engine, state, records, bounds, &downloads, stop.clone());
        let folder = dir.join("watched");
        fs::create_dir_all(&folder).unwrap();
        Self {
            watched: WatchFolder::new(folder, client),
            stop,
            task,
        }
    }

    /// Looks into the folder, and again after this time.
    async fn look_after(&mut self, time: Duration) {
        self.watched.scan(&self.stop).await;
        self.watched.began -= time;
        self.watched.scan(&self.stop).await;
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.watched.folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    async fn torrents(&self) -> usize {
        self.watched.client.views().await.unwrap().len()
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

/// A torrent of a file.
fn torrent(dir: &Path) -> Vec<u8> {
    let content = dir.join("content");
    fs::write(&content, "content").unwrap();
    create(&content, &CreateOptions::default(), |_, _| {}).unwrap()
}

#[tokio::test]
async fn files_are_added_when_they_are_whole_and_once() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = torrent(dir.path());
    let mut scans = Scans::begin(dir.path());
    let at = |name: &str| dir.path().join("watched").join(name);
    fs::write(at("a.torrent"), &bytes[..bytes.len() / 2]).unwrap();
    fs::write(at("b.magnet"), format!("{LINK}\n")).unwrap();
    scans.look_after(candidates::SETTLE_TIME).await;
    assert_eq!(scans.names(), ["a.torrent", "b.magnet.added"]);
    assert_eq!(scans.torrents().await, 1);
    // The rest of it comes.
    fs::write(at("a.torrent"), &bytes).unwrap();
    scans.look_after(candidates::SETTLE_TIME).await;
    assert_eq!(scans.names(), ["a.torrent.added", "b.magnet.added"]);
    assert_eq!(scans.torrents().await, 2);
    scans.end().await;

    // The daemon was killed before it renamed the file.
    fs::rename(at("a.torrent.added"), at("a.torrent")).unwrap();
    let mut scans = Scans::begin(dir.path());
    scans.look_after(candidates::SETTLE_TIME).await;
    assert_eq!(scans.names(), ["a.torrent.added", "b.magnet.added"]);
    assert_eq!(scans.torrents().await, 2);
    scans.end().await;
}

#[tokio::test]
async fn what_is_no_torrent_is_renamed_in_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut scans = Scans::begin(dir.path());
    let at = |name: &str| dir.path().join("watched").join(name);
    fs::write(at("a.torrent"), "no torrent").unwrap();
    fs::write(at("b.magnet"), "magnet:?xt=urn:btih:00").unwrap();
    scans.look_after(candidates::SETTLE_TIME).await;
    assert_eq!(scans.names(), ["a.torrent", "b.magnet"]);
    scans.look_after(candidates::GIVE_UP_TIME).await;
    assert_eq!(scans.names(), ["a.torrent.invalid", "b.magnet.invalid"]);
    // Others are added all the same.
    fs::write(at("c.torrent"), torrent(dir.path())).unwrap();
    scans.look_after(candidates::SETTLE_TIME).await;
    assert_eq!(scans.torrents().await, 1);
    scans.end().await;
}

#[tokio::test]
async fn a_folder_that_is_gone_is_watched_when_it_is_there_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut scans = Scans::begin(dir.path());
    let folder = scans.watched.folder.clone();
    fs::remove_dir(&folder).unwrap();
    scans.look_after(candidates::SETTLE_TIME).await;
    assert!(!scans.watched.is_readable);
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("b.magnet"), LINK).unwrap();
    scans.look_after(candidates::SETTLE_TIME).await;
    assert_eq!(scans.names(), ["b.magnet.added"]);
    scans.end().await;
}

#[tokio::test]
async fn a_daemon_that_is_stopping_leaves_files_for_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let mut scans = Scans::begin(dir.path());
    fs::write(dir.path().join("watched/b.magnet"), LINK).unwrap();
    scans.watched.scan(&scans.stop).await;
    scans.stop.cancel();
    (&mut scans.task).await.unwrap();
    scans.watched.began -= candidates::SETTLE_TIME;
    // It is no longer served, which the scan learns only by asking.
    scans.watched.scan(&CancellationToken::new()).await;
    assert_eq!(scans.names(), ["b.magnet"]);
}

mod fuzz {
    use super::*;

    #[test]
    fn files_of_magnet_links() {
        let valid = [LINK.to_owned(), format!("{LINK}\n\n{LINK}&dn=a%20b\r\n")];
        let valid = valid.map(String::into_bytes);
        hawser_fuzz::fuzz(&valid, |input| {
            if let Ok(links) = parse_links(input) {
                let written = links.join("\n");
                assert_eq!(parse_links(written.as_bytes()), Ok(links));
            }
        });
    }
}
