//! What a client wants of a transfer, besides where it goes.

use super::super::wire::{DecodeError, Reader, Writer};
use super::text;

/// Most patterns of names that are left out, and most bytes of them all, so that `Open` fits a
/// message.
const MAX_PATTERNS: u64 = 256;
/// See [`MAX_PATTERNS`].
const MAX_PATTERN_BYTES: usize = 8 << 10;

/// Choices of a client, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Choices(u64);

impl Choices {
    /// No choice.
    pub const NONE: Self = Self(0);
    /// The first file that fails ends the transfer.
    pub const STRICT: Self = Self(1);
    /// Files that are at the sink stay as they are.
    pub const NO_OVERWRITE: Self = Self(1 << 1);
    /// Files stay that are newer at the sink than at the source.
    pub const UPDATE: Self = Self(1 << 2);
    /// The owning users are carried.
    pub const OWNER: Self = Self(1 << 3);
    /// The owning groups are carried.
    pub const GROUP: Self = Self(1 << 4);
    /// ACLs are carried.
    pub const ACLS: Self = Self(1 << 5);
    /// Extended attributes of users are carried.
    pub const ATTRIBUTES: Self = Self(1 << 6);
    /// Hard links are carried.
    pub const HARD_LINKS: Self = Self(1 << 7);
    /// All choices that there are.
    const ALL: Self = Self(0b1111_1111);

    /// Whether all of `other` are chosen.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These, and `other` if `chosen`.
    #[must_use]
    pub const fn with(self, other: Self, chosen: bool) -> Self {
        match chosen {
            true => Self(self.0 | other.0),
            false => self,
        }
    }
}

/// What a client wants of a transfer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wants {
    /// Its choices.
    pub choices: Choices,
    /// Patterns of names that the source leaves out, if that is the server.
    pub exclude: Vec<String>,
}

impl Wants {
    /// Whether the patterns fit a message.
    #[must_use]
    pub fn fits(&self) -> bool {
        let bytes: usize = self.exclude.iter().map(String::len).sum();
        self.exclude.len() as u64 <= MAX_PATTERNS && bytes <= MAX_PATTERN_BYTES
    }

    pub(super) fn encode(&self, writer: &mut Writer<'_>) {
        writer.varint(self.choices.0);
        writer.varint(self.exclude.len() as u64);
        for pattern in &self.exclude {
            writer.bytes(pattern.as_bytes());
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let choices = reader.varint()?;
        if choices & !Choices::ALL.0 != 0 {
            return Err(DecodeError::Invalid("choices"));
        }
        let count = reader.varint()?;
        if count > MAX_PATTERNS {
            return Err(DecodeError::Invalid("number of patterns"));
        }
        let patterns = (0..count).map(|_| text(reader));
        let wants = Self {
            choices: Choices(choices),
            exclude: patterns.collect::<Result<_, _>>()?,
        };
        match wants.fits() {
            true => Ok(wants),
            false => Err(DecodeError::Invalid("length of patterns")),
        }
    }
}

/// Why an entry of the manifest is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SkipReason {
    /// It cannot be read, or written.
    Failed,
    /// It changed meanwhile, or is in use: another attempt may work.
    Changed,
    /// It is at the sink, and is to stay as it is there.
    Kept,
}

impl SkipReason {
    pub(super) const fn to_u64(self) -> u64 {
        match self {
            Self::Failed => 1,
            Self::Changed => 2,
            Self::Kept => 3,
        }
    }

    pub(super) const fn from_u64(reason: u64) -> Option<Self> {
        match reason {
            1 => Some(Self::Failed),
            2 => Some(Self::Changed),
            3 => Some(Self::Kept),
            _ => None,
        }
    }
}
