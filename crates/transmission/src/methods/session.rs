//! Methods about the session, groups and the host.

use super::call::Call;
use crate::change::GroupChange;
use crate::client::IpProtocol;
use crate::error::CallError;
use crate::json::{Json, Object};
use crate::names::Name;
use crate::session_view::{GroupView, Totals};
use crate::settings::{FIELDS, Shown, check_same, field, settings};

const HONORS_SESSION_LIMITS: Name = Name::new("honors_session_limits", "honorsSessionLimits");
const IP_PROTOCOL: Name = Name::same("ip_protocol");
const NAME: Name = Name::same("name");

pub(super) fn get(call: &mut Call<'_>, result: &mut Object<'_>) -> Result<(), CallError> {
    let mut fields = call.fields(field)?;
    if fields.is_empty() {
        fields.extend(FIELDS);
    }
    let shown = Shown {
        view: &call.client.session(),
        id: call.session_id,
    };
    for field in fields {
        (field.get)(shown, result.key(field.name));
    }
    Ok(())
}

pub(super) fn set(call: &mut Call<'_>) -> Result<(), CallError> {
    let settings = settings(call.args)?;
    let shown = Shown {
        view: &call.client.session(),
        id: call.session_id,
    };
    check_same(call.args, shown)?;
    if settings.is_empty() {
        return Ok(());
    }
    call.client.set_session(&settings)
}

#[rustfmt::skip]
pub(super) fn stats(call: &mut Call<'_>, result: &mut Object<'_>) -> Result<(), CallError> {
    let stats = call.client.stats();
    let paused = stats.torrents.saturating_sub(stats.active);
    result.field(Name::new("active_torrent_count", "activeTorrentCount"), &stats.active);
    totals(&stats.cumulative, result.key(Name::new("cumulative_stats", "cumulative-stats")));
    totals(&stats.current, result.key(Name::new("current_stats", "current-stats")));
    result.field(Name::new("download_speed", "downloadSpeed"), &stats.down_rate);
    result.field(Name::new("paused_torrent_count", "pausedTorrentCount"), &paused);
    result.field(Name::new("torrent_count", "torrentCount"), &stats.torrents);
    result.field(Name::new("upload_speed", "uploadSpeed"), &stats.up_rate);
    Ok(())
}

#[rustfmt::skip]
fn totals(totals: &Totals, json: &mut Json) {
    json.object(|object| {
        object.field(Name::new("downloaded_bytes", "downloadedBytes"), &totals.downloaded);
        object.field(Name::new("files_added", "filesAdded"), &totals.files);
        object.field(Name::new("seconds_active", "secondsActive"), &totals.seconds);
        object.field(Name::new("session_count", "sessionCount"), &totals.sessions);
        object.field(Name::new("uploaded_bytes", "uploadedBytes"), &totals.uploaded);
    });
}

pub(super) fn free_space(call: &mut Call<'_>, result: &mut Object<'_>) -> Result<(), CallError> {
    let Some(path) = call.args.folder("path", "directory path")? else {
        return Err(CallError::invalid("directory path argument is missing"));
    };
    let space = call.client.space(&path)?;
    result.field(Name::same("path"), &path);
    result.field(Name::new("size_bytes", "size-bytes"), &space.free);
    // In snake_case in the old form too.
    result.field(Name::same("total_size"), &space.total);
    Ok(())
}

pub(super) fn port_test(call: &mut Call<'_>, result: &mut Object<'_>) -> Result<(), CallError> {
    let name = call.args.text("ip_protocol")?;
    let protocol = match name {
        None => None,
        Some("ipv4") => Some(IpProtocol::V4),
        Some("ipv6") => Some(IpProtocol::V6),
        Some(_) => {
            return Err(CallError::invalid("invalid ip protocol string"));
        }
    };
    let is_open = call.client.test_port(protocol)?;
    if let Some(name) = name {
        result.field(IP_PROTOCOL, name);
    }
    result.field(Name::new("port_is_open", "port-is-open"), &is_open);
    Ok(())
}

pub(super) fn group_get(call: &mut Call<'_>, result: &mut Object<'_>) -> Result<(), CallError> {
    // Transmission reads "name", and documents "group".
    let named = call.args.text_or_texts("name")?;
    let names = match named {
        Some(names) => names,
        None => call.args.text_or_texts("group")?.unwrap_or_default(),
    };
    let groups = call.client.groups();
    let is_asked = |group: &&GroupView| names.is_empty() || names.contains(&group.name);
    let groups = groups.iter().filter(is_asked);
    result.key(Name::same("group")).array(groups, group);
    Ok(())
}

#[rustfmt::skip]
fn group(json: &mut Json, group: &GroupView) {
    json.object(|object| {
        object.field(HONORS_SESSION_LIMITS, &group.honors_session_limits);
        object.field(NAME, &group.name);
        object.field(Name::new("speed_limit_down", "speed-limit-down"), &group.down.kilobytes);
        object.field(Name::new("speed_limit_down_enabled", "speed-limit-down-enabled"), &group.down.is_enabled);
        object.field(Name::new("speed_limit_up", "speed-limit-up"), &group.up.kilobytes);
        object.field(Name::new("speed_limit_up_enabled", "speed-limit-up-enabled"), &group.up.is_enabled);
    });
}

pub(super) fn group_set(call: &mut Call<'_>) -> Result<(), CallError> {
    let args = call.args;
    let name = args.text("name")?.unwrap_or_default().trim();
    if name.is_empty() {
        return Err(CallError::invalid("No group name given"));
    }
    let change = GroupChange {
        name: name.to_owned(),
        honors_session_limits: args.bool("honors_session_limits")?,
        down_limit: args.amount("speed_limit_down")?,
        is_down_limited: args.bool("speed_limit_down_enabled")?,
        up_limit: args.amount("speed_limit_up")?,
        is_up_limited: args.bool("speed_limit_up_enabled")?,
    };
    call.client.set_group(change)
}
