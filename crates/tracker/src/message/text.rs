//! Texts of trackers, for people.

/// Longest text kept, in bytes: enough for a sentence or two.
const MAX_TEXT: usize = 400;

/// The text, shortened, with what is not UTF-8 and what steers a terminal replaced.
pub(super) fn text(bytes: &[u8]) -> String {
    let bytes = &bytes[..bytes.len().min(MAX_TEXT)];
    let text = String::from_utf8_lossy(bytes);
    let printable = |c: char| match c.is_control() {
        true => ' ',
        false => c,
    };
    text.trim().chars().map(printable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_short_and_printable() {
        assert_eq!(
            text(b" torrent\x1b[2J not\nfound "),
            "torrent [2J not found"
        );
        assert_eq!(text(&[b'a'; 5000]).len(), MAX_TEXT);
        assert_eq!(text(b"\xff"), "\u{fffd}");
    }
}
