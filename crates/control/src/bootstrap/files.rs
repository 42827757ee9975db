//! The files of an AS's folder that hosts may have, each read again when it has changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hawser_file::Stamp;
use hawser_topology::{AsDir, AsTopology};
use hawser_trust::{Trc, TrcId};
use serde_json::Value;

/// Characters of a line of PEM.
const LINE: usize = 64;

/// TRCs in PEM.
pub(super) type Trcs = BTreeMap<TrcId, String>;

pub(super) struct Files {
    dir: AsDir,
    topology: Cached<Value>,
    trcs: Cached<Trcs>,
}

impl Files {
    pub fn new(dir: AsDir) -> Self {
        Self {
            dir,
            topology: Cached::default(),
            trcs: Cached::default(),
        }
    }

    /// `topology.json`, with what hosts need of it.
    pub fn topology(&self) -> Result<Arc<Value>, String> {
        let file = self.dir.path().join("topology.json");
        self.topology.get(&file, || {
            let topology = self.dir.topology().map_err(|error| error.to_string())?;
            for_hosts(&topology).map_err(|error| error.to_string())
        })
    }

    /// The TRCs (`*.trc`) in `certs`. One that cannot be used is reported and left out.
    pub fn trcs(&self) -> Result<Arc<Trcs>, String> {
        let folder = self.dir.path().join("certs");
        self.trcs.get(&folder, || load(&folder))
    }
}

/// A value read from a file or folder, kept until that changes.
struct Cached<T>(Mutex<Option<(Stamp, Arc<T>)>>);

impl<T> Default for Cached<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Cached<T> {
    /// What is read from `path`. Errors are not kept.
    fn get(&self, path: &Path, read: impl FnOnce() -> Result<T, String>) -> Result<Arc<T>, String> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken first, so that a change while this reads is noticed the next time.
        let found = Stamp::of(path);
        if let (Some((of, value)), Some(found)) = (&*kept, found)
            && *of == found
        {
            return Ok(Arc::clone(value));
        }
        let value = Arc::new(read()?);
        *kept = found.map(|found| (found, Arc::clone(&value)));
        Ok(value)
    }
}

/// `topology.json` of a host: without the addresses and the BFD of links, which only routers need,
/// and without all that hawser does not know.
fn for_hosts(topology: &AsTopology) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(topology)?;
    for (name, router) in &topology.border_routers {
        for id in router.interfaces.keys() {
            let interface = &mut value["border_routers"][name]["interfaces"][id.to_string()];
            if let Some(fields) = interface.as_object_mut() {
                fields.retain(|key, _| key != "underlay" && key != "bfd");
            }
        }
    }
    Ok(value)
}

fn load(folder: &Path) -> Result<Trcs, String> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
    let mut trcs = Trcs::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_none_or(|extension| extension != "trc") {
            continue;
        }
        let read = fs::read(&path).map_err(|error| error.to_string());
        match read.and_then(|bytes| Trc::parse(&bytes).map_err(|error| error.to_string())) {
            Ok(trc) => {
                trcs.insert(trc.id(), pem(trc.to_der()));
            }
            Err(reason) => tracing::warn!("{} is left out: {reason}", path.display()),
        }
    }
    Ok(trcs)
}

/// A TRC in PEM (RFC 7468).
fn pem(der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    let mut pem = "-----BEGIN TRC-----\n".to_owned();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, next) = rest.split_at(rest.len().min(LINE));
        pem.push_str(line);
        pem.push('\n');
        rest = next;
    }
    pem + "-----END TRC-----\n"
}
