//! How a call of gRPC ended, as headers.

use std::fmt::Write;

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};

use crate::code::{Code, RpcError};

/// The header with the number of the code; 0 if the call succeeded.
pub(crate) const STATUS: HeaderName = HeaderName::from_static("grpc-status");
/// The header with the explanation.
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// The trailers of a call that succeeded.
pub(crate) fn ok() -> HeaderMap {
    HeaderMap::from_iter([(STATUS, HeaderValue::from_static("0"))])
}

/// Adds the headers of an error.
pub(crate) fn write(error: &RpcError, to: &mut HeaderMap) {
    to.insert(STATUS, HeaderValue::from(error.code.number()));
    // Escaped, the text has printable ASCII only.
    if let Ok(message) = HeaderValue::from_str(&escape(&error.message)) {
        to.insert(MESSAGE, message);
    }
}

/// How a call ended by its headers; `None` if they do not say.
pub(crate) fn read(headers: &HeaderMap) -> Option<Result<(), RpcError>> {
    let status = headers.get(STATUS)?;
    let number = status
        .to_str()
        .ok()
        .and_then(|text| text.parse::<u32>().ok());
    if number == Some(0) {
        return Some(Ok(()));
    }
    let code = number.and_then(Code::from_number).unwrap_or(Code::Unknown);
    let message = headers.get(MESSAGE).map(|text| unescape(text.as_bytes()));
    let message = message.unwrap_or_default();
    Some(Err(RpcError::new(code, message)))
}

/// Writes everything but printable ASCII, and `%`, as `%XX`.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => escaped.push(char::from(byte)),
            // A string takes all that is written to it.
            _ => drop(write!(escaped, "%{byte:02X}")),
        }
    }
    escaped
}

/// The opposite; what is not escaped properly stays as it is.
fn unescape(mut text: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    while let Some((&first, rest)) = text.split_first() {
        let digits = rest.get(..2).filter(|_| first == b'%');
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let byte = digits.and_then(|two| Some(16 * digit(two[0])? + digit(two[1])?));
        match byte.and_then(|byte| u8::try_from(byte).ok()) {
            Some(byte) => {
                bytes.push(byte);
                text = &rest[2..];
            }
            None => {
                bytes.push(first);
                text = rest;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn headers(status: &[u8], message: &[u8]) -> HeaderMap {
        HeaderMap::from_iter([
            (STATUS, HeaderValue::from_bytes(status).unwrap()),
            (MESSAGE, HeaderValue::from_bytes(message).unwrap()),
        ])
    }

    #[test]
    fn the_headers_are_those_of_grpc() {
        let mut written = HeaderMap::new();
        write(
            &RpcError::new(Code::NotFound, "100 % für\n1-ff00:0:110"),
            &mut written,
        );
        let expected = headers(b"5", b"100 %25 f%C3%BCr%0A1-ff00:0:110");
        assert_eq!(written, expected);
        assert_eq!(read(&ok()), Some(Ok(())));
        assert_eq!(read(&HeaderMap::new()), None);
    }

    #[test]
    fn a_status_that_cannot_be_read_is_an_error() {
        for status in ["", "17", "-1", "ok", "4294967296", "\u{e4}"] {
            let read = read(&headers(status.as_bytes(), b"%zz %4")).unwrap();
            assert_eq!(
                read,
                Err(RpcError::new(Code::Unknown, "%zz %4")),
                "{status}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(number in 1..17u32, message: String) {
            let error = RpcError::new(Code::from_number(number).unwrap(), message);
            let mut headers = HeaderMap::new();
            write(&error, &mut headers);
            prop_assert_eq!(read(&headers), Some(Err(error)));
        }
    }
}
