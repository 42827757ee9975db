//! Slots: which peers are served at a time.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::testing::TestPath;
use crate::transport::{Output, Stream};
use crate::wire::{BLOCK, Decoder, HANDSHAKE_BYTES, Handshake, PeerId, Request, encode};

/// A connection of a peer that says what it is told to say.
pub(super) struct Talker {
    _connection: Arc<dyn Connection>,
    read: Box<dyn tokio::io::AsyncRead + Send + Unpin>,
    write: Box<dyn Output>,
    decoder: Decoder,
}

impl Talker {
    /// Connects host `n` to host 1.
    pub async fn new(net: &Net, stage: &Stage, n: u16, path: TestPath) -> Self {
        Self::with_id(net, stage, n, path, PeerId::random()).await
    }

    /// The same with this peer id.
    pub async fn with_id(
        net: &Net,
        stage: &Stage,
        n: u16,
        path: TestPath,
        peer_id: PeerId,
    ) -> Self {
        let connection = net.host_handle(n).dial(addr(1), path).await.unwrap();
        let (mut read, mut write): Stream = connection.stream().await.unwrap();
        let handshake = Handshake {
            info_hash: stage.metainfo.info_hash,
            peer_id,
            extended: false,
            dht: false,
            version_two: false,
        };
        write.write_all(&handshake.encode()).await.unwrap();
        write.flush().await.unwrap();
        read.read_exact(&mut [0; HANDSHAKE_BYTES]).await.unwrap();
        Self {
            _connection: connection,
            read,
            write,
            decoder: Decoder::new(stage.metainfo.pieces.count()),
        }
    }

    pub async fn say(&mut self, message: Message) {
        let mut out = Vec::new();
        encode(&message, &mut out);
        self.write.write_all(&out).await.unwrap();
        self.write.flush().await.unwrap();
    }

    /// The next message about slots, or the next block.
    pub async fn hears(&mut self) -> Message {
        let is_it = |message: &Message| {
            matches!(
                message,
                Message::Choke | Message::Unchoke | Message::Piece { .. }
            )
        };
        self.next(is_it).await.expect("the seeder hung up")
    }

