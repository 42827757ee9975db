//! The frames of gRPC: a flag, the length of the message in four bytes, and the message.

use hyper::body::Bytes;

/// Most bytes of a message.
pub const MAX_MESSAGE: usize = 4 << 20;

/// Bytes before a message.
pub(crate) const HEADER: usize = 5;

/// The flag of a message that is compressed.
const COMPRESSED: u8 = 1;

/// Why a body is not one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("there is no message")]
    Empty,
    #[error("a message is cut short")]
    Short,
    #[error("a message of {0} bytes: at most {MAX_MESSAGE}")]
    Long(u32),
    #[error("a message is compressed")]
    Compressed,
    #[error("there are several messages where there must be one")]
    Several,
}

/// The frame of a message.
pub(crate) fn frame(message: &[u8]) -> Bytes {
    // Longer ones would be refused anyway.
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let mut frame = Vec::with_capacity(HEADER + message.len());
    frame.push(0);
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(message);
    frame.into()
}

/// The message in a body that is one frame.
pub(crate) fn unframe(body: &Bytes) -> Result<Bytes, FrameError> {
    let Some((&[flags, a, b, c, d], rest)) = body.split_first_chunk::<HEADER>() else {
        return Err(match body.is_empty() {
            true => FrameError::Empty,
            false => FrameError::Short,
        });
    };
    let length = u32::from_be_bytes([a, b, c, d]);
    let wanted = usize::try_from(length).unwrap_or(usize::MAX);
    if wanted > MAX_MESSAGE {
        return Err(FrameError::Long(length));
    }
    match rest.len() {
        have if have < wanted => Err(FrameError::Short),
        have if have > wanted => Err(FrameError::Several),
        _ if flags & COMPRESSED != 0 => Err(FrameError::Compressed),
        _ => Ok(body.slice(HEADER..)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_not_one_frame_is_refused() {
        let read = |bytes: &[u8]| unframe(&Bytes::copy_from_slice(bytes));
        assert_eq!(read(b"\0\0\0\0\x02hi"), Ok(Bytes::from_static(b"hi")));
        assert_eq!(read(b""), Err(FrameError::Empty));
        assert_eq!(read(b"\0\0\0\0"), Err(FrameError::Short));
        assert_eq!(read(b"\0\0\0\0\x03hi"), Err(FrameError::Short));
        assert_eq!(read(b"\0\0\0\0\x01hi"), Err(FrameError::Several));
        assert_eq!(read(b"\x01\0\0\0\x02hi"), Err(FrameError::Compressed));
        let most = u32::try_from(MAX_MESSAGE).unwrap();
        let head = |length: u32| [&[0][..], &length.to_be_bytes()].concat();
        assert_eq!(read(&head(most)), Err(FrameError::Short));
        assert_eq!(read(&head(most + 1)), Err(FrameError::Long(most + 1)));
    }

    proptest! {
        #[test]
        fn a_frame_has_its_message(message: Vec<u8>, cut: prop::sample::Index) {
            let whole = frame(&message);
            prop_assert_eq!(unframe(&whole), Ok(Bytes::from(message)));
            let cut = cut.index(whole.len());
            prop_assert!(unframe(&whole.slice(..cut)).is_err());
        }
    }
}
