//! A client in memory: torrents that do what they are told at once.

// Each test uses a part of it.
#![allow(dead_code)]

use hawser_transmission::{
    Action, Add, Added, CallError, Change, Client, Files, GroupChange, GroupView, Ids, IpProtocol,
    Limit, Parts, SessionView, Setting, Source, Space, State, Stats, TorrentId, TorrentRef,
    TorrentView, answer,
};
use serde_json::{Value, json};

mod sample;

/// The id of the session that requests are answered with.
pub const SESSION_ID: &str = "session";

/// The client.
#[derive(Default)]
pub struct Memory {
    pub torrents: Vec<TorrentView>,
    pub removed: Vec<TorrentId>,
    pub session: SessionView,
    pub groups: Vec<GroupView>,
    /// What was added.
    pub added: Vec<Add>,
    /// What was done, in order.
    pub log: Vec<String>,
    /// The parts that the last call of `show` asked for.
    pub parts: std::cell::Cell<Parts>,
}

/// The answer to a request.
pub fn ask(client: &mut Memory, request: &Value) -> Value {
    let body = request.to_string();
    let answer = answer(body.as_bytes(), SESSION_ID, client).expect("an answer");
    serde_json::from_slice(&answer).expect("an answer in JSON")
}

/// The arguments of the answer to a request of the old form, which must succeed.
pub fn call(client: &mut Memory, method: &str, arguments: Value) -> Value {
    let request = json!({"method": method, "arguments": arguments, "tag": 9});
    let answer = ask(client, &request);
    assert_eq!(answer["result"], "success", "{request}");
    assert_eq!(answer["tag"], 9);
    answer["arguments"].clone()
}

/// The text of the error that is the answer to a request of the old form.
pub fn fail(client: &mut Memory, method: &str, arguments: Value) -> String {
    let answer = ask(client, &json!({"method": method, "arguments": arguments}));
    assert_eq!(answer["arguments"], json!({}));
    let result = answer["result"].as_str().expect("a text").to_owned();
    assert_ne!(result, "success");
    result
}

impl Memory {
    /// A client with two torrents: 1 downloads and has everything, 2 is stopped and has no metadata.
    pub fn sample() -> Self {
        Self {
            torrents: vec![sample::download(), sample::magnet()],
            session: sample::session(),
            ..Self::default()
        }
    }

    pub fn torrent(&mut self, id: TorrentId) -> &mut TorrentView {
        let mut torrents = self.torrents.iter_mut();
        torrents
            .find(|torrent| torrent.id == id)
            .expect("a torrent")
    }

    fn is_recent(&self, torrent: &TorrentView) -> bool {
        torrent.traffic.down_rate > 0
    }
}

impl Client for Memory {
    fn resolve(&self, ids: &Ids) -> Vec<TorrentId> {
        let find = |reference: &TorrentRef| {
            let is = |torrent: &&TorrentView| match reference {
                TorrentRef::Id(id) => torrent.id == *id,
                TorrentRef::Hash(hash) => torrent.hash == *hash,
                TorrentRef::Unknown => false,
            };
            self.torrents.iter().find(is).map(|torrent| torrent.id)
        };
        let all = self.torrents.iter();
        match ids {
            Ids::All => all.map(|torrent| torrent.id).collect(),
            Ids::RecentlyActive => all
                .filter(|torrent| self.is_recent(torrent))
                .map(|torrent| torrent.id)
                .collect(),
            Ids::List(list) => list.iter().filter_map(find).collect(),
        }
    }

    fn removed(&self) -> Vec<TorrentId> {
        self.removed.clone()
    }

    fn show(&self, ids: &[TorrentId], parts: Parts, show: &mut dyn FnMut(&TorrentView)) {
        self.parts.set(parts);
        // The torrents are in the order of their ids.
        for id in ids {
            let found = self.torrents.binary_search_by_key(id, |torrent| torrent.id);
            if let Ok(index) = found {
                show(&self.torrents[index]);
            }
        }
    }

    fn add(&mut self, add: Add) -> Result<Added, CallError> {
        let name = match &add.source {
            Source::Metainfo(bytes) if bytes.starts_with(b"d") => "metainfo",
            Source::Metainfo(_) => return Err(CallError::CorruptTorrent),
            Source::Magnet(link) if link.contains("btih:00") && !self.torrents.is_empty() => {
                let duplicate = &self.torrents[0];
                return Ok(Added {
                    id: duplicate.id,
                    hash: duplicate.hash,
                    name: duplicate.name.clone(),
                    is_duplicate: true,
                });
            }
            Source::Magnet(_) => "magnet",
            Source::Url { .. } => "url",
            Source::Path(path) if path.ends_with(".torrent") => "path",
            Source::Path(_) => return Err(CallError::UnrecognizedInfo),
        };
        let id = self.torrents.last().map_or(1, |torrent| torrent.id + 1);
        let torrent = TorrentView {
            id,
            hash: [id as u8; 20],
            name: name.to_owned(),
            download_dir: add.download_dir.clone().unwrap_or_default(),
            ..TorrentView::default()
        };
        let added = Added {
            id,
            hash: torrent.hash,
            name: torrent.name.clone(),
            is_duplicate: false,
        };
        self.torrents.push(torrent);
        self.added.push(add);
        Ok(added)
    }

