//! The fields of an `Entry` message.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::{Entry, Extent, Kind, ManifestError, Modified};

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
        out.push(match self.kind {
            Kind::File { .. } => FILE,
            Kind::Directory => DIRECTORY,
            Kind::Link { .. } => LINK,
        });
        put_path(out, &self.path);
        put_varint(out, self.mode.into());
        out.extend(self.modified.seconds.to_be_bytes());
        out.extend(self.modified.nanoseconds.to_be_bytes());
        match &self.kind {
            Kind::File { size, extents } => {
                put_varint(out, *size);
                put_varint(out, extents.len() as u64);
                let mut end = 0;
                for extent in extents {
                    put_varint(out, extent.offset - end);
                    put_varint(out, extent.length);
                    end = extent.end();
                }
            }
            Kind::Directory => {}
            Kind::Link { target } => put_path(out, target),
        }
    }

    /// Reads the fields of an `Entry` message. Whether they are valid is up to the
    /// [`ManifestBuilder`](super::ManifestBuilder).
    ///
    /// # Errors
    /// [`ManifestError::Malformed`] and the like, if `fields` are not those of one entry.
    pub fn decode(fields: &[u8]) -> Result<Self, ManifestError> {
        let mut rest = Reader(fields);
        let [kind] = rest.array()?;
        let path = rest.path()?;
        let mode = rest.varint()?;
        let Ok(mode) = u32::try_from(mode) else {
            return Err(ManifestError::Mode { path, mode });
        };
        let modified = Modified {
            seconds: i64::from_be_bytes(rest.array()?),
            nanoseconds: u32::from_be_bytes(rest.array()?),
        };
        let kind = match kind {
            FILE => {
                let size = rest.varint()?;
                let extents = rest.extents()?;
                let Some(extents) = extents else {
                    return Err(ManifestError::Extents(path));
                };
                Kind::File { size, extents }
            }
            DIRECTORY => Kind::Directory,
            LINK => Kind::Link {
                target: rest.path()?,
            },
            _ => return Err(ManifestError::Malformed("its kind is unknown")),
        };
        match rest.0 {
            [] => Ok(Self {
                path,
                mode,
                modified,
                kind,
            }),
            _ => Err(ManifestError::Malformed("it has bytes behind its end")),
        }
    }
}

fn put_path(out: &mut Vec<u8>, path: &Path) {
    let bytes = path.as_os_str().as_bytes();
    put_varint(out, bytes.len() as u64);
    out.extend(bytes);
}

/// RFC 9000, section 16.
fn put_varint(out: &mut Vec<u8>, value: u64) {
    match value {
        0..0x40 => out.push(value as u8),
        0x40..0x4000 => out.extend((value as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend((value as u32 | 0x8000_0000).to_be_bytes()),
        0x4000_0000..0x4000_0000_0000_0000 => {
            out.extend((value | 0xc000_0000_0000_0000).to_be_bytes())
        }
        _ => unreachable!("{value} does not fit a varint"),
    }
}

/// The bytes not read yet.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: u64) -> Result<&'a [u8], ManifestError> {
        let length = usize::try_from(length).ok();
        let split = length.and_then(|length| self.0.split_at_checked(length));
        let (taken, rest) = split.ok_or(ManifestError::Malformed("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ManifestError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64)?);
        Ok(array)
    }

    fn varint(&mut self) -> Result<u64, ManifestError> {
        let [first] = self.array()?;
        let more = self.take((1 << (first >> 6)) - 1)?;
        let first = u64::from(first & 0x3f);
        Ok(more
            .iter()
            .fold(first, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn path(&mut self) -> Result<PathBuf, ManifestError> {
        let length = self.varint()?;
        let bytes = self.take(length)?.to_vec();
        Ok(OsString::from_vec(bytes).into())
    }

    /// The extents; `None` if they overflow.
    fn extents(&mut self) -> Result<Option<Vec<Extent>>, ManifestError> {
        let count = self.varint()?;
        // Each has two bytes at least.
        if count > self.0.len() as u64 / 2 {
            return Err(ManifestError::Malformed("it ends too early"));
        }
        let mut extents = Vec::with_capacity(count as usize);
        let mut end = 0u64;
        for _ in 0..count {
            let (hole, length) = (self.varint()?, self.varint()?);
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
}
