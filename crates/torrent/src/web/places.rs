//! Where the bytes of a torrent are below the URL of a web seed.

use std::fmt::Write;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use hawser_http_client::{HttpUrl, HttpUrlError};

use crate::bitfield::Bitfield;
use crate::metainfo::{File, Metainfo};
use crate::pieces::Pieces;

/// The files of a torrent on a web server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Places {
    pieces: Pieces,
    /// Those that are not empty, in the order of their bytes.
    files: Vec<Place>,
}

#[derive(Debug, PartialEq, Eq)]
struct Place {
    /// Its bytes, as part of the torrent's.
    bytes: Range<u64>,
    content: Content,
}

/// What the bytes of a file are.
#[derive(Debug, PartialEq, Eq)]
enum Content {
    Padding,
    /// `None` if the name of the file in the torrent is one that no file can have.
    File(Option<HttpUrl>),
}

/// Adjacent bytes of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    /// This many zeros: padding (BEP 47) is not asked for.
    Zeros(u64),
    /// Bytes of a file.
    File {
        url: HttpUrl,
        bytes: Range<u64>,
        /// Bytes of the whole file.
        length: u64,
        /// The bytes of the whole file, as part of the torrent's.
        of_torrent: Range<u64>,
    },
}

impl Places {
    /// The places below `url`, one of the torrent's `url-list`: that of the single file, or the folder that the
    /// content is in. To one that ends in `/`, and for several files, the name is added (BEP 19).
    ///
    /// # Errors
    /// If it is not a URL of HTTP.
    pub fn new(metainfo: &Metainfo, url: &str) -> Result<Self, HttpUrlError> {
        let base = escaped(url.as_bytes(), |byte| byte.is_ascii_graphic());
        // What is wrong with the URL itself is to be named without that of a file.
        base.parse::<HttpUrl>()?;
        let name = match &metainfo.literal_name {
            Some(name) => name.as_bytes(),
            None => metainfo.name.as_bytes(),
        };
        let folder = match base.ends_with('/') {
            true => base.clone(),
            false => format!("{base}/"),
        };
        let (mut at, mut files) = (0, Vec::new());
        for file in metainfo.files.iter().filter(|file| file.length > 0) {
            let bytes = at..at + file.length;
            at = bytes.end;
            let text = match metainfo.multi_file {
                false if base.ends_with('/') => Some(format!("{folder}{}", escaped_name(name))),
                false => Some(base.clone()),
                true => inner(file).map(|inner| {
                    let parts = inner.iter().map(|part| escaped_name(part.as_bytes()));
                    let parts = parts.collect::<Vec<_>>().join("/");
                    format!("{folder}{}/{parts}", escaped_name(name))
                }),
            };
            let content = match file.padding {
                true => Content::Padding,
                false => Content::File(text.map(|text| text.parse()).transpose()?),
            };
            files.push(Place { bytes, content });
        }
        Ok(Self {
            pieces: metainfo.pieces,
            files,
        })
    }

    /// The pieces that a web server can have, without those that have bytes of `missing` files.
    pub fn has(&self, missing: &[Range<u64>]) -> Bitfield {
        let mut has = Bitfield::full(self.pieces.count());
        let nameless = self.files.iter().filter_map(|file| match file.content {
            Content::File(None) => Some(&file.bytes),
            _ => None,
        });
        for bytes in nameless.chain(missing) {
            for piece in self.pieces.overlapping(bytes) {
                has.clear(piece);
            }
        }
        has
    }

    /// The segments that these bytes of the torrent consist of, in order; none of them is empty.
    pub fn segments(&self, bytes: Range<u64>) -> Vec<Segment> {
        let first = self.files.partition_point(|it| it.bytes.end <= bytes.start);
        let files = self.files[first..].iter();
        let files = files.take_while(|file| file.bytes.start < bytes.end);
        let segment = |file: &Place| {
            let start = bytes.start.max(file.bytes.start);
            let end = bytes.end.min(file.bytes.end);
            match &file.content {
                Content::Padding => Some(Segment::Zeros(end - start)),
                Content::File(url) => Some(Segment::File {
                    url: url.clone()?,
                    bytes: start - file.bytes.start..end - file.bytes.start,
                    length: file.bytes.end - file.bytes.start,
                    of_torrent: file.bytes.clone(),
                }),
            }
        };
        files.filter_map(segment).collect()
    }
}

/// The path of a file in the torrent's folder, as the torrent has it; `None` if no file can have it.
fn inner(file: &File) -> Option<&Path> {
    match (&file.literal, &file.original) {
        (Some(literal), _) => Some(literal),
        (None, Some(_)) => None,
        // `Metainfo` prefixes every path with the name.
        (None, None) => {
            let mut parts = file.path.components();
            parts.next();
            Some(parts.as_path())
        }
    }
}

