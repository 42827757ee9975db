//! The fields of an `Entry` message.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::{Entry, Extent, Kind, ManifestError, Modified};
use crate::protocol::{DecodeError, Reader, Writer};

const FILE: u8 = 1;
const DIRECTORY: u8 = 2;
const LINK: u8 = 3;

impl Entry {
    /// Appends the fields of the `Entry` message to `out`: all behind its type.
    ///
    /// # Panics
    /// If sizes overflow 62 bits, or extents are not ascending. [`Manifest`](super::Manifest) has no
    /// such entries.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut out = Writer::new(out);
        out.u8(match self.kind {
            Kind::File { .. } => FILE,
            Kind::Directory => DIRECTORY,
            Kind::Link { .. } => LINK,
        });
        out.bytes(self.path.as_os_str().as_bytes());
        out.varint(self.mode.into());
        out.i64(self.modified.seconds);
        out.u32(self.modified.nanoseconds);
        match &self.kind {
            Kind::File { size, extents } => {
                out.varint(*size);
                out.varint(extents.len() as u64);
                let mut end = 0;
                for extent in extents {
                    out.varint(extent.offset - end);
                    out.varint(extent.length);
                    end = extent.end();
                }
            }
            Kind::Directory => {}
            Kind::Link { target } => out.bytes(target.as_os_str().as_bytes()),
        }
    }

    /// Reads the fields of an `Entry` message. Whether they are valid is up to the
    /// [`ManifestBuilder`](super::ManifestBuilder).
    ///
    /// # Errors
    /// [`ManifestError::Malformed`] and the like, if `fields` are not those of one entry.
    pub fn decode(fields: &[u8]) -> Result<Self, ManifestError> {
        let mut rest = Reader::new(fields);
        let kind = rest.u8()?;
        let path = path_of(rest.bytes()?);
        let mode = rest.varint()?;
        let Ok(mode) = u32::try_from(mode) else {
            return Err(ManifestError::Mode { path, mode });
        };
        let modified = Modified {
            seconds: rest.i64()?,
            nanoseconds: rest.u32()?,
        };
        let kind = match kind {
            FILE => {
                let size = rest.varint()?;
                let Some(extents) = extents(&mut rest)? else {
                    return Err(ManifestError::Extents(path));
                };
                Kind::File { size, extents }
            }
            DIRECTORY => Kind::Directory,
            LINK => Kind::Link {
                target: path_of(rest.bytes()?),
            },
            _ => return Err(DecodeError::Invalid("kind").into()),
        };
        rest.finish()?;
        Ok(Self {
            path,
            mode,
            modified,
            kind,
        })
    }
}

/// A path of any bytes.
fn path_of(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}

/// The extents; `None` if they overflow.
fn extents(rest: &mut Reader<'_>) -> Result<Option<Vec<Extent>>, ManifestError> {
    let count = rest.varint()?;
    // Each has two bytes at least.
    if count > rest.rest().len() as u64 / 2 {
        return Err(DecodeError::Truncated.into());
    }
    let mut extents = Vec::with_capacity(count as usize);
    let mut end = 0u64;
    for _ in 0..count {
        let (hole, length) = (rest.varint()?, rest.varint()?);
        let offset = end.checked_add(hole);
        let Some((offset, after)) = offset.and_then(|at| Some((at, at.checked_add(length)?)))
        else {
            return Ok(None);
        };
        extents.push(Extent { offset, length });
        end = after;
    }
    Ok(Some(extents))
}
