//! The tasks that connect to peers and exchange messages; they report events to the owner.

use std::sync::Arc;
use std::time::Duration;

use hawser_address::PeerAddr;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::event::{DialResult, Event};
use super::subflow::Peer;
use crate::peer::{self, Gone, Outgoing, Session, Shared, Side, Traffic};
use crate::picker::ConnId;
use crate::transport::{Connection, Transport};
use crate::wire::Message;

/// Longest time for connecting and the handshake together. A dial that hangs must end, so that the
/// path is tried again.
const DIAL_TIME: Duration = Duration::from_secs(15);

/// The tasks of a torrent. They end with it.
pub(super) struct Net<T: Transport> {
    pub transport: T,
    shared: Arc<Shared>,
    pub events: mpsc::Sender<Event<T>>,
    pub tasks: JoinSet<()>,
}

impl<T: Transport> Net<T> {
    /// No tasks yet; they will report to `events`.
    pub fn new(transport: T, shared: Arc<Shared>, events: mpsc::Sender<Event<T>>) -> Self {
        Self {
            transport,
            shared,
            events,
            tasks: JoinSet::new(),
        }
    }

    /// Reports the paths offered to a peer, now and whenever they change, and if there are none,
    /// the reason.
    pub fn watch(&mut self, to: Peer, peer: PeerAddr) -> AbortHandle {
        let (transport, events) = (self.transport.clone(), self.events.clone());
        self.tasks.spawn(async move {
            let mut offers = transport.offers(peer);
            let mut trouble = transport.lookup(peer).await.err();
            loop {
                let paths = Arc::clone(&offers.borrow_and_update());
                let empty = paths.is_empty();
                if empty && trouble.is_none() {
                    trouble = transport.lookup(peer).await.err();
                }
                let trouble = trouble.take().filter(|_| empty);
                let event = Event::Offers { to, paths, trouble };
                if events.send(event).await.is_err() || offers.changed().await.is_err() {
                    return;
                }
            }
        })
    }

    /// Reports the connections that peers open.
    pub fn accept(&mut self) {
        let (transport, events) = (self.transport.clone(), self.events.clone());
        self.tasks.spawn(async move {
            while let Some(connection) = transport.accept().await {
                if events.send(Event::Incoming(connection)).await.is_err() {
                    return;
                }
            }
            let _ = events.send(Event::NoMoreIncoming).await;
        });
    }

    /// Connects to a peer over a path and does the handshakes; `introduction` is our extended one.
    pub fn dial(
        &self,
        peer: PeerAddr,
        path: T::Path,
        introduction: Message,
    ) -> impl Future<Output = DialResult> + Send + use<T> {
        self.update_dht_node();
        let (transport, shared) = (self.transport.clone(), Arc::clone(&self.shared));
        async move {
            let connect = async {
                let connection = transport.dial(peer, path).await;
                let connection = connection.map_err(Gone::closed)?;
                peer::establish(connection, Side::Dialed, &introduction, &shared).await
            };
            let result = tokio::time::timeout(DIAL_TIME, connect).await;
            result.unwrap_or_else(|_| {
                let reason = format!("no answer within {} s", DIAL_TIME.as_secs());
                Err(Gone::closed(reason))
            })
        }
    }

    /// Does the handshakes over the connection with this number that a peer opened; `introduction` is our
    /// extended one.
    pub fn greet(&mut self, number: u64, connection: Arc<dyn Connection>, introduction: Message) {
        self.update_dht_node();
        let (shared, events) = (Arc::clone(&self.shared), self.events.clone());
        self.tasks.spawn(async move {
            let from = connection.peer();
            let session = peer::establish(connection, Side::Accepted, &introduction, &shared).await;
            if let Err(gone) = &session {
                tracing::debug!(peer = %from, %gone, "a connection came to nothing");
            }
            let _ = events.send(Event::Accepted(number, session.ok())).await;
        });
    }

    /// Takes note of whether there is a node of the DHT: it may have been opened since the last handshake.
    fn update_dht_node(&self) {
        self.shared.set_dht_node(self.transport.dht().is_some());
    }

    /// Reads and writes over a connection until it ends.
    pub fn run(
        &mut self,
        id: ConnId,
        session: Session,
        traffic: Arc<Traffic>,
        outbox: mpsc::UnboundedReceiver<Outgoing>,
    ) {
        let (shared, events) = (Arc::clone(&self.shared), self.events.clone());
        self.tasks.spawn(async move {
            let inputs = events.clone();
            let wrap = move |inputs| Event::Input(id, inputs);
            let gone = peer::run(session, shared, traffic, outbox, inputs, wrap).await;
            // Fails once the owner has ended.
            let _ = events.send(Event::Gone(id, gone)).await;
        });
    }
}
