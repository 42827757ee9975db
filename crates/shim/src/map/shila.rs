//! Shila's `routing.json` (paper 002): TCP destinations, and their SCION addresses.
//!
//! Names of fields are read in any case, as Go does. Shila has one path for each entry in the file,
//! which it leaves empty and does not use. The UDP port of an address is that of Shila's own
//! packets and is not used; a shim of ours is at [`DEFAULT_PORT`](crate::DEFAULT_PORT).

use std::net::IpAddr;

use hawser_address::ScionAddr;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::destination::{Destination, DestinationError};
use super::entry::Entry;
use super::lines::{LineError, LineNumbers};
use super::target::Target;

/// An entry in its right shape, for messages.
const EXAMPLE: &str = r#"{"key": {"ip": "10.7.0.9", "port": "5001"}, "flow": {"address": "1-ff00:0:4,10.0.0.1:5001", "path": {}}}"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Routing {
    #[serde(alias = "Key", alias = "KEY")]
    key: TcpAddress,
    #[serde(alias = "Flow", alias = "FLOW")]
    flow: Flow,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TcpAddress {
    #[serde(alias = "IP", alias = "Ip")]
    ip: String,
    #[serde(alias = "Port", alias = "PORT")]
    port: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Flow {
    #[serde(alias = "Address", alias = "ADDRESS")]
    address: Option<String>,
    /// The destination in the form of the first versions, which had none of SCION.
    #[serde(alias = "Dst", alias = "DST")]
    dst: Option<Value>,
    #[serde(default, alias = "Path", alias = "PATH")]
    path: Value,
}

/// Reads a text: the entries that can be read, and what is wrong in others.
pub(super) fn parse(text: &str) -> (Vec<Entry>, Vec<LineError>) {
    let lines = LineNumbers::of(text);
    let raw: Vec<&RawValue> = match serde_json::from_str(text) {
        Ok(raw) => raw,
        Err(error) => {
            return (
                Vec::new(),
                vec![shape(1, &error, "a list of entries is expected")],
            );
        }
    };
    let (mut entries, mut errors) = (Vec::new(), Vec::new());
    for raw in raw {
        let start = raw.get().as_ptr() as usize - text.as_ptr() as usize;
        let line = lines.number(start);
        let read = serde_json::from_str(raw.get());
        let read = read.map_err(|error| shape(line, &error, &format!("write {EXAMPLE}")));
        let read = read.and_then(|routing: Routing| {
            entry(&routing).map_err(|reason| LineError { line, reason })
        });
        match read {
            Ok(entry) => entries.push(Entry { line, ..entry }),
            Err(error) => errors.push(error),
        }
    }
    (entries, errors)
}

/// An error of JSON, in a part of the text that begins in the line `first`.
fn shape(first: usize, error: &serde_json::Error, remedy: &str) -> LineError {
    let text = error.to_string();
    // The place that the text ends with is that in the part.
    let text = text
        .rsplit_once(" at line ")
        .map_or(&*text, |(text, _)| text);
    LineError {
        line: first + error.line().saturating_sub(1),
        reason: format!("{text}: {remedy}"),
    }
}

fn entry(routing: &Routing) -> Result<Entry, String> {
    let TcpAddress { ip, port } = &routing.key;
    let ip: IpAddr = ip
        .parse()
        .map_err(|_| format!("`{ip}` is not an IP address: write for example 10.7.0.9"))?;
    let port = port.parse().ok().filter(|port| *port != 0);
    let port = port.ok_or_else(|| {
        let wrong = &routing.key.port;
        format!("`{wrong}` is not a TCP port: write a number from 1 to 65535, in quotes")
    })?;
    // Checks the address as one of the map's.
    let destination: Destination = ip
        .to_string()
        .parse()
        .map_err(|error: DestinationError| error.to_string())?;
    let Flow { address, dst, path } = &routing.flow;
    let address = match (address, dst) {
        (Some(address), None) => address,
        (_, Some(_)) => {
            return Err("`dst`, an address without an AS, is not supported yet: write \"address\": \"1-ff00:0:4,10.0.0.1:5001\"".to_owned());
        }
        (None, None) => return Err(format!("the flow has no address: write {EXAMPLE}")),
    };
    if !is_empty(path) {
        return Err("a path in the file is not supported yet: leave it empty, and choose paths by `policy` in a map in TOML".to_owned());
    }
    let address: ScionAddr = address.parse().map_err(|error| format!("{error}"))?;
    let target = Target::Host {
        isd_as: address.isd_as,
        ip: address.host.ip(),
        port: None,
    };
    let destination = Destination {
        port: Some(port),
        ..destination
    };
    Ok(Entry::new(destination, target))
}

/// Whether a path names no hop: it has no elements, or empty ones.
fn is_empty(path: &Value) -> bool {
    let in_all = |fields: &Map<String, Value>| fields.values().all(is_empty);
    match path {
        Value::Null => true,
        Value::Array(elements) => elements.iter().all(is_empty),
        Value::Object(fields) => in_all(fields),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
