//! PEM files of several blocks (RFC 7468).

use der::pem::{self, LineEnding};

use crate::error::{BoxError, SignError};

/// The blocks of a text with their labels. Fails if a block cannot be read.
pub(crate) fn blocks(text: &[u8]) -> Result<Vec<(String, Vec<u8>)>, BoxError> {
    let mut blocks = Vec::new();
    let mut rest = text.trim_ascii();
    while !rest.is_empty() {
        let end = end_of_block(rest).ok_or("it has no whole PEM block")?;
        let (block, after) = rest.split_at(end);
        let (label, bytes) = pem::decode_vec(block).map_err(|e| e.to_string())?;
        blocks.push((label.to_owned(), bytes));
        rest = after.trim_ascii();
    }
    Ok(blocks)
}

/// Writes one block.
pub(crate) fn encode(label: &str, der: &[u8]) -> Result<String, SignError> {
    pem::encode_string(label, LineEnding::LF, der).map_err(|e| SignError::Encode(e.to_string()))
}

/// The end of the last line of the first block.
fn end_of_block(text: &[u8]) -> Option<usize> {
    const END: &[u8] = b"-----END ";
    let at = text.windows(END.len()).position(|part| part == END)?;
    let line = &text[at..];
    Some(at + line.iter().position(|&b| b == b'\n').unwrap_or(line.len()))
}
