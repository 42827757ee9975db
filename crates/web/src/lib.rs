//! The pages and HTTP APIs of link limits and of the coordinator.
//!
//! - [`App`]: everything that answers requests share.
//! - [`router`]: which function answers what.
//! - [`description`]: the description of the API, as OpenAPI 3.1.
//! - [`sample`]: reads the use of links each second, for live data and history.

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
