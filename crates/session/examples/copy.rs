//! Copies a file over several paths at once, and continues over the others when one fails.
//!
//! `copy serve FILE` in one AS prints its address; `copy get ADDRESS FILE [PATHS]` runs in another.

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::fs::File;
use std::future::Future;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hawser_endhost::{Bootstrap, Endhost, Path, ScionAddr};
use hawser_manager::{Action, Carried, Failure, PathOptions, PathSet, SubflowId};
use hawser_quic::{Config, Connection, Endpoint};
use hawser_session::{Dialer, Remote};
use tokio::task::{AbortHandle, JoinSet};

type AnyError = Box<dyn Error + Send + Sync>;

/// Bytes of one request, the most that a failing connection loses.
const CHUNK: u64 = 1 << 20;

/// Time after which a connection that is held, or has nothing to fetch, looks again.
const IDLE: Duration = Duration::from_millis(10);

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let host = Endhost::bootstrap(&Bootstrap::default()).await?;
    let endpoint = Endpoint::bind(host.clone(), None, Config::default())?;
    match args[..] {
        ["serve", file] => serve(endpoint, File::open(file)?).await,
        ["get", peer, file] => get(endpoint, host, peer.parse()?, file, 4).await,
        ["get", peer, file, paths] => {
            get(endpoint, host, peer.parse()?, file, paths.parse()?).await
        }
        _ => Err("copy serve FILE | copy get ADDRESS FILE [PATHS]".into()),
    }
}

