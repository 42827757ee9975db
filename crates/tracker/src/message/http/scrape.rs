//! Scrapes over HTTP (BEP 48).

use std::collections::BTreeMap;

use hawser_bencode::{Dict, Value};

use super::answer::{AnswerError, count, read_dict};
use super::query::{self, QueryError};
use crate::message::announce::Scraped;

/// Most info-hashes of one scrape, as over UDP (BEP 15).
pub const MAX_SCRAPE: usize = 74;

/// The URL at which the tracker at the announce URL `url` is scraped, by the convention that the last part
/// of its path begins with `announce`; `None` if it does not, and there is none.
pub fn scrape_url(url: &str) -> Option<String> {
    let url = url.split('#').next().unwrap_or_default();
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let (front, last) = path.rsplit_once('/')?;
    let rest = last.strip_prefix("announce")?;
    let mut out = format!("{front}/scrape{rest}");
    if !query.is_empty() {
        out.push('?');
        out.push_str(query);
    }
    Some(out)
}

/// The URL that is fetched to scrape these info-hashes, of which the first [`MAX_SCRAPE`] are asked
/// for, at `url` ([`scrape_url`]).
pub fn scrape_query(url: &str, info_hashes: &[[u8; 20]]) -> String {
    let mut out = query::begin(url);
    for info_hash in info_hashes.iter().take(MAX_SCRAPE) {
        query::push(&mut out, "info_hash", info_hash);
    }
    out
}

/// Reads the query of a scrape, without its `?`. Returns at most [`MAX_SCRAPE`] info-hashes.
///
/// # Errors
/// [`QueryError`] if it names none: all swarms at once are not given; or if it is malformed.
pub fn parse_scrape(query: &str) -> Result<Vec<[u8; 20]>, QueryError> {
    let parameters = query::parameters(query)?;
    let hashes = parameters.iter().filter(|(key, _)| &**key == b"info_hash");
    let hash = |value: &[u8]| {
        value
            .try_into()
            .map_err(|_| QueryError::Invalid("info_hash"))
    };
    let hashes: Vec<_> = hashes
        .take(MAX_SCRAPE)
        .map(|(_, value)| hash(value))
        .collect::<Result<_, _>>()?;
    match hashes.is_empty() {
        true => Err(QueryError::Missing("info_hash")),
        false => Ok(hashes),
    }
}

/// Reads the answer to a scrape. Returns the numbers of at most [`MAX_SCRAPE`] swarms; missing numbers
/// are 0.
///
/// # Errors
/// [`AnswerError`] if it is not an answer, or a refusal.
pub fn read_scrape(bytes: &[u8]) -> Result<BTreeMap<[u8; 20], Scraped>, AnswerError> {
    let dict = read_dict(bytes)?;
    let files = dict.dict("files").ok_or(AnswerError::Shape)?;
    let file = |(hash, value): &(&[u8], Value<'_>)| {
        let numbers: &Dict<'_> = value.as_dict()?;
        let number = |key| count(numbers, key).unwrap_or(0);
        let scraped = Scraped {
            complete: number("complete"),
            downloaded: number("downloaded"),
            incomplete: number("incomplete"),
        };
        Some((<[u8; 20]>::try_from(*hash).ok()?, scraped))
    };
    Ok(files
        .entries
        .iter()
        .filter_map(file)
        .take(MAX_SCRAPE)
        .collect())
}

/// Writes the answer to a scrape.
pub fn write_scrape(swarms: &BTreeMap<[u8; 20], Scraped>) -> Vec<u8> {
    let numbers = |scraped: &Scraped| {
        let int = |number: u32| Some(Value::Int(number.into()));
        Value::dict([
            ("complete", int(scraped.complete)),
            ("downloaded", int(scraped.downloaded)),
            ("incomplete", int(scraped.incomplete)),
        ])
    };
    let files = swarms
        .iter()
        .map(|(hash, scraped)| (hash, Some(numbers(scraped))));
    Value::dict([("files", Some(Value::dict(files)))]).encode()
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;

    fn any_scraped() -> impl Strategy<Value = Scraped> {
        any::<[u32; 3]>().prop_map(|[complete, downloaded, incomplete]| Scraped {
            complete,
            downloaded,
            incomplete,
        })
    }

    proptest! {
        #[test]
        fn scrapes_are_read_back(swarms in btree_map(any::<[u8; 20]>(), any_scraped(), 1..10)) {
            let hashes: Vec<_> = swarms.keys().copied().collect();
            let url = scrape_query("http://t/scrape?a=b", &hashes);
            let (_, query) = url.split_once('?').expect("a query");
            prop_assert_eq!(parse_scrape(query), Ok(hashes));
            prop_assert_eq!(read_scrape(&write_scrape(&swarms)), Ok(swarms));
        }

        #[test]
        fn any_scrape_is_read_or_refused(bytes in vec(any::<u8>(), 0..200), query in "\\PC{0,60}") {
            let _ = read_scrape(&bytes);
            let _ = parse_scrape(&query);
        }
    }

    #[test]
    fn most_info_hashes_fit_a_query() {
        let url = scrape_query("http://t/scrape", &[[0; 20]; 100]);
        let (_, query) = url.split_once('?').expect("a query");
        assert_eq!(
            parse_scrape(query).map(|hashes| hashes.len()),
            Ok(MAX_SCRAPE)
        );
    }

    #[test]
    fn urls_of_scrapes_follow_the_convention() {
        // BEP 48 and its examples.
        for (announce, scrape) in [
            ("http://a/announce", Some("http://a/scrape")),
            ("http://a/x/announce", Some("http://a/x/scrape")),
            ("http://a/announce.php", Some("http://a/scrape.php")),
            ("http://a/a", None),
            ("http://a/announce?x2%0644", Some("http://a/scrape?x2%0644")),
            ("http://a/announce?x=2/4", Some("http://a/scrape?x=2/4")),
            ("http://a/x%064announce", None),
            ("announce", None),
        ] {
            assert_eq!(scrape_url(announce).as_deref(), scrape, "{announce}");
        }
    }

    #[test]
    fn odd_scrapes_are_refused() {
        assert_eq!(parse_scrape("a=b"), Err(QueryError::Missing("info_hash")));
        let short = parse_scrape("info_hash=abc");
        assert_eq!(short, Err(QueryError::Invalid("info_hash")));
        assert_eq!(read_scrape(b"d5:filesi1ee"), Err(AnswerError::Shape));
        assert_eq!(read_scrape(b"d5:filesd3:abcdeee"), Ok(BTreeMap::new()));
    }
}
