//! The rings by which a process and the kernel hand frames to each other.
//!
//! Each ring has one producer and one consumer, and lies in memory that both see. Their indices count
//! up and wrap at 2^32; an index modulo the size of the ring is a place in it. The producer writes
//! entries before it stores its index, and the consumer reads them before it stores its own (stores
//! release, loads acquire), so that neither sees a half-written entry (Linux documentation,
//! networking/af_xdp).

use std::ffi::c_void;
use std::io;
use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use rustix::net::xdp::{XdpDesc, XdpRingOffset};

/// The flag by which the kernel asks for a system call (`XDP_RING_NEED_WAKEUP`).
const NEED_WAKEUP: u32 = 1;

/// Mapped memory, unmapped when this is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<c_void>,
    len: usize,
}

// SAFETY: any thread may use the memory of a mapping. Its functions that read and write are unsafe, and
// their callers answer for what is accessed at the same time.
unsafe impl Send for Mapping {}
// SAFETY: as above; the mapping itself only has its bounds.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// New memory, zeroed.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn anonymous(len: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place that the kernel chooses touches no memory in use.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), len, access, MapFlags::PRIVATE) }?;
        Self::new(start, len)
    }

    /// The `len` bytes at `offset` of what `fd` offers for mapping.
    ///
    /// # Errors
    /// When there are none.
    pub(crate) fn of(fd: impl AsFd, offset: u64, len: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at a place that the kernel chooses touches no memory in use.
        let start = unsafe { mmap(ptr::null_mut(), len, access, flags, fd, offset) }?;
        Self::new(start, len)
    }

    fn new(start: *mut c_void, len: usize) -> io::Result<Self> {
        // The kernel never maps at address 0 unless asked to.
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len })
    }

    /// Where the mapping begins.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start.cast()
    }

    /// Bytes of the mapping.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The place of `count` values of type `T` at `offset`.
    ///
    /// # Panics
    /// When they are not inside the mapping, or not aligned.
    fn at<T>(&self, offset: u64, count: usize) -> NonNull<T> {
        let end = (count.checked_mul(size_of::<T>()))
            .and_then(|bytes| bytes.checked_add(usize::try_from(offset).ok()?));
        assert!(
            end.is_some_and(|end| end <= self.len) && offset.is_multiple_of(align_of::<T>() as u64),
            "the kernel names a place outside of its own ring"
        );
        // SAFETY: the place is inside the mapping, as just checked.
        unsafe { self.start.cast::<u8>().add(offset as usize).cast() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: all pointers into the memory belong to values that own the mapping, so none is used
        // any more.
        let _ = unsafe { munmap(self.start.as_ptr(), self.len) };
    }
}

/// What is in a ring.
///
/// # Safety
/// Any bits must be a valid value.
pub(crate) unsafe trait Entry: Copy + Send {}

// SAFETY: a number.
unsafe impl Entry for u64 {}
// SAFETY: three numbers.
unsafe impl Entry for XdpDesc {}

/// What both ends of a ring see.
#[derive(Debug)]
struct Ring<T> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    /// Entries of the ring, a power of two.
    size: u32,
    /// Keeps the memory.
    _mapping: Arc<Mapping>,
    _entries: PhantomData<T>,
}

// SAFETY: the pointers lead into the mapping, which the ring keeps; indices and flags are atomic,
// and entries are touched by the one end whose turn it is.
unsafe impl<T: Entry> Send for Ring<T> {}

impl<T: Entry> Ring<T> {
    /// # Panics
    /// When the ring is not inside `mapping`, or `size` is no power of two.
    fn new(mapping: Arc<Mapping>, offsets: &XdpRingOffset, size: u32) -> Self {
        assert!(size.is_power_of_two(), "{size} entries");
        Self {
            producer: mapping.at(offsets.producer, 1),
            consumer: mapping.at(offsets.consumer, 1),
            // Kernels before 5.4 have no flags; they cannot do what else is needed here either.
            flags: mapping.at(offsets.flags.unwrap_or(offsets.producer), 1),
            entries: mapping.at(offsets.desc, size as usize),
            size,
            _mapping: mapping,
            _entries: PhantomData,
        }
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: an aligned place inside the mapping, which lives as long as `self`; all access to
        // it is atomic.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as for `producer`.
        unsafe { self.consumer.as_ref() }
    }

