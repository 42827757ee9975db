//! Some of the files of a torrent.

use super::*;

/// A folder of three files, its torrent, and a seeder of it.
struct Set {
    folder: tempfile::TempDir,
    seeder: Running,
    peer: String,
}

impl Set {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        fs::create_dir_all(path("set/docs")).unwrap();
        let bytes = |length: u32, from: u32| {
            let words = (0..length / 4).map(|n| (n + from).wrapping_mul(0x9e37_79b9).to_le_bytes());
            words.flatten().collect::<Vec<u8>>()
        };
        fs::write(path("set/a.iso"), bytes(300_000, 0)).unwrap();
        fs::write(path("set/docs/b.txt"), bytes(1000, 1 << 20)).unwrap();
        fs::write(path("set/z.iso"), bytes(200_000, 2 << 20)).unwrap();
        let (content, torrent) = (path("set"), path("set.torrent"));
        let create = ["torrent", "create", &content, "-o", &torrent];
        let create = command(&[&create[..], &["--piece-length", "32KiB"]].concat()).output();
        assert!(create.unwrap().status.success());
        let args = ["seed", &torrent, &content, "--json", "--no-scion"];
        let mut seeder = Running::start(&[&args[..], &["--tcp", "127.0.0.1:0"]].concat());
        let peer = text(&seeder.json(), "listening_tcp").to_owned();
        Self {
            folder,
            seeder,
            peer,
        }
    }

    fn name(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Downloads what `more` says, and returns the report.
    fn get(&self, more: &[&str]) -> Value {
        let (torrent, to) = (self.name("set.torrent"), self.name("got"));
        let args = ["get", &torrent, "-o", &to, "--json", "--peer", &self.peer];
        let mut get = Running::start(&[&args[..], more].concat());
        let report = get.json();
        get.end();
        report
    }

    /// The files of the download, in order; each must be that of the seeder.
    fn got(&self) -> Vec<&'static str> {
        let all = ["a.iso", "docs/b.txt", "z.iso"].into_iter();
        let got = all.filter(|name| {
            let got = fs::read(self.name(&format!("got/set/{name}")));
            let original = fs::read(self.name(&format!("set/{name}"))).unwrap();
            got.is_ok_and(|got| {
                assert!(got == original, "{name}");
                true
            })
        });
        got.collect()
    }

    /// Whether there is a part file.
    fn has_parts(&self) -> bool {
        let entries = fs::read_dir(self.name("got")).unwrap();
        let mut names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.any(|name| name.starts_with('.') && name.ends_with(".parts"))
    }
}

#[test]
fn files_are_downloaded_one_after_another() {
    let set = Set::new();
    let shown = command(&["torrent", "show", &set.name("set.torrent")]).output();
    let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
    let line = shown.lines().find(|line| line.contains("b.txt")).unwrap();
    assert!(line.trim_start().starts_with("2 "), "{shown}");

    let report = set.get(&["--files", "2"]);
    // The one piece that has it.
    assert_eq!(report["fetched_bytes"], 32 << 10);
    assert_eq!(set.got(), ["docs/b.txt"]);
    assert!(set.has_parts());

    let report = set.get(&["--files", "*.iso", "--exclude", "/a.*", "--sequential"]);
    assert_eq!(report["resumed_bytes"], 32 << 10);
    assert_eq!(set.got(), ["docs/b.txt", "z.iso"]);

    set.get(&[]);
    assert_eq!(set.got().len(), 3);
    assert!(!set.has_parts());
    set.seeder.signal("INT");
}

#[test]
fn files_of_a_magnet_link_are_known_once_peers_have_named_them() {
    let set = Set::new();
    let (torrent, to) = (set.name("set.torrent"), set.name("got"));
    let link = command(&["torrent", "magnet", &torrent]).output().unwrap();
    let link = String::from_utf8(link.stdout).unwrap();
    let get = |files: &str| {
        let args = ["get", link.trim(), "-o", &to, "--peer", &set.peer];
        command(&[&args[..], &["--files", files]].concat())
            .output()
            .unwrap()
    };
    let refused = get("4");
    let error = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{error}");
    assert!(error.contains("numbers 1 to 3"), "{error}");
    assert!(!Path::new(&to).join("set").exists());
    let fetched = get("docs/");
    assert!(fetched.status.success(), "{fetched:?}");
    assert_eq!(set.got(), ["docs/b.txt"]);
}
