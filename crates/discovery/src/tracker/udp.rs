//! Requests over UDP and their answers (BEP 15).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hawser_address::PeerAddr;
use hawser_tracker::message::udp::{Form, UdpAnswer, UdpAnswerError, UdpRequest};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::datagrams::{Datagrams, RECEIVE_RETRY_INTERVAL};
use crate::error::AnnounceError;

/// How long a connection id is used (BEP 15).
const CONNECTION_LIFETIME: Duration = Duration::from_secs(60);

type Received = Result<UdpAnswer, UdpAnswerError>;
type Waiting = HashMap<(PeerAddr, u32), oneshot::Sender<Received>>;

/// One socket, over which trackers are asked.
pub(super) struct Exchange {
    socket: Arc<dyn Datagrams>,
    /// Requests under way, by tracker and transaction id. Each belongs to a call of [`ask`](Self::ask).
    waiting: Arc<Mutex<Waiting>>,
    /// Connection ids, each with the time it was given. Old ones are dropped with each new one.
    connections: Mutex<HashMap<PeerAddr, (u64, Instant)>>,
    first_timeout: Duration,
    attempts: u32,
    receiver: AbortHandle,
}

impl Exchange {
    pub fn new(socket: Arc<dyn Datagrams>, first_timeout: Duration, attempts: u32) -> Self {
        let waiting = Arc::<Mutex<Waiting>>::default();
        let receiver = tokio::spawn(receive(Arc::clone(&socket), Arc::clone(&waiting)));
        Self {
            socket,
            waiting,
            connections: Mutex::default(),
            first_timeout,
            attempts: attempts.max(1),
            receiver: receiver.abort_handle(),
        }
    }

    /// Asks the tracker at `to` what `request` makes of a connection id and a transaction id; `host` is its
    /// name in errors.
    ///
    /// # Errors
    /// If it does not answer, or what cannot be read.
    pub async fn ask(
        &self,
        to: PeerAddr,
        host: &str,
        request: &(impl Fn(u64, u32) -> UdpRequest + Sync),
    ) -> Result<UdpAnswer, AnnounceError> {
        let mut after = Duration::ZERO;
        for attempt in 0..self.attempts {
            let limit = self.first_timeout * 2u32.saturating_pow(attempt);
            after += limit;
            if let Ok(answer) = timeout(limit, self.try_ask(to, host, request)).await {
                return answer;
            }
        }
        let host = host.to_owned();
        Err(AnnounceError::TimedOut { host, after })
    }

    async fn try_ask(
        &self,
        to: PeerAddr,
        host: &str,
        request: &(impl Fn(u64, u32) -> UdpRequest + Sync),
    ) -> Result<UdpAnswer, AnnounceError> {
        if let Some(connection) = self.connection(to) {
            let ask = |transaction| request(connection, transaction);
            match self.exchange(to, host, ask).await? {
                // The id may be one of before the tracker was restarted.
                UdpAnswer::Error(_) => {}
                answer => return Ok(answer),
            }
        }
        let connect = |transaction| UdpRequest::Connect { transaction };
        let connection = match self.exchange(to, host, connect).await? {
            UdpAnswer::Connect(connection) => connection,
            error @ UdpAnswer::Error(_) => return Ok(error),
            _ => {
                let host = host.to_owned();
                return Err(AnnounceError::OtherAnswer { host });
            }
        };
        self.remember(to, connection);
        self.exchange(to, host, |transaction| request(connection, transaction))
            .await
    }

    fn remember(&self, to: PeerAddr, connection: u64) {
        let now = Instant::now();
        let mut connections = lock(&self.connections);
        connections.retain(|_, (_, given)| now - *given < CONNECTION_LIFETIME);
        connections.insert(to, (connection, now));
    }

    fn connection(&self, to: PeerAddr) -> Option<u64> {
        let connections = lock(&self.connections);
        let (connection, given) = connections.get(&to)?;
        (given.elapsed() < CONNECTION_LIFETIME).then_some(*connection)
    }

    /// Sends a request once, and waits for its answer.
    async fn exchange(
        &self,
        to: PeerAddr,
        host: &str,
        request: impl Fn(u32) -> UdpRequest,
    ) -> Result<UdpAnswer, AnnounceError> {
        // Answers are taken from the tracker's address with this number alone.
        let transaction = fastrand::u32(..);
        let (sender, receiver) = oneshot::channel();
        lock(&self.waiting).insert((to, transaction), sender);
        let _forget = Forget {
            waiting: &self.waiting,
            key: (to, transaction),
        };
        let sent = self.socket.send(to, &request(transaction).write()).await;
        sent.map_err(|error| AnnounceError::Reach {
            host: host.to_owned(),
            error,
        })?;
        match receiver.await {
            Ok(answer) => Ok(answer?),
            // Another request took the number: one in four billion.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.receiver.abort();
    }
}

/// Forgets a request that is no longer awaited.
struct Forget<'a> {
    waiting: &'a Mutex<Waiting>,
    key: (PeerAddr, u32),
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        lock(self.waiting).remove(&self.key);
    }
}

/// Hands answers to those that wait for them; drops others.
async fn receive(socket: Arc<dyn Datagrams>, waiting: Arc<Mutex<Waiting>>) {
    loop {
        let Ok((from, packet)) = socket.receive().await else {
            sleep(RECEIVE_RETRY_INTERVAL).await;
            continue;
        };
        // The transaction id has the same place in all answers.
        let Some(bytes) = packet.get(4..8).and_then(|bytes| bytes.try_into().ok()) else {
            continue;
        };
        let key = (from, u32::from_be_bytes(bytes));
        if let Some(sender) = lock(&waiting).remove(&key) {
            let answer = UdpAnswer::read(&packet, Form::of(from)).map(|(_, answer)| answer);
            let _ = sender.send(answer);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
