//! The query of an announce.

use std::borrow::Cow;
use std::fmt::Write;

use hawser_address::ScionAddr;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use thiserror::Error;

use crate::message::announce::{AnnounceRequest, Event};

/// Longest query read, in bytes. An announce has about 350; a scrape of 74 torrents, every byte escaped,
/// about 5,300.
pub const MAX_QUERY: usize = 8192;
/// Most parameters read from a query.
const MAX_PARAMETERS: usize = 128;
/// Longest `trackerid` read, in bytes.
const MAX_TRACKER_ID: usize = 256;

/// What is escaped: all but the unreserved characters of RFC 3986.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Why a query is refused. The texts are sent to clients.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum QueryError {
    /// It is longer than [`MAX_QUERY`].
    #[error("the query has {0} bytes, more than {MAX_QUERY}")]
    Long(usize),
    /// It has too many parameters.
    #[error("the query has more than {MAX_PARAMETERS} parameters")]
    Parameters,
    /// A parameter that is needed is missing.
    #[error("the parameter {0} is missing")]
    Missing(&'static str),
    /// A parameter has an invalid value.
    #[error("the parameter {0} is invalid")]
    Invalid(&'static str),
}

/// An announce as a tracker reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnnounce {
    /// The announce.
    pub request: AnnounceRequest,
    /// Whether the answer may be compact (BEP 23): yes, unless the client declines it by `compact=0`.
    pub compact: bool,
}

/// The URL that is fetched to announce `request` to the tracker at `url`, which may have a query. A
/// fragment is dropped. `ip` and its kin are not sent: the tracker sees the address.
pub fn announce_url(url: &str, request: &AnnounceRequest) -> String {
    let mut out = begin(url);
    push(&mut out, "info_hash", &request.info_hash);
    push(&mut out, "peer_id", &request.peer_id);
    for (name, number) in [
        ("port", u64::from(request.port)),
        ("uploaded", request.uploaded),
        ("downloaded", request.downloaded),
        ("left", request.left),
        ("compact", 1),
    ] {
        push(&mut out, name, number.to_string().as_bytes());
    }
    if let Some(num_want) = request.num_want {
        push(&mut out, "numwant", num_want.to_string().as_bytes());
    }
    push(&mut out, "key", format!("{:08x}", request.key).as_bytes());
    if let Some(event) = event_name(request.event) {
        push(&mut out, "event", event.as_bytes());
    }
    if let Some(tracker_id) = &request.tracker_id {
        push(&mut out, "trackerid", tracker_id);
    }
    if let Some(scion) = request.scion {
        push(&mut out, "scion", scion.to_string().as_bytes());
    }
    out
}

/// The URL up to where parameters are appended.
pub(super) fn begin(url: &str) -> String {
    let url = url.split('#').next().unwrap_or_default();
    let mut out = url.to_owned();
    match url.split_once('?') {
        None => out.push('?'),
        Some((_, "")) => {}
        Some((_, query)) if query.ends_with('&') => {}
        Some(_) => out.push('&'),
    }
    out
}

/// Appends a parameter.
pub(crate) fn push(out: &mut String, name: &str, value: &[u8]) {
    if !out.ends_with(['?', '&']) {
        out.push('&');
    }
    // Writing to a string does not fail.
    let _ = write!(out, "{name}={}", percent_encode(value, ESCAPED));
}

fn event_name(event: Event) -> Option<&'static str> {
    match event {
        Event::None => None,
        Event::Started => Some("started"),
        Event::Stopped => Some("stopped"),
        Event::Completed => Some("completed"),
    }
}

/// Reads the query of an announce, without its `?`. Unknown parameters and events are ignored, the first
/// of a repeated one counts, and missing numbers are 0, but for `left`: a client that does not send it is
/// a leecher. `ip`, `ipv4` and `ipv6` are ignored, since nothing proves them.
///
/// # Errors
/// [`QueryError`] if `info_hash`, `peer_id` or `port` is missing, or a parameter is invalid.
pub fn parse_announce(query: &str) -> Result<HttpAnnounce, QueryError> {
    let parameters = parameters(query)?;
    let find = |name: &str| {
        let mut found = parameters
            .iter()
            .filter(|(key, _)| &**key == name.as_bytes());
        found.next().map(|(_, value)| &**value)
    };
    let id = |name: &'static str| {
        let value = find(name).ok_or(QueryError::Missing(name))?;
        <[u8; 20]>::try_from(value).map_err(|_| QueryError::Invalid(name))
    };
    let number = |name, missing| find(name).map_or(Ok(missing), |value| self::number(name, value));
    let request = AnnounceRequest {
        info_hash: id("info_hash")?,
        peer_id: id("peer_id")?,
        port: find("port")
            .ok_or(QueryError::Missing("port"))
            .and_then(|value| self::number("port", value))?
            .try_into()
            .map_err(|_| QueryError::Invalid("port"))?,
        uploaded: number("uploaded", 0)?,
        downloaded: number("downloaded", 0)?,
        left: number("left", u64::MAX)?,
        event: match find("event") {
            Some(b"started") => Event::Started,
            Some(b"stopped") => Event::Stopped,
            Some(b"completed") => Event::Completed,
            _ => Event::None,
        },
        // Negative for as many as the tracker likes.
        num_want: find("numwant").and_then(|value| as_str(value)?.parse().ok()),
        key: find("key").map_or(0, key),
        scion: find("scion").map(scion).transpose()?,
        tracker_id: find("trackerid")
            .filter(|id| id.len() <= MAX_TRACKER_ID)
            .map(<[u8]>::to_vec),
    };
    Ok(HttpAnnounce {
        request,
        compact: find("compact") != Some(b"0"),
    })
}

