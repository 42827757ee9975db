//! Ranges of bytes that requests name (RFC 9110, 14.2), and media types by names of files.

use std::ops::Range;

/// Which part of something of `length` bytes a request wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All of it: no range is given, or one that need not be heeded.
    Whole,
    /// These bytes, at least one.
    Part(Range<u64>),
    /// Bytes that there are not.
    Nothing,
}

/// Reads the header `Range`. What is not one range of bytes is answered with the whole, as RFC 9110 allows of
/// several and demands of what is none.
pub(super) fn wanted(header: Option<&str>, length: u64) -> Wanted {
    let Some((first, last)) = header.and_then(one_range) else {
        return Wanted::Whole;
    };
    let part = match (first, last) {
        (Some(first), Some(last)) if last < first => return Wanted::Whole,
        (Some(first), last) => {
            first..last.map_or(length, |last| last.saturating_add(1).min(length))
        }
        (None, Some(count)) => length.saturating_sub(count)..length,
        (None, None) => return Wanted::Whole,
    };
    match part.is_empty() {
        true => Wanted::Nothing,
        false => Wanted::Part(part),
    }
}

/// The first and the last position of `bytes=FIRST-LAST`, as far as they are given.
fn one_range(header: &str) -> Option<(Option<u64>, Option<u64>)> {
    let (unit, range) = header.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    let number = |text: &str| match text.is_empty() {
        true => Some(None),
        false if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            // More than any file has.
            Some(Some(text.parse().unwrap_or(u64::MAX)))
        }
        false => None,
    };
    let positions = (number(first)?, number(last)?);
    unit.trim()
        .eq_ignore_ascii_case("bytes")
        .then_some(positions)
}

/// Media types of what browsers and players show. Nothing that may have scripts is among them: content of others
/// must not act in the name of the page.
const MEDIA: &[(&str, &[&str])] = &[
    ("application/pdf", &["pdf"]),
    ("audio/aac", &["aac"]),
    ("audio/flac", &["flac"]),
    ("audio/mp4", &["m4a", "m4b"]),
    ("audio/mpeg", &["mp3"]),
    ("audio/ogg", &["oga", "ogg", "opus"]),
    ("audio/wav", &["wav"]),
    ("image/avif", &["avif"]),
    ("image/gif", &["gif"]),
    ("image/jpeg", &["jpeg", "jpg"]),
    ("image/png", &["png"]),
    ("image/webp", &["webp"]),
    (
        "text/plain; charset=utf-8",
        &["csv", "log", "md", "nfo", "srt", "txt"],
    ),
    ("text/vtt", &["vtt"]),
    ("video/mp2t", &["ts"]),
    ("video/mp4", &["m4v", "mp4"]),
    ("video/mpeg", &["mpeg", "mpg"]),
    ("video/ogg", &["ogv"]),
    ("video/quicktime", &["mov"]),
    ("video/webm", &["webm"]),
    ("video/x-matroska", &["mkv"]),
    ("video/x-msvideo", &["avi"]),
];

/// The media type of a file with this name; `None` for one that is only to be saved.
pub(super) fn media_type(name: &str) -> Option<&'static str> {
    let (_, ending) = name.rsplit_once('.')?;
    let ending = ending.to_ascii_lowercase();
    let known = MEDIA
        .iter()
        .find(|(_, endings)| endings.contains(&&*ending));
    known.map(|(kind, _)| *kind)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_are_read_as_the_rfc_says() {
        for (header, expected) in [
            (None, Wanted::Whole),
            (Some("bytes=0-0"), Wanted::Part(0..1)),
            (Some("bytes=2-5"), Wanted::Part(2..6)),
            (Some("Bytes=2-"), Wanted::Part(2..10)),
            (Some("bytes=-3"), Wanted::Part(7..10)),
            (Some("bytes=-30"), Wanted::Part(0..10)),
            (Some("bytes=8-99999999999999999999999"), Wanted::Part(8..10)),
            (Some("bytes=10-"), Wanted::Nothing),
            (Some("bytes=-0"), Wanted::Nothing),
            (Some("bytes=99999999999999999999999-"), Wanted::Nothing),
            (Some("bytes=5-2"), Wanted::Whole),
            (Some("bytes=-"), Wanted::Whole),
            (Some("bytes=0-1,4-5"), Wanted::Whole),
            (Some("bytes=+1-2"), Wanted::Whole),
            (Some("items=0-1"), Wanted::Whole),
            (Some("bytes 0-1"), Wanted::Whole),
        ] {
            assert_eq!(wanted(header, 10), expected, "{header:?}");
        }
        assert_eq!(wanted(Some("bytes=0-"), 0), Wanted::Nothing);
    }

    fn check(header: &str, length: u64) {
        if let Wanted::Part(part) = wanted(Some(header), length) {
            assert!(part.start < part.end && part.end <= length, "{header:?}");
        }
    }

    #[test]
    fn any_header_is_read() {
        let valid: Vec<Vec<u8>> = ["bytes=0-1", "bytes=5-", "bytes=-500", "bytes=0-1,2-3"]
            .iter()
            .map(|text| text.as_bytes().to_vec())
            .collect();
        hawser_fuzz::fuzz(&valid, |bytes| {
            let text = String::from_utf8_lossy(bytes);
            [0, 1, 7, u64::MAX]
                .iter()
                .for_each(|length| check(&text, *length));
        });
    }

    proptest! {
        #[test]
        fn a_range_is_the_bytes_that_it_names(first in 0u64..20, last in 0u64..20, length in 0u64..20) {
            let part = wanted(Some(&format!("bytes={first}-{last}")), length);
            let expected: Vec<u64> = (first..=last).filter(|byte| *byte < length).collect();
            match part {
                Wanted::Part(part) => prop_assert_eq!(part.collect::<Vec<_>>(), expected),
                Wanted::Nothing => prop_assert_eq!(expected, Vec::<u64>::new()),
                Wanted::Whole => prop_assert!(last < first),
            }
        }
    }

    #[test]
    fn nothing_that_has_scripts_is_shown() {
        assert_eq!(media_type("a/b.MKV"), Some("video/x-matroska"));
        for name in [
            "a.html", "a.xhtml", "a.svg", "a.js", "a.xml", "a", "", "mp4",
        ] {
            assert_eq!(media_type(name), None, "{name}");
        }
    }
}
