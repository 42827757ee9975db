//! Transmission's RPC over HTTP, method by method, beside the same in the API.

use super::*;
use crate::record::parse_hash;
use crate::torrents::Status;
use crate::view::View;

/// An API whose RPC is called.
pub(super) struct Rpc {
    pub api: Api,
    session: String,
}

impl Rpc {
    pub async fn start() -> Self {
        let api = Api::start().await;
        let (status, head, _) = api.rpc("", &json!({"method": "session-get"})).await;
        assert_eq!(status, 409);
        let session = head
            .lines()
            .find_map(|line| line.strip_prefix("x-transmission-session-id: "));
        Self {
            session: session.unwrap().to_owned(),
            api,
        }
    }

    /// The answer to a call in the form of old.
    pub async fn call(&self, method: &str, arguments: Value) -> Value {
        let body = json!({"method": method, "arguments": arguments});
        let (status, _, body) = self.api.rpc(&self.session, &body).await;
        assert_eq!(status, 200);
        serde_json::from_str(&body).unwrap()
    }

    /// Has a call succeed.
    pub async fn works(&self, method: &str, arguments: Value) -> Value {
        let answer = self.call(method, arguments).await;
        assert_eq!(answer["result"], "success", "{method}: {answer}");
        answer["arguments"].clone()
    }

    /// These fields of the first torrent.
    pub async fn fields(&self, fields: &[&str]) -> Value {
        let answer = self.works("torrent-get", json!({"fields": fields})).await;
        answer["torrents"][0].clone()
    }

    /// Adds a torrent that is stopped, of which this is the content in the folder of downloads.
    pub async fn add(&self, content: &Path) -> String {
        let options = CreateOptions {
            piece_length: Some(16 << 10),
            trackers: vec![vec!["http://one.example/announce".to_owned()]],
            ..CreateOptions::default()
        };
        let bytes = create(content, &options, |_, _| {}).unwrap();
        let new = json!({"metainfo": BASE64.encode(&bytes), "paused": true});
        self.works("torrent-add", new).await;
        Metainfo::parse(&bytes).unwrap().info_hash.to_string()
    }

    /// Waits until `wanted` is true of a torrent.
    pub async fn wait(&self, hash: &str, wanted: impl Fn(&View) -> bool) -> View {
        let (hash, mut changes) = (parse_hash(hash).unwrap(), self.api.client.changes());
        loop {
            changes.borrow_and_update();
            let view = self.api.client.view(hash).await.unwrap();
            if wanted(&view) {
                return view;
            }
            let waited = tokio::time::timeout(PATIENCE, changes.changed()).await;
            waited.unwrap_or_else(|_| panic!("{view:?}")).unwrap();
        }
    }
}

