//! The bootstrap server of an AS: over HTTP, what a host needs to join the AS, which knows nothing
//! but this server's address (scionproto's design "Automated end host bootstrapping").
//!
//! | route | answer |
//! | --- | --- |
//! | `/topology` | `topology.json`, with what hosts need of it |
//! | `/trcs` | the newest TRC of each ISD; `?all=true` all TRCs, `?isd=1,2` those of some ISDs |
//! | `/trcs/isd1-b1-s1/blob` | a TRC, in PEM |
//!
//! It serves the files of the AS's folder, and reads them again when they change. There is nothing
//! secret in its answers, and nothing that proves them: a host trusts the first TRC that it gets.

mod files;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hawser_http::{JsonError, Listener, json, json_errors};
use hawser_topology::AsDir;
use hawser_trust::TrcId;
use serde::Serialize;

use self::files::Files;
use crate::Control;

/// The port of bootstrap servers, which hosts assume unless a hint names another.
pub const PORT: u16 = 8041;

/// Most connections at once: hosts ask when they start.
const CONNECTIONS: usize = 64;

impl Control {
    /// Also serves what hosts need to join the AS, on port [`PORT`] of the addresses of the control
    /// service. An address that cannot be bound is reported and left out: the other services do not
    /// depend on it, and hosts may have a bootstrap server there that is not of hawser.
    #[must_use]
    pub async fn with_bootstrap(self) -> Self {
        let ips: BTreeSet<_> = self.status.control.iter().map(SocketAddr::ip).collect();
        let addresses: Vec<_> = ips.into_iter().map(|ip| (ip, PORT).into()).collect();
        self.with_bootstrap_at(&addresses).await
    }

    pub(crate) async fn with_bootstrap_at(mut self, addresses: &[SocketAddr]) -> Self {
        for &address in addresses {
            let bound = match Listener::bind(address, None).await {
                Ok(listener) => listener.local_addr().map(|at| (listener, at)),
                Err(error) => Err(error),
            };
            match bound {
                Ok((listener, at)) => {
                    self.status.bootstrap.push(at);
                    self.bootstrap.push(listener.with_connections(CONNECTIONS));
                }
                Err(error) => tracing::warn!(
                    "hosts cannot bootstrap from {address}: {error}; end what has this port, or \
                     leave the bootstrap server out (--no-bootstrap)"
                ),
            }
        }
        self
    }
}

/// What answers requests about the AS whose folder is `dir`.
pub(crate) fn router(dir: AsDir) -> Router {
    Router::new()
        .route("/topology", get(topology))
        .route("/trcs", get(trcs))
        .route("/trcs/{id}/blob", get(trc))
        .layer(from_fn(json_errors))
        .with_state(Arc::new(Files::new(dir)))
}

/// Calls `read`, which may read files.
async fn read<T: Send + 'static>(
    files: Arc<Files>,
    read: impl FnOnce(&Files) -> Result<T, String> + Send + 'static,
) -> Result<T, JsonError> {
    let task = tokio::task::spawn_blocking(move || read(&files)).await;
    let failed = |reason| JsonError(StatusCode::INTERNAL_SERVER_ERROR, reason);
    task.map_err(|panic| failed(panic.to_string()))?
        .map_err(failed)
}

async fn topology(State(files): State<Arc<Files>>) -> Result<Response, JsonError> {
    let topology = read(files, Files::topology).await?;
    Ok(json(StatusCode::OK, &*topology))
}

/// A TRC in the list.
#[derive(Serialize)]
struct Brief {
    id: BriefId,
}

#[derive(Serialize)]
struct BriefId {
    isd: u16,
    base_number: u64,
    serial_number: u64,
}

async fn trcs(
    State(files): State<Arc<Files>>,
    RawQuery(query): RawQuery,
) -> Result<Response, JsonError> {
    let wanted = Wanted::parse(query.as_deref().unwrap_or_default())
        .map_err(|reason| JsonError(StatusCode::BAD_REQUEST, reason))?;
    let trcs = read(files, Files::trcs).await?;
    let ids = wanted.select(trcs.keys().copied());
    if ids.is_empty() {
        return Err(JsonError(
            StatusCode::NOT_FOUND,
            "there is no such TRC here".to_owned(),
        ));
    }
    let brief = |id: TrcId| Brief {
        id: BriefId {
            isd: id.isd,
            base_number: id.base,
            serial_number: id.serial,
        },
    };
    let list: Vec<_> = ids.into_iter().map(brief).collect();
    Ok(json(StatusCode::OK, &list))
}

async fn trc(
    State(files): State<Arc<Files>>,
    Path(text): Path<String>,
) -> Result<Response, JsonError> {
    let id = parse_id(&text).ok_or_else(|| {
        let reason = format!("{text} is not a TRC: write for example isd1-b1-s1");
        JsonError(StatusCode::BAD_REQUEST, reason)
    })?;
    let trcs = read(files, Files::trcs).await?;
    let pem = trcs.get(&id).cloned().ok_or_else(|| {
        let reason = format!("there is no TRC {id} here");
        JsonError(StatusCode::NOT_FOUND, reason)
    })?;
    let kind = [(header::CONTENT_TYPE, "application/x-pem-file")];
    Ok((kind, pem).into_response())
}

/// Reads `isd1-b1-s1`.
fn parse_id(text: &str) -> Option<TrcId> {
    let (isd, rest) = text.strip_prefix("isd")?.split_once("-b")?;
    let (base, serial) = rest.split_once("-s")?;
    Some(TrcId {
        isd: number(isd)?,
        base: number(base)?,
        serial: number(serial)?,
    })
}

/// A number of digits only: `parse` also takes signs.
fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

/// Which TRCs a request wants listed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    /// Only those of these ISDs; empty for all ISDs.
    isds: BTreeSet<u16>,
    /// All TRCs, not only the newest of each ISD.
    all: bool,
}

impl Wanted {
    /// Reads a query such as `isd=1,2&all=true`. As in scionproto, other parameters are ignored.
    fn parse(query: &str) -> Result<Self, String> {
        let mut wanted = Self::default();
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            match (name, value) {
                ("all", "true") => wanted.all = true,
                ("all", "false") => wanted.all = false,
                ("all", _) => return Err(format!("all={value}: write true or false")),
                ("isd", _) => {
                    // A comma may come escaped.
                    for isd in value.replace("%2C", ",").replace("%2c", ",").split(',') {
                        let isd = number(isd).ok_or_else(|| {
                            format!("isd={value}: write numbers of ISDs, for example 1,2")
                        })?;
                        wanted.isds.insert(isd);
                    }
                }
                _ => {}
            }
        }
        Ok(wanted)
    }

    /// The wanted ones of `ids`, which are in order.
    fn select(&self, ids: impl Iterator<Item = TrcId>) -> Vec<TrcId> {
        let mut selected: Vec<TrcId> = Vec::new();
        for id in ids.filter(|id| self.isds.is_empty() || self.isds.contains(&id.isd)) {
            if !self.all {
                selected.pop_if(|before| before.isd == id.isd);
            }
            selected.push(id);
        }
        selected
    }
}

#[cfg(test)]
mod tests;
