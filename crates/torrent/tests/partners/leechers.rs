//! Leechers that ask late, ask for each block twice, or never read: the seeder serves them, and
//! meanwhile others, and keeps a bounded part of what they want in memory.

use std::time::{Duration, Instant};

use hawser_torrent::{PeerAddr, Seed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::content::{PATIENCE, finish};
use super::scripted::{HANDSHAKE, greeting, message};
use super::site::{Carrier, SIZE, Site, Wire};

/// By how much a leecher asks late.
const LATE: Duration = Duration::from_secs(3);

/// Bytes of a block.
const BLOCK: u32 = 16384;

/// Leechers that never read, and the requests of each: together for 1 GB.
const MUTE: usize = 8;
const REQUESTS: usize = 8000;

/// Bytes by which the memory of this process, with all seeders and leechers in it, may grow
/// meanwhile; and that may be sent to each leecher that never reads: what the system or QUIC queues.
const MEMORY: u64 = 128 << 20;
const QUEUED: u64 = 16 << 20;

/// A connected leecher that is interested and was unchoked.
struct Leecher {
    wire: Wire,
    file: Vec<u8>,
    piece_length: u32,
}

impl Leecher {
    async fn connect(site: &Site, to: PeerAddr) -> Self {
        let metainfo = &site.content.metainfo;
        let mut leecher = Self {
            wire: site.connect(to).await,
            file: std::fs::read(site.content.file()).unwrap(),
            piece_length: metainfo.pieces.length,
        };
        let mut hello = greeting(metainfo)[..HANDSHAKE].to_vec();
        hello.extend(message(2, &[]));
        leecher.wire.write.write_all(&hello).await.unwrap();
        leecher.wire.write.flush().await.unwrap();
        let mut answer = [0; HANDSHAKE];
        let read = leecher.wire.read.read_exact(&mut answer);
        tokio::time::timeout(PATIENCE, read).await.unwrap().unwrap();
        leecher.until(1).await;
        leecher
    }

    /// Reads messages until one of kind `wanted`; returns its body.
    async fn until(&mut self, wanted: u8) -> Vec<u8> {
        let read = async {
            loop {
                let length = self.wire.read.read_u32().await.unwrap();
                let mut said = vec![0; length as usize];
                self.wire.read.read_exact(&mut said).await.unwrap();
                if said.first() == Some(&wanted) {
                    return said.split_off(1);
                }
            }
        };
        tokio::time::timeout(PATIENCE, read).await.unwrap()
    }

    /// The encoded request for the block at `number` of the content.
    fn request(&self, number: u32) -> Vec<u8> {
        let start = number * BLOCK;
        let length = BLOCK.min(SIZE as u32 - start);
        let (piece, begin) = (start / self.piece_length, start % self.piece_length);
        message(6, &[piece, begin, length].map(u32::to_be_bytes).concat())
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.wire.write.write_all(bytes).await.unwrap();
        self.wire.write.flush().await.unwrap();
    }

    /// Reads one block, which must be right; returns its number.
    async fn block(&mut self) -> u32 {
        let body = self.until(7).await;
        let number = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().unwrap());
        let start = number(0) * self.piece_length + number(4);
        assert!(self.file[start as usize..][..body.len() - 8] == body[8..]);
        start / BLOCK
    }
}

/// Blocks of the content.
fn blocks() -> std::ops::Range<u32> {
    0..(SIZE as u32).div_ceil(BLOCK)
}

/// Another download from the seeder completes.
async fn serves_others(site: &Site, seeder: PeerAddr) {
    finish(site.get(&[seeder])).await.unwrap();
    site.content.check();
}

/// Bytes of blocks sent to each of the `leechers` peers of a seeder, once all others have left.
async fn sent_to_each(seed: &Seed, leechers: usize) -> Vec<u64> {
    let mut progress = seed.progress();
    // A report that was made from now on.
    progress.mark_unchanged();
    let report = async {
        progress.changed().await.unwrap();
        let report = progress.wait_for(|progress| progress.peers.len() == leechers);
        report.await.unwrap().peers.clone()
    };
    let peers = tokio::time::timeout(PATIENCE, report).await.unwrap();
    peers.iter().map(|peer| peer.bytes).collect()
}

