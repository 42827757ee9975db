//! Connections between hosts of the network of pipes.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hawser_address::PeerAddr;
use hawser_endhost::ScionAddr;
use hawser_path::Fingerprint;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::{FAST, Shape, State, TestPath, time_of};
use crate::close::{CloseCode, Closed};
use crate::transport::{Connection, Output, Stream};

/// One end of a connection.
pub struct Pipe {
    peer: ScionAddr,
    path: TestPath,
    fingerprint: Fingerprint,
    stream: Mutex<Option<DuplexStream>>,
    closed: watch::Sender<Option<End>>,
    expecting: Arc<Mutex<Vec<PeerAddr>>>,
}

/// The end of a connection.
#[derive(Debug, Clone)]
struct End {
    /// The side that received the code; `None` if the path ended the connection.
    to: Option<ScionAddr>,
    code: u64,
    text: String,
}

impl Output for WriteHalf<DuplexStream> {}

impl Connection for Pipe {
    fn stream(&self) -> Pin<Box<dyn Future<Output = Result<Stream, String>> + Send + '_>> {
        Box::pin(async {
            let stream = self.stream.lock().unwrap().take();
            let (read, write) = split(stream.ok_or("taken before")?);
            Ok((Box::new(read) as _, Box::new(write) as _))
        })
    }

    fn peer(&self) -> PeerAddr {
        match self.path.is_plain_ip {
            true => PeerAddr::Ip(self.peer.host),
            false => self.peer.into(),
        }
    }

    fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    fn key(&self) -> [u8; 32] {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&u64::from(self.peer.isd_as).to_be_bytes());
        key[8] = self.path.is_plain_ip.into();
        key
    }

    fn rtt(&self) -> Duration {
        self.path.shape.delay * 2 + Duration::from_millis(1)
    }

    fn expect_data(&self) {
        self.expecting.lock().unwrap().push(self.peer.into());
    }

    fn close(&self, code: CloseCode, text: &str) {
        self.close_with(code as u64, text);
    }

    fn close_reason(&self) -> Option<Closed> {
        let End { to, code, text } = self.closed.borrow().clone()?;
        let code = match to {
            Some(to) if to != self.peer => CloseCode::received(code),
            _ => CloseCode::Plain,
        };
        Some(Closed { code, text })
    }
}

impl Pipe {
    /// Closes it like [`Connection::close`], with any code.
    pub fn close_with(&self, code: u64, text: &str) {
        self.closed.send_if_modified(|closed| {
            let first = closed.is_none();
            closed.get_or_insert_with(|| End {
                to: Some(self.peer),
                code,
                text: text.to_owned(),
            });
            first
        });
    }
}

/// The two ends of a connection between hosts over a path.
pub(super) fn link(
    from: ScionAddr,
    to: ScionAddr,
    path: &TestPath,
    expecting: &Arc<Mutex<Vec<PeerAddr>>>,
) -> (Pipe, Pipe) {
    const BUFFER: usize = 256 << 10;
    let closed = watch::Sender::new(None::<End>);
    let pipe = |peer, stream| Pipe {
        peer,
        path: path.clone(),
        fingerprint: match path.back.filter(|_| peer == from) {
            Some(back) => back,
            None => path.fingerprint(),
        },
        stream: Mutex::new(Some(stream)),
        closed: closed.clone(),
        expecting: Arc::clone(expecting),
    };
    if path.shape == FAST {
        let (near, far) = duplex(1 << 20);
        return (pipe(to, near), pipe(from, far));
    }
    let (near, near_inner) = duplex(BUFFER);
    let (far, far_inner) = duplex(BUFFER);
    let pipes = (pipe(to, near), pipe(from, far));
    let (near_read, near_write) = split(near_inner);
    let (far_read, far_write) = split(far_inner);
    let (there, back) = (
        pump(near_read, far_write, path.clone()),
        pump(far_read, near_write, path.clone()),
    );
    let (mut ended, mut state) = (closed.subscribe(), path.state.subscribe());
    tokio::spawn(async move {
        tokio::select! {
            () = there => {}
            () = back => {}
            // Leaves a moment for the last bytes.
            _ = ended.wait_for(Option::is_some) => {}
            _ = state.wait_for(|state| *state == State::Down) => {
                closed.send_replace(Some(End {
                    to: None,
                    code: 0,
                    text: "the path is down".into(),
                }));
            }
        }
    });
    pipes
}

/// Moves bytes in one direction, at the rate and with the delay of the path.
async fn pump(mut from: ReadHalf<DuplexStream>, mut to: WriteHalf<DuplexStream>, path: TestPath) {
    let Shape { rate, delay } = path.shape;
    let neck = path.neck.clone();
    let rate = rate.or(neck.as_ref().map(|neck| neck.rate));
    // Chunks in flight: enough for the product of rate and delay, and a queue of about 50 ms.
    let chunk = rate.map_or(64 << 10, |rate| {
        (rate as usize / 8 / 500).clamp(512, 64 << 10)
    });
    let (sender, mut under_way) =
        mpsc::channel::<(Instant, Vec<u8>)>(25 + delay.as_millis() as usize);
    let mut state = path.state.subscribe();
    let enter = async move {
        let mut next = Instant::now();
        let mut buffer = vec![0; chunk];
        loop {
            let Ok(read @ 1..) = from.read(&mut buffer).await else {
                return;
            };
            if let Some(rate) = rate {
                // Timers are late by a millisecond or two; the credit makes up for it.
                let credit = Instant::now() - Duration::from_millis(20);
                next = next.max(credit) + time_of(read, rate);
                tokio::time::sleep_until(next).await;
            }
            if let Some(neck) = &neck {
                let through = neck.pass(read);
                tokio::time::sleep_until(through).await;
            }
            if state.wait_for(|state| *state == State::Up).await.is_err() {
                return;
            }
            if sender
                .send((Instant::now() + delay, buffer[..read].to_vec()))
                .await
                .is_err()
            {
                return;
            }
        }
    };
    let leave = async move {
        while let Some((due, bytes)) = under_way.recv().await {
            tokio::time::sleep_until(due).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(enter, leave);
}
