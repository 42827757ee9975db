//! Receiving many datagrams in one call.

use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::os::fd::AsRawFd;

use hawser_kernel::socket::{address, checked, control_message};

/// Maximum number of buffers that one call fills. Each holds up to 64 KiB of merged datagrams.
pub(crate) const SLOTS: usize = 256;
const SLOT: usize = 1 << 16;
/// Distance between the starts of two slots. At a power of two, the headers in all slots would
/// compete for the same few lines of the CPU cache.
const PITCH: usize = SLOT + 1536;

/// Room for the one control message that is requested: a UDP_GRO of one c_int.
type Control = [u64; 8];

/// The number of bytes to receive at once: more would no longer be in the nearest CPU cache when they
/// are sent.
const RECEIVE_BYTES: usize = SLOT;
/// The same where they arrive in many small batches, of many flows mostly. What is received of one flow
/// at once leaves as one batch, which spares this router, and every other process on the way, more than
/// the cache does.
const GATHERED_BYTES: usize = 1 << 20;
/// As many times as many slots are filled next, at most, but for this many.
const GROWTH: usize = 4;
const LEAST_SLOTS: usize = 16;
/// The most bytes of a small batch.
const SMALL: usize = SLOT / 4;

/// What one call has received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Received {
    /// The number of slots that were filled.
    pub count: usize,
    bytes: usize,
    /// Whether there may be more to receive.
    pub more: bool,
}

impl Received {
    /// How many slots the next call fills, after one in which this was received, which were `batches` of
    /// packets of a flow each: many while packets arrive one by one or in small batches, of which a slot may
    /// hold several; one while they arrive in large ones.
    pub fn slots_to_fill(&self, batches: usize) -> usize {
        let wanted = match self.bytes <= batches * SMALL {
            true => GATHERED_BYTES,
            false => RECEIVE_BYTES,
        };
        // A slot that stays empty costs some time too.
        let most = (self.count * GROWTH).clamp(LEAST_SLOTS, SLOTS);
        (wanted * self.count / self.bytes.max(1)).clamp(1, most)
    }
}

/// Buffers for the datagrams of one call.
pub(crate) struct Inbox {
    /// The bytes of all slots.
    pub data: Vec<u8>,
    slots: [Slot; SLOTS],
}

#[derive(Clone, Copy)]
struct Slot {
    length: usize,
    /// Length of each datagram but the last, which may be shorter.
    stride: usize,
    from: libc::sockaddr_storage,
}

impl Inbox {
    pub fn new() -> Self {
        Self {
            data: vec![0; SLOTS * PITCH],
            // SAFETY: plain data, for which all zeros is a value.
            slots: unsafe { std::mem::zeroed() },
        }
    }

    /// Receives from `socket` into at most `wanted` slots.
    ///
    /// # Errors
    /// The error of the system; `WouldBlock` when nothing has arrived.
    pub fn receive(&mut self, socket: &UdpSocket, wanted: usize) -> io::Result<Received> {
        // Uninitialised, as mostly few of them are used.
        let mut control = [const { MaybeUninit::<Control>::uninit() }; SLOTS];
        let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; SLOTS];
        let mut heads = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; SLOTS];
        for (i, buffer) in self.data.chunks_exact_mut(PITCH).take(wanted).enumerate() {
            let vector = vectors[i].write(libc::iovec {
                iov_base: buffer.as_mut_ptr().cast(),
                iov_len: SLOT,
            });
            // SAFETY: plain data, for which all zeros is a value.
            let head = heads[i].write(unsafe { std::mem::zeroed() });
            let head = &mut head.msg_hdr;
            head.msg_name = (&raw mut self.slots[i].from).cast();
            head.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            head.msg_iov = vector;
            head.msg_iovlen = 1;
            head.msg_control = control[i].as_mut_ptr().cast();
            head.msg_controllen = size_of::<Control>() as _;
        }
        // SAFETY: the first `wanted` of `heads` are initialised, and every pointer in them is to
        // memory that lives until the end of this function, with its true length.
        let count = checked(unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                heads.as_mut_ptr().cast(),
                wanted as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        })?;
        for (slot, head) in self.slots.iter_mut().zip(&heads).take(count) {
            // SAFETY: the kernel fills in only entries that it was given.
            let head = unsafe { head.assume_init_ref() };
            slot.length = head.msg_len as usize;
            slot.stride = stride(&head.msg_hdr).unwrap_or(slot.length).max(1);
        }
        Ok(Received {
            count,
            bytes: self.slots[..count].iter().map(|slot| slot.length).sum(),
            more: count == wanted,
        })
    }

    /// Gives the memory of all slots back to the system until they are used again.
    pub fn release(&mut self) {
        let page = rustix::param::page_size();
        let skipped = self.data.as_ptr().align_offset(page);
        let Some(pages) = self.data.get_mut(skipped..) else {
            return;
        };
        let length = pages.len() - pages.len() % page;
        // SAFETY: the pages are private memory of this program, borrowed here alone, and nothing but whole
        // pages of it. They read as zeros afterwards, which are values of their type.
        let released =
            unsafe { libc::madvise(pages.as_mut_ptr().cast(), length, libc::MADV_DONTNEED) };
        // They only stay in use otherwise.
        if let Err(error) = checked(released) {
            tracing::debug!(%error, "cannot release receive buffers");
        }
    }

    /// The ranges of the datagrams of slot `slot` in [`data`](Self::data).
    pub fn datagrams(&self, slot: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let Slot { length, stride, .. } = self.slots[slot];
        let start = slot * PITCH;
        let end = start + length;
        // An empty datagram is a datagram too.
        (0..length.div_ceil(stride).max(1)).map(move |i| {
            let at = start + i * stride;
            at..(at + stride).min(end)
        })
    }

    /// The source of the datagrams of slot `slot`.
    pub fn from(&self, slot: usize) -> Option<SocketAddr> {
        address(&self.slots[slot].from)
    }
}

