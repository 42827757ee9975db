//! What a failed read or write says.

use std::io;

/// What a failed read or write says of a peer's connection: the system's text without its number,
/// as the rest of a sentence.
pub(crate) fn why(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return "the peer ended the connection".to_owned();
    }
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_reads_as_the_rest_of_a_sentence() {
        let ended = io::Error::from(io::ErrorKind::UnexpectedEof);
        assert_eq!(why(&ended), "the peer ended the connection");
        let refused = io::Error::from_raw_os_error(111);
        assert_eq!(why(&refused), "connection refused");
    }
}
