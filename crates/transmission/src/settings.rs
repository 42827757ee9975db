//! The fields of `session-get` and the arguments of `session-set`: each name in both forms, its
//! value, and the setting it makes.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

use crate::args::Args;
use crate::change::{Setting, Transport};
use crate::error::CallError;
use crate::json::Json;
use crate::limits::RPC_VERSION;
use crate::names::{Form, Name, canonical};
use crate::session_view::{Encryption, Network, SessionView};
use crate::tracker_url::tiers;

/// What `session-get` shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown<'a> {
    pub view: &'a SessionView,
    /// The current id of the [`Session`](crate::Session).
    pub id: &'a str,
}

type Get = fn(Shown<'_>, &mut Json);
type Read = fn(&Args, &str) -> Result<Option<Setting>, CallError>;

/// What `session-set` does with an argument.
#[derive(Debug)]
enum Set {
    /// Reads it.
    Reads(Read),
    /// Takes the value that is shown, and refuses others: hawser has no such thing.
    Same,
    /// Nothing, as Transmission.
    Ignores,
}

/// A field of `session-get`.
#[derive(Debug)]
pub(crate) struct Field {
    pub name: Name,
    /// Writes its value.
    pub get: Get,
    set: Set,
}

/// A field by a name as a client writes it.
pub(crate) fn field(name: &str) -> Option<&'static Field> {
    static BY_NAME: LazyLock<HashMap<&str, &Field>> =
        LazyLock::new(|| FIELDS.iter().map(|field| (field.name.new, field)).collect());
    match &*canonical(name) {
        CACHE_SIZE_OLD => BY_NAME.get(CACHE_SIZE.new),
        name => BY_NAME.get(name),
    }
    .copied()
}

/// The settings that arguments make.
pub(crate) fn settings(args: &Args) -> Result<Vec<Setting>, CallError> {
    let set = |field: &Field| match field.set {
        Set::Reads(read) => read(args, field.name.new).transpose(),
        Set::Same | Set::Ignores => None,
    };
    FIELDS.iter().filter_map(set).collect()
}

/// Checks that arguments of what hawser does not have change nothing.
///
/// # Errors
/// If one does.
pub(crate) fn check_same(args: &Args, shown: Shown<'_>) -> Result<(), CallError> {
    for field in FIELDS {
        if !matches!(field.set, Set::Same) {
            continue;
        }
        let name = field.name;
        for name in [name.new, &*canonical(name.old)] {
            if args.differs(name, field.shown(shown))? {
                let text = format!("to set {name} is not supported yet");
                return Err(CallError::System(text));
            }
        }
    }
    Ok(())
}

impl Field {
    /// Its value as it is shown.
    fn shown(&self, shown: Shown<'_>) -> Value {
        let mut json = Json::new(Form::New);
        (self.get)(shown, &mut json);
        serde_json::from_slice(&json.into_text()).unwrap_or_default()
    }
}

/// This name alone does not follow from its old one.
const CACHE_SIZE: Name = Name::new("cache_size_mib", "cache-size-mb");
const CACHE_SIZE_OLD: &str = "cache_size_mb";

const fn field_of(new: &'static str, old: &'static str, get: Get, set: Set) -> Field {
    let name = Name::new(new, old);
    Field { name, get, set }
}

const fn row(new: &'static str, old: &'static str, get: Get, read: Read) -> Field {
    field_of(new, old, get, Set::Reads(read))
}

/// A field that hawser has no fact for: it is the same always.
const fn same(new: &'static str, old: &'static str, get: Get) -> Field {
    field_of(new, old, get, Set::Same)
}

/// A field that cannot be set, neither in Transmission.
const fn fixed(new: &'static str, old: &'static str, get: Get) -> Field {
    field_of(new, old, get, Set::Ignores)
}

