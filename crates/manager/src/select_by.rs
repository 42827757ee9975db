//! Which side of a transfer chooses the paths.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use thiserror::Error;

/// Which side chooses the paths that data takes (001, section VI).
///
/// Parsed, printed and serialized as `uploader`, `downloader`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SelectBy {
    /// The side that sends. It knows all the remotes it sends to, and assigns each of them paths
    /// that overlap as little as possible.
    Uploader,
    /// The side that receives, without regard to other receivers.
    Downloader,
}

impl fmt::Display for SelectBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Uploader => "uploader",
            Self::Downloader => "downloader",
        })
    }
}

/// The error of parsing a [`SelectBy`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{0}' chooses no paths: write uploader or downloader")]
pub struct SelectByParseError(String);

impl FromStr for SelectBy {
    type Err = SelectByParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "uploader" => Ok(Self::Uploader),
            "downloader" => Ok(Self::Downloader),
            _ => Err(SelectByParseError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_printed_as_it_is_parsed() {
        for by in [SelectBy::Uploader, SelectBy::Downloader] {
            assert_eq!(by.to_string().parse(), Ok(by));
        }
        let error = "both".parse::<SelectBy>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "'both' chooses no paths: write uploader or downloader"
        );
    }
}
