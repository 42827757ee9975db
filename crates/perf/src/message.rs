//! The messages about a test, each a line of JSON on a QUIC stream that the client opens.
//!
//! The client sends a [`Request`]. For packets, the server answers with [`Ready`]. The client sends
//! the data, for a stream test on a second QUIC stream, and then finishes its side of the first. The
//! server answers with [`Received`].

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

use crate::error::PerfError;

/// Most bytes of a message.
const MAX_LINE: u64 = 1024;

/// What the client will send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// One QUIC stream, up to its end.
    Stream,
    /// SCION/UDP packets whose payload begins with this number.
    Packets {
        /// Distinguishes the packets of this test from others.
        id: u64,
    },
}

/// The server waits for packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ready {
    /// The UDP port.
    pub port: u16,
}

/// What the receiver of a test has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Received {
    /// Bytes of payload.
    pub bytes: u64,
    /// Packets, in tests that send packets; otherwise 0.
    pub packets: u64,
    /// Seconds from the first to the last byte.
    pub seconds: f64,
    /// Processor time of the receiving process during the test, in seconds.
    pub cpu_seconds: f64,
}

/// A message as it is sent.
pub(crate) fn line(message: &impl Serialize) -> Result<Vec<u8>, PerfError> {
    let mut line = serde_json::to_vec(message).map_err(PerfError::message)?;
    line.push(b'\n');
    Ok(line)
}

/// Reads the next message.
pub(crate) async fn read<T: DeserializeOwned>(
    stream: &mut (impl AsyncBufRead + Unpin),
) -> Result<T, PerfError> {
    let mut line = Vec::new();
    let read = stream.take(MAX_LINE).read_until(b'\n', &mut line).await;
    read.map_err(PerfError::message)?;
    if line.is_empty() {
        return Err(PerfError::message("it ended the test"));
    }
    serde_json::from_slice(&line).map_err(PerfError::message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, PerfError> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(read(&mut &bytes[..]))
    }

    #[test]
    fn messages_are_read_back_one_by_one() {
        let requests = [Request::Stream, Request::Packets { id: u64::MAX }];
        let lines: Vec<u8> = requests.iter().flat_map(|r| line(r).unwrap()).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(async {
            let mut stream = &lines[..];
            for request in requests {
                assert_eq!(read::<Request>(&mut stream).await.unwrap(), request);
            }
            assert!(read::<Request>(&mut stream).await.is_err());
        });
    }

    #[test]
    fn long_messages_are_refused() {
        let long = vec![b' '; 2 * MAX_LINE as usize];
        assert!(parse::<Request>(&long).is_err());
    }

    proptest! {
        #[test]
        fn reading_any_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..2048)) {
            let _ = parse::<Request>(&bytes);
            let _ = parse::<Ready>(&bytes);
            let _ = parse::<Received>(&bytes);
        }
    }
}