/// All fields of Transmission 4.1. hawser has no block lists, no cache of its own, no scripts but the
/// one for completed torrents, and no protection against guessed passwords here: fields about these have neutral
/// values, and others are refused.
#[rustfmt::skip]
pub(crate) static FIELDS: &[Field] = &[
    row("alt_speed_down", "alt-speed-down", |s, j| j.value(&s.view.speed.alternative.down), |a, n| Ok(a.amount(n)?.map(Setting::AlternativeDown))),
    row("alt_speed_enabled", "alt-speed-enabled", |s, j| j.value(&s.view.speed.alternative.is_enabled), |a, n| Ok(a.bool(n)?.map(Setting::Alternative))),
    row("alt_speed_time_begin", "alt-speed-time-begin", |s, j| j.value(&s.view.speed.alternative.begin), |a, n| Ok(minutes(a, n)?.map(Setting::ScheduleBegin))),
    row("alt_speed_time_day", "alt-speed-time-day", |s, j| j.value(&s.view.speed.alternative.days), |a, n| Ok(a.amount(n)?.map(Setting::ScheduleDays))),
    row("alt_speed_time_enabled", "alt-speed-time-enabled", |s, j| j.value(&s.view.speed.alternative.is_scheduled), |a, n| Ok(a.bool(n)?.map(Setting::Scheduled))),
    row("alt_speed_time_end", "alt-speed-time-end", |s, j| j.value(&s.view.speed.alternative.end), |a, n| Ok(minutes(a, n)?.map(Setting::ScheduleEnd))),
    row("alt_speed_up", "alt-speed-up", |s, j| j.value(&s.view.speed.alternative.up), |a, n| Ok(a.amount(n)?.map(Setting::AlternativeUp))),
    same("anti_brute_force_enabled", "anti-brute-force-enabled", |_, j| j.value(&false)),
    same("anti_brute_force_threshold", "anti-brute-force-threshold", |_, j| j.value(&0)),
    same("blocklist_enabled", "blocklist-enabled", |_, j| j.value(&false)),
    fixed("blocklist_size", "blocklist-size", |_, j| j.value(&0)),
    same("blocklist_url", "blocklist-url", |_, j| j.value("")),
    same(CACHE_SIZE.new, CACHE_SIZE.old, |_, j| j.value(&0)),
    fixed("config_dir", "config-dir", |s, j| j.value(&s.view.config_dir)),
    row("default_trackers", "default-trackers", |s, j| j.value(&s.view.adding.trackers), |a, n| Ok(a.text(n)?.map(tiers).transpose()?.map(Setting::DefaultTrackers))),
    row("dht_enabled", "dht-enabled", |s, j| j.value(&s.view.network.dht), |a, n| Ok(a.bool(n)?.map(Setting::Dht))),
    row("download_dir", "download-dir", |s, j| j.value(&s.view.folders.download_dir), |a, n| Ok(a.folder(n, "download directory path")?.map(Setting::DownloadDir))),
    fixed("download_dir_free_space", "download-dir-free-space", |s, j| j.value(&free_space(s))),
    row("download_queue_enabled", "download-queue-enabled", |s, j| j.value(&s.view.queues.download.is_enabled), |a, n| Ok(a.bool(n)?.map(Setting::DownloadQueued))),
    row("download_queue_size", "download-queue-size", |s, j| j.value(&s.view.queues.download.value), |a, n| Ok(a.amount(n)?.map(Setting::DownloadQueue))),
    row("encryption", "encryption", |s, j| j.value(encryption_text(s.view.network.encryption, j.form())), |a, n| Ok(encryption(a, n)?.map(Setting::Encryption))),
    row("idle_seeding_limit", "idle-seeding-limit", |s, j| j.value(&s.view.seeding.idle_minutes), |a, n| Ok(a.amount(n)?.map(Setting::IdleLimit))),
    row("idle_seeding_limit_enabled", "idle-seeding-limit-enabled", |s, j| j.value(&s.view.seeding.has_idle), |a, n| Ok(a.bool(n)?.map(Setting::IdleLimited))),
    row("incomplete_dir", "incomplete-dir", |s, j| j.value(&s.view.folders.incomplete_dir), |a, n| Ok(a.folder(n, "incomplete torrents directory path")?.map(Setting::IncompleteDir))),
    row("incomplete_dir_enabled", "incomplete-dir-enabled", |s, j| j.value(&s.view.folders.uses_incomplete_dir), |a, n| Ok(a.bool(n)?.map(Setting::UsesIncompleteDir))),
    row("lpd_enabled", "lpd-enabled", |s, j| j.value(&s.view.network.lpd), |a, n| Ok(a.bool(n)?.map(Setting::Lpd))),
    row("peer_limit_global", "peer-limit-global", |s, j| j.value(&s.view.network.peer_limit), |a, n| Ok(a.amount(n)?.map(Setting::PeerLimit))),
    row("peer_limit_per_torrent", "peer-limit-per-torrent", |s, j| j.value(&s.view.network.torrent_peer_limit), |a, n| Ok(a.amount(n)?.map(Setting::TorrentPeerLimit))),
    row("peer_port", "peer-port", |s, j| j.value(&s.view.network.port), |a, n| Ok(a.small(n)?.map(Setting::Port))),
    row("peer_port_random_on_start", "peer-port-random-on-start", |s, j| j.value(&s.view.network.port_is_random), |a, n| Ok(a.bool(n)?.map(Setting::RandomPort))),
    row("pex_enabled", "pex-enabled", |s, j| j.value(&s.view.network.pex), |a, n| Ok(a.bool(n)?.map(Setting::Pex))),
    row("port_forwarding_enabled", "port-forwarding-enabled", |s, j| j.value(&s.view.network.is_forwarded), |a, n| Ok(a.bool(n)?.map(Setting::PortForwarding))),
    row("preferred_transports", "preferred_transports", |s, j| j.value(&transport_names(&s.view.network)), |a, n| Ok(transports(a, n)?.map(Setting::Transports))),
    row("queue_stalled_enabled", "queue-stalled-enabled", |s, j| j.value(&s.view.queues.stalled.is_enabled), |a, n| Ok(a.bool(n)?.map(Setting::StalledEnabled))),
    row("queue_stalled_minutes", "queue-stalled-minutes", |s, j| j.value(&s.view.queues.stalled.value), |a, n| Ok(a.amount(n)?.map(Setting::StalledMinutes))),
    row("rename_partial_files", "rename-partial-files", |s, j| j.value(&s.view.folders.renames_partial), |a, n| Ok(a.bool(n)?.map(Setting::RenamesPartial))),
    row("reqq", "reqq", |s, j| j.value(&s.view.network.request_queue), |a, n| Ok(a.amount(n)?.map(Setting::RequestQueue))),
    fixed("rpc_version", "rpc-version", |_, j| j.value(&18)),
    fixed("rpc_version_minimum", "rpc-version-minimum", |_, j| j.value(&14)),
    fixed("rpc_version_semver", "rpc-version-semver", |_, j| j.value(RPC_VERSION)),
    same("script_torrent_added_enabled", "script-torrent-added-enabled", |_, j| j.value(&false)),
    same("script_torrent_added_filename", "script-torrent-added-filename", |_, j| j.value("")),
    row("script_torrent_done_enabled", "script-torrent-done-enabled", |s, j| j.value(&!s.view.done_script.is_empty()), |a, n| Ok(a.bool(n)?.map(Setting::RunsDoneScript))),
    row("script_torrent_done_filename", "script-torrent-done-filename", |s, j| j.value(&s.view.done_script), |a, n| Ok(a.text(n)?.map(|name| Setting::DoneScript(name.to_owned())))),
    same("script_torrent_done_seeding_enabled", "script-torrent-done-seeding-enabled", |_, j| j.value(&false)),
    same("script_torrent_done_seeding_filename", "script-torrent-done-seeding-filename", |_, j| j.value("")),
    row("seed_queue_enabled", "seed-queue-enabled", |s, j| j.value(&s.view.queues.seed.is_enabled), |a, n| Ok(a.bool(n)?.map(Setting::SeedQueued))),
    row("seed_queue_size", "seed-queue-size", |s, j| j.value(&s.view.queues.seed.value), |a, n| Ok(a.amount(n)?.map(Setting::SeedQueue))),
    row("seed_ratio_limit", "seedRatioLimit", |s, j| j.real(s.view.seeding.ratio), |a, n| Ok(a.real(n)?.map(Setting::RatioLimit))),
    row("seed_ratio_limited", "seedRatioLimited", |s, j| j.value(&s.view.seeding.has_ratio), |a, n| Ok(a.bool(n)?.map(Setting::RatioLimited))),
    row("sequential_download", "sequential_download", |s, j| j.value(&s.view.adding.is_sequential), |a, n| Ok(a.bool(n)?.map(Setting::SequentialAdded))),
    fixed("session_id", "session-id", |s, j| j.value(s.id)),
    row("speed_limit_down", "speed-limit-down", |s, j| j.value(&s.view.speed.down.kilobytes), |a, n| Ok(a.amount(n)?.map(Setting::DownLimit))),
    row("speed_limit_down_enabled", "speed-limit-down-enabled", |s, j| j.value(&s.view.speed.down.is_enabled), |a, n| Ok(a.bool(n)?.map(Setting::DownLimited))),
    row("speed_limit_up", "speed-limit-up", |s, j| j.value(&s.view.speed.up.kilobytes), |a, n| Ok(a.amount(n)?.map(Setting::UpLimit))),
    row("speed_limit_up_enabled", "speed-limit-up-enabled", |s, j| j.value(&s.view.speed.up.is_enabled), |a, n| Ok(a.bool(n)?.map(Setting::UpLimited))),
    row("start_added_torrents", "start-added-torrents", |s, j| j.value(&s.view.adding.starts), |a, n| Ok(a.bool(n)?.map(Setting::StartsAdded))),
    fixed("tcp_enabled", "tcp-enabled", |s, j| j.value(&s.view.network.tcp)),
    row("trash_original_torrent_files", "trash-original-torrent-files", |s, j| j.value(&s.view.adding.deletes_original), |a, n| Ok(a.bool(n)?.map(Setting::DeletesOriginal))),
    fixed("units", "units", |_, j| units(j)),
    row("utp_enabled", "utp-enabled", |s, j| j.value(&s.view.network.utp), |a, n| Ok(a.bool(n)?.map(Setting::Utp))),
    fixed("version", "version", |s, j| j.value(&version(&s.view.software))),
];

