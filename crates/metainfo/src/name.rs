//! Safe file names, made of the names in a torrent.
//!
//! The rules are those of libtorrent, so that content which another client fetched is found under
//! the same names, with these exceptions: names that differ in letter case differ, as on Linux; a
//! name that a file system takes is never shortened; characters after bytes that are not UTF-8
//! stay.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Longest file name of the file systems in use, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// A name that is too long is cut at the first character past this many bytes.
const CUT_AT: usize = 240;

/// Longest extension kept when a name is cut, its dot included, in bytes.
const MAX_EXTENSION_BYTES: usize = 9;

/// Longest path below the download folder, in bytes: the kernel's PATH_MAX of 4096 less room for
/// the folder itself.
pub(super) const MAX_PATH_BYTES: usize = 3072;

/// Most folders that a file may be in.
pub(super) const MAX_PATH_DEPTH: usize = 100;

/// A path element as a file name: separators, NUL and characters that reverse the direction of text
/// are left out, bytes that are not UTF-8 and control characters become `_`, and what is too long
/// is cut before its extension. `None` when nothing is left but dots that name no file.
pub(super) fn sanitize(element: &[u8]) -> Option<String> {
    if element.is_empty() {
        return Some("_".to_owned());
    }
    let mut name = String::with_capacity(element.len().min(MAX_NAME_BYTES));
    for chunk in element.utf8_chunks() {
        let kept = chunk.valid().chars().filter(|c| !is_left_out(*c));
        name.extend(kept.map(|c| if c.is_control() { '_' } else { c }));
        if !chunk.invalid().is_empty() {
            name.push('_');
        }
    }
    match name.as_str() {
        "" | "." | ".." => None,
        _ => Some(shortened(name)),
    }
}

/// Whether a file of a torrent may have this name as it is.
pub fn is_file_name(name: &str) -> bool {
    sanitize(name.as_bytes()).is_some_and(|safe| safe == name)
}

/// A name as [`sanitize`] makes it, or `_` when nothing is left.
pub(super) fn sanitize_or_blank(element: &[u8]) -> String {
    sanitize(element).unwrap_or_else(|| "_".to_owned())
}

/// A path byte by byte, as programs that make torrents take it from disk; `None` if no file can
/// have it.
pub(super) fn literal(elements: &[&[u8]]) -> Option<PathBuf> {
    let elements = elements.iter().map(|element| {
        let dots = matches!(*element, b"." | b"..");
        let fits = (1..=MAX_NAME_BYTES).contains(&element.len());
        let is_name = fits && !dots && !element.iter().any(|byte| matches!(byte, b'/' | b'\0'));
        is_name.then_some(OsStr::from_bytes(element))
    });
    elements.collect()
}

/// Path separators, NUL, and the characters that make a name look like another by embedding,
/// overriding or isolating its direction (UAX 9). Those that legitimate names need, such as the
/// marks of right-to-left scripts and the joiners of emoji, stay.
fn is_left_out(c: char) -> bool {
    matches!(c, '/' | '\\' | '\0' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Cuts a name that no file system takes, and keeps its extension.
fn shortened(name: String) -> String {
    if name.len() <= MAX_NAME_BYTES {
        return name;
    }
    let cut = boundary(&name, CUT_AT);
    let extension = extension(&name).filter(|extension| name.len() - extension.len() >= cut);
    format!("{}{}", &name[..cut], extension.unwrap_or(""))
}

/// Where the first character at or past byte `at` begins; the end, if there is none.
fn boundary(text: &str, at: usize) -> usize {
    let mut starts = text.char_indices().map(|(start, _)| start);
    starts.find(|start| *start >= at).unwrap_or(text.len())
}

/// The extension of a name with its dot, if it is short enough to be one.
fn extension(name: &str) -> Option<&str> {
    let dot = name.rfind('.').filter(|dot| *dot > 0)?;
    Some(&name[dot..]).filter(|extension| extension.len() <= MAX_EXTENSION_BYTES)
}

/// A name with a number before its extension: `a.1.txt` of `a.txt`. Names that are equal up to
/// [`CUT_AT`] have the same [`Numbered`] form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Numbered {
    stem: String,
    extension: String,
}

impl Numbered {
    /// Most bytes of a stem: room for the number and the extension.
    const STEM: usize = MAX_NAME_BYTES - MAX_EXTENSION_BYTES - 16;

    pub fn of(name: &str) -> Self {
        let extension = extension(name).unwrap_or("");
        let stem = &name[..name.len() - extension.len()];
        Self {
            stem: stem[..boundary(stem, Self::STEM)].to_owned(),
            extension: extension.to_owned(),
        }
    }

    /// The name with this number.
    pub fn name(&self, number: u32) -> String {
        format!("{}.{number}{}", self.stem, self.extension)
    }
}

/// A name as it is in the torrent, for people: bytes that are not UTF-8 as escapes, `\xe9`.
pub(super) fn shown(element: &[u8]) -> String {
    let mut text = String::with_capacity(element.len());
    for chunk in element.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().escape_ascii().map(char::from));
    }
    text
}

