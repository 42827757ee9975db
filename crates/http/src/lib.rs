//! What every HTTP server of hawser needs.
//!
//! - [`Listener`]: a socket for plain HTTP or TLS, with bounds on connections and times; each
//!   request carries its [`Peer`].
//! - [`Tls`]: TLS by files, with certificates of clients where wanted.
//! - [`Token`], [`TokenHash`]: secrets of users, and what is stored of them.
//! - [`Users`], [`by_bearer`], [`by_token`]: the user that a request comes from; [`Attempts`]: wrong
//!   tokens, and how long their senders wait.
//! - [`Sessions`]: sessions of browsers, by cookies; [`may_be_from_page`]: requests that pages make.
//! - [`Topic`]: streams of events; [`asset()`]: files of pages that are inside the program; [`page`]: what
//!   all pages share.
//! - [`notify()`]: readiness, for systemd; [`Listener::serve_health`]: for probes.
//! - [`read_body`], [`read_json`]: bodies of bounded length and time.
//! - [`Metrics`]: metrics for Prometheus; [`LimitMetric`]: those of limits of links.
//! - [`describe`]: what descriptions of APIs share; [`api()`]: an API of several parts, with one description
//!   and one set of metrics.
//! - [`JsonError`], [`json`], [`json_errors`]: answers; [`plain_words`]: what is wrong with a value.
//!
//! The life of a connection. A [`Listener`] accepts it if there is room, in place of one that waits for a
//! request if need be. It makes the handshake, then *waits* for requests and is *busy* with one, by turns
//! (`admission`). It ends with the client, when a head or a handshake takes more than 10 s, when what was
//! written is not taken in for 30 s, or when it makes room. A task runs each connection, one accepts, and
//! one looks each second whether the files of TLS have changed. All end when the future of the listener is
//! dropped.
//!
//! Bounds: 256 connections unless said otherwise, 10,000 sessions and as many addresses with wrong tokens,
//! of which the oldest make room, and one event of each [`Topic`].
//!
//! The table of connections, the sessions, the wrong tokens and the present TLS have a lock each. None is
//! taken under another of them, and each only for a look or a change in memory: files are read before, and
//! nothing is awaited. [`Sessions::user`] calls `find` under its lock: that must not use the sessions.

mod admission;
mod alone;
mod answer;
mod asset;
mod attempts;
mod body;
mod busy;
pub mod describe;
mod events;
mod explain;
mod health;
mod limit_metrics;
mod listener;
mod metrics;
mod metrics_only;
mod notify;
mod origin;
pub mod page;
mod parts;
mod sessions;
mod strict;
mod tls;
mod token;
mod users;

pub use self::answer::{JsonError, json, json_errors, nothing, prometheus};
pub use self::asset::asset;
pub use self::attempts::Attempts;
pub use self::body::{BodyError, read_body, read_json};
pub use self::events::Topic;
pub use self::explain::plain_words;
pub use self::limit_metrics::{LimitLabels, LimitMetric};
pub use self::listener::{Listener, Peer};
pub use self::metrics::{Metric, MetricKind, Metrics};
pub use self::notify::{READY, STOPPING, notify};
pub use self::origin::{NO_PAGES, PAGE_HEADER, is_own_page, may_be_from_page};
pub use self::parts::{ApiPart, MetricsSource, api, described};
pub use self::sessions::{Sessions, SignedIn, session_cookie, set_session_cookie};
pub use self::tls::{Tls, TlsError, TlsFiles};
pub use self::token::{Token, TokenHash};
pub use self::users::{AuthError, Users, by_bearer, by_token};