    /// The next piece that the other side announces.
    pub async fn is_told_of(&mut self) -> u32 {
        match self
            .next(|message| matches!(message, Message::Have(_)))
            .await
        {
            Some(Message::Have(piece)) => piece,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until the other side ends the connection, over which it says nothing about slots.
    pub async fn is_hung_up_on(&mut self) {
        let slots = |message: &Message| matches!(message, Message::Choke | Message::Unchoke);
        assert_eq!(self.next(slots).await, None);
    }

    /// The next message of which `is_it` holds; `None` if the other side ends the connection before.
    async fn next(&mut self, is_it: impl Fn(&Message) -> bool) -> Option<Message> {
        let heard = async {
            loop {
                while let Some(message) = self.decoder.next_message().unwrap() {
                    if is_it(&message) {
                        return Some(message);
                    }
                }
                let read = self.read.read_buf(self.decoder.buffer(4096)).await;
                if read.unwrap_or(0) == 0 {
                    return None;
                }
            }
        };
        let heard = tokio::time::timeout(PATIENCE, heard).await;
        heard.expect("the seeder says nothing")
    }

    /// Waits until it is choked or unchoked. Returns whether it is unchoked.
    pub async fn choked_or_not(&mut self) -> bool {
        match self.hears().await {
            Message::Unchoke => true,
            Message::Choke => false,
            other => panic!("{other:?}"),
        }
    }
}

/// A seeder with this many slots.
async fn seeder(net: &Net, stage: &Stage, slots: usize) -> Seed {
    let options = SeedOptions {
        slots: Some(slots),
        ..SeedOptions::default()
    };
    let content = stage.dir.path().join("seed/file.bin");
    let (host, metainfo) = (net.host(1), stage.metainfo.clone());
    let seed = Seed::over(host, metainfo, content, options, |_, _| {});
    seed.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_goes_to_another_peer_when_its_holder_wants_nothing() {
    let net = Net::default();
    let stage = Stage::one_file(500_000, 16384);
    let path = net.path(1, FAST);
    let _seed = seeder(&net, &stage, 1).await;
    let mut one = Talker::new(&net, &stage, 2, path.clone()).await;
    let mut two = Talker::new(&net, &stage, 3, path).await;
    one.say(Message::Interested).await;
    assert!(one.choked_or_not().await);
    two.say(Message::Interested).await;
    // Another one waits: it is choked as soon as it wants nothing.
    one.say(Message::NotInterested).await;
    assert!(!one.choked_or_not().await);
    assert!(two.choked_or_not().await);
    one.say(Message::Interested).await;
    drop(two);
    assert!(one.choked_or_not().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seeder_of_which_nothing_is_requested_wakes_once_a_second() {
    let net = Net::default();
    let stage = Stage::one_file(500_000, 16384);
    let path = net.path(1, FAST);
    let seed = seeder(&net, &stage, 1).await;
    let mut one = Talker::new(&net, &stage, 2, path).await;
    one.say(Message::Interested).await;
    assert!(one.choked_or_not().await);
    let (mut progress, mut reports) = (seed.progress(), 0);
    let counted = async {
        while progress.changed().await.is_ok() {
            reports += 1;
        }
    };
    let time = Duration::from_millis(2500);
    assert!(tokio::time::timeout(time, counted).await.is_err());
    assert!(reports <= 6, "{reports} reports");
    // Requests are answered at once, and reported soon.
    let first = Request {
        piece: 0,
        begin: 0,
        length: BLOCK,
    };
    one.say(Message::Request(first)).await;
    assert!(matches!(one.hears().await, Message::Piece { .. }));
    let sent = progress.wait_for(|progress| progress.uploaded_bytes > 0);
    let sent = tokio::time::timeout(PATIENCE, sent).await;
    assert!(sent.is_ok_and(|sent| sent.is_ok()));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_slot_unchokes_all_paths_of_a_peer() {
    let net = Net::default();
    let stage = Stage::one_file(500_000, 16384);
    let paths = [(); 4].map(|()| net.path(1, FAST));
    let _seed = seeder(&net, &stage, 1).await;
    let mut of_one = Vec::new();
    for path in &paths {
        of_one.push(Talker::new(&net, &stage, 2, path.clone()).await);
    }
    let mut two = Talker::new(&net, &stage, 3, paths[0].clone()).await;
    for path in &mut of_one {
        path.say(Message::Interested).await;
        assert!(path.choked_or_not().await);
    }
    two.say(Message::Interested).await;
    // While it wants blocks over any path, it holds the slot.
    let last = of_one.pop();
    for path in &mut of_one {
        path.say(Message::NotInterested).await;
    }
    drop(last);
    for path in &mut of_one {
        assert!(!path.choked_or_not().await);
    }
    assert!(two.choked_or_not().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_leechers_than_slots_all_finish() {
    let net = Net::default();
    let stage = Stage::one_file(2_000_000, 65536);
    net.path(1, FAST);
    let _seed = seeder(&net, &stage, 1).await;
    let downloads = (2..6).map(|n| {
        let dir = stage.dir.path().join(n.to_string());
        let (metainfo, peers) = (stage.metainfo.clone(), vec![addr(1)]);
        let options = DownloadOptions::default();
        Download::over(net.host(n), metainfo, dir, peers, options)
    });
    let downloads: Vec<Download> = downloads.collect();
    for download in downloads {
        let summary = finish(download).await.unwrap();
        assert_eq!(summary.fetched_bytes, 2_000_000);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_on_both_networks_takes_one_slot() {
    let net = Net::default();
    let stage = Stage::one_file(500_000, 16384);
    let path = net.path(1, FAST);
    let ip = path.over_plain_ip();
    let _seed = seeder(&net, &stage, 1).await;
    let id = PeerId::random();
    let mut scion = Talker::with_id(&net, &stage, 2, path, id).await;
    let mut both = Talker::with_id(&net, &stage, 2, ip.clone(), id).await;
    scion.say(Message::Interested).await;
    assert!(scion.choked_or_not().await);
    both.say(Message::Interested).await;
    assert!(both.choked_or_not().await);
    // With a slot for each of them, the first would have been choked before.
    scion
        .say(Message::Request(Request {
            piece: 0,
            begin: 0,
            length: BLOCK,
        }))
        .await;
    let heard = scion.hears().await;
    assert!(matches!(heard, Message::Piece { .. }), "{heard:?}");
    // Another host with its id, and another peer at its host, wait for a slot of their own.
    let mut copier = Talker::with_id(&net, &stage, 3, ip.clone(), id).await;
    let mut neighbor = Talker::new(&net, &stage, 2, ip).await;
    copier.say(Message::Interested).await;
    scion.say(Message::NotInterested).await;
    both.say(Message::NotInterested).await;
    assert!(!scion.choked_or_not().await && !both.choked_or_not().await);
    assert!(copier.choked_or_not().await);
    neighbor.say(Message::Interested).await;
    copier.say(Message::NotInterested).await;
    assert!(!copier.choked_or_not().await);
    assert!(neighbor.choked_or_not().await);
}