/// Answers each stream, which carries an offset, with the file's length and the chunk there.
async fn serve(endpoint: Endpoint, file: File) -> Result<(), AnyError> {
    println!("{}", endpoint.local_addr());
    let file = Arc::new(file);
    while let Some(connection) = endpoint.accept().await {
        let file = Arc::clone(&file);
        tokio::spawn(async move {
            while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                let mut offset = Vec::new();
                while let Some(bytes) = receive.read_chunk(8).await? {
                    offset.extend(bytes);
                }
                let offset = u64::from_be_bytes(offset.as_slice().try_into()?);
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

/// The state of a copied file.
struct Copy {
    file: File,
    /// Offsets of chunks that are not being fetched, last one first.
    open: Mutex<Vec<u64>>,
    /// Bytes that are missing; `u64::MAX` before the length is known.
    missing: AtomicU64,
}

impl Copy {
    /// The next chunk to fetch.
    fn take(&self) -> Option<u64> {
        self.lock().pop()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u64>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_complete(&self) -> bool {
        self.missing.load(Ordering::Relaxed) == 0
    }

    /// Fetches chunks over a connection until all are here.
    async fn fetch(&self, connection: &Connection, flow: &Flow) -> Result<(), AnyError> {
        connection.expect_data();
        while !self.is_complete() {
            let held = flow.held.load(Ordering::Relaxed);
            let Some(offset) = (!held).then(|| self.take()).flatten() else {
                tokio::time::sleep(IDLE).await;
                continue;
            };
            let mut chunk = Open(self, Some(offset));
            self.fetch_chunk(connection, flow, offset).await?;
            chunk.1 = None;
        }
        Ok(())
    }

    async fn fetch_chunk(
        &self,
        connection: &Connection,
        flow: &Flow,
        offset: u64,
    ) -> Result<(), AnyError> {
        let (mut send, mut receive) = connection.open_bi().await?;
        send.write_all(&offset.to_be_bytes()).await?;
        send.finish()?;
        let mut answer = Vec::new();
        while let Some(bytes) = receive.read_chunk(1 << 16).await? {
            flow.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            answer.extend(bytes);
        }
        let (length, chunk) = answer.split_first_chunk().ok_or("an answer is too short")?;
        let length = u64::from_be_bytes(*length);
        if chunk.len() as u64 != length.saturating_sub(offset).min(CHUNK) {
            return Err("an answer has another length than the chunk".into());
        }
        self.file.write_all_at(chunk, offset)?;
        let unknown = u64::MAX;
        let missing = &self.missing;
        if missing
            .compare_exchange(unknown, length, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
        {
            let mut open = self.lock();
            open.extend((CHUNK..length).step_by(CHUNK as usize));
            open.reverse();
        }
        missing.fetch_sub(chunk.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// Returns a chunk to the open ones when dropped, also by an aborted task, unless it was fetched.
struct Open<'a>(&'a Copy, Option<u64>);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.lock().extend(self.1);
    }
}

/// What the task of a subflow shares with the loop of the transfer.
#[derive(Default)]
struct Flow {
    held: AtomicBool,
    bytes: AtomicU64,
}

/// The server, as it is dialed.
struct Server(Endpoint, ScionAddr);

impl Remote for Server {
    type Path = Path;
    type Outcome = Result<Connection, String>;

    fn fits(&self, path: &Path) -> Result<(), String> {
        let Self(endpoint, peer) = self;
        endpoint
            .fits(*peer, path)
            .map_err(|error| error.to_string())
    }

    fn dial(&self, path: Path) -> impl Future<Output = Self::Outcome> + Send + 'static {
        let Self(endpoint, peer) = self;
        let (endpoint, peer) = (endpoint.clone(), *peer);
        async move {
            endpoint
                .connect(peer, path)
                .await
                .map_err(|error| error.to_string())
        }
    }
}

async fn get(
    endpoint: Endpoint,
    host: Endhost,
    peer: ScionAddr,
    file: &str,
    paths: usize,
) -> Result<(), AnyError> {
    host.paths(peer.isd_as).await?;
    let options = PathOptions {
        subflows: paths,
        ..PathOptions::default()
    };
    let server = Server(endpoint.clone(), peer);
    let mut dialer = Dialer::new(server, PathSet::new(options), host.watch(peer.isd_as));
    let copy = Arc::new(Copy {
        file: File::create_new(file)?,
        open: Mutex::new(vec![0]),
        missing: AtomicU64::new(u64::MAX),
    });
    let mut flows: HashMap<SubflowId, (AbortHandle, Arc<Flow>)> = HashMap::new();
    let mut tasks = JoinSet::new();
    while !copy.is_complete() {
        tokio::select! {
            dialed = dialer.next() => match dialed {
                Some((subflow, Ok(connection))) => {
                    let rtt = connection.stats().rtt;
                    dialer.paths.connected(subflow, Some(rtt), Instant::now());
                    let (copy, flow) = (Arc::clone(&copy), Arc::<Flow>::default());
                    let of_task = Arc::clone(&flow);
                    let task = tasks.spawn(async move {
                        let ended = copy.fetch(&connection, &of_task).await;
                        (subflow, ended.map_or_else(|error| error.to_string(), |()| "all is here".into()))
                    });
                    flows.insert(subflow, (task, flow));
                }
                Some((subflow, Err(error))) => {
                    dialer.paths.lost(subflow, Failure::Failed, error, Instant::now());
                }
                None => {}
            },
            Some(Ok((subflow, error))) = tasks.join_next() => {
                flows.remove(&subflow);
                dialer.paths.lost(subflow, Failure::Closed, error, Instant::now());
            }
        }
        let usable = !copy.lock().is_empty();
        let carried = |subflow| {
            flows
                .get(&subflow)
                .map_or_else(Carried::default, |(_, flow)| Carried {
                    bytes: flow.bytes.load(Ordering::Relaxed),
                    usable,
                })
        };
        for order in dialer.orders(carried, Instant::now()) {
            println!("{} {:?}: {}", order.path.short(), order.action, order.cause);
            match order.action {
                Action::Close { .. } => {
                    if let Some((task, _)) = flows.remove(&order.subflow) {
                        task.abort();
                    }
                }
                action => {
                    if let Some((_, flow)) = flows.get(&order.subflow) {
                        flow.held.store(action == Action::Hold, Ordering::Relaxed);
                    }
                }
            }
        }
        for (path, decision) in dialer.paths.changes() {
            println!("{} {decision}", path.short());
        }
    }
    for (_, flow) in flows.values() {
        println!("{} bytes", flow.bytes.load(Ordering::Relaxed));
    }
    endpoint.close().await;
    Ok(())
}