/// One part of a path (RFC 3986, 2.3).
fn escaped_name(name: &[u8]) -> String {
    escaped(name, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
    })
}

/// Bytes in the form that they have in a URL; those that `stay` do.
fn escaped(bytes: &[u8], stay: impl Fn(u8) -> bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match stay(*byte) {
            true => text.push(char::from(*byte)),
            // Writing to a text never fails.
            false => drop(write!(text, "%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::torrent_of;

    fn urls(metainfo: &Metainfo, url: &str) -> Vec<String> {
        let places = Places::new(metainfo, url).unwrap();
        let segments = places.segments(0..metainfo.pieces.total).into_iter();
        let urls = segments.filter_map(|segment| match segment {
            Segment::File { url, .. } => Some(url.to_string()),
            Segment::Zeros(_) => None,
        });
        urls.collect()
    }

    #[test]
    fn files_are_at_urls_made_of_their_names() {
        let several = torrent_of(
            &[("a b", 10, false), ("pad", 6, true), ("ü%", 20, false)],
            16 << 10,
        );
        for base in ["http://w.example/files", "http://w.example/files/"] {
            assert_eq!(
                urls(&several, base),
                [
                    "http://w.example:80/files/set/a%20b",
                    "http://w.example:80/files/set/%C3%BC%25"
                ]
            );
        }
        let text =
            "d4:infod6:lengthi5e4:name3:a#b12:piece lengthi16384e6:pieces20:aaaaaaaaaaaaaaaaaaaaee";
        let single = Metainfo::parse(text.as_bytes()).unwrap();
        assert_eq!(urls(&single, "http://w/x y"), ["http://w:80/x%20y"]);
        assert_eq!(urls(&single, "http://w/x/"), ["http://w:80/x/a%23b"]);
        assert!(Places::new(&single, "ftp://w/x").is_err());
        assert!(Places::new(&single, "http:///x").is_err());
    }

    #[test]
    fn files_under_literal_names_are_asked_for_and_nameless_ones_are_not() {
        let text = "d4:infod5:filesl\
            d6:lengthi1e4:pathl3:a\nbee\
            d6:lengthi2e4:pathl3:c/dee\
            e4:name3:set12:piece lengthi16384e6:pieces20:aaaaaaaaaaaaaaaaaaaaee";
        let metainfo = Metainfo::parse(text.as_bytes()).unwrap();
        assert_eq!(urls(&metainfo, "http://w/"), ["http://w:80/set/a%0Ab"]);
        let places = Places::new(&metainfo, "http://w/").unwrap();
        assert!(places.has(&[]).is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn segments_cover_every_byte_once_and_never_ask_for_padding(
            files in proptest::collection::vec((0u64..50_000, any::<bool>()), 1..8),
            from: prop::sample::Index,
            to: prop::sample::Index,
            missing: prop::sample::Index,
        ) {
            let total: u64 = files.iter().map(|(length, _)| length).sum();
            prop_assume!(files.iter().any(|(length, padding)| !padding && *length > 0));
            let names: Vec<String> = (0..files.len()).map(|i| i.to_string()).collect();
            let listed = files.iter().zip(&names);
            let listed: Vec<_> = listed.map(|((length, pad), name)| (name.as_str(), *length, *pad)).collect();
            let metainfo = torrent_of(&listed, 16 << 10);
            let places = Places::new(&metainfo, "http://w/").unwrap();
            let total_bytes = usize::try_from(total).unwrap();
            let (a, b) = (from.index(total_bytes) as u64, to.index(total_bytes) as u64);
            let bytes = a.min(b)..a.max(b) + 1;
            let mut at = bytes.start;
            for segment in places.segments(bytes.clone()) {
                let (length, is_padding) = match segment {
                    Segment::Zeros(zeros) => (zeros, true),
                    Segment::File { bytes, of_torrent, length, .. } => {
                        prop_assert_eq!(of_torrent.start + bytes.start, at);
                        prop_assert_eq!(of_torrent.end - of_torrent.start, length);
                        prop_assert!(bytes.end <= length);
                        (bytes.end - bytes.start, false)
                    }
                };
                prop_assert!(length > 0);
                let mut end = 0;
                let of = files.iter().find(|(length, _)| { end += length; end > at }).unwrap();
                prop_assert_eq!(of.1, is_padding);
                at += length;
            }
            prop_assert_eq!(at, bytes.end);
            let lost = missing.index(total_bytes) as u64;
            let lost = lost..(lost + 20_000).min(total);
            let has = places.has(std::slice::from_ref(&lost));
            let pieces = metainfo.pieces;
            for piece in 0..pieces.count() {
                let range = pieces.range(piece);
                let overlaps = range.start < lost.end && lost.start < range.end;
                prop_assert_eq!(has.has(piece), !overlaps);
            }
        }
    }
}
