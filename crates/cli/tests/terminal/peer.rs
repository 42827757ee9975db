//! An IP peer that has all pieces and sends as many blocks as the test allows (BEP 3).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};

/// Bytes of a piece, which is one block.
const PIECE: usize = 16 << 10;

/// Content and its torrent.
pub struct Content {
    pub folder: tempfile::TempDir,
    pub torrent: PathBuf,
    pub bytes: Vec<u8>,
    info_hash: Vec<u8>,
}

impl Content {
    /// `data.bin` with this number of pieces.
    pub fn new(pieces: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("data.bin");
        let bytes: Vec<u8> = (0..pieces * PIECE).map(|n| (n / 7 % 251) as u8).collect();
        std::fs::write(&file, &bytes).unwrap();
        let torrent = folder.path().join("data.bin.torrent");
        let run = |args: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
            let output = command.arg("torrent").args(args).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            output.stdout
        };
        let path = torrent.to_str().unwrap();
        run(&[
            "create",
            file.to_str().unwrap(),
            "-o",
            path,
            "--piece-length",
            "16KiB",
        ]);
        let shown: serde_json::Value =
            serde_json::from_slice(&run(&["show", path, "--json"])).unwrap();
        let hex = shown["info_hash"].as_str().unwrap();
        let info_hash = (0..20).map(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).unwrap());
        Self {
            info_hash: info_hash.collect(),
            folder,
            torrent,
            bytes,
        }
    }

    /// The folder of a download.
    pub fn downloads(&self) -> PathBuf {
        self.folder.path().join("downloads")
    }

    /// Whether the download is complete.
    pub fn is_there(&self) -> bool {
        std::fs::read(self.downloads().join("data.bin")).unwrap() == self.bytes
    }
}

/// Number of blocks that all peers together may still send.
#[derive(Clone, Default)]
pub struct Allowance(Arc<(Mutex<usize>, Condvar)>);

impl Allowance {
    pub fn add(&self, blocks: usize) {
        let mut left = self.0.0.lock().unwrap();
        *left = left.saturating_add(blocks);
        self.0.1.notify_all();
    }

    fn take(&self) {
        let left = self.0.0.lock().unwrap();
        let mut left = self.0.1.wait_while(left, |left| *left == 0).unwrap();
        *left -= 1;
    }
}

/// Starts a peer, which ends with the test.
pub fn start(content: &Content, allowance: &Allowance) -> SocketAddr {
    start_with(
        content,
        content.bytes.clone(),
        allowance,
        &Allowance::default(),
    )
}

/// Starts a peer that sends wrong data; after its connection has ended, `others` may send
/// everything.
pub fn start_wrong(content: &Content, allowance: &Allowance, others: &Allowance) -> SocketAddr {
    start_with(content, vec![255; content.bytes.len()], allowance, others)
}

fn start_with(
    content: &Content,
    bytes: Vec<u8>,
    allowance: &Allowance,
    others: &Allowance,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let info_hash = content.info_hash.clone();
    let (allowance, others) = (allowance.clone(), others.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // Fails only when the downloader closes the connection.
            let _ = serve(stream.unwrap(), &bytes, &info_hash, &allowance);
            others.add(usize::MAX);
        }
    });
    address
}

fn serve(
    mut stream: TcpStream,
    bytes: &[u8],
    info_hash: &[u8],
    allowance: &Allowance,
) -> std::io::Result<()> {
    let mut theirs = [0; 68];
    stream.read_exact(&mut theirs)?;
    let mut greeting = b"\x13BitTorrent protocol".to_vec();
    greeting.extend([0; 8]);
    greeting.extend(info_hash);
    greeting.extend(b"-TEST00-0123456789ab");
    let pieces = bytes.len() / PIECE;
    let mut bitfield = vec![0; pieces.div_ceil(8)];
    (0..pieces).for_each(|piece| bitfield[piece / 8] |= 0x80 >> (piece % 8));
    greeting.extend((bitfield.len() as u32 + 1).to_be_bytes());
    greeting.push(5);
    greeting.extend(bitfield);
    greeting.extend([0, 0, 0, 1, 1]);
    stream.write_all(&greeting)?;
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let mut message = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut message)?;
        let Some((6, request)) = message.split_first() else {
            continue;
        };
        let number = |at: usize| u32::from_be_bytes(request[at..at + 4].try_into().unwrap());
        let (from, count) = (
            number(0) as usize * PIECE + number(4) as usize,
            number(8) as usize,
        );
        allowance.take();
        let mut answer = (count as u32 + 9).to_be_bytes().to_vec();
        answer.push(7);
        answer.extend(&request[..8]);
        answer.extend(&bytes[from..from + count]);
        stream.write_all(&answer)?;
    }
}

/// `hawser get` of the content from these peers, after a line that must not be overwritten.
pub fn get(content: &Content, peers: &[SocketAddr]) -> Command {
    let mut command = Command::new("sh");
    let script = "echo before; exec \"$0\" get \"$@\"";
    command.args(["-c", script, env!("CARGO_BIN_EXE_hawser")]);
    command.arg(&content.torrent);
    command.arg("-o").arg(content.downloads());
    for peer in peers {
        command.args(["--peer", &peer.to_string()]);
    }
    plain(&mut command);
    command
}

/// Removes the environment variables for colours and logs.
pub fn plain(command: &mut Command) {
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "RUST_LOG"] {
        command.env_remove(name);
    }
    command
        .env("TERM", "xterm-256color")
        .current_dir(Path::new("/"));
}
