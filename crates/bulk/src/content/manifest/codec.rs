//! The fields of an `Entry` message.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::{Attributes, Entry, EntryKind, Extent, ManifestError, Modified};
use crate::protocol::{DecodeError, Reader, Writer};

const FILE: u8 = 1;
const DIRECTORY: u8 = 2;
const LINK: u8 = 3;

const USER: u8 = 1;
const GROUP: u8 = 2;
const HARD_LINK: u8 = 3;
const EXTENDED: u8 = 4;

impl Entry {
    /// Appends the fields of the `Entry` message to `out`: all behind its type.
    ///
    /// # Panics
    /// If sizes overflow 62 bits, or extents are not ascending. [`Manifest`](super::Manifest) has no
    /// such entries.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut out = Writer::new(out);
        out.u8(match self.kind {
            EntryKind::File { .. } => FILE,
            EntryKind::Directory => DIRECTORY,
            EntryKind::Link { .. } => LINK,
        });
        out.bytes(self.path.as_os_str().as_bytes());
        out.varint(self.mode.into());
        out.i64(self.modified.seconds);
        out.u32(self.modified.nanoseconds);
        match &self.kind {
            EntryKind::File { size, extents } => {
                out.varint(*size);
                out.varint(extents.len() as u64);
                let mut end = 0;
                for extent in extents {
                    out.varint(extent.offset - end);
                    out.varint(extent.length);
                    end = extent.end();
                }
            }
            EntryKind::Directory => {}
            EntryKind::Link { target } => out.bytes(target.as_os_str().as_bytes()),
        }
        let Some(attributes) = self.attributes.as_deref() else {
            return out.varint(0);
        };
        let Attributes {
            user,
            group,
            hard_link,
            extended,
        } = attributes;
        let numbers = [(USER, user), (GROUP, group), (HARD_LINK, hard_link)];
        let count = numbers
            .iter()
            .filter(|(_, number)| number.is_some())
            .count();
        out.varint((count + extended.len()) as u64);
        for (kind, number) in numbers {
            if let Some(number) = number {
                out.u8(kind);
                out.varint((*number).into());
            }
        }
        for (name, value) in extended {
            out.u8(EXTENDED);
            out.bytes(name);
            out.bytes(value);
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
                EntryKind::File { size, extents }
            }
            DIRECTORY => EntryKind::Directory,
            LINK => EntryKind::Link {
                target: path_of(rest.bytes()?),
            },
            _ => return Err(DecodeError::Invalid("kind").into()),
        };
        let attributes = attributes(&mut rest)?;
        rest.finish()?;
        Ok(Self {
            path,
            mode,
            modified,
            attributes,
            kind,
        })
    }
}

/// A path of any bytes.
fn path_of(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}

/// The attributes: all but the extended ones at most once, and before them.
fn attributes(rest: &mut Reader<'_>) -> Result<Option<Box<Attributes>>, DecodeError> {
    let count = rest.varint()?;
    if count == 0 {
        return Ok(None);
    }
    let mut attributes = Attributes::default();
    let mut last = 0;
    for _ in 0..count {
        let kind = rest.u8()?;
        if kind < last || kind == last && kind != EXTENDED {
            return Err(DecodeError::Invalid("order of attributes"));
        }
        last = kind;
        let number = |rest: &mut Reader<'_>| {
            let number = rest.varint()?;
            u32::try_from(number).map_err(|_| DecodeError::Invalid("number of an attribute"))
        };
        match kind {
            USER => attributes.user = Some(number(rest)?),
            GROUP => attributes.group = Some(number(rest)?),
            HARD_LINK => attributes.hard_link = Some(number(rest)?),
            EXTENDED => {
                let name = rest.bytes()?.to_vec();
                attributes.extended.push((name, rest.bytes()?.to_vec()));
            }
            _ => return Err(DecodeError::Invalid("attribute")),
        }
    }
    Ok(Some(Box::new(attributes)))
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