/// Bytes of memory that this process uses.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib: u64 = line.trim_end_matches("kB").trim().parse().unwrap();
    kib << 10
}

/// It asks for nothing, then for one block at a time, each late, and then for the rest.
async fn late(carrier: Carrier) {
    let site = Site::new(carrier).await;
    let (seed, addr) = site.honest(None).await;
    let mut leecher = Leecher::connect(&site, addr).await;
    let asking = async {
        for number in 0..3 {
            tokio::time::sleep(LATE).await;
            let request = leecher.request(number);
            leecher.send(&request).await;
            assert_eq!(leecher.block().await, number);
        }
        let rest = blocks().skip(3).map(|number| leecher.request(number));
        let rest: Vec<u8> = rest.flatten().collect();
        leecher.send(&rest).await;
        for number in blocks().skip(3) {
            assert_eq!(leecher.block().await, number);
        }
    };
    tokio::join!(asking, serves_others(&site, addr));
    assert_eq!(sent_to_each(&seed, 1).await, [SIZE as u64]);
    seed.stop().await.unwrap();
}

/// It asks for each block twice: at once, or again when it has arrived.
async fn twice(carrier: Carrier) {
    let site = Site::new(carrier).await;
    let (seed, addr) = site.honest(None).await;
    let mut leecher = Leecher::connect(&site, addr).await;
    let asking = async {
        let all = blocks().map(|number| leecher.request(number).repeat(2));
        let all: Vec<u8> = all.flatten().collect();
        leecher.send(&all).await;
        for number in blocks() {
            assert_eq!(leecher.block().await, number);
            assert_eq!(leecher.block().await, number);
        }
        let again = blocks().map(|number| leecher.request(number));
        let again: Vec<u8> = again.flatten().collect();
        leecher.send(&again).await;
        for number in blocks() {
            assert_eq!(leecher.block().await, number);
        }
    };
    tokio::join!(asking, serves_others(&site, addr));
    let sent = sent_to_each(&seed, 1).await[0];
    // As often as it asked.
    assert_eq!(sent, 3 * SIZE as u64);
    seed.stop().await.unwrap();
}

/// Several of them read nothing that they have asked for; much later they do.
async fn never_reads(carrier: Carrier) {
    let site = Site::new(carrier).await;
    let (seed, addr) = site.honest(None).await;
    let mut leechers = Vec::new();
    for _ in 0..MUTE {
        leechers.push(Leecher::connect(&site, addr).await);
    }
    let before = memory();
    for leecher in &mut leechers {
        let all = blocks().cycle().take(REQUESTS);
        let all: Vec<u8> = all.flat_map(|number| leecher.request(number)).collect();
        leecher.send(&all).await;
    }
    let begun = Instant::now();
    serves_others(&site, addr).await;
    let seconds = begun.elapsed().as_secs_f64();
    // Far longer than it takes to fill all queues.
    tokio::time::sleep(LATE).await;
    let grown = memory().saturating_sub(before);
    let sent = sent_to_each(&seed, MUTE).await;
    println!(
        "{MUTE} that never read, over {carrier:?}: another took {seconds:.1} s, memory grew by \
         {grown} bytes, sent {sent:?}"
    );
    assert!(grown <= MEMORY, "{grown}");
    assert!(sent.iter().all(|sent| *sent <= QUEUED), "{sent:?}");
    for leecher in &mut leechers {
        for number in blocks() {
            assert_eq!(leecher.block().await, number);
        }
    }
    seed.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leecher_asks_late_over_tcp() {
    late(Carrier::Tcp).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leecher_asks_late_over_scion() {
    late(Carrier::Scion).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leecher_asks_twice_over_tcp() {
    twice(Carrier::Tcp).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leecher_asks_twice_over_scion() {
    twice(Carrier::Scion).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leechers_never_read_over_tcp() {
    never_reads(Carrier::Tcp).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leechers_never_read_over_scion() {
    never_reads(Carrier::Scion).await;
}
