//! Sends bytes over one connection per path, and prints the throughput.
//!
//! `pipe listen` in one AS prints its address; `pipe send ADDRESS [PATHS [SECONDS]]` runs in
//! another.

use std::env;
use std::error::Error;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hawser_endhost::{Bootstrap, Endhost, ScionAddr};
use hawser_quic::{Config, Connection, Endpoint, StreamError};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let host = Endhost::bootstrap(&Bootstrap::default()).await?;
    let endpoint = Endpoint::bind(host.clone(), None, Config::default())?;
    match args[..] {
        ["listen"] => listen(endpoint).await,
        ["send", peer] => send(endpoint, host, peer.parse()?, 1, 5).await,
        ["send", peer, paths] => send(endpoint, host, peer.parse()?, paths.parse()?, 5).await,
        ["send", peer, paths, seconds] => {
            send(
                endpoint,
                host,
                peer.parse()?,
                paths.parse()?,
                seconds.parse()?,
            )
            .await
        }
        _ => Err("pipe listen | pipe send ADDRESS [PATHS [SECONDS]]".into()),
    }
}

async fn listen(endpoint: Endpoint) -> Result<(), Box<dyn Error>> {
    println!("{}", endpoint.local_addr());
    while let Some(connection) = endpoint.accept().await {
        let endpoint = endpoint.clone();
        tokio::spawn(async move {
            let bytes = drain(&connection).await;
            let (reason, drops) = (connection.closed().await, endpoint.drops());
            println!(
                "{bytes} bytes from {}: {reason}; {drops:?}",
                connection.peer()
            );
        });
    }
    Ok(())
}

async fn drain(connection: &Connection) -> u64 {
    let mut bytes = 0;
    connection.expect_data();
    if let Ok((_keep, mut stream)) = connection.accept_bi().await {
        while let Ok(Some(chunk)) = stream.read_chunk(1 << 20).await {
            bytes += chunk.len() as u64;
        }
    }
    bytes
}

async fn send(
    endpoint: Endpoint,
    host: Endhost,
    peer: ScionAddr,
    paths: usize,
    seconds: u64,
) -> Result<(), Box<dyn Error>> {
    let mut pushing = Vec::new();
    for path in host.paths(peer.isd_as).await?.into_iter().take(paths) {
        println!("{} {}", path.fingerprint().short(), path.info());
        let connection = endpoint.connect(peer, path).await?;
        pushing.push(tokio::spawn(push(connection, Duration::from_secs(seconds))));
    }
    for pushing in pushing {
        println!("{}", pushing.await??);
    }
    endpoint.close().await;
    Ok(())
}

async fn push(connection: Connection, time: Duration) -> Result<String, StreamError> {
    let (mut stream, _keep) = connection.open_bi().await?;
    let chunk = Bytes::from(vec![5; 256 << 10]);
    let (began, mut bytes) = (Instant::now(), 0);
    while began.elapsed() < time {
        stream.write_chunk(chunk.clone()).await?;
        bytes += chunk.len();
    }
    // Fails only if the stream was finished before.
    let _ = stream.finish();
    stream.delivered().await?;
    let seconds = began.elapsed().as_secs_f64();
    let (stats, rate) = (connection.stats(), bytes as f64 * 8.0 / seconds / 1e6);
    Ok(format!(
        "{} {rate:.1} Mbit/s, rtt {:?}, cwnd {}, {} of {} packets lost",
        connection.fingerprint().short(),
        stats.rtt,
        stats.cwnd,
        stats.lost,
        stats.packets_sent,
    ))
}
