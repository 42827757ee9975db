//! The memory for frames (UMEM): chunks of one size, each owned by this process or by the kernel.

use std::io;
use std::slice;

use rustix::net::xdp::{XdpUmemReg, XdpUmemRegFlags};

use crate::ring::Mapping;

/// Bytes that the kernel leaves free before a frame that it writes (`XDP_PACKET_HEADROOM`).
pub(crate) const HEADROOM: u32 = 256;

/// The memory for frames.
#[derive(Debug)]
pub(crate) struct Umem {
    memory: Mapping,
    chunk: u32,
}

impl Umem {
    /// Memory for `chunks` chunks of `chunk` bytes each, a power of two.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn new(chunks: u32, chunk: u32) -> io::Result<Self> {
        let memory = Mapping::anonymous(chunks as usize * chunk as usize)?;
        Ok(Self { memory, chunk })
    }

    /// What the kernel is given to register.
    pub(crate) fn registration(&self) -> XdpUmemReg {
        XdpUmemReg {
            addr: self.memory.start().as_ptr() as u64,
            len: self.memory.len() as u64,
            chunk_size: self.chunk,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        }
    }

    /// Where the chunk begins that `address` is in.
    pub(crate) fn chunk_of(&self, address: u64) -> u64 {
        address & !u64::from(self.chunk - 1)
    }

    /// The `len` bytes at `address`; `None` when they are not inside the memory.
    ///
    /// # Safety
    /// They must be in a chunk that this process owns while the slice exists: one that the kernel has
    /// returned, and that was not given to it again.
    pub(crate) unsafe fn bytes(&self, address: u64, len: u32) -> Option<&[u8]> {
        let start = self.place(address, len)?;
        // SAFETY: inside the mapping, which is initialised and lives as long as `self`; by the
        // caller's promise nobody writes it meanwhile.
        Some(unsafe { slice::from_raw_parts(start, len as usize) })
    }

    /// The chunk at `address`, to write a frame; `None` when it is not inside the memory.
    ///
    /// # Safety
    /// This process must own the chunk while the slice exists, and there must be no other slice of it.
    #[expect(clippy::mut_from_ref, reason = "chunks are disjoint; see Safety")]
    pub(crate) unsafe fn chunk_mut(&self, address: u64) -> Option<&mut [u8]> {
        let start = self.place(address, self.chunk)?;
        // SAFETY: inside the mapping, which is initialised and lives as long as `self`; by the
        // caller's promise nobody else has access to it meanwhile.
        Some(unsafe { slice::from_raw_parts_mut(start, self.chunk as usize) })
    }

    fn place(&self, address: u64, len: u32) -> Option<*mut u8> {
        let end = address.checked_add(len.into())?;
        if end > self.memory.len() as u64 {
            return None;
        }
        // SAFETY: `address` is inside the mapping, as just checked.
        Some(unsafe { self.memory.start().as_ptr().add(address as usize) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_outside_are_refused() {
        let umem = Umem::new(4, 2048).unwrap();
        // SAFETY: no kernel knows this memory, and no slice is kept.
        unsafe {
            assert_eq!(umem.bytes(8190, 2).unwrap(), [0; 2]);
            assert_eq!(umem.bytes(8190, 3), None);
            assert_eq!(umem.bytes(u64::MAX, 3), None);
            assert!(umem.chunk_mut(6144).is_some());
            assert!(umem.chunk_mut(6145).is_none());
        }
        assert_eq!(umem.chunk_of(2047 + 256), 2048);
    }
}
