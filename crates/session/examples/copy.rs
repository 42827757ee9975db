//! Copies a file over several paths at once, and continues over the others when one fails.
//!
//! `copy serve FILE` in one AS prints its address; `copy get ADDRESS FILE [PATHS]` runs in another.

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hawser_endhost::{Bootstrap, Endhost, ScionAddr};
use hawser_manager::{Action, Carried, Failure, Order, PathOptions, PathSet, SubflowId};
use hawser_quic::{Config, Connection, Endpoint};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

type AnyError = Box<dyn Error + Send + Sync>;

/// Bytes of one request, the most that a failing connection loses.
const CHUNK: u64 = 1 << 20;

/// Interval at which the path manager is given the bytes that each connection carried.
const TICK: Duration = Duration::from_millis(50);

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
    async fn fetch(&self, connection: &Connection, flow: &Shared) -> Result<(), AnyError> {
        connection.expect_data();
        while !self.is_complete() {
            let held = flow.held.load(Ordering::Relaxed);
            let Some(offset) = (!held).then(|| self.take()).flatten() else {
                tokio::time::sleep(TICK / 5).await;
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
        flow: &Shared,
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

/// The transfer's state of a subflow.
struct Flow {
    task: AbortHandle,
    shared: Arc<Shared>,
}

/// State that the task of a subflow shares with the transfer's loop.
#[derive(Default)]
struct Shared {
    held: AtomicBool,
    bytes: AtomicU64,
}

/// Reports of the tasks.
enum Event {
    Connected(SubflowId, Duration),
    Lost(SubflowId, Failure, String),
}

/// The paths to the server, and the transfer over them.
struct Transfer {
    endpoint: Endpoint,
    peer: ScionAddr,
    paths: PathSet<hawser_endhost::Path>,
    flows: HashMap<SubflowId, Flow>,
    copy: Arc<Copy>,
    events: mpsc::UnboundedSender<Event>,
}

async fn get(
    endpoint: Endpoint,
    host: Endhost,
    peer: ScionAddr,
    file: &str,
    paths: usize,
) -> Result<(), AnyError> {
    host.paths(peer.isd_as).await?;
    let mut offers = host.watch(peer.isd_as);
    let (events, mut inbox) = mpsc::unbounded_channel();
    let options = PathOptions {
        subflows: paths,
        ..PathOptions::default()
    };
    let mut transfer = Transfer {
        endpoint,
        peer,
        paths: PathSet::new(options),
        flows: HashMap::new(),
        copy: Arc::new(Copy {
            file: File::create_new(file)?,
            open: Mutex::new(vec![0]),
            missing: AtomicU64::new(u64::MAX),
        }),
        events,
    };
    let mut tick = tokio::time::interval(TICK);
    offers.mark_changed();
    while !transfer.copy.is_complete() {
        tokio::select! {
            _ = offers.changed() => {
                let (endpoint, offered) = (&transfer.endpoint, offers.borrow_and_update());
                let fits = |path: &_| endpoint.fits(peer, path).map_err(|error| error.to_string());
                transfer.paths.offer(&offered, fits, Instant::now());
            }
            Some(event) = inbox.recv() => transfer.handle(event),
            _ = tick.tick() => transfer.tick(),
        }
        for order in transfer.paths.orders(Instant::now()) {
            transfer.obey(order);
        }
        for (path, decision) in transfer.paths.changes() {
            println!("{} {decision}", path.short());
        }
    }
    for flow in transfer.flows.values() {
        println!("{} bytes", flow.shared.bytes.load(Ordering::Relaxed));
    }
    transfer.endpoint.close().await;
    Ok(())
}

impl Transfer {
    fn obey(&mut self, order: Order) {
        println!("{} {:?}: {}", order.path.short(), order.action, order.cause);
        match order.action {
            Action::Dial => self.dial(&order),
            Action::Hold | Action::Resume => {
                if let Some(flow) = self.flows.get(&order.subflow) {
                    let held = order.action == Action::Hold;
                    flow.shared.held.store(held, Ordering::Relaxed);
                }
            }
            Action::Close { .. } => {
                if let Some(flow) = self.flows.remove(&order.subflow) {
                    flow.task.abort();
                }
            }
        }
    }

    fn dial(&mut self, order: &Order) {
        let Some(path) = self.paths.path(order.path).cloned() else {
            return;
        };
        let (endpoint, peer, copy) = (self.endpoint.clone(), self.peer, Arc::clone(&self.copy));
        let (events, subflow) = (self.events.clone(), order.subflow);
        let shared = Arc::<Shared>::default();
        let of_task = Arc::clone(&shared);
        let run = async move {
            let connection = match endpoint.connect(peer, path).await {
                Ok(connection) => connection,
                Err(error) => return Event::Lost(subflow, Failure::Failed, error.to_string()),
            };
            let _ = events.send(Event::Connected(subflow, connection.stats().rtt));
            match copy.fetch(&connection, &of_task).await {
                Ok(()) => Event::Lost(subflow, Failure::Closed, "all is here".into()),
                Err(error) => Event::Lost(subflow, Failure::Closed, error.to_string()),
            }
        };
        let events = self.events.clone();
        let task = tokio::spawn(async move {
            let _ = events.send(run.await);
        });
        let task = task.abort_handle();
        self.flows.insert(subflow, Flow { task, shared });
    }

    fn handle(&mut self, event: Event) {
        let now = Instant::now();
        match event {
            Event::Connected(subflow, rtt) => self.paths.connected(subflow, Some(rtt), now),
            Event::Lost(subflow, failure, error) => {
                self.flows.remove(&subflow);
                self.paths.lost(subflow, failure, error, now);
            }
        }
    }

    fn tick(&mut self) {
        let usable = !self.copy.lock().is_empty();
        let carried = |subflow| {
            let flow = self.flows.get(&subflow);
            flow.map_or_else(Carried::default, |flow| Carried {
                bytes: flow.shared.bytes.load(Ordering::Relaxed),
                usable,
            })
        };
        self.paths.tick(carried, Instant::now());
    }
}
