//! Announces and scrapes over HTTP (BEP 3, 7, 23, 24, 31, 48).

mod answer;
mod query;
mod scrape;

pub use self::answer::{AnswerError, MAX_ANSWER, failure, read_answer, write_answer};
pub use self::query::{HttpAnnounce, MAX_QUERY, QueryError, announce_url, parse_announce};
pub(super) use self::query::{find_scion, push};
pub use self::scrape::{
    MAX_SCRAPE, parse_scrape, read_scrape, scrape_query, scrape_url, write_scrape,
};
