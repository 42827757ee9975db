//! What the ELF headers of a program or library say of the libraries that it needs (System V ABI, chapters
//! 4 and 5). Reads the few parts of the file that say so.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Size of the file header and of a program header of 64 bits, in bytes.
const FILE_HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
/// Most program headers; programs have about 12.
const MAX_SEGMENTS: u16 = 256;
/// Largest dynamic section in bytes; that of a program has about 600.
const MAX_DYNAMIC: u64 = 64 << 10;
/// Longest name of a library, of an interpreter, or of a list of folders, in bytes.
const MAX_NAME: usize = 4096;
/// Most libraries that one file names.
const MAX_NEEDED: usize = 256;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

/// The reason why a file cannot be examined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElfError {
    /// It is something else.
    #[error("it is not an ELF file")]
    NotElf,
    /// It is for machines of another kind than those with images.
    #[error("ELF files of 32 bits or with the most significant byte first are not supported yet")]
    Class,
    /// It is for a processor that has no name in images here.
    #[error("the processor {0} of its ELF header is not supported yet")]
    Machine(u16),
    /// Its headers are damaged.
    #[error("its {0} is damaged")]
    Damaged(&'static str),
    /// It cannot be read.
    #[error("{0}")]
    Io(String),
}

/// A processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Machine {
    X86_64,
    Aarch64,
    Riscv64,
    LoongArch64,
    Ppc64Le,
}

impl Machine {
    /// By the number in the ELF header.
    fn of(number: u16) -> Result<Self, ElfError> {
        Ok(match number {
            21 => Self::Ppc64Le,
            62 => Self::X86_64,
            183 => Self::Aarch64,
            243 => Self::Riscv64,
            258 => Self::LoongArch64,
            other => return Err(ElfError::Machine(other)),
        })
    }

    /// Its name in images, which is that of Go.
    pub fn architecture(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
            Self::Riscv64 => "riscv64",
            Self::LoongArch64 => "loong64",
            Self::Ppc64Le => "ppc64le",
        }
    }

    /// Its name in folders of libraries, as Debian's `/usr/lib/x86_64-linux-gnu`.
    pub fn folder(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-linux-gnu",
            Self::Aarch64 => "aarch64-linux-gnu",
            Self::Riscv64 => "riscv64-linux-gnu",
            Self::LoongArch64 => "loongarch64-linux-gnu",
            Self::Ppc64Le => "powerpc64le-linux-gnu",
        }
    }
}

/// What the headers say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Headers {
    pub machine: Machine,
    /// The path of the dynamic linker; only programs have one.
    pub interpreter: Option<String>,
    /// The names of the libraries that it needs, in its order.
    pub needed: Vec<String>,
    /// The folders, separated by `:`, in which libraries are searched, also those that its libraries need.
    pub rpath: Option<String>,
    /// The folders, separated by `:`, in which its own libraries are searched. Voids `rpath`.
    pub runpath: Option<String>,
}

/// Bytes that are read at any place.
pub(crate) trait Source {
    /// Up to `length` bytes from `offset` on: fewer at the end.
    fn read_at(&self, offset: u64, length: usize) -> io::Result<Vec<u8>>;
}

impl Source for [u8] {
    fn read_at(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.get(offset..).unwrap_or_default();
        Ok(rest[..length.min(rest.len())].to_vec())
    }
}

