//! The answers of a bootstrap server, read.

use hawser_topology::{AsTopology, IsdAsn};
use hawser_trust::{Trc, TrcId};
use serde::Deserialize;

/// Most TRCs of a list.
const MAX_TRCS: usize = 256;

/// The AS whose `topology.json` this is.
pub(crate) fn topology(body: &[u8]) -> Result<IsdAsn, String> {
    let topology: AsTopology = serde_json::from_slice(body)
        .map_err(|error| format!("it is not a topology.json: {}", plain(&error)))?;
    if topology.control_service.is_empty() {
        return Err("it lists no control service to ask for paths (`control_service`)".to_owned());
    }
    Ok(topology.isd_as)
}

/// The TRCs of a list.
pub(crate) fn trcs(body: &[u8]) -> Result<Vec<TrcId>, String> {
    #[derive(Deserialize)]
    struct Brief {
        id: Id,
    }
    #[derive(Deserialize)]
    struct Id {
        isd: u16,
        base_number: u64,
        serial_number: u64,
    }
    let list: Vec<Brief> = serde_json::from_slice(body)
        .map_err(|error| format!("it is not a list of TRCs: {}", plain(&error)))?;
    if list.len() > MAX_TRCS {
        return Err(format!("it lists more than {MAX_TRCS} TRCs"));
    }
    let read = |brief: Brief| {
        let Id {
            isd,
            base_number: base,
            serial_number: serial,
        } = brief.id;
        let id = TrcId { isd, base, serial };
        match isd == 0 || base == 0 || serial < base {
            true => Err(format!("there can be no TRC {id}")),
            false => Ok(id),
        }
    };
    list.into_iter().map(read).collect()
}

/// The TRC `id`.
pub(crate) fn trc(body: &[u8], id: TrcId) -> Result<Trc, String> {
    let trc = Trc::parse(body).map_err(|error| plain(&error))?;
    match trc.id() == id {
        true => Ok(trc),
        false => Err(format!("it is {}", trc.id())),
    }
}

/// An error that may quote what a server sent, to be printed on one line.
fn plain(error: &impl ToString) -> String {
    let text = error.to_string();
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}
