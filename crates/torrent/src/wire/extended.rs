//! The extended handshake (BEP 10).

use super::error::WireError;
use super::multipath::MULTIPATH_NAME;
use crate::metainfo::bencode::{self, Value};

/// The extended message that is the handshake.
pub(crate) const EXTENDED_HANDSHAKE: u8 = 0;

/// Longest client name kept, in bytes.
const MAX_NAME: usize = 128;

/// What each side announces in its first extended message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ExtendedHandshake {
    /// The client's name and version (`v`).
    pub client: Option<String>,
    /// Requests that it queues before it drops some (`reqq`).
    pub request_queue: Option<u32>,
    /// The port it listens on (`p`).
    pub port: Option<u16>,
    /// The id under which it takes `scion_multipath` messages; `None` if it takes none.
    pub multipath: Option<u8>,
    /// It downloads nothing, so it will not get the pieces it lacks (`upload_only`, BEP 21).
    pub upload_only: bool,
}

impl ExtendedHandshake {
    /// Encodes it.
    pub fn encode(&self) -> Vec<u8> {
        let id = self.multipath.map(|id| Value::Int(id.into()));
        let top = Value::dict([
            ("m", Some(Value::dict([(MULTIPATH_NAME, id)]))),
            ("p", self.port.map(|port| Value::Int(port.into()))),
            (
                "reqq",
                self.request_queue.map(|queue| Value::Int(queue.into())),
            ),
            ("upload_only", self.upload_only.then_some(Value::Int(1))),
            ("v", self.client.as_deref().map(Value::text)),
        ]);
        top.encode()
    }

    /// Decodes a handshake; what is unknown or of another type is ignored (BEP 10).
    ///
    /// # Errors
    /// If it is not a bencoded dictionary.
    pub fn decode(payload: &[u8]) -> Result<Self, WireError> {
        let document = bencode::parse(payload).map_err(WireError::BadExtended)?;
        let top = document.as_dict().ok_or(WireError::ExtendedNoDict)?;
        let client = top.bytes("v").map(|bytes| {
            let bytes = &bytes[..bytes.len().min(MAX_NAME)];
            String::from_utf8_lossy(bytes).escape_debug().to_string()
        });
        // An id of 0 switches an extension off (BEP 10).
        let multipath = top
            .dict("m")
            .and_then(|messages| u8::try_from(messages.int(MULTIPATH_NAME)?).ok())
            .filter(|id| *id != EXTENDED_HANDSHAKE);
        Ok(Self {
            multipath,
            client,
            request_queue: top.int("reqq").and_then(|n| n.try_into().ok()),
            port: top.int("p").and_then(|n| n.try_into().ok()),
            upload_only: top.int("upload_only").is_some_and(|n| n != 0),
        })
    }
}