    fn flags(&self) -> &AtomicU32 {
        // SAFETY: as for `producer`.
        unsafe { self.flags.as_ref() }
    }

    /// The place of the entry with this index.
    fn entry(&self, index: u32) -> *mut T {
        // SAFETY: the remainder is below `size`, and `size` entries are inside the mapping.
        unsafe {
            self.entries
                .as_ptr()
                .add((index & (self.size - 1)) as usize)
        }
    }
}

/// The end of a ring that adds entries.
#[derive(Debug)]
pub(crate) struct Producer<T> {
    ring: Ring<T>,
    /// The index of the next entry; those before it may not be published yet.
    next: u32,
    /// The consumer's index, as last read.
    consumed: u32,
}

impl<T: Entry> Producer<T> {
    /// The end of the ring of `size` entries at `offsets` of `mapping`. There must be no other.
    ///
    /// # Panics
    /// When the ring is not inside `mapping`, or `size` is no power of two.
    pub(crate) fn new(mapping: Arc<Mapping>, offsets: &XdpRingOffset, size: u32) -> Self {
        let ring = Ring::new(mapping, offsets, size);
        let next = ring.producer().load(Ordering::Relaxed);
        let consumed = ring.consumer().load(Ordering::Acquire);
        Self {
            ring,
            next,
            consumed,
        }
    }

    /// How many entries can be added.
    pub(crate) fn room(&mut self) -> u32 {
        self.consumed = self.ring.consumer().load(Ordering::Acquire);
        // A consumer never overtakes the producer; if it did, there would be no room.
        self.ring
            .size
            .saturating_sub(self.next.wrapping_sub(self.consumed))
    }

    /// Adds an entry, which the consumer sees when it is [published](Self::publish). `false`, and
    /// nothing is added, when the ring is full.
    pub(crate) fn push(&mut self, entry: T) -> bool {
        if self.next.wrapping_sub(self.consumed) >= self.ring.size && self.room() == 0 {
            return false;
        }
        // SAFETY: the place is inside the ring, and it is the producer's: the consumer has consumed
        // what was there, and reads it again only after the next `publish`.
        unsafe { self.ring.entry(self.next).write(entry) };
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Shows the consumer all entries added so far.
    pub(crate) fn publish(&mut self) {
        self.ring.producer().store(self.next, Ordering::Release);
    }

    /// Published entries that the consumer has not consumed.
    pub(crate) fn pending(&self) -> u32 {
        let published = self.ring.producer().load(Ordering::Relaxed);
        published.wrapping_sub(self.ring.consumer().load(Ordering::Acquire))
    }

    /// Whether the kernel wants a system call before it looks at what is published.
    pub(crate) fn needs_wakeup(&self) -> bool {
        // The kernel sets the flag, then looks at the ring once more; here entries are published, then
        // the flag is read. Without the fence both could miss the other's store.
        fence(Ordering::SeqCst);
        self.ring.flags().load(Ordering::Relaxed) & NEED_WAKEUP != 0
    }
}

/// The end of a ring that takes entries.
#[derive(Debug)]
pub(crate) struct Consumer<T> {
    ring: Ring<T>,
    /// The index of the next entry; those before it may not be released yet.
    next: u32,
    /// The producer's index, as last read.
    produced: u32,
}

impl<T: Entry> Consumer<T> {
    /// The end of the ring of `size` entries at `offsets` of `mapping`. There must be no other.
    ///
    /// # Panics
    /// When the ring is not inside `mapping`, or `size` is no power of two.
    pub(crate) fn new(mapping: Arc<Mapping>, offsets: &XdpRingOffset, size: u32) -> Self {
        let ring = Ring::new(mapping, offsets, size);
        let next = ring.consumer().load(Ordering::Relaxed);
        Self {
            ring,
            next,
            produced: next,
        }
    }

    /// The next entry, which stays there; `None` when there is none.
    pub(crate) fn peek(&mut self) -> Option<T> {
        if self.next == self.produced {
            self.produced = self.ring.producer().load(Ordering::Acquire);
            if self.next == self.produced {
                return None;
            }
        }
        // SAFETY: the place is inside the ring, the producer has published it, and writes it again
        // only after the next `release`. Any bits are a valid `T`.
        Some(unsafe { self.ring.entry(self.next).read() })
    }

