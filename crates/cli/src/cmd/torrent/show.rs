//! `hawser torrent show`.

use std::fmt;
use std::path::Path;

use hawser_torrent::metainfo::{File, Link};
use hawser_torrent::{Metainfo, Version};
use hawser_tracker::TrackerUrl;
use serde_json::{Value, json};

use crate::cmd::files;
use crate::failure::Failure;
use crate::format;
use crate::out::{outln, plain};

/// Runs `hawser torrent show`.
pub fn run(file: &Path, json: bool) -> Result<(), Failure> {
    let metainfo = files::metainfo(file)?;
    match json {
        true => outln!("{:#}", object(&metainfo)),
        false => print(&metainfo),
    }
    Ok(())
}

/// The files that a download writes, that is all but padding.
fn files(metainfo: &Metainfo) -> impl Iterator<Item = &File> {
    metainfo.files.iter().filter(|file| !file.padding)
}

/// These with their numbers, which `hawser get --files` takes.
fn numbered(metainfo: &Metainfo) -> impl Iterator<Item = (usize, &File)> {
    (1..).zip(files(metainfo))
}

fn object(metainfo: &Metainfo) -> Value {
    let files: Vec<_> = numbered(metainfo)
        .map(|(number, file)| {
            let (path, length) = (&file.path, file.length);
            let mut object = json!({"number": number, "path": path, "length": length});
            if let Some(original) = &file.original {
                object["original_path"] = original.as_str().into();
            }
            object
        })
        .collect();
    let links = metainfo.links.iter();
    let links = links.map(|link| json!({"path": link.path, "target": link.target}));
    let nodes = metainfo.sources.nodes.iter();
    let nodes = nodes.map(|(host, port)| json!({"host": host, "port": port}));
    json!({
        "name": metainfo.name,
        "info_hash": metainfo.info_hash.to_string(),
        "info_hash_v2": metainfo.info_hash_v2.map(hex),
        "version": match metainfo.version() {
            Version::One => "1",
            Version::Two => "2",
            Version::Hybrid => "hybrid",
        },
        "total_length": content_length(metainfo),
        "padding_length": metainfo.pieces.total - content_length(metainfo),
        "piece_length": metainfo.pieces.length,
        "pieces": metainfo.pieces.count(),
        "comment": metainfo.provenance.comment,
        "created_by": metainfo.provenance.created_by,
        "creation_date": metainfo.provenance.creation_date,
        "private": metainfo.private,
        "source": metainfo.provenance.source,
        "trackers": metainfo.sources.trackers,
        "nodes": nodes.collect::<Vec<_>>(),
        "web_seeds": metainfo.sources.web_seeds,
        "files": files,
        "links": links.collect::<Vec<_>>(),
    })
}

fn print(metainfo: &Metainfo) {
    let line = |name: &str, text: &dyn fmt::Display| {
        outln!("{:<12}{}", format!("{name}:"), plain(&text.to_string()));
    };
    line("name", &metainfo.name);
    match (metainfo.version(), metainfo.info_hash_v2) {
        (Version::Two, Some(hash)) => {
            line("version", &"2");
            line("info-hash", &hex(hash));
        }
        (_, hash) => {
            line("info-hash", &metainfo.info_hash);
            if let Some(hash) = hash {
                line("version 2", &hex(hash));
            }
        }
    }
    let length = content_length(metainfo);
    let size = format::bytes(length);
    line("size", &format_args!("{size} ({length} bytes)"));
    let (pieces, length) = (metainfo.pieces.count(), metainfo.pieces.length);
    let length = format::bytes(length.into());
    line("pieces", &format_args!("{pieces} of {length}"));
    if metainfo.private {
        line("private", &"yes: peers come from the trackers alone");
    }
    for (name, text) in [
        ("source", &metainfo.provenance.source),
        ("comment", &metainfo.provenance.comment),
        ("created by", &metainfo.provenance.created_by),
    ] {
        if let Some(text) = text {
            line(name, text);
        }
    }
    for tier in &metainfo.sources.trackers {
        let urls: Vec<String> = tier.iter().map(|url| tracker(url)).collect();
        line("trackers", &urls.join(", "));
    }
    for (host, port) in &metainfo.sources.nodes {
        line("DHT node", &format_args!("{host}, port {port}"));
    }
    for url in &metainfo.sources.web_seeds {
        line("web seed", url);
    }
    let changed = files(metainfo).any(|file| file.original.is_some());
    if metainfo.multi_file || changed {
        outln!("files:");
        numbered(metainfo).for_each(print_file);
        metainfo.links.iter().for_each(print_link);
    }
}

/// A tracker, and whether it is of a kind that is not asked.
fn tracker(url: &str) -> String {
    match url.parse::<TrackerUrl>() {
        Ok(_) => url.to_owned(),
        Err(_) => format!("{url} (not supported)"),
    }
}

fn print_file((number, file): (usize, &File)) {
    let (length, path) = (format::bytes(file.length), file.path.display().to_string());
    let original = file.original.as_ref();
    let original = original.map(|name| format!(" (listed as {})", plain(name)));
    outln!(
        "{number:>5}  {length:>12}  {}{}",
        plain(&path),
        original.unwrap_or_default()
    );
}

fn print_link(link: &Link) {
    let path = plain(&link.path.display().to_string());
    match &link.target {
        Some(target) => outln!("               link  {path} -> {}", target.display()),
        None => outln!("               link  {path} (not made: its target is not in the torrent)"),
    }
}

/// Bytes of all files, without padding.
fn content_length(metainfo: &Metainfo) -> u64 {
    files(metainfo).map(|file| file.length).sum()
}

fn hex(hash: [u8; 32]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
