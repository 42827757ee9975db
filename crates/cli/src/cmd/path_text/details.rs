//! Metadata of a path, as `scion showpaths --extended` prints it.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hawser_endhost::Path;
use hawser_path::show::Entry;
use hawser_path::{Geo, LinkType, Metadata};

use crate::format;
use crate::paint::Paint;

/// Keys and values; a value is empty if it is unknown.
pub fn details(path: &Path, entry: &Entry, paint: Paint) -> [(&'static str, String); 8] {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let left = path
        .expiry()
        .saturating_sub(now.map_or(0, |now| now.as_secs()));
    let expires = entry.expiry.replace('T', " ").replace('Z', " +0000 UTC");
    let left = format::go_duration(Duration::from_secs(left));
    let metadata = &path.info().metadata;
    [
        ("Expires", format!("{expires} ({left})")),
        ("Latency", latency(metadata)),
        ("Bandwidth", bandwidth(metadata)),
        ("Geo", geo(metadata, paint)),
        ("LinkType", link_types(metadata)),
        ("InternalHops", internal_hops(path)),
        ("Notes", notes(path)),
        ("Discovery", discovery(metadata)),
    ]
}

fn latency(metadata: &Metadata) -> String {
    let known: Duration = metadata.latency.iter().flatten().sum();
    let total = format::go_duration(known);
    if metadata.latency.is_empty() {
        String::new()
    } else if metadata.latency.iter().all(Option::is_some) {
        total
    } else if known.is_zero() {
        String::new()
    } else {
        format!(">{total} (information incomplete)")
    }
}

fn bandwidth(metadata: &Metadata) -> String {
    let Some(least) = metadata.bandwidth.iter().flatten().min() else {
        return String::new();
    };
    let kbit = least / 1000;
    match metadata.bandwidth.iter().all(Option::is_some) {
        true => format!("{kbit}Kbit/s"),
        false => format!("{kbit}Kbit/s (information incomplete)"),
    }
}

fn geo(metadata: &Metadata, paint: Paint) -> String {
    let place = |geo: &Option<Geo>| {
        let geo = geo.as_ref()?;
        let point = (geo.latitude != 0.0 || geo.longitude != 0.0)
            .then(|| format!("{},{}", geo.latitude, geo.longitude));
        let address = plain(&geo.address);
        let address = (!address.is_empty()).then(|| format!("\"{address}\""));
        match (point, address) {
            (Some(point), Some(address)) => Some(format!("{point} ({address})")),
            (point, address) => point.or(address),
        }
    };
    let places: Vec<Option<String>> = metadata.geo.iter().map(place).collect();
    if places.iter().all(Option::is_none) {
        return String::new();
    }
    let places = places.iter().map(|place| place.as_deref().unwrap_or("N/A"));
    let places: Vec<&str> = places.collect();
    format!("[{}]", places.join(&paint.link(" > ")))
}

fn link_types(metadata: &Metadata) -> String {
    let mut kinds = metadata.link_types.iter();
    if kinds.all(|kind| *kind == LinkType::Unset) {
        return String::new();
    }
    listed(metadata.link_types.iter().map(LinkType::to_string))
}

fn internal_hops(path: &Path) -> String {
    let info = path.info();
    let hops = info.metadata.internal_hops.iter().enumerate();
    let known = hops.filter(|(_, hops)| **hops != 0);
    listed(known.filter_map(|(index, hops)| {
        let entered = info.interfaces.get(2 * index + 1)?;
        Some(format!("{}: {hops}", entered.isd_as))
    }))
}

fn notes(path: &Path) -> String {
    let info = path.info();
    let notes = info.metadata.notes.iter().enumerate();
    listed(notes.filter_map(|(index, note)| {
        let note = plain(note);
        let interface = info.interfaces.get((2 * index).saturating_sub(1))?;
        (!note.is_empty()).then(|| format!("{}: \"{note}\"", interface.isd_as))
    }))
}

/// Text in brackets; empty without parts.
fn listed(parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<String> = parts.collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!("[{}]", parts.join(", ")),
    }
}

fn discovery(metadata: &Metadata) -> String {
    let joined = |addresses: &[SocketAddr]| {
        let each: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
        each.join(", ")
    };
    let services = metadata.discovery.iter().map(|(isd_as, services)| {
        let control = joined(&services.control_services);
        let discovery = joined(&services.discovery_services);
        format!("{isd_as}: {{Control: {control}, Discovery: {discovery}}}")
    });
    let services: Vec<String> = services.collect();
    match services.is_empty() {
        true => String::new(),
        false => format!("{{{}}}", services.join(", ")),
    }
}

/// An AS's text on one line, without quotes and control characters.
fn plain(text: &str) -> String {
    let text = text.trim().replace('\n', ", ");
    text.chars()
        .filter(|c| !c.is_control() && *c != '"')
        .collect()
}
