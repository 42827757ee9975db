//! Writing captures in the pcapng format (draft-ietf-opsawg-pcapng).

use std::io::{self, Write};
use std::time::Duration;

/// Maximum number of bytes kept of a frame: more than the largest super-packet of segmentation
/// offload, and the default of tcpdump.
pub const SNAP_LENGTH: u32 = 262_144;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
/// The magic number from which readers detect the byte order.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// LINKTYPE_ETHERNET.
const ETHERNET: u16 = 1;
/// The value for a section of unknown length.
const UNKNOWN_LENGTH: u64 = u64::MAX;

const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;

/// One frame on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Time since the Unix epoch.
    pub time: Duration,
    /// Whether the interface sent the frame or, if `false`, received it.
    pub outgoing: bool,
    /// The length of the complete frame in bytes, also if it exceeds [`SNAP_LENGTH`] and `data` is
    /// truncated.
    pub length: u32,
    /// The Ethernet frame, without its checksum.
    pub data: &'a [u8],
}

/// The interface of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureInterface {
    /// The device in the AS's namespace.
    pub device: String,
    /// The captured interface, as `1-ff00:0:110#1`.
    pub near: String,
    /// The interface at the other end of the link.
    pub far: String,
}

/// Writes the frames of one interface, with times in nanoseconds.
#[derive(Debug)]
pub struct CaptureWriter<W> {
    to: W,
    /// Maximum number of bytes kept of a frame.
    snap_length: u32,
    frames: u64,
    block: Vec<u8>,
}

impl<W: Write> CaptureWriter<W> {
    /// Starts a file that keeps up to `snap_length` bytes of each frame.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(to: W, interface: &CaptureInterface, snap_length: u32) -> io::Result<Self> {
        let mut writer = Self {
            to,
            snap_length,
            frames: 0,
            block: Vec::new(),
        };
        writer.write(SECTION_HEADER, |block| {
            block.extend(BYTE_ORDER.to_le_bytes());
            block.extend(1u16.to_le_bytes());
            block.extend(0u16.to_le_bytes());
            block.extend(UNKNOWN_LENGTH.to_le_bytes());
            let program = concat!("hawser ", env!("CARGO_PKG_VERSION"));
            option(block, SHB_USERAPPL, program.as_bytes());
            end_options(block);
        })?;
        writer.write(INTERFACE_DESCRIPTION, |block| {
            block.extend(ETHERNET.to_le_bytes());
            block.extend([0; 2]);
            block.extend(snap_length.to_le_bytes());
            let CaptureInterface { device, near, far } = interface;
            option(block, IF_NAME, near.as_bytes());
            let description = format!("{near} ({device})");
            option(block, IF_DESCRIPTION, description.as_bytes());
            let comment = format!("SCION link {near} to {far}, captured at {near}");
            option(block, OPT_COMMENT, comment.as_bytes());
            // The unit of times is 10^-9 s.
            option(block, IF_TSRESOL, &[9]);
            end_options(block);
        })?;
        Ok(writer)
    }

    /// Writes one frame.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn frame(&mut self, frame: &Frame<'_>) -> io::Result<()> {
        self.frames += 1;
        let data = &frame.data[..frame.data.len().min(self.snap_length as usize)];
        self.write(ENHANCED_PACKET, |block| {
            block.extend(0u32.to_le_bytes());
            time(block, frame.time);
            block.extend((data.len() as u32).to_le_bytes());
            block.extend(frame.length.to_le_bytes());
            block.extend(data);
            pad(block);
            // Bits 0 and 1: 1 is received, 2 is sent.
            let direction = if frame.outgoing { 2u32 } else { 1 };
            option(block, EPB_FLAGS, &direction.to_le_bytes());
            end_options(block);
        })
    }

    /// Number of frames written.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Flushes the underlying writer.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    /// Ends the file with statistics: the time, and the number of frames that the kernel dropped.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self, now: Duration, dropped: u64) -> io::Result<()> {
        let received = self.frames + dropped;
        self.write(INTERFACE_STATISTICS, |block| {
            block.extend(0u32.to_le_bytes());
            time(block, now);
            option(block, ISB_IFRECV, &received.to_le_bytes());
            option(block, ISB_IFDROP, &dropped.to_le_bytes());
            end_options(block);
        })?;
        self.flush()
    }

    /// Writes a block: type, length, body, and the length again.
    fn write(&mut self, kind: u32, body: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.block.clear();
        self.block.extend(kind.to_le_bytes());
        self.block.extend([0; 4]);
        body(&mut self.block);
        let length = (self.block.len() as u32 + 4).to_le_bytes();
        self.block[4..8].copy_from_slice(&length);
        self.block.extend(length);
        self.to.write_all(&self.block)
    }
}

