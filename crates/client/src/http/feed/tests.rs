//! Readers that ask at any time have what there is, also after they have missed changes.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::http::body::{Content, Limit, LimitWord, Limits, RateLimit, Traffic};

fn torrent(hash: usize, position: u64) -> Torrent {
    Torrent {
        info_hash: format!("{hash:040x}"),
        name: "name".to_owned(),
        status: "seeding".to_owned(),
        error: None,
        hint: None,
        finished_by: None,
        position,
        labels: Vec::new(),
        destination: None,
        folder: "/".to_owned(),
        content: Content {
            bytes: None,
            verified_bytes: 0,
            done: None,
            left_bytes: None,
            checked: None,
        },
        traffic: Traffic {
            download_rate: 0,
            upload_rate: 0,
            downloaded_bytes: 0,
            uploaded_bytes: 0,
            ratio: 0.0,
            seeded_seconds: 0,
            peers: 0,
        },
        limits: Limits {
            ratio: Limit::Word(LimitWord::Default),
            seconds: Limit::Word(LimitWord::Default),
            idle_seconds: Limit::Word(LimitWord::Default),
            download_rate: RateLimit::from(None),
            upload_rate: RateLimit::from(None),
            group: None,
            exempt: false,
            priority: crate::groups::BandwidthPriority::Normal,
            max_peers: Limit::Word(LimitWord::Default),
        },
        sequential: false,
        added: 0,
        completed: None,
    }
}

/// A reader: what it knows, and its cursor.
#[derive(Default)]
struct Reader {
    known: BTreeMap<String, Torrent>,
    cursor: Option<String>,
}

impl Reader {
    /// Asks, and returns how many torrents were sent.
    fn ask(&mut self, feed: &Feed) -> usize {
        let cursor = self
            .cursor
            .as_deref()
            .map(|text| Cursor::read(text).unwrap());
        let changes = feed.since(cursor);
        if changes.whole {
            self.known.clear();
        }
        for hash in changes.removed {
            self.known.remove(&hash);
        }
        let count = changes.torrents.len();
        for torrent in changes.torrents {
            self.known.insert(torrent.info_hash.clone(), torrent);
        }
        self.cursor = Some(changes.cursor);
        count
    }
}

proptest! {
    #[test]
    fn readers_know_what_there_is(
        steps in proptest::collection::vec((0usize..8, 0u64..4, 0usize..3, any::<bool>()), 0..60),
    ) {
        let mut feed = Feed::new(7);
        let mut model: BTreeMap<usize, u64> = BTreeMap::new();
        let mut readers = [Reader::default(), Reader::default()];
        for (hash, value, reader, is_removed) in steps {
            match is_removed {
                true => drop(model.remove(&hash)),
                false => drop(model.insert(hash, value)),
            }
            let all: Vec<Torrent> = model.iter().map(|(hash, value)| torrent(*hash, *value)).collect();
            feed.observe(all.clone(), Duration::ZERO);
            if let Some(reader) = readers.get_mut(reader) {
                reader.ask(&feed);
                prop_assert_eq!(reader.known.values().cloned().collect::<Vec<_>>(), all);
                prop_assert_eq!(reader.ask(&feed), 0);
            }
        }
    }

    #[test]
    fn any_text_is_a_cursor_or_none(text in "[-0-9a-fA-F+ ]{0,40}") {
        if let Some(cursor) = Cursor::read(&text) {
            prop_assert_eq!(Cursor::read(&cursor.text()), Some(cursor));
        }
    }
}

#[test]
fn readers_of_long_ago_and_of_other_runs_get_all() {
    let mut feed = Feed::new(1);
    let mut reader = Reader::default();
    feed.observe(vec![torrent(0, 0)], Duration::ZERO);
    reader.ask(&feed);
    let old = reader.cursor.clone().unwrap();
    for hash in 1..=MAX_REMOVED + 1 {
        feed.observe(vec![torrent(hash, 0)], Duration::ZERO);
    }
    // One removal more than what is remembered.
    assert!(feed.since(Cursor::read(&old)).whole);
    reader.ask(&feed);
    assert_eq!(reader.known.len(), 1);
    assert_eq!(feed.removed.len(), MAX_REMOVED);
    let now = Cursor::read(reader.cursor.as_ref().unwrap()).unwrap();
    assert!(!feed.since(Some(now)).whole);
    assert!(Feed::new(2).since(Some(now)).whole);
    assert!(feed.is_stale(FRESH) && !feed.is_stale(Duration::ZERO));
}

#[test]
fn what_did_not_change_is_not_sent_again() {
    let mut feed = Feed::new(1);
    let mut reader = Reader::default();
    let all =
        |position| (0..1000).map(move |hash| torrent(hash, if hash == 3 { position } else { 0 }));
    feed.observe(all(0).collect(), Duration::ZERO);
    assert_eq!(reader.ask(&feed), 1000);
    feed.observe(all(1).collect(), Duration::ZERO);
    assert_eq!(reader.ask(&feed), 1);
    feed.observe(all(1).collect(), Duration::ZERO);
    assert_eq!(reader.ask(&feed), 0);
}