/// The version of Transmission whose RPC this is. Clients read the number before the first blank.
fn version(software: &str) -> String {
    format!("4.1.0 ({software})")
}

fn free_space(shown: Shown<'_>) -> i64 {
    let free = shown.view.folders.free_space;
    free.map_or(-1, |free| i64::try_from(free).unwrap_or(i64::MAX))
}

/// A time of the day.
fn minutes(args: &Args, name: &str) -> Result<Option<u64>, CallError> {
    const DAY: u64 = 24 * 60;
    match args.amount(name)? {
        Some(minutes) if minutes >= DAY => {
            let error = format!("{name} must be less than {DAY} minutes");
            Err(CallError::invalid(error))
        }
        minutes => Ok(minutes),
    }
}

const fn encryption_text(encryption: Encryption, form: Form) -> &'static str {
    match (encryption, form) {
        (Encryption::Required, _) => "required",
        (Encryption::Preferred, _) => "preferred",
        (Encryption::Allowed, Form::Old) => "tolerated",
        (Encryption::Allowed, Form::New) => "allowed",
    }
}

fn encryption(args: &Args, name: &str) -> Result<Option<Encryption>, CallError> {
    Ok(Some(match args.text(name)? {
        None => return Ok(None),
        Some("required") => Encryption::Required,
        Some("preferred") => Encryption::Preferred,
        Some("tolerated" | "allowed") => Encryption::Allowed,
        Some(_) => {
            return Err(CallError::invalid(
                "encryption must be \"required\", \"preferred\" or \"allowed\"",
            ));
        }
    }))
}

