//! The extended handshake (BEP 10).

use super::error::WireError;
use super::multipath::MULTIPATH_NAME;
use crate::metainfo::bencode::{self, Value, Writer};

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
        let mut writer = Writer::default();
        writer.dict(|top| {
            top.bytes(b"m").dict(|m| {
                if let Some(id) = self.multipath {
                    m.bytes(MULTIPATH_NAME.as_bytes()).int(i64::from(id));
                }
            });
            if let Some(port) = self.port {
                top.bytes(b"p").int(i64::from(port));
            }
            if let Some(queue) = self.request_queue {
                top.bytes(b"reqq").int(i64::from(queue));
            }
            if self.upload_only {
                top.bytes(b"upload_only").int(1);
            }
            if let Some(client) = &self.client {
                top.bytes(b"v").bytes(client.as_bytes());
            }
        });
        writer.finish()
    }

    /// Decodes a handshake; what is unknown or of another type is ignored (BEP 10).
    ///
    /// # Errors
    /// If it is not a bencoded dictionary.
    pub fn decode(payload: &[u8]) -> Result<Self, WireError> {
        let document = bencode::parse(payload).map_err(WireError::BadExtended)?;
        let top = document.as_dict().ok_or(WireError::ExtendedNoDict)?;
        let int = |key| top.find(key).and_then(Value::as_int);
        let client = top.find("v").and_then(Value::as_bytes).map(|bytes| {
            let bytes = &bytes[..bytes.len().min(MAX_NAME)];
            String::from_utf8_lossy(bytes).escape_debug().to_string()
        });
        let messages = top.find("m").and_then(Value::as_dict);
        // An id of 0 switches an extension off (BEP 10).
        let multipath = messages
            .and_then(|m| m.find(MULTIPATH_NAME))
            .and_then(Value::as_int)
            .and_then(|id| u8::try_from(id).ok())
            .filter(|id| *id != EXTENDED_HANDSHAKE);
        Ok(Self {
            multipath,
            client,
            request_queue: int("reqq").and_then(|n| u32::try_from(n).ok()),
            port: int("p").and_then(|n| u16::try_from(n).ok()),
            upload_only: int("upload_only").is_some_and(|n| n != 0),
        })
    }
}
