//! Reads and writes of one file from and into several buffers, in few system calls.

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};

use rustix::io::{Errno, preadv, pwritev};

/// Most buffers of one system call (`IOV_MAX`).
const MAX_BUFFERS: usize = 1024;

/// Writes all of `buffers` to `file`, one behind the other, from `offset` on.
///
/// # Errors
/// If the disk is full or the file cannot be written.
pub(crate) fn write_all(
    file: &File,
    mut buffers: &mut [IoSlice<'_>],
    mut offset: u64,
) -> io::Result<()> {
    // Leaves out empty buffers, so that a write of no byte is an error.
    IoSlice::advance_slices(&mut buffers, 0);
    while !buffers.is_empty() {
        match pwritev(file, &buffers[..buffers.len().min(MAX_BUFFERS)], offset) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => {
                IoSlice::advance_slices(&mut buffers, written);
                offset += written as u64;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Fills `buffers` with the bytes of `file` from `offset` on.
///
/// # Errors
/// If the file is too short or cannot be read.
pub(crate) fn read_exact(
    file: &File,
    mut buffers: &mut [IoSliceMut<'_>],
    mut offset: u64,
) -> io::Result<()> {
    IoSliceMut::advance_slices(&mut buffers, 0);
    while !buffers.is_empty() {
        let most = buffers.len().min(MAX_BUFFERS);
        match preadv(file, &mut buffers[..most], offset) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                IoSliceMut::advance_slices(&mut buffers, read);
                offset += read as u64;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Buffers from whose front bytes are taken.
#[derive(Debug)]
pub(crate) struct Parts<'a, B> {
    parts: std::slice::Iter<'a, B>,
    rest: &'a [u8],
}

impl<'a, B: AsRef<[u8]>> Parts<'a, B> {
    pub fn new(parts: &'a [B]) -> Self {
        Self {
            parts: parts.iter(),
            rest: &[],
        }
    }

    /// Takes the next `length` bytes, or all if there are fewer.
    pub fn take(&mut self, mut length: u64) -> Vec<IoSlice<'a>> {
        let mut taken = Vec::new();
        while length > 0 {
            if self.rest.is_empty() {
                match self.parts.next() {
                    Some(part) => self.rest = part.as_ref(),
                    None => break,
                }
            }
            let most = self
                .rest
                .len()
                .min(usize::try_from(length).unwrap_or(usize::MAX));
            let (part, rest) = self.rest.split_at(most);
            taken.push(IoSlice::new(part));
            self.rest = rest;
            length -= most as u64;
        }
        taken
    }
}

/// The same for buffers that are written to.
#[derive(Debug)]
pub(crate) struct PartsMut<'a, 'b> {
    parts: std::slice::IterMut<'a, &'b mut [u8]>,
    rest: &'a mut [u8],
}

impl<'a, 'b> PartsMut<'a, 'b> {
    pub fn new(parts: &'a mut [&'b mut [u8]]) -> Self {
        Self {
            parts: parts.iter_mut(),
            rest: &mut [],
        }
    }

    /// Takes the next `length` bytes, or all if there are fewer.
    pub fn take(&mut self, mut length: u64) -> Vec<IoSliceMut<'a>> {
        let mut taken = Vec::new();
        while length > 0 {
            if self.rest.is_empty() {
                match self.parts.next() {
                    Some(part) => self.rest = part,
                    None => break,
                }
            }
            let most = self
                .rest
                .len()
                .min(usize::try_from(length).unwrap_or(usize::MAX));
            let (part, rest) = std::mem::take(&mut self.rest).split_at_mut(most);
            taken.push(IoSliceMut::new(part));
            self.rest = rest;
            length -= most as u64;
        }
        taken
    }
}
