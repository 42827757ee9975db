//! 1,000 concurrent readers of live data, on two threads: run with `--ignored --nocapture`.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hawser_coordinator::Actor;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::Barrier;

use crate::common::{HERE, Server};

const READERS: usize = 1000;
const LINKS: u64 = 200;
/// Events that each reader waits for.
const EVENTS: usize = 20;

fn millis() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_secs_f64() * 1000.0
}

/// Processor time of the threads whose names begin with `name`, in seconds.
fn processor(name: &str) -> f64 {
    let mut ticks = 0;
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let text = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap_or_default();
        if let Some((head, rest)) = text.rsplit_once(") ")
            && head.contains(&format!("({name}"))
        {
            let fields: Vec<&str> = rest.split(' ').collect();
            ticks += fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        }
    }
    ticks as f64 / 100.0
}

#[test]
#[ignore = "measures: run it alone"]
fn a_thousand_readers_get_each_sample() {
    let (sender, receiver) = channel();
    // The server has two threads of its own.
    std::thread::spawn(move || {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder
            .worker_threads(2)
            .thread_name("server")
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let server = Server::with_connections(4096).await;
            let program = Actor::program();
            for number in 0..LINKS {
                let isd_as = format!("1-ff00:1:{number:x}");
                let ip = format!("10.9.{}.{}", number / 200, number % 200 + 1);
                let new = json!({ "isd_as": isd_as, "label": isd_as, "addresses": [ip] });
                let new = serde_json::from_value(new).unwrap();
                server.coordinator.add_user_as(&program, new).unwrap();
                let limit = json!({ "egress": 1_000_000, "ingress": 1_000_000 });
                let link = json!({ "attachment_point": HERE, "user_as": isd_as, "limit": limit });
                let link = serde_json::from_value(link).unwrap();
                server.coordinator.add_link(&program, link).unwrap();
            }
            let token = server.token("eve").to_owned();
            sender.send((server.address, token)).unwrap();
            std::future::pending::<()>().await;
        });
    });
    let (address, token) = receiver.recv().unwrap();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder
        .worker_threads(1)
        .thread_name("readers")
        .enable_all()
        .build();
    let (delays, bytes, used) = runtime.unwrap().block_on(async {
        let all_there = Arc::new(Barrier::new(READERS + 1));
        let readers: Vec<_> = (0..READERS)
            .map(|_| tokio::spawn(read(address, token.clone(), Arc::clone(&all_there))))
            .collect();
        all_there.wait().await;
        let before = processor("server");
        let (mut delays, mut bytes) = (Vec::new(), 0);
        for reader in readers {
            let (of_one, count) = reader.await.unwrap();
            assert_eq!(of_one.len(), EVENTS);
            delays.extend(of_one);
            bytes += count;
        }
        (delays, bytes, processor("server") - before)
    });
    let mut delays: Vec<f64> = delays;
    delays.sort_by(f64::total_cmp);
    let at = |share: f64| delays[((delays.len() - 1) as f64 * share) as usize];
    println!(
        "{READERS} readers of {LINKS} links: {} events, {:.1} MB, from sample to reader {:.1} ms \
         (median), {:.1} ms (99 %), {:.1} ms (most); the server used {used:.2} s of processor time \
         for {EVENTS} samples",
        delays.len(),
        bytes as f64 / 1e6,
        at(0.5),
        at(0.99),
        at(1.0),
    );
}

/// Reads events: how long after the sample each came, in milliseconds, and their bytes.
async fn read(
    address: std::net::SocketAddr,
    token: String,
    all_there: Arc<Barrier>,
) -> (Vec<f64>, usize) {
    let stream = loop {
        // All come at once: the queue of new connections may be full for a moment.
        match TcpStream::connect(address).await {
            Ok(stream) => break stream,
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    };
    let mut stream = BufReader::new(stream);
    let request =
        format!("GET /api/v1/live HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut line = String::new();
    let mut delays = Vec::new();
    let mut bytes = 0;
    let mut first = true;
    while delays.len() < EVENTS {
        line.clear();
        assert_ne!(
            stream.read_line(&mut line).await.unwrap(),
            0,
            "the stream ended"
        );
        bytes += line.len();
        let Some(event) = line.strip_prefix("data: ") else {
            continue;
        };
        if first {
            // The first one is of the past.
            first = false;
            all_there.wait().await;
            continue;
        }
        let event: Value = serde_json::from_str(event).unwrap();
        delays.push(millis() - event["at"].as_f64().unwrap());
    }
    (delays, bytes)
}
