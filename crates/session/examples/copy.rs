//! Copies a file over several paths at once, and continues over the others when one fails.
//!
//! `copy serve FILE` in one AS prints its address; `copy get ADDRESS FILE` runs in another.

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::fs::File;
use std::future::Future;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Instant;

use hawser_endhost::{Bootstrap, Endhost, Path, ScionAddr};
use hawser_manager::{Action, Carried, Failure, PathOptions, PathSet, SubflowId};
use hawser_quic::{Config, Connection, Endpoint, RecvStream};
use hawser_session::{Dialer, Remote};
use tokio::task::JoinSet;

type AnyError = Box<dyn Error + Send + Sync>;

/// Bytes of one request, the most that a failing connection loses.
const CHUNK: u64 = 1 << 20;

/// Requests under way over one connection: one is answered while the next one is on its way.
const PIPELINE: usize = 2;

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let host = Endhost::bootstrap(&Bootstrap::default()).await?;
    let endpoint = Endpoint::bind(host.clone(), None, Config::default())?;
    match args[..] {
        ["serve", file] => serve(endpoint, File::open(file)?).await,
        ["get", peer, file] => get(endpoint, host, peer.parse()?, File::create_new(file)?).await,
        _ => Err("copy serve FILE | copy get ADDRESS FILE".into()),
    }
}

/// Answers each stream, which carries an offset, with the file's length and the chunk there.
async fn serve(endpoint: Endpoint, file: File) -> Result<(), AnyError> {
    println!("{}", endpoint.local_addr());
    let file = Arc::new(file);
    while let Some(connection) = endpoint.accept().await {
        let file = Arc::clone(&file);
        tokio::spawn(async move {
            while let Ok((mut send, receive)) = connection.accept_bi().await {
                let offset = u64::from_be_bytes(read(receive, 8).await?.as_slice().try_into()?);
                let length = file.metadata()?.len();
                let mut chunk = vec![0; length.saturating_sub(offset).min(CHUNK) as usize];
                file.read_exact_at(&mut chunk, offset)?;
                send.write_all(&length.to_be_bytes()).await?;
                send.write_all(&chunk).await?;
                send.finish()?;
            }
            Ok::<(), AnyError>(())
        });
    }
    Ok(())
}

/// Asks for the chunk at an offset. Returns the answer.
async fn fetch(connection: &Connection, offset: u64) -> Result<Vec<u8>, AnyError> {
    let (mut send, receive) = connection.open_bi().await?;
    send.write_all(&offset.to_be_bytes()).await?;
    send.finish()?;
    read(receive, 8 + CHUNK).await
}

/// Reads a stream of at most `most` bytes.
async fn read(mut stream: RecvStream, most: u64) -> Result<Vec<u8>, AnyError> {
    let mut all = Vec::new();
    while let Some(bytes) = stream.read_chunk(1 << 16).await? {
        all.extend(bytes);
        if all.len() as u64 > most {
            return Err("the peer sent more than was asked for".into());
        }
    }
    Ok(all)
}

/// The file: what of it is here, and what is to be fetched.
struct Chunks {
    file: File,
    /// Chunks that failed.
    failed: Vec<u64>,
    /// The first chunk that was never asked for.
    next: u64,
    /// The length of the file; the longest possible one until it is known.
    end: u64,
}

impl Chunks {
    fn is_empty(&self) -> bool {
        self.failed.is_empty() && self.next >= self.end
    }

    fn take(&mut self) -> Option<u64> {
        let next = (self.next < self.end).then_some(self.next);
        let chunk = self.failed.pop().or(next)?;
        self.next = self.next.max(chunk + CHUNK);
        Some(chunk)
    }

    /// Takes the answer to a request: the length of the file, and the chunk.
    fn write(&mut self, offset: u64, answer: &[u8]) -> Result<(), AnyError> {
        let (length, chunk) = answer.split_first_chunk().ok_or("an answer is too short")?;
        self.end = u64::from_be_bytes(*length);
        if chunk.len() as u64 != self.end.saturating_sub(offset).min(CHUNK) {
            return Err("an answer has another length than the chunk".into());
        }
        Ok(self.file.write_all_at(chunk, offset)?)
    }
}