/// `bytes` for an error message: quoted, escaped, and never a screenful.
pub(super) fn printable(bytes: &[u8]) -> String {
    const SHOWN: usize = 120;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]);
    let more = if bytes.len() > SHOWN { "…" } else { "" };
    format!("\"{}{more}\"", text.escape_debug())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_made_safe() {
        for (element, name) in [
            (&b"plain name.txt"[..], Some("plain name.txt")),
            (b"", Some("_")),
            (b".", None),
            (b"..", None),
            (b"...", Some("...")),
            (b"/", None),
            (b"/..", None),
            (b"/etc/passwd", Some("etcpasswd")),
            (b"a\\b", Some("ab")),
            (b"nul\0byte", Some("nulbyte")),
            (b"line\nfeed\x1b[0m\x7f", Some("line_feed_[0m_")),
            (b"caf\xe9", Some("caf_")),
            ("exe\u{202e}gpj.exe".as_bytes(), Some("exegpj.exe")),
            (
                "👩\u{200d}🚀 \u{200f}א".as_bytes(),
                Some("👩\u{200d}🚀 \u{200f}א"),
            ),
        ] {
            assert_eq!(sanitize(element).as_deref(), name, "{element:?}");
        }
    }

    #[test]
    fn literal_paths_are_those_that_files_can_have() {
        let file = |elements: &[&[u8]]| literal(elements).map(PathBuf::into_os_string);
        assert_eq!(file(&[b"a", b"line\nfeed"]).unwrap(), "a/line\nfeed");
        let bytes = file(&[b"caf\xe9", b"a\\b"]).unwrap();
        assert_eq!(bytes.as_bytes(), b"caf\xe9/a\\b");
        for impossible in [&b""[..], b".", b"..", b"/etc", b"a/b", b"a\0", &[b'x'; 256]] {
            assert_eq!(file(&[b"a", impossible]), None);
        }
    }

    #[test]
    fn long_names_keep_their_extension() {
        let long = "x".repeat(300);
        let name = |text: String| sanitize(text.as_bytes()).unwrap();
        assert_eq!(name(long.clone()), "x".repeat(240));
        assert_eq!(name(format!("{long}.flac")), "x".repeat(240) + ".flac");
        let no_extension = format!("{long}.not-an-extension");
        assert_eq!(name(no_extension), "x".repeat(240));
        assert_eq!(name("ß".repeat(130) + ".ogg"), "ß".repeat(120) + ".ogg");
        // What a file system takes stays.
        assert_eq!(name("y".repeat(255)), "y".repeat(255));
    }

    proptest! {
        #[test]
        fn whatever_stands_there_becomes_one_name_in_its_folder(
            element in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..400),
                "[./\\\\\u{0}a\u{202e}]{0,6}".prop_map(String::into_bytes),
                ".{0,300}(\\.[a-z]{0,10})?".prop_map(String::into_bytes),
            ],
            number in any::<u32>(),
        ) {
            let name = sanitize_or_blank(&element);
            for name in [Numbered::of(&name).name(number), name] {
                prop_assert!((1..=255).contains(&name.len()));
                prop_assert!(name != "." && name != "..");
                prop_assert!(!name.contains(|c: char| c == '/' || c == '\\' || c.is_control()));
                prop_assert_eq!(sanitize(name.as_bytes()), Some(name.clone()));
                prop_assert_eq!(literal(&[name.as_bytes()]), Some(PathBuf::from(&name)));
            }
        }
    }
}
