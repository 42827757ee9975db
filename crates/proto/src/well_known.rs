//! Messages of Protocol Buffers itself (`google.protobuf`).

use prost::Message;

/// A message without fields.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Empty {}

/// A point in time.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Timestamp {
    /// Unix seconds.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Nanoseconds of the second, 0 to 999,999,999.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

impl Timestamp {
    /// The beginning of a Unix second; the last one that can be written if it is later.
    pub fn from_unix_secs(seconds: u64) -> Self {
        Self {
            seconds: i64::try_from(seconds).unwrap_or(i64::MAX),
            nanos: 0,
        }
    }
}

/// A span of time. Both fields have the same sign.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Duration {
    /// Whole seconds.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Nanoseconds besides, up to 999,999,999.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// The longest span that can be written if it is longer.
impl From<std::time::Duration> for Duration {
    fn from(duration: std::time::Duration) -> Self {
        Self {
            seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
            nanos: i32::try_from(duration.subsec_nanos()).unwrap_or(i32::MAX),
        }
    }
}
