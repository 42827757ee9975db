//! ISD-AS numbers as text in JSON, as every SCION file has them: `#[serde(with = "isd_as_text")]`.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::IsdAsn;

struct Text(IsdAsn);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map(Text).map_err(D::Error::custom)
    }
}

/// Writes a number.
///
/// # Errors
/// Those of the writer.
pub fn serialize<S: Serializer>(isd_as: &IsdAsn, to: S) -> Result<S::Ok, S::Error> {
    Text(*isd_as).serialize(to)
}

/// Reads a number.
///
/// # Errors
/// When the text is not an ISD-AS.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<IsdAsn, D::Error> {
    Text::deserialize(from).map(|text| text.0)
}

/// Lists of numbers.
pub mod list {
    use super::*;

    /// Writes the numbers as a list.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn serialize<S: Serializer>(ases: &[IsdAsn], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(ases.iter().map(|isd_as| Text(*isd_as)))
    }

    /// Reads a list of numbers.
    ///
    /// # Errors
    /// When one is not an ISD-AS.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<IsdAsn>, D::Error> {
        let texts = Vec::<Text>::deserialize(from)?;
        Ok(texts.into_iter().map(|text| text.0).collect())
    }
}

/// A number that may be missing.
pub mod option {
    use super::*;

    /// Writes the number, or null.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn serialize<S: Serializer>(isd_as: &Option<IsdAsn>, to: S) -> Result<S::Ok, S::Error> {
        isd_as.map(Text).serialize(to)
    }

    /// Reads a number, or null.
    ///
    /// # Errors
    /// When the text is not an ISD-AS.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<IsdAsn>, D::Error> {
        Ok(Option::<Text>::deserialize(from)?.map(|text| text.0))
    }
}