    fn act(&mut self, action: Action, ids: &[TorrentId]) -> Result<(), CallError> {
        self.log.push(format!("{action:?} {ids:?}"));
        for id in ids {
            let torrent = self.torrent(*id);
            match action {
                Action::Start | Action::StartNow => torrent.state = State::Download,
                Action::Stop => torrent.state = State::Stopped,
                Action::Verify => torrent.state = State::Check,
                _ => {}
            }
        }
        Ok(())
    }

    fn change(&mut self, id: TorrentId, changes: &[Change]) -> Result<(), CallError> {
        self.log.push(format!("change {id} {changes:?}"));
        let torrent = self.torrent(id);
        for change in changes {
            match change {
                Change::Labels(labels) => torrent.options.labels.clone_from(labels),
                Change::Wanted(files, is_wanted) => {
                    for index in indices(torrent, files)? {
                        torrent.detail.files[index].is_wanted = *is_wanted;
                    }
                }
                Change::FilePriority(files, priority) => {
                    for index in indices(torrent, files)? {
                        torrent.detail.files[index].priority = *priority;
                    }
                }
                Change::SequentialFrom(piece) if *piece >= torrent.content.pieces => {
                    return Err(CallError::PieceIndex);
                }
                Change::TrackersRemoved(ids) => {
                    let trackers = &mut torrent.detail.trackers;
                    let count = trackers.len();
                    trackers.retain(|tracker| !ids.contains(&tracker.id));
                    if trackers.len() == count {
                        return Err(CallError::AnnounceList);
                    }
                }
                Change::DownLimit(limit) => torrent.options.down.kilobytes = *limit,
                _ => {}
            }
        }
        Ok(())
    }

    fn remove(&mut self, ids: &[TorrentId], deletes_content: bool) -> Result<(), CallError> {
        self.log.push(format!("remove {ids:?} {deletes_content}"));
        self.torrents.retain(|torrent| !ids.contains(&torrent.id));
        self.removed.extend(ids);
        Ok(())
    }

    fn relocate(&mut self, ids: &[TorrentId], folder: &str, moves: bool) -> Result<(), CallError> {
        self.log.push(format!("relocate {ids:?} {folder} {moves}"));
        for id in ids {
            self.torrent(*id).download_dir = folder.to_owned();
        }
        Ok(())
    }

    fn rename(&mut self, id: TorrentId, path: &str, name: &str) -> Result<(), CallError> {
        self.log.push(format!("rename {id} {path} {name}"));
        let torrent = self.torrent(id);
        if torrent.name != path {
            return Err(CallError::System(format!("{path} is not there")));
        }
        torrent.name = name.to_owned();
        Ok(())
    }

    fn session(&self) -> SessionView {
        self.session.clone()
    }

    fn set_session(&mut self, settings: &[Setting]) -> Result<(), CallError> {
        self.log.push(format!("session {settings:?}"));
        for setting in settings {
            match setting {
                Setting::DownLimit(limit) => self.session.speed.down.kilobytes = *limit,
                Setting::DownLimited(limited) => self.session.speed.down.is_enabled = *limited,
                Setting::DownloadDir(dir) => self.session.folders.download_dir.clone_from(dir),
                _ => {}
            }
        }
        Ok(())
    }

    fn stats(&self) -> Stats {
        let is_active = |torrent: &&TorrentView| torrent.state != State::Stopped;
        Stats {
            torrents: self.torrents.len() as u64,
            active: self.torrents.iter().filter(is_active).count() as u64,
            down_rate: 1000,
            up_rate: 2000,
            ..sample::stats()
        }
    }

    fn space(&self, path: &str) -> Result<Space, CallError> {
        match path {
            "/none" => Err(CallError::System("No such file or directory".to_owned())),
            _ => Ok(Space {
                free: 5000,
                total: 9000,
            }),
        }
    }

    fn test_port(&mut self, protocol: Option<IpProtocol>) -> Result<bool, CallError> {
        match protocol {
            Some(IpProtocol::V6) => Err(CallError::Http("Couldn't test port".to_owned())),
            _ => Ok(true),
        }
    }

    fn groups(&self) -> Vec<GroupView> {
        self.groups.clone()
    }

    fn set_group(&mut self, change: GroupChange) -> Result<(), CallError> {
        let limit = |is_enabled: Option<bool>, kilobytes: Option<u64>| Limit {
            is_enabled: is_enabled.unwrap_or_default(),
            kilobytes: kilobytes.unwrap_or_default(),
        };
        self.groups.push(GroupView {
            name: change.name,
            honors_session_limits: change.honors_session_limits.unwrap_or_default(),
            down: limit(change.is_down_limited, change.down_limit),
            up: limit(change.is_up_limited, change.up_limit),
        });
        Ok(())
    }

    fn close(&mut self) -> Result<(), CallError> {
        self.log.push("close".to_owned());
        Ok(())
    }
}

fn indices(torrent: &TorrentView, files: &Files) -> Result<Vec<usize>, CallError> {
    let count = torrent.detail.files.len();
    match files {
        Files::All => Ok((0..count).collect()),
        Files::Some(files) => {
            let index = |index: &u64| {
                let index = usize::try_from(*index).ok();
                index
                    .filter(|index| *index < count)
                    .ok_or(CallError::FileIndex)
            };
            files.iter().map(index).collect()
        }
    }
}
