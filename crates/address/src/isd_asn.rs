//! The name of an AS: its ISD and its number.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::{Asn, IdentifierError, Isd};

/// An ISD-AS, which names an AS: the ISD in the upper 16 of 64 bits, the AS in the lower 48.
///
/// Printed as `1-ff00:0:110`, or `64-559` for an AS with a number of BGP; serde uses that string
/// too. A 0 in either part stands for any.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IsdAsn(
    /// The 64 bits. Every value is an ISD-AS.
    pub u64,
);

impl IsdAsn {
    /// Any AS of any ISD.
    pub const WILDCARD: Self = Self(0);

    /// The AS `asn` in `isd`.
    pub const fn new(isd: Isd, asn: Asn) -> Self {
        Self((isd.to_u16() as u64) << Asn::BITS | asn.to_u64())
    }

    /// The ISD-AS with these 64 bits.
    #[inline]
    pub const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// The 64 bits.
    #[inline]
    pub const fn to_u64(self) -> u64 {
        self.0
    }

    /// The 64 bits in the byte order of packets.
    #[inline]
    pub const fn to_be_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// The ISD.
    #[inline]
    pub const fn isd(self) -> Isd {
        Isd::new((self.0 >> Asn::BITS) as u16)
    }

    /// The AS.
    #[inline]
    pub const fn asn(self) -> Asn {
        Asn::truncate(self.0)
    }

    /// Whether the ISD or the AS stands for any.
    #[inline]
    pub const fn is_wildcard(self) -> bool {
        self.isd().is_wildcard() || self.asn().is_wildcard()
    }

    /// Whether ISD and AS are the same, each unless one of both stands for any.
    #[inline]
    pub const fn matches(self, other: Self) -> bool {
        self.isd().matches(other.isd()) && self.asn().matches(other.asn())
    }
}

impl From<u64> for IsdAsn {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl From<IsdAsn> for u64 {
    fn from(isd_as: IsdAsn) -> Self {
        isd_as.0
    }
}

impl fmt::Display for IsdAsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.isd(), self.asn())
    }
}

impl fmt::Debug for IsdAsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for IsdAsn {
    type Err = IdentifierError;

    fn from_str(text: &str) -> Result<Self, IdentifierError> {
        match text.split_once('-') {
            Some((isd, asn)) if !asn.contains('-') => Ok(Self::new(isd.parse()?, asn.parse()?)),
            _ => Err(IdentifierError::IsdAsn(text.into())),
        }
    }
}

impl Serialize for IsdAsn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for IsdAsn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = IsdAsn;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an ISD-AS, as in 1-ff00:0:110")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<IsdAsn, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests;
