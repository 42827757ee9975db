//! The pages and HTTP APIs of link limits and of the coordinator.
//!
//! - [`App`]: everything that answers requests share.
//! - [`router`]: which function answers what.
//! - [`description`]: the description of the API, as OpenAPI 3.1.
//! - [`sample()`]: reads the use of links each second, for live data and history.
//!
//! The life of it. An [`App`] is made once, and shared by the requests and by [`sample()`]; it begins without
//! sessions and history, and keeps nothing on disk. The task of a connection (`hawser-http`) answers its
//! requests. That of [`sample()`] takes the last reports once a second and after each change, adds them to
//! the history, and publishes them; it and the server end when their futures are dropped. Changes and
//! archives, which wait for the disk, are made on threads for blocking work.
//!
//! In memory are, for each link and direction, ten minutes by the second, a day by the minute and 1000
//! changes of the limit, the last event and the last two answers for all readers, and the sessions and
//! wrong tokens that `hawser-http` bounds.
//!
//! Locks: the history, the last sample, and the answer with all links have one each (`live`, `links_body`).
//! While that answer is written its lock is held, and those of the coordinator are taken under it to read
//! the state; the others are taken alone. The lock of the sessions is held while the user of one is looked
//! up in a state that was taken before. None is held across an await or while the disk is waited for.

mod answers;
mod api;
mod app;
mod auth;
mod history;
mod host_api;
mod links_body;
mod live;
mod page;
mod routes;
mod sample;
mod sampler;
mod view;

pub use self::app::{App, AppOptions, Origin, OriginError};
pub use self::routes::{description, router};
pub use self::sample::sample;