/// The length of the merged datagrams, if the kernel merged any.
fn stride(head: &libc::msghdr) -> Option<usize> {
    // SAFETY: recvmmsg has filled the header in, and its control messages are still there.
    let size: libc::c_int = unsafe { control_message(head, libc::SOL_UDP, libc::UDP_GRO) }?;
    usize::try_from(size).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slots that are filled after `count` were, with `bytes` in `batches`.
    fn slots_to_fill(count: usize, bytes: usize, batches: usize) -> usize {
        let received = Received {
            count,
            bytes,
            more: true,
        };
        received.slots_to_fill(batches)
    }

    #[test]
    fn small_batches_are_gathered() {
        // One batch is all that is received at once where batches are large.
        assert_eq!(slots_to_fill(1, SLOT - 1000, 1), 1);
        assert_eq!(slots_to_fill(2, SLOT, 2), 2);
        // More is gathered where they are just a little smaller.
        let sizes = [SMALL + 1, SMALL].map(|size| slots_to_fill(20, 20 * size, 20));
        assert_eq!(sizes, [3, GATHERED_BYTES / SMALL]);
        assert_eq!(slots_to_fill(100, 100 * 100, 100), SLOTS);
        // Empty datagrams.
        assert_eq!(slots_to_fill(100, 0, 100), SLOTS);
    }

    #[test]
    fn small_batches_that_arrive_in_one_slot_are_gathered() {
        let slots = [1, 2, 4, 16].map(|batches| slots_to_fill(2, 2 * SLOT, 2 * batches));
        assert_eq!(slots, [1, 1, LEAST_SLOTS, LEAST_SLOTS]);
    }

    #[test]
    fn few_packets_do_not_fill_many_slots() {
        assert_eq!(slots_to_fill(1, 100, 1), LEAST_SLOTS);
        assert_eq!(slots_to_fill(10, 10 * 100, 10), 10 * GROWTH);
    }

    #[test]
    fn released_slots_are_used_again() {
        let bind = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let (sender, receiver) = (bind(), bind());
        let to = receiver.local_addr().unwrap();
        let page = rustix::param::page_size();
        let (mut inbox, packet) = (Inbox::new(), vec![7; 3 * page]);
        for _ in 0..2 {
            // Loopback has delivered it when the call returns.
            sender.send_to(&packet, to).unwrap();
            let received = inbox.receive(&receiver, SLOTS).unwrap();
            assert_eq!((received.count, received.more), (1, false));
            let range = inbox.datagrams(0).next().unwrap();
            assert_eq!(inbox.data[range.clone()], packet);
            inbox.release();
            // The pages are gone, and with them what was in them.
            let pages = range.start + page..range.end - page;
            assert!(inbox.data[pages].iter().all(|byte| *byte == 0));
        }
    }
}