/// The server, as it is dialed.
struct Server(Endpoint, ScionAddr);

impl Remote for Server {
    type Path = Path;
    type Outcome = Result<Connection, String>;

    fn fits(&self, path: &Path) -> Result<(), String> {
        let fits = self.0.fits(self.1, path);
        fits.map_err(|error| error.to_string())
    }

    fn dial(&self, path: Path) -> impl Future<Output = Self::Outcome> + Send + 'static {
        let (endpoint, peer) = (self.0.clone(), self.1);
        async move {
            let connection = endpoint.connect(peer, path).await;
            connection.map_err(|error| error.to_string())
        }
    }
}

/// A connection, and what the path manager needs to know of it.
struct Subflow {
    connection: Connection,
    is_held: bool,
    requests: usize,
    bytes: u64,
}

impl Subflow {
    fn new(connection: Connection) -> Self {
        connection.expect_data();
        let (is_held, requests, bytes) = (false, 0, 0);
        Self {
            connection,
            is_held,
            requests,
            bytes,
        }
    }

    fn has_room(&self) -> bool {
        !self.is_held && self.requests < PIPELINE
    }
}

async fn get(
    endpoint: Endpoint,
    host: Endhost,
    peer: ScionAddr,
    file: File,
) -> Result<(), AnyError> {
    host.paths(peer.isd_as).await?;
    let (server, paths) = (Server(endpoint.clone(), peer), PathOptions::default());
    let mut dialer = Dialer::new(server, PathSet::new(paths), host.watch(peer.isd_as));
    let mut subflows: HashMap<SubflowId, Subflow> = HashMap::new();
    let mut fetches = JoinSet::new();
    let (failed, next, end) = (Vec::new(), 0, u64::MAX);
    let mut chunks = Chunks {
        file,
        failed,
        next,
        end,
    };
    while !fetches.is_empty() || !chunks.is_empty() {
        for (id, one) in &mut subflows {
            while let Some(offset) = one.has_room().then(|| chunks.take()).flatten() {
                one.requests += 1;
                let (id, connection) = (*id, one.connection.clone());
                fetches.spawn(async move { (id, offset, fetch(&connection, offset).await) });
            }
        }
        tokio::select! {
            dialed = dialer.next() => match dialed {
                Some((id, Ok(connection))) => {
                    dialer.paths.connected(id, Some(connection.stats().rtt), Instant::now());
                    subflows.insert(id, Subflow::new(connection));
                }
                Some((id, Err(error))) => {
                    dialer.paths.lost(id, Failure::Failed, error, Instant::now());
                }
                None => {}
            },
            Some(fetched) = fetches.join_next() => match fetched? {
                (id, offset, Ok(answer)) => {
                    chunks.write(offset, &answer)?;
                    if let Some(one) = subflows.get_mut(&id) {
                        one.requests -= 1;
                        one.bytes += answer.len() as u64;
                    }
                }
                (id, offset, Err(error)) => {
                    chunks.failed.push(offset);
                    subflows.remove(&id);
                    dialer.paths.lost(id, Failure::Closed, error.to_string(), Instant::now());
                }
            },
        }
        let carried = |id| Carried {
            bytes: subflows.get(&id).map_or(0, |one| one.bytes),
            usable: !chunks.is_empty(),
        };
        for order in dialer.orders(carried, Instant::now()) {
            println!("{} {:?}: {}", order.path.short(), order.action, order.cause);
            match (order.action, subflows.get_mut(&order.subflow)) {
                // What is under way still arrives if it is to be drained.
                (Action::Close { drain }, _) => {
                    if let (Some(one), false) = (subflows.remove(&order.subflow), drain) {
                        one.connection.close(0, "not needed");
                    }
                }
                (action, Some(one)) => one.is_held = action == Action::Hold,
                (_, None) => {}
            }
        }
        for (path, decision) in dialer.paths.changes() {
            println!("{} {decision}", path.short());
        }
    }
    endpoint.close().await;
    Ok(())
}