/// The value of `scion` in a query that need not be one of an announce, if it is there and an address.
pub(crate) fn find_scion(query: &str) -> Option<ScionAddr> {
    let parameters = parameters(query).ok()?;
    let (_, value) = parameters.iter().find(|(key, _)| &**key == b"scion")?;
    scion(value).ok()
}

fn scion(value: &[u8]) -> Result<ScionAddr, QueryError> {
    let parsed = as_str(value).and_then(|text| text.parse().ok());
    parsed.ok_or(QueryError::Invalid("scion"))
}

type Parameter<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// The parameters of a query, in their order, with escapes resolved.
pub(super) fn parameters(query: &str) -> Result<Vec<Parameter<'_>>, QueryError> {
    if query.len() > MAX_QUERY {
        return Err(QueryError::Long(query.len()));
    }
    let parts = || query.split('&').filter(|part| !part.is_empty());
    if parts().count() > MAX_PARAMETERS {
        return Err(QueryError::Parameters);
    }
    let pair = |part| {
        let (name, value) = str::split_once(part, '=').unwrap_or((part, ""));
        (unescape(name), unescape(value))
    };
    Ok(parts().map(pair).collect())
}

/// As forms are decoded, `+` is a space.
fn unescape(text: &str) -> Cow<'_, [u8]> {
    if !text.contains('+') {
        return percent_decode_str(text).into();
    }
    let spaced = text.replace('+', " ");
    Cow::Owned(percent_decode_str(&spaced).collect())
}

/// A number that is not negative; one that is, or is beyond 64 bits, is read as the largest: programs
/// send `left=-1` while they do not know it.
fn number(name: &'static str, value: &[u8]) -> Result<u64, QueryError> {
    let text = as_str(value).ok_or(QueryError::Invalid(name))?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(QueryError::Invalid(name));
    }
    Ok(text.parse().unwrap_or(u64::MAX))
}

/// Most programs send eight hexadecimal digits; of others a number is made.
fn key(value: &[u8]) -> u32 {
    let hex = as_str(value).and_then(|text| u32::from_str_radix(text, 16).ok());
    hex.unwrap_or_else(|| {
        let fold = |sum: u32, byte: &u8| sum.wrapping_mul(31).wrapping_add(u32::from(*byte));
        value.iter().fold(7, fold)
    })
}

fn as_str(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::any_request;

    fn query(url: &str) -> &str {
        url.split_once('?').expect("a query").1
    }

    proptest! {
        #[test]
        fn announces_are_read_back(request in any_request(), form in 0usize..4) {
            let url = ["http://t/a", "http://t/a?", "http://t/a?key=x&b", "http://t/a?b=1&#f"][form];
            let written = announce_url(url, &request);
            prop_assert!(written.len() < 1500 && !written.contains('#') && !written.contains("&&"));
            let read = parse_announce(query(&written));
            // The first of a repeated parameter counts.
            let key = if form == 2 { super::key(b"x") } else { request.key };
            let request = AnnounceRequest { key, ..request };
            prop_assert_eq!(read, Ok(HttpAnnounce { request, compact: true }));
        }

        #[test]
        fn any_query_is_read_or_refused(query in "([a-z_]{0,9}=?(%[0-9a-f]{2}|.){0,20}&?){0,9}") {
            let _ = parse_announce(&query);
            let _ = find_scion(&query);
        }
    }

    #[test]
    fn queries_of_other_programs_are_read() {
        let base = "info_hash=aaaaaaaaaaaaaaaaaaa+&peer_id=%2dXX0001-bbbbbbbbbbbb&port=6881";
        let read = |more: &str| parse_announce(&format!("{base}{more}"));
        let plain = read("").expect("an announce");
        assert!(plain.compact);
        assert_eq!(plain.request.info_hash[19], b' ');
        assert_eq!(plain.request.peer_id[0], b'-');
        assert_eq!(plain.request.left, u64::MAX);
        let event = |more| read(more).expect("an announce").request.event;
        assert_eq!(event("&event=completed&event=started"), Event::Completed);
        assert_eq!(event("&event="), Event::None);
        assert_eq!(event("&event=paused"), Event::None);
        let request = |more| read(more).expect("an announce").request;
        assert_eq!(request("&left=-1").left, u64::MAX);
        assert_eq!(request("&left=0").left, 0);
        assert_eq!(request("&numwant=-1").num_want, None);
        assert_eq!(request("&numwant=5").num_want, Some(5));
        assert_eq!(request("&key=DEADBEEF").key, 0xdead_beef);
        assert_ne!(request("&key=not+hex").key, request("&key=not+hey").key);
        assert!(!read("&compact=0").expect("an announce").compact);
        for (more, error) in [
            ("&left=x", QueryError::Invalid("left")),
            ("&uploaded=", QueryError::Invalid("uploaded")),
            ("&scion=10.0.0.1:5", QueryError::Invalid("scion")),
        ] {
            assert_eq!(read(more), Err(error));
        }
        assert_eq!(parse_announce(""), Err(QueryError::Missing("info_hash")));
        let no_port = base.replace("&port=6881", "");
        assert_eq!(parse_announce(&no_port), Err(QueryError::Missing("port")));
        let short = "info_hash=a&peer_id=b&port=1";
        assert_eq!(parse_announce(short), Err(QueryError::Invalid("info_hash")));
        let port = base.replace("6881", "65536");
        assert_eq!(parse_announce(&port), Err(QueryError::Invalid("port")));
        let long = format!("{base}&x={}", "y".repeat(MAX_QUERY));
        assert!(matches!(parse_announce(&long), Err(QueryError::Long(_))));
        let many = "a=b&".repeat(MAX_PARAMETERS + 1);
        assert_eq!(parse_announce(&many), Err(QueryError::Parameters));
    }
}
