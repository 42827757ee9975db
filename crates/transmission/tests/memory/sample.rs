//! Torrents and a session to show.

use hawser_transmission::{
    Adding, Content, Count, Dates, Detail, ErrorKind, FileView, Folders, Limit, Network, Options,
    Outcome, PeerFlags, PeerView, Priority, Progress, Queues, RequestState, Requests, SeedLimits,
    SessionView, SpeedLimits, State, Stats, Swarm, Texts, TorrentError, TorrentView, Totals,
    TrackerView, Traffic,
};

/// A download of two files, half done.
pub fn download() -> TorrentView {
    TorrentView {
        id: 1,
        hash: std::array::from_fn(|index| index as u8),
        name: "data set".to_owned(),
        download_dir: "/srv/data".to_owned(),
        state: State::Download,
        error: None,
        content: Content {
            size: 4_000_000,
            wanted_size: 3_000_000,
            files: 2,
            pieces: 4,
            piece_size: 1_000_000,
            is_private: false,
            created: 1_700_000_000,
            metadata: 1.0,
        },
        progress: Progress {
            valid: 1_000_000,
            unchecked: 500_000,
            left: 1_500_000,
            available: 1_500_000,
            eta: Some(90),
            ..Progress::default()
        },
        traffic: Traffic {
            down_rate: 16_000,
            up_rate: 8_000,
            downloaded: 1_600_000,
            uploaded: 800_000,
            corrupt: 0,
        },
        dates: Dates {
            added: 1_700_000_100,
            started: 1_700_000_100,
            active: 1_700_000_200,
            downloading: 100,
            ..Dates::default()
        },
        swarm: Swarm {
            connected: 2,
            sending: 1,
            getting: 1,
            ..Swarm::default()
        },
        options: options(),
        detail: detail(),
    }
}

fn options() -> Options {
    Options {
        labels: vec!["linux".to_owned(), "sets".to_owned()],
        down: Limit {
            is_enabled: true,
            kilobytes: 500,
        },
        honors_session_limits: true,
        peer_limit: 50,
        ratio: 2.0,
        ..Options::default()
    }
}

fn detail() -> Detail {
    let file = |name: &str, size, completed, is_wanted, pieces| FileView {
        name: format!("data set/{name}"),
        size,
        completed,
        is_wanted,
        priority: Priority::High,
        pieces,
    };
    Detail {
        texts: Texts {
            comment: "measured \"today\"".to_owned(),
            creator: "hawser".to_owned(),
            magnet_link: "magnet:?xt=urn:btih:000102030405060708090a0b0c0d0e0f10111213".to_owned(),
            metainfo_path: "/var/lib/hawser/1.torrent".to_owned(),
            ..Texts::default()
        },
        files: vec![
            file("a", 3_000_000, 1_500_000, true, 0..3),
            file("b", 1_000_000, 0, false, 3..4),
        ],
        peers: vec![
            peer("1-ff00:0:110,10.0.0.1:6881", 16_000),
            peer("[fd00::2]:51413", 0),
        ],
        trackers: vec![tracker()],
        pieces: vec![0b1000_0000],
        availability: vec![-1, 2, 1, 0],
    }
}

fn peer(addr: &str, down_rate: u64) -> PeerView {
    PeerView {
        addr: addr.parse().expect("an address"),
        client: "hawser 0.1.0".to_owned(),
        id: *b"-HW0100-abcdefghijkl",
        progress: 0.75,
        down_rate,
        up_rate: 8_000,
        downloaded: 1_600_000,
        uploaded: 800_000,
        flags: PeerFlags {
            interests_us: true,
            is_sending: down_rate > 0,
            is_encrypted: true,
            ..PeerFlags::default()
        },
    }
}

fn tracker() -> TrackerView {
    TrackerView {
        id: 7,
        announce: "udp://tracker.example.org:6969/announce".to_owned(),
        announces: Requests {
            state: RequestState::Waiting,
            begun: 1_700_000_100,
            ended: 1_700_000_101,
            next: 4_000_000_000,
            outcome: Some(Outcome::Success),
        },
        peers: 12,
        seeders: Some(3),
        leechers: Some(9),
        ..TrackerView::default()
    }
}

/// A magnet link without metadata.
pub fn magnet() -> TorrentView {
    TorrentView {
        id: 2,
        hash: [0xab; 20],
        name: "magnet".to_owned(),
        download_dir: "/srv".to_owned(),
        error: Some(TorrentError {
            kind: ErrorKind::Local,
            text: "no room".to_owned(),
        }),
        ..TorrentView::default()
    }
}

/// A session.
pub fn session() -> SessionView {
    SessionView {
        software: "hawser 0.1.0".to_owned(),
        config_dir: "/etc/hawser".to_owned(),
        speed: SpeedLimits {
            down: Limit {
                is_enabled: false,
                kilobytes: 100,
            },
            ..SpeedLimits::default()
        },
        folders: Folders {
            download_dir: "/srv/data".to_owned(),
            free_space: Some(5000),
            ..Folders::default()
        },
        adding: Adding {
            starts: true,
            ..Adding::default()
        },
        seeding: SeedLimits {
            ratio: 2.0,
            ..SeedLimits::default()
        },
        queues: Queues {
            download: Count {
                is_enabled: true,
                value: 5,
            },
            ..Queues::default()
        },
        network: Network {
            port: 6881,
            dht: true,
            pex: true,
            tcp: true,
            peer_limit: 200,
            torrent_peer_limit: 50,
            request_queue: 250,
            ..Network::default()
        },
        done_script: "/opt/done.sh".into(),
    }
}

/// Numbers.
pub fn stats() -> Stats {
    Stats {
        current: Totals {
            uploaded: 800_000,
            downloaded: 1_600_000,
            files: 2,
            seconds: 3600,
            sessions: 1,
        },
        cumulative: Totals {
            uploaded: 9_000_000,
            downloaded: 5_000_000,
            files: 20,
            seconds: 7200,
            sessions: 3,
        },
        ..Stats::default()
    }
}
