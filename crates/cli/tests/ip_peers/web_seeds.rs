//! Content from a web server, without any peer: `get`, and the daemon.

use std::io::Write;
use std::thread;

use super::daemon::{daemon, object};
use super::*;

/// Serves a file at any path, by ranges, until the test ends. Returns the URL.
fn serve(file: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/files/data", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // A client leaves when it has enough.
            let _ = answer(stream, &file);
        }
    });
    url
}

fn answer(mut stream: TcpStream, file: &Path) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let mut range = None;
    while let Some(line) = lines.next().transpose()?.filter(|line| !line.is_empty()) {
        let line = line.to_lowercase();
        let asked = line.strip_prefix("range: bytes=");
        range = asked
            .and_then(|it| it.split_once('-'))
            .map(|(first, last)| {
                let number = |text: &str| text.parse::<usize>().unwrap();
                number(first)..number(last) + 1
            })
            .or(range);
    }
    let (content, range) = (fs::read(file)?, range.expect("a range is asked for"));
    let head = format!(
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {}-{}/{}\r\nContent-Length: {}\r\n\r\n",
        range.start,
        range.end - 1,
        content.len(),
        range.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&content[range])
}

/// Makes the torrent of the content anew, with a web seed that has it; returns the URL.
fn with_web_seed(files: &Files) -> String {
    let url = serve(files.path("data"));
    let (content, torrent) = (files.name("data"), files.name("data.torrent"));
    let create = ["torrent", "create", &content, "-o", &torrent, "--force"];
    let made = command(&[&create[..], &["--web-seed", &url]].concat()).output();
    assert!(made.unwrap().status.success());
    url
}

#[test]
fn a_download_needs_no_peer_where_there_is_a_web_seed() {
    if !no_scion_here() {
        return;
    }
    let files = Files::new();
    let url = with_web_seed(&files);
    let mut get = files.get("got", &["--find", "none"]);
    let report = get.json();
    get.end();
    assert!(files.same("got"));
    assert_eq!(report["paths"].as_array().unwrap().len(), 0);
    let [seed] = &report["web_seeds"].as_array().unwrap()[..] else {
        panic!("{report}")
    };
    assert_eq!(text(seed, "url"), url);
    assert_eq!(seed["bytes"].as_u64(), Some(SIZE));
}

#[test]
fn the_daemon_fetches_from_web_seeds() {
    if !no_scion_here() {
        return;
    }
    let files = Files::new();
    with_web_seed(&files);
    let (_daemon, _address) = daemon(&files);
    let added = object(&files, &["add", &files.name("data.torrent")]);
    let settled = object(&files, &["wait", text(&added, "info_hash")]);
    assert_eq!(settled["status"], "seeding", "{settled}");
    assert!(files.same("downloads"));
}
