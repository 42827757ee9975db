//! The receiving side of tests.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hawser_endhost::patience::wait;
use hawser_endhost::socket::Socket;
use hawser_endhost::{Endhost, ScionAddr};
use hawser_quic::{Config, Connection, Endpoint, NO_CODE, RecvStream, SendStream};
use tokio::io::{AsyncReadExt, BufReader};

use crate::cpu::cpu_time;
use crate::error::PerfError;
use crate::message::{Ready, Received, Request, line, read};
use crate::raw;

/// The application protocol of tests (TLS ALPN).
const ALPN: &[u8] = b"hawser-perf/1";
/// Longest wait for a client to request its test, and to close the connection after it, without the time
/// in which this process did not run.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of samples.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);
/// Most bytes taken from a stream at once.
const CHUNK: usize = 1 << 20;

/// The settings of both sides' QUIC.
pub(crate) fn config() -> Config {
    Config {
        alpn: ALPN.to_vec(),
        ..Config::default()
    }
}

/// Receives what clients send, and returns to each how much arrived.
pub struct Server {
    endpoint: Endpoint,
    host: Endhost,
}

/// A test that a server has received.
#[derive(Debug)]
#[non_exhaustive]
pub struct Served {
    /// The client.
    pub peer: ScionAddr,
    /// What arrived, or why the test failed.
    pub received: Result<Received, PerfError>,
    /// In tests of a stream: seconds since the first byte and bytes until then, about ten times a
    /// second.
    pub samples: Vec<(f64, u64)>,
}

impl Server {
    /// Listens at `listen`, or at a free dispatched port of this host's address. Must be called
    /// inside a tokio runtime.
    ///
    /// # Errors
    /// [`PerfError::Bind`] when the socket cannot be bound.
    pub fn bind(host: Endhost, listen: Option<SocketAddr>) -> Result<Self, PerfError> {
        let endpoint = Endpoint::bind(host.clone(), listen, config())?;
        Ok(Self { endpoint, host })
    }

    /// The address that clients connect to.
    pub fn local_addr(&self) -> ScionAddr {
        self.endpoint.local_addr()
    }

    /// Serves clients one after the other, so that no test disturbs another. Dropping the future
    /// ends it.
    pub async fn run(&self, mut observe: impl FnMut(Served)) {
        while let Some(connection) = self.endpoint.accept().await {
            let mut samples = Vec::new();
            let received = self.serve(&connection, &mut samples).await;
            if received.is_ok() {
                // The client closes the connection when it has the result.
                let _ = wait(REQUEST_TIMEOUT, connection.closed()).await;
            }
            connection.close(NO_CODE, "the test has ended");
            observe(Served {
                peer: connection.peer(),
                received,
                samples,
            });
        }
    }

    /// Closes the connections to clients.
    pub async fn close(&self) {
        self.endpoint.close().await;
    }

    async fn serve(
        &self,
        connection: &Connection,
        samples: &mut Vec<(f64, u64)>,
    ) -> Result<Received, PerfError> {
        let request = async {
            let (answers, requests) = connection.accept_bi().await?;
            let mut requests = BufReader::new(requests);
            let request = read(&mut requests).await?;
            Ok::<_, PerfError>((answers, requests, request))
        };
        let request = wait(REQUEST_TIMEOUT, request).await;
        let (mut answers, requests, request) =
            request.ok_or_else(|| PerfError::message("it requests no test"))??;
        connection.set_known();
        let cpu = cpu_time();
        let mut received = match request {
            Request::Stream => {
                connection.expect_data();
                let (_, data) = connection.accept_bi().await?;
                count_stream(data, samples).await?
            }
            Request::Packets { id } => {
                self.count_packets(connection, &mut answers, requests, id)
                    .await?
            }
        };
        received.cpu_seconds = (cpu_time() - cpu).as_secs_f64();
        answers.write_all(&line(&received)?).await?;
        // The client may have closed the connection by now.
        let _ = answers.finish();
        Ok(received)
    }

    async fn count_packets(
        &self,
        connection: &Connection,
        answers: &mut SendStream,
        mut requests: BufReader<RecvStream>,
        id: u64,
    ) -> Result<Received, PerfError> {
        let ip = self.local_addr().host.ip();
        let socket = Socket::bind(&self.host, Some(SocketAddr::new(ip, 0)))?;
        let port = socket.local_addr().host.port();
        answers.write_all(&line(&Ready { port })?).await?;
        let ended = async {
            // The client finishes its side, or is gone: in both cases the test has ended.
            let _ = requests.read_u8().await;
        };
        let counted = raw::count(&socket, connection.peer().isd_as, id, ended).await?;
        Ok(Received {
            bytes: counted.bytes(),
            packets: counted.packets(),
            seconds: counted.time().as_secs_f64(),
            cpu_seconds: 0.0,
        })
    }
}

/// Counts the bytes of a stream up to its end.
async fn count_stream(
    mut data: RecvStream,
    samples: &mut Vec<(f64, u64)>,
) -> Result<Received, PerfError> {
    let (mut bytes, mut first, mut due) = (0, None, Duration::ZERO);
    while let Some(chunk) = data.read_chunk(CHUNK).await? {
        let time = first.get_or_insert_with(Instant::now).elapsed();
        bytes += chunk.len() as u64;
        if time >= due {
            due = time + SAMPLE_INTERVAL;
            samples.push((time.as_secs_f64(), bytes));
        }
    }
    let time = first.map_or(Duration::ZERO, |first| first.elapsed());
    Ok(Received {
        bytes,
        seconds: time.as_secs_f64(),
        ..Received::default()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pause_of_this_process_is_no_silence_of_the_client() {
        // Virtual time stands still while something blocks.
        let (_blocks, blocked) = mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || blocked.recv());
        let host = Endhost::on_plain_ip(None);
        let local = || Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let server = Server::bind(host.clone(), local()).unwrap();
        let client = Endpoint::bind(host.clone(), local(), config()).unwrap();
        let (path, peer) = (host.paths(host.local_as()), server.local_addr());
        let path = path.await.unwrap().remove(0);
        tokio::spawn(async move { server.run(|_| {}).await });
        let connection = client.connect(peer, path).await.unwrap();
        // The server waits for a request.
        let moment = || thread::sleep(Duration::from_millis(200));
        tokio::task::spawn_blocking(moment).await.unwrap();
        tokio::time::advance(REQUEST_TIMEOUT * 10).await;
        tokio::task::spawn_blocking(moment).await.unwrap();
        let (mut requests, answers) = connection.open_bi().await.unwrap();
        let request = line(&Request::Stream).unwrap();
        requests.write_all(&request).await.unwrap();
        let (mut data, _answers) = connection.open_bi().await.unwrap();
        data.write_all(&[7; 1000]).await.unwrap();
        data.finish().unwrap();
        let received: Received = read(&mut BufReader::new(answers)).await.unwrap();
        assert_eq!(received.bytes, 1000);
    }
}