fn transport_names(network: &Network) -> Vec<&'static str> {
    let names = [(network.tcp, "tcp"), (network.utp, "utp")];
    let used = names.iter().filter(|(is_used, _)| *is_used);
    used.map(|(_, name)| *name).collect()
}

fn transports(args: &Args, name: &str) -> Result<Option<Vec<Transport>>, CallError> {
    let Some(names) = args.texts(name)? else {
        return Ok(None);
    };
    let mut transports = Vec::new();
    for transport in names {
        let transport = match &*transport {
            "utp" => Transport::Utp,
            "tcp" => Transport::Tcp,
            _ => return Err(wrong_transports(name)),
        };
        if transports.contains(&transport) {
            return Err(wrong_transports(name));
        }
        transports.push(transport);
    }
    Ok(Some(transports))
}

fn wrong_transports(name: &str) -> CallError {
    CallError::InvalidParams(format!("{name} may list \"utp\" and \"tcp\", each once"))
}

/// Units that clients show numbers in: thousands for rates and sizes, 1024 for memory.
#[rustfmt::skip]
fn units(json: &mut Json) {
    json.object(|object| {
        object.field(Name::new("memory_bytes", "memory-bytes"), &1024);
        object.field(Name::new("memory_units", "memory-units"), &["KiB", "MiB", "GiB", "TiB"]);
        object.field(Name::new("size_bytes", "size-bytes"), &1000);
        object.field(Name::new("size_units", "size-units"), &["kB", "MB", "GB", "TB"]);
        object.field(Name::new("speed_bytes", "speed-bytes"), &1000);
        object.field(Name::new("speed_units", "speed-units"), &["kB/s", "MB/s", "GB/s", "TB/s"]);
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_field_is_found_by_both_of_its_names() {
        for row in FIELDS {
            for name in [row.name.new, row.name.old] {
                let found = field(name).unwrap_or_else(|| panic!("{name} is no field"));
                assert_eq!(found.name, row.name);
            }
        }
        assert!(field("tag").is_none());
    }

    fn read(value: Value) -> Result<Vec<Setting>, CallError> {
        match value {
            Value::Object(map) => settings(&Args::new(map)),
            _ => panic!("an object"),
        }
    }

    #[test]
    fn arguments_make_settings() {
        let made = read(json!({
            "speed-limit-down": 100, "speed-limit-down-enabled": true, "seedRatioLimit": 1.5,
            "encryption": "tolerated", "peer-port": 51413, "cache-size-mb": 4, "units": {}, "x": 1,
            "preferred_transports": ["tcp"], "download-dir": "",
        }));
        let expected = [
            Setting::Encryption(Encryption::Allowed),
            Setting::Port(51413),
            Setting::Transports(vec![Transport::Tcp]),
            Setting::RatioLimit(1.5),
            Setting::DownLimit(100),
            Setting::DownLimited(true),
        ];
        assert_eq!(made.unwrap(), expected);
    }

    #[test]
    fn wrong_arguments_are_refused() {
        for wrong in [
            json!({"peer-port": 65536}),
            json!({"alt-speed-time-begin": 1440}),
            json!({"encryption": "maybe"}),
            json!({"preferred_transports": ["tcp", "tcp"]}),
            json!({"dht-enabled": "yes"}),
        ] {
            assert!(matches!(read(wrong), Err(CallError::InvalidParams(_))));
        }
        let relative = read(json!({"download-dir": "down"}));
        assert!(matches!(relative, Err(CallError::PathNotAbsolute(_))));
        let trackers = read(json!({"default-trackers": "none"}));
        assert_eq!(trackers, Err(CallError::TrackerList));
    }
}