    /// Takes the entry that was last [seen](Self::peek). Its place is the producer's again when it is
    /// [released](Self::release).
    pub(crate) fn advance(&mut self) {
        if self.next != self.produced {
            self.next = self.next.wrapping_add(1);
        }
    }

    /// Gives the places of all entries taken so far back to the producer.
    pub(crate) fn release(&mut self) {
        self.ring.consumer().store(self.next, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    const OFFSETS: XdpRingOffset = XdpRingOffset {
        producer: 0,
        consumer: 64,
        desc: 192,
        flags: Some(128),
    };

    /// Both ends of a ring whose indices begin at `start`.
    fn ends(size: u32, start: u32) -> (Producer<u64>, Consumer<u64>) {
        let mapping = Arc::new(Mapping::anonymous(192 + 8 * size as usize).unwrap());
        let ring = Ring::<u64>::new(Arc::clone(&mapping), &OFFSETS, size);
        ring.producer().store(start, Ordering::Relaxed);
        ring.consumer().store(start, Ordering::Relaxed);
        let producer = Producer::new(Arc::clone(&mapping), &OFFSETS, size);
        (producer, Consumer::new(mapping, &OFFSETS, size))
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push(u64),
        Publish,
        Take,
        Release,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => any::<u64>().prop_map(Step::Push),
            1 => Just(Step::Publish),
            4 => Just(Step::Take),
            1 => Just(Step::Release),
        ]
    }

    proptest! {
        /// Whatever both ends do, and wherever the indices wrap: what is published arrives in order,
        /// nothing else does, and places are not reused before they are released.
        #[test]
        fn entries_arrive_once_and_in_order(
            bits in 0u32..5,
            start in prop_oneof![Just(0), Just(u32::MAX), Just(u32::MAX - 5), any::<u32>()],
            steps in prop::collection::vec(step(), 0..400),
        ) {
            let size = 1 << bits;
            let (mut producer, mut consumer) = ends(size, start);
            let mut pushed = VecDeque::new();
            let mut published = VecDeque::new();
            let mut unreleased = 0;
            for step in steps {
                let used = pushed.len() + published.len() + unreleased;
                prop_assert_eq!(producer.room() as usize, size as usize - used);
                prop_assert_eq!(producer.pending() as usize, published.len() + unreleased);
                match step {
                    Step::Push(value) => {
                        let fits = used < size as usize;
                        prop_assert_eq!(producer.push(value), fits);
                        if fits {
                            pushed.push_back(value);
                        }
                    }
                    Step::Publish => {
                        producer.publish();
                        published.append(&mut pushed);
                    }
                    Step::Take => {
                        prop_assert_eq!(consumer.peek(), published.front().copied());
                        prop_assert_eq!(consumer.peek(), published.front().copied());
                        consumer.advance();
                        unreleased += usize::from(published.pop_front().is_some());
                    }
                    Step::Release => {
                        consumer.release();
                        unreleased = 0;
                    }
                }
            }
        }
    }

    #[test]
    fn entries_cross_threads() {
        const COUNT: u64 = 200_000;
        let (mut producer, mut consumer) = ends(64, u32::MAX - 100);
        let other = std::thread::spawn(move || {
            for value in 0..COUNT {
                while !producer.push(value) {
                    producer.publish();
                    std::thread::yield_now();
                }
            }
            producer.publish();
        });
        for expected in 0..COUNT {
            loop {
                if let Some(value) = consumer.peek() {
                    assert_eq!(value, expected);
                    consumer.advance();
                    break;
                }
                consumer.release();
                std::thread::yield_now();
            }
        }
        other.join().unwrap();
        assert_eq!(consumer.peek(), None);
    }

    #[test]
    fn the_kernels_wish_for_a_call_is_seen() {
        let (producer, _consumer) = ends(4, 0);
        assert!(!producer.needs_wakeup());
        producer.ring.flags().store(NEED_WAKEUP, Ordering::Relaxed);
        assert!(producer.needs_wakeup());
    }

    #[test]
    #[should_panic(expected = "outside of its own ring")]
    fn rings_outside_of_their_memory_are_refused() {
        let mapping = Arc::new(Mapping::anonymous(4096).unwrap());
        Ring::<u64>::new(mapping, &OFFSETS, 4096);
    }
}
