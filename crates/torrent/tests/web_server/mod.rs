//! A web server that has files, in manners good and bad.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How a server answers a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "each test file uses some")]
pub enum Manner {
    /// As it should.
    Right,
    /// With bytes that are not those of the file.
    False,
    /// With this status, and nothing else.
    Status(u16),
    /// With the whole file, for any range.
    Whole,
    /// With a redirect to the same path below `/moved`.
    Moved,
    /// With fewer bytes than it says.
    Cut,
}

/// A request as a server got it: path and range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub path: String,
    /// First and last byte.
    pub range: Option<(u64, u64)>,
}

/// A server; dropping this ends it.
pub struct WebServer {
    pub addr: SocketAddr,
    state: Arc<State>,
    task: tokio::task::JoinHandle<()>,
}

struct State {
    root: PathBuf,
    /// The manners of the next answers; the last one stays.
    manners: Mutex<VecDeque<Manner>>,
    asked: Mutex<Vec<Asked>>,
}

#[allow(dead_code, reason = "each test file uses some")]
impl WebServer {
    /// Serves the files below `root` at a port of `host`, in these manners one after another, the last one
    /// from then on.
    pub async fn start(host: &str, root: &Path, manners: &[Manner]) -> Self {
        let listener = TcpListener::bind((host, 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let state = Arc::new(State {
            root: root.to_owned(),
            manners: Mutex::new(manners.iter().copied().collect()),
            asked: Mutex::default(),
        });
        let serving = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A client may leave at any time.
                tokio::spawn(serve(stream, Arc::clone(&serving)));
            }
        });
        Self { addr, state, task }
    }

    /// The URL of its root, with a `/` at the end.
    pub fn url(&self) -> String {
        format!("http://{}/", self.addr)
    }

    /// What was asked for so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().unwrap().clone()
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, state: Arc<State>) -> std::io::Result<()> {
    let mut head = Vec::new();
    loop {
        head.clear();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let asked = asked(&head);
        state.asked.lock().unwrap().push(asked.clone());
        let manner = {
            let mut manners = state.manners.lock().unwrap();
            match manners.len() {
                1 => manners[0],
                _ => manners.pop_front().unwrap_or(Manner::Right),
            }
        };
        let (answer, is_last) = answer(&state.root, &asked, manner);
        stream.write_all(&answer).await?;
        if is_last || head.to_lowercase().contains("connection: close") {
            return stream.shutdown().await;
        }
    }
}

/// What the head of a request asks for.
fn asked(head: &str) -> Asked {
    let path = head.split(' ').nth(1).unwrap_or_default();
    let lines = head.lines().map(str::to_lowercase);
    let range = lines.filter_map(|line| {
        let (first, last) = line.strip_prefix("range: bytes=")?.split_once('-')?;
        Some((first.parse().ok()?, last.parse().unwrap_or(u64::MAX)))
    });
    Asked {
        path: path.to_owned(),
        range: { range }.next(),
    }
}

/// The bytes of the answer, and whether the connection ends after it.
fn answer(root: &Path, asked: &Asked, manner: Manner) -> (Vec<u8>, bool) {
    let empty = |status: &str| {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        (head.into_bytes(), false)
    };
    if let Manner::Status(status) = manner {
        return empty(&format!("{status} As Told"));
    }
    let moved = asked.path.strip_prefix("/moved");
    if manner == Manner::Moved && moved.is_none() {
        let head = "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n";
        let text = format!("{head}Location: /moved{}\r\n\r\n", asked.path);
        return (text.into_bytes(), false);
    }
    let path = unescaped(moved.unwrap_or(&asked.path));
    let relative = Path::new(path.trim_start_matches('/'));
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    let read = std::fs::read(root.join(relative));
    let Some(file) = read.ok().filter(|_| relative.components().all(plain)) else {
        return empty("404 Not Found");
    };
    let length = file.len() as u64;
    let (head, mut body) = match asked.range.filter(|_| manner != Manner::Whole) {
        Some((first, last)) if first < length => {
            let last = last.min(length - 1);
            let range = format!("Content-Range: bytes {first}-{last}/{length}\r\n");
            let bytes = file[first as usize..=last as usize].to_vec();
            (format!("HTTP/1.1 206 Partial Content\r\n{range}"), bytes)
        }
        Some(_) => return empty("416 Range Not Satisfiable"),
        None => ("HTTP/1.1 200 OK\r\n".to_owned(), file),
    };
    let head = format!("{head}Content-Length: {}\r\n\r\n", body.len());
    match manner {
        Manner::False => body.iter_mut().for_each(|byte| *byte ^= 0x55),
        Manner::Cut => body.truncate(body.len() / 2),
        _ => {}
    }
    ([head.into_bytes(), body].concat(), manner == Manner::Cut)
}

fn unescaped(path: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), path.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| *first == b'%');
        let hex = hex.and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}