/// The content of a torrent in the folder of downloads: files of 50,000 bytes.
pub(super) fn content(rpc: &Rpc) -> std::path::PathBuf {
    let folder = rpc.api.dir.path().join("downloads/set");
    std::fs::create_dir_all(folder.join("inner")).unwrap();
    for (name, byte) in [("a", 1), ("b", 2), ("inner/c", 3)] {
        std::fs::write(folder.join(name), [byte; 50_000]).unwrap();
    }
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_verified_of_each_file_is_told_of_one_that_does_not_run() {
    let rpc = Rpc::start().await;
    let folder = content(&rpc);
    let hash = rpc.add(&folder).await;
    let before = rpc.fields(&["fileStats", "pieces"]).await;
    assert_eq!(before["fileStats"][0]["bytesCompleted"], 0);
    assert_eq!(before["pieces"], "");
    // In its piece of 16 KiB, which has bytes of no other file.
    let mut damaged = vec![2; 50_000];
    damaged[40_000] = 0;
    std::fs::write(folder.join("b"), damaged).unwrap();
    rpc.works("torrent-verify", json!({"ids": [1]})).await;
    rpc.wait(&hash, |view| {
        view.status == Status::Stopped && view.verified() > 0
    })
    .await;
    let completed = |files: &Value, key: &str| -> Vec<u64> {
        let files = files.as_array().unwrap().iter();
        files.map(|file| file[key].as_u64().unwrap()).collect()
    };
    let shown = rpc.fields(&["files", "fileStats", "pieces"]).await;
    let expected = [50_000, 50_000 - (16 << 10), 50_000];
    for files in ["files", "fileStats"] {
        let files = completed(&shown[files], "bytesCompleted");
        assert_eq!(files, expected, "{shown}");
    }
    // All of ten pieces but the sixth.
    assert_eq!(shown["pieces"], BASE64.encode(&[0b1111_1011, 0b1100_0000]));
    let one = format!("GET /api/v1/torrents/{hash}");
    let (_, detail) = rpc.api.json(&one, &Value::Null).await;
    assert_eq!(completed(&detail["files"], "verified_bytes"), expected);
    let (_, pieces) = rpc.api.json(&format!("{one}/pieces"), &Value::Null).await;
    assert_eq!(pieces["verified"], shown["pieces"]);
}

/// The URLs and tiers of trackers as they are shown.
fn listed(trackers: &Value, url: &str) -> Vec<(String, u64)> {
    let trackers = trackers.as_array().unwrap().iter();
    let pair = |it: &Value| (it[url].as_str().unwrap().to_owned(), it["tier"].as_u64());
    trackers
        .map(|it| (pair(it).0, pair(it).1.unwrap()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn trackers_are_added_replaced_removed_and_listed() {
    let rpc = Rpc::start().await;
    let hash = rpc.add(&content(&rpc)).await;
    let set = async |change: Value| {
        let mut arguments = json!({"ids": [1]});
        let change = change.as_object().unwrap().clone();
        arguments.as_object_mut().unwrap().extend(change);
        rpc.call("torrent-set", arguments).await["result"].clone()
    };
    let shown = async || {
        rpc.fields(&["trackers", "trackerList", "trackerStats"])
            .await
    };
    let [one, two, three] =
        ["one", "two", "three"].map(|host| format!("http://{host}.example/announce"));
    let trackers = shown().await["trackers"].clone();
    assert_eq!(listed(&trackers, "announce"), [(one.clone(), 0)]);

    assert_eq!(set(json!({"trackerAdd": [two, one]})).await, "success");
    assert_eq!(
        set(json!({"trackerAdd": [two]})).await,
        "error setting announce list"
    );
    let before = shown().await;
    assert_eq!(before["trackerList"], format!("{one}\n\n{two}\n"));
    assert_eq!(
        listed(&before["trackerStats"], "announce"),
        [(one.clone(), 0), (two.clone(), 1)]
    );
    let ids = [0, 1].map(|at| before["trackers"][at]["id"].clone());
    // Ids stay those of their trackers, whatever was changed before.
    assert_eq!(set(json!({"trackerRemove": [ids[0]]})).await, "success");
    assert_eq!(
        set(json!({"tracker_replace": [ids[1], three]})).await,
        "success"
    );
    assert_eq!(shown().await["trackerList"], format!("{three}\n"));
    let nobody = json!({"trackerRemove": [ids[1]]});
    assert_eq!(set(nobody).await, "error setting announce list");
    let wrong = set(json!({"trackerAdd": ["ftp://four.example/"]})).await;
    assert!(
        wrong.as_str().unwrap().contains("ftp://four.example/"),
        "{wrong}"
    );

    // The other form of the protocol.
    let params = json!({"ids": [1], "tracker_list": format!("{two}\n{one}\n\n\n{three}")});
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "torrent_set", "params": params});
    let (status, _, answer) = rpc.api.rpc(&rpc.session, &body).await;
    assert_eq!((status, answer.contains("error")), (200, false), "{answer}");
    let all = [(two.clone(), 0), (one.clone(), 0), (three.clone(), 1)];
    let shown = rpc.fields(&["trackers", "magnetLink"]).await;
    assert_eq!(listed(&shown["trackers"], "announce"), all);
    let link = shown["magnetLink"].as_str().unwrap();
    assert!(link.contains("three.example"), "{link}");

    // The API shows the same, and sets all.
    let path = format!("/api/v1/torrents/{hash}");
    let (_, detail) = rpc.api.json(&format!("GET {path}"), &Value::Null).await;
    assert_eq!(listed(&detail["trackers"], "url"), all);
    let change = json!({"trackers": [[&one], [], [&three, &one]]});
    let (status, _) = rpc.api.json(&format!("PATCH {path}"), &change).await;
    let kept = rpc
        .wait(&hash, |_| true)
        .await
        .record
        .settings
        .trackers
        .clone();
    let expected = vec![vec![one.clone()], vec![three.clone()]];
    assert_eq!((status, kept), (200, Some(expected)));
    let change = json!({"trackers": {"add": [two], "remove": [three]}});
    for expected in [200, 409] {
        let (status, _) = rpc.api.json(&format!("PATCH {path}"), &change).await;
        assert_eq!(status, expected);
    }
    let kept = rpc
        .wait(&hash, |_| true)
        .await
        .record
        .settings
        .trackers
        .clone();
    assert_eq!(kept, Some(vec![vec![one.clone()], vec![two]]));
    let wrong = json!({"trackers": [["no URL"]]});
    let (status, _) = rpc.api.json(&format!("PATCH {path}"), &wrong).await;
    assert_eq!(status, 400);

    for method in ["torrent-reannounce", "torrent-start-now"] {
        rpc.works(method, json!({"ids": [1]})).await;
    }
    rpc.wait(&hash, |view| view.status == Status::Seeding).await;
    for call in ["announce", "start-now"] {
        let (status, _) = rpc
            .api
            .json(&format!("POST {path}/{call}"), &Value::Null)
            .await;
        assert_eq!(status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_folders_and_torrents_are_renamed() {
    let rpc = Rpc::start().await;
    let folder = content(&rpc);
    let hash = rpc.add(&folder).await;
    let rename = |path: &str, name: &str| json!({"ids": [1], "path": path, "name": name});
    let renamed = rpc
        .works("torrent-rename-path", rename("set/inner/c", "x"))
        .await;
    assert_eq!(
        renamed,
        json!({"id": 1, "path": "set/inner/c", "name": "x"})
    );
    // One that runs, in the other form of the protocol.
    rpc.works("torrent-start", json!({"ids": [1]})).await;
    rpc.wait(&hash, |view| view.status == Status::Seeding).await;
    let params = rename("set", "top");
    let body =
        json!({"jsonrpc": "2.0", "id": 7, "method": "torrent_rename_path", "params": params});
    let (status, _, answer) = rpc.api.rpc(&rpc.session, &body).await;
    assert_eq!((status, answer.contains("error")), (200, false), "{answer}");
    let path = format!("/api/v1/torrents/{hash}");
    let change = json!({"rename": {"path": "top/inner", "name": "outer"}});
    let (status, changed) = rpc.api.json(&format!("PATCH {path}"), &change).await;
    assert_eq!(
        (status, &changed["name"], &changed["status"]),
        (200, &json!("top"), &json!("seeding"))
    );
    let shown = rpc.fields(&["name", "files"]).await;
    let names = |files: &Value, key: &str| -> Vec<String> {
        let files = files.as_array().unwrap().iter();
        files
            .map(|file| file[key].as_str().unwrap().to_owned())
            .collect()
    };
    let expected = ["top/a", "top/b", "top/outer/x"];
    assert_eq!(
        (&shown["name"], names(&shown["files"], "name")),
        (&json!("top"), expected.map(Into::into).to_vec())
    );
    let (_, detail) = rpc.api.json(&format!("GET {path}"), &Value::Null).await;
    assert_eq!(names(&detail["files"], "path"), expected);
    let top = folder.with_file_name("top");
    assert_eq!(std::fs::read(top.join("outer/x")).unwrap(), [3; 50_000]);
    assert!(!folder.exists());
    // What is wrong changes nothing.
    std::fs::write(top.join("mine"), "mine").unwrap();
    for (from, to) in [
        ("top/a", "b"),
        ("top/z", "y"),
        ("top/a", "mine"),
        ("top/a", "a.part"),
    ] {
        let refused = rpc.call("torrent-rename-path", rename(from, to)).await;
        assert_ne!(refused["result"], "success", "{from} {to}");
        let change = json!({"rename": {"path": from, "name": to}});
        let (status, _) = rpc.api.json(&format!("PATCH {path}"), &change).await;
        assert_eq!(status, if to == "mine" { 409 } else { 400 }, "{from} {to}");
    }
    assert_eq!(
        names(&rpc.fields(&["files"]).await["files"], "name"),
        expected
    );
    assert_eq!(std::fs::read(top.join("a")).unwrap(), [1; 50_000]);
}