/// Appends the nanoseconds since the Unix epoch, the high 32 bits first.
fn time(block: &mut Vec<u8>, time: Duration) {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    block.extend(((nanos >> 32) as u32).to_le_bytes());
    block.extend((nanos as u32).to_le_bytes());
}

/// Appends an option. A value that is too long for the length field is truncated.
fn option(block: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    block.extend(code.to_le_bytes());
    block.extend((value.len() as u16).to_le_bytes());
    block.extend(value);
    pad(block);
}

fn end_options(block: &mut Vec<u8>) {
    block.extend([0; 4]);
}

/// Pads to a multiple of four bytes.
fn pad(block: &mut Vec<u8>) {
    block.resize(block.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn interface() -> CaptureInterface {
        CaptureInterface {
            device: "if1".to_owned(),
            near: "1-ff00:0:110#1".to_owned(),
            far: "1-ff00:0:111#1".to_owned(),
        }
    }

    /// The types and bodies of the blocks. Checks that the lengths at both ends of each block are
    /// equal.
    fn blocks(mut bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let number = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap());
        let mut blocks = Vec::new();
        while !bytes.is_empty() {
            let (kind, length) = (number(bytes), number(&bytes[4..]) as usize);
            assert!(length.is_multiple_of(4));
            assert_eq!(number(&bytes[length - 4..]) as usize, length);
            blocks.push((kind, bytes[8..length - 4].to_vec()));
            bytes = &bytes[length..];
        }
        blocks
    }

    #[test]
    fn interfaces_name_both_ends() {
        let mut file = Vec::new();
        CaptureWriter::new(&mut file, &interface(), SNAP_LENGTH).unwrap();
        let blocks = blocks(&file);
        assert_eq!(blocks.len(), 2);
        assert_eq!(blocks[0].0, SECTION_HEADER);
        let (kind, body) = &blocks[1];
        assert_eq!((*kind, &body[..2]), (INTERFACE_DESCRIPTION, &[1, 0][..]));
        let text = String::from_utf8_lossy(body);
        assert!(text.contains("1-ff00:0:110#1 to 1-ff00:0:111#1"), "{text}");
    }

    #[test]
    fn long_frames_are_truncated_and_keep_their_length() {
        let mut file = Vec::new();
        let mut writer = CaptureWriter::new(&mut file, &interface(), SNAP_LENGTH).unwrap();
        let data = vec![7; SNAP_LENGTH as usize + 1];
        let frame = Frame {
            time: Duration::ZERO,
            outgoing: true,
            length: data.len() as u32,
            data: &data,
        };
        writer.frame(&frame).unwrap();
        let body = &blocks(&file)[2].1;
        assert_eq!(body[12..16], SNAP_LENGTH.to_le_bytes());
        assert_eq!(body[16..20], (SNAP_LENGTH + 1).to_le_bytes());
    }

    proptest! {
        #[test]
        fn frames_are_read_back(
            frames in prop::collection::vec((any::<u64>(), any::<bool>(), prop::collection::vec(any::<u8>(), 0..70)), 0..6),
            dropped in any::<u32>(),
        ) {
            let mut file = Vec::new();
            let mut writer = CaptureWriter::new(&mut file, &interface(), SNAP_LENGTH).unwrap();
            for (nanos, outgoing, data) in &frames {
                let frame = Frame {
                    time: Duration::from_nanos(*nanos),
                    outgoing: *outgoing,
                    length: data.len() as u32,
                    data,
                };
                writer.frame(&frame).unwrap();
            }
            prop_assert_eq!(writer.frames(), frames.len() as u64);
            writer.finish(Duration::from_nanos(1), dropped.into()).unwrap();
            let blocks = blocks(&file);
            prop_assert_eq!(blocks.len(), frames.len() + 3);
            for ((kind, body), (nanos, outgoing, data)) in blocks[2..].iter().zip(&frames) {
                prop_assert_eq!(*kind, ENHANCED_PACKET);
                let number = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap());
                prop_assert_eq!((u64::from(number(4)) << 32) | u64::from(number(8)), *nanos);
                prop_assert_eq!((number(12) as usize, number(16) as usize), (data.len(), data.len()));
                prop_assert_eq!(&body[20..20 + data.len()], &data[..]);
                let flags = 20 + data.len().next_multiple_of(4) + 4;
                prop_assert_eq!(number(flags), if *outgoing { 2 } else { 1 });
            }
            let (kind, body) = blocks.last().unwrap();
            prop_assert_eq!(*kind, INTERFACE_STATISTICS);
            let lost = u64::from_le_bytes(body[28..36].try_into().unwrap());
            prop_assert_eq!(lost, u64::from(dropped));
        }
    }
}