impl Source for File {
    fn read_at(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        let mut count = 0;
        while count < length {
            let at = offset.saturating_add(count as u64);
            // The system refuses offsets that no file has.
            let Ok(at) = i64::try_from(at) else { break };
            match FileExt::read_at(self, &mut bytes[count..], at.cast_unsigned()) {
                Ok(0) => break,
                Ok(more) => count += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(count);
        Ok(bytes)
    }
}

/// A part of the file, and of memory.
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

impl Headers {
    /// Reads the headers.
    ///
    /// # Errors
    /// [`ElfError`]: when the file is not an ELF file of 64 bits for one of the [`Machine`]s, or damaged.
    pub fn read(source: &(impl Source + ?Sized)) -> Result<Self, ElfError> {
        let header = read(source, 0, FILE_HEADER)?;
        if !header.starts_with(b"\x7fELF") {
            return Err(ElfError::NotElf);
        }
        // 64 bits, least significant byte first.
        if header.get(4..6) != Some(&[2, 1]) {
            return Err(ElfError::Class);
        }
        let damaged = || ElfError::Damaged("file header");
        let machine = Machine::of(u16_at(&header, 18).ok_or_else(damaged)?)?;
        let segments = segments(source, &header)?;
        let mut headers = Self {
            machine,
            interpreter: None,
            needed: Vec::new(),
            rpath: None,
            runpath: None,
        };
        let find = |kind| segments.iter().find(|segment| segment.kind == kind);
        if let Some(segment) = find(PT_INTERP) {
            let path = text(source, segment.offset, "interpreter")?;
            if !path.starts_with('/') {
                return Err(ElfError::Damaged("interpreter"));
            }
            headers.interpreter = Some(path);
        }
        if let Some(segment) = find(PT_DYNAMIC) {
            headers.read_dynamic(source, segment, &segments)?;
        }
        Ok(headers)
    }

    fn read_dynamic(
        &mut self,
        source: &(impl Source + ?Sized),
        dynamic: &Segment,
        segments: &[Segment],
    ) -> Result<(), ElfError> {
        const DYNAMIC: ElfError = ElfError::Damaged("dynamic section");
        if dynamic.size > MAX_DYNAMIC {
            return Err(DYNAMIC);
        }
        let length = usize::try_from(dynamic.size).map_err(|_| DYNAMIC)?;
        let bytes = read(source, dynamic.offset, length)?;
        let entries = bytes.chunks_exact(16);
        let entries = entries.filter_map(|entry| Some((u64_at(entry, 0)?, u64_at(entry, 8)?)));
        let entries: Vec<(u64, u64)> = entries.take_while(|(tag, _)| *tag != DT_NULL).collect();
        let strings = entries.iter().find(|(tag, _)| *tag == DT_STRTAB);
        for (tag, value) in &entries {
            if ![DT_NEEDED, DT_RPATH, DT_RUNPATH].contains(tag) {
                continue;
            }
            let &(_, table) = strings.ok_or(DYNAMIC)?;
            let address = table.checked_add(*value).ok_or(DYNAMIC)?;
            let offset = offset_of(address, segments).ok_or(DYNAMIC)?;
            let name = text(source, offset, "table of names")?;
            match *tag {
                DT_NEEDED if self.needed.len() == MAX_NEEDED => return Err(DYNAMIC),
                // It becomes the name of a file: glibc takes one with a slash as a path.
                DT_NEEDED if name.is_empty() || name.contains('/') => return Err(DYNAMIC),
                DT_NEEDED => self.needed.push(name),
                DT_RPATH => self.rpath = Some(name),
                _ => self.runpath = Some(name),
            }
        }
        Ok(())
    }
}

fn segments(source: &(impl Source + ?Sized), header: &[u8]) -> Result<Vec<Segment>, ElfError> {
    const TABLE: ElfError = ElfError::Damaged("table of program headers");
    let offset = u64_at(header, 32).ok_or(TABLE)?;
    let size = usize::from(u16_at(header, 54).ok_or(TABLE)?);
    let count = u16_at(header, 56).ok_or(TABLE)?;
    if count > 0 && size != PROGRAM_HEADER || count > MAX_SEGMENTS {
        return Err(TABLE);
    }
    let length = usize::from(count) * PROGRAM_HEADER;
    let table = read(source, offset, length)?;
    if table.len() < length {
        return Err(TABLE);
    }
    let segment = |entry: &[u8]| {
        Some(Segment {
            kind: u32_at(entry, 0)?,
            offset: u64_at(entry, 8)?,
            address: u64_at(entry, 16)?,
            size: u64_at(entry, 32)?,
        })
    };
    Ok(table
        .chunks_exact(PROGRAM_HEADER)
        .filter_map(segment)
        .collect())
}

/// The place in the file of what is loaded at an address.
fn offset_of(address: u64, segments: &[Segment]) -> Option<u64> {
    let loaded = segments.iter().filter(|segment| segment.kind == PT_LOAD);
    loaded.into_iter().find_map(|segment| {
        let inside = address.checked_sub(segment.address)?;
        let offset = segment.offset.checked_add(inside)?;
        (inside < segment.size).then_some(offset)
    })
}

/// A text that ends with a zero byte.
fn text(
    source: &(impl Source + ?Sized),
    offset: u64,
    part: &'static str,
) -> Result<String, ElfError> {
    let bytes = read(source, offset, MAX_NAME)?;
    let end = bytes.iter().position(|byte| *byte == 0);
    let text = end.and_then(|end| std::str::from_utf8(&bytes[..end]).ok());
    Ok(text.ok_or(ElfError::Damaged(part))?.to_owned())
}

fn read(source: &(impl Source + ?Sized), offset: u64, length: usize) -> Result<Vec<u8>, ElfError> {
    let bytes = source.read_at(offset, length);
    bytes.map_err(|error| ElfError::Io(error.to_string()))
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes_at(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes_at(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes_at(bytes, at).map(u64::from_le_bytes)
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
