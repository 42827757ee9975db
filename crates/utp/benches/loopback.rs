//! Goodput over the loopback device: uTP beside TCP, one stream, 64 MiB.

use std::net::SocketAddr;

use divan::Bencher;
use divan::counter::BytesCount;
use hawser_utp::{Config, UtpSocket};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

const LENGTH: usize = 64 << 20;
/// What is written at once: a block of BitTorrent.
const BLOCK: usize = 16 << 10;

fn main() {
    divan::main();
}

fn any() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

async fn copy(mut from: impl AsyncWrite + Unpin, mut to: impl AsyncRead + Unpin) {
    let send = async {
        for _ in 0..LENGTH / BLOCK {
            from.write_all(&[7; BLOCK]).await.expect("it is connected");
        }
        from.shutdown().await.expect("it is connected");
    };
    let receive = async {
        let mut buffer = vec![0; 64 << 10];
        let mut received = 0;
        while let length @ 1.. = to.read(&mut buffer).await.expect("it is connected") {
            received += length;
        }
        assert_eq!(received, LENGTH);
    };
    tokio::join!(send, receive);
}

#[divan::bench(sample_count = 10)]
fn utp(bencher: Bencher) {
    let runtime = Runtime::new().expect("a runtime");
    let bench = || {
        runtime.block_on(async {
            let listening = UtpSocket::bind(any(), Config::default()).expect("a free port");
            let dialing = UtpSocket::bind(any(), Config::default()).expect("a free port");
            let (from, to) =
                tokio::join!(dialing.connect(listening.local_addr()), listening.accept());
            copy(from.expect("it is there"), to.expect("it is there")).await;
        });
    };
    bencher.counter(BytesCount::new(LENGTH)).bench(bench);
}

#[divan::bench(sample_count = 10)]
fn tcp(bencher: Bencher) {
    let runtime = Runtime::new().expect("a runtime");
    let bench = || {
        runtime.block_on(async {
            let listening = TcpListener::bind(any()).await.expect("a free port");
            let addr = listening.local_addr().expect("it is bound");
            let (from, to) = tokio::join!(TcpStream::connect(addr), listening.accept());
            copy(from.expect("it is there"), to.expect("it is there").0).await;
        });
    };
    bencher.counter(BytesCount::new(LENGTH)).bench(bench);
}
