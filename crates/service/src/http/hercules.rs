//! The API of Hercules' monitor, with its parameters and answers, so that what was made for it
//! works: `hcp`, and the plug-in for gfal2 and FTS.
//!
//! The plug-in reads at most 99 bytes of an answer: all of them are shorter.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;

use super::answer::{Line, TextError};
use super::caller::Requester;
use super::describe::{AskedTransfer, TextNotStored, TextRefused};
use crate::job::{FailureKind, Job, JobId, JobState};
use crate::service::{NewJob, RequestError, Service};
use crate::users::PlaceError;

/// The first value of a parameter.
fn parameter(query: Option<&str>, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let (_, value) = pairs.find(|(key, _)| key == name)?;
    Some(value.into_owned())
}

fn bad(what: &str) -> TextError {
    TextError(StatusCode::BAD_REQUEST, what.to_owned())
}

/// Submit a transfer: `OK ID`
#[utoipa::path(
    get, path = "/submit",
    params(
        ("file" = String, Query, example = "run.bin", description = "The source."),
        ("dest" = String, Query, example = "1-ff00:0:111,10.0.2.1:31000",
            description = "The server."),
        ("destfile" = String, Query, example = "run",
            description = "The name there, below the server's folder."),
        ("payloadlen" = Option<i64>, Query,
            minimum = -9223372036854775808i64, maximum = 9223372036854775807i64,
            description = "Changes nothing."),
        ("priority" = Option<i8>, Query, minimum = -128, maximum = 127,
            description = "Its priority."),
    ),
    responses(
        (status = 200, body = Line, content_type = "text/plain",
            description = "`OK`, and what was asked for"),
        TextRefused,
        (status = 503, response = TextNotStored),
    ),
)]
pub(super) async fn submit(
    State(service): State<Service>,
    Requester(user): Requester,
    RawQuery(query): RawQuery,
) -> Result<Line, TextError> {
    let of = |name| parameter(query.as_deref(), name);
    let (Some(source), Some(server), Some(destination)) = (of("file"), of("dest"), of("destfile"))
    else {
        return Err(bad("Missing parameter\n"));
    };
    let priority = of("priority").map_or(Ok(0), |text| text.parse());
    // The length of packets follows the paths here: it is read, and changes nothing.
    let payload = of("payloadlen").map_or(Ok(0), |text| text.parse::<i64>());
    let (Ok(server), Ok(priority), Ok(_)) = (server.parse(), priority, payload) else {
        return Err(bad("parse err\n"));
    };
    // The server's folder is what the root is for the monitor.
    let relative = destination.trim_start_matches('/');
    let new = NewJob {
        source,
        server,
        destination: relative.to_owned(),
        priority,
    };
    let job = service.submit(&user, new).await.map_err(failed)?;
    Ok(Line(format!("OK {}\n", job.id)))
}

/// A transfer: `OK STATUS STATE ERROR SECONDS BYTES`
#[utoipa::path(
    get, path = "/status",
    params(AskedTransfer),
    responses(
        (status = 200, body = Line, content_type = "text/plain",
            description = "`OK`, and what was asked for"),
        TextRefused,
    ),
)]
pub(super) async fn status(
    State(service): State<Service>,
    Requester(user): Requester,
    RawQuery(query): RawQuery,
) -> Result<Line, TextError> {
    let id = id(query.as_deref())?;
    let job = service.job(&user, id).await.map_err(failed)?;
    Ok(Line(status_line(&job, service.now())))
}

/// Cancel a transfer: `OK`
#[utoipa::path(
    get, path = "/cancel",
    params(AskedTransfer),
    responses(
        (status = 200, body = Line, content_type = "text/plain",
            description = "`OK`, and what was asked for"),
        TextRefused,
        (status = 503, response = TextNotStored),
    ),
)]
pub(super) async fn cancel(
    State(service): State<Service>,
    Requester(user): Requester,
    RawQuery(query): RawQuery,
) -> Result<Line, TextError> {
    match service.cancel(&user, id(query.as_deref())?).await {
        // What has ended needs no cancelling.
        Ok(_) | Err(RequestError::Ended(_)) => Ok(Line("OK\n".to_owned())),
        Err(error) => Err(failed(error)),
    }
}

/// A file: `OK EXISTS SIZE`
#[utoipa::path(
    get, path = "/stat",
    params(
        ("file" = String, Query, example = "run.bin", description = "The file."),
    ),
    responses(
        (status = 200, body = Line, content_type = "text/plain",
            description = "`OK`, and what was asked for"),
        TextRefused,
    ),
)]
pub(super) async fn stat(
    State(service): State<Service>,
    Requester(user): Requester,
    RawQuery(query): RawQuery,
) -> Result<Line, TextError> {
    let file = parameter(query.as_deref(), "file");
    let file = file.ok_or_else(|| bad("missing parameter\n"))?;
    match service.size(&user, &file).await {
        Ok(Some(size)) => Ok(Line(format!("OK 1 {size}\n"))),
        Ok(None) => Ok(Line("OK 0 0\n".to_owned())),
        Err(PlaceError::Special(_)) => Err(bad("File is not a regular file or directory\n")),
        Err(_) => Err(bad("err\n")),
    }
}

/// Where others send to: `OK ADDR`, without a line break, as the monitor answers
#[utoipa::path(
    get, path = "/server",
    responses(
        (status = 200, body = Line, content_type = "text/plain",
            description = "`OK`, and what was asked for"),
        TextRefused,
        (status = 404, body = Line, content_type = "text/plain",
            description = "Nothing is received here, or not yet"),
    ),
)]
pub(super) async fn server(
    State(service): State<Service>,
    Requester(_): Requester,
) -> Result<Line, TextError> {
    let address = service.receiving().ok_or_else(|| {
        let text = match service.received() {
            None => "Nothing is received here\n",
            Some(_) => "Nothing is received yet: this host is in no SCION network\n",
        };
        TextError(StatusCode::NOT_FOUND, text.to_owned())
    })?;
    Ok(Line(format!("OK {address}")))
}

fn id(query: Option<&str>) -> Result<JobId, TextError> {
    let id = parameter(query, "id").ok_or_else(|| bad("missing parameter\n"))?;
    id.parse().map(JobId).map_err(|_| bad(""))
}

fn failed(error: RequestError) -> TextError {
    let (status, text) = match error {
        RequestError::Source(_) => (
            StatusCode::UNAUTHORIZED,
            "Source file does not exist or insufficient permissions\n".to_owned(),
        ),
        RequestError::Destination(_) | RequestError::Absolute(_) => {
            return bad("destfile is no path below the server's folder\n");
        }
        RequestError::Submit(error) => (StatusCode::TOO_MANY_REQUESTS, format!("{error}\n")),
        RequestError::NotYours(_) => (StatusCode::UNAUTHORIZED, String::new()),
        RequestError::Log(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "It cannot be written down: nothing was changed\n".to_owned(),
        ),
        RequestError::Unknown(_) | RequestError::Ended(_) => return bad(""),
    };
    TextError(status, text)
}

/// The monitor's `TransferStatus`.
const fn status_number(state: JobState) -> u8 {
    match state {
        JobState::Queued | JobState::Waiting { .. } => 0,
        JobState::Running => 1,
        JobState::Done | JobState::Failed | JobState::Cancelled => 3,
    }
}

/// The server's `session_state`.
const fn state_number(job: &Job) -> u8 {
    const PENDING: u8 = 1;
    const RUNNING_DATA: u8 = 5;
    match job.state {
        JobState::Queued | JobState::Waiting { .. } => 0,
        JobState::Running if job.progress.bytes == 0 => PENDING,
        JobState::Running => RUNNING_DATA,
        JobState::Done | JobState::Failed | JobState::Cancelled => 7,
    }
}

/// The server's `session_error`.
fn error_number(job: &Job) -> u8 {
    match job.state {
        JobState::Queued | JobState::Waiting { .. } | JobState::Running => 0,
        JobState::Done => 1,
        JobState::Cancelled => 7,
        JobState::Failed => match job.error.as_ref().map(|error| error.kind) {
            Some(FailureKind::Timeout) => 2,
            Some(FailureKind::NoPaths) => 6,
            // "Mapping file failed".
            Some(FailureKind::Source) => 9,
            Some(FailureKind::TooLarge) => 10,
            // "Could not initialise session".
            Some(FailureKind::Refused | FailureKind::Storage | FailureKind::Other) | None => 11,
        },
    }
}

fn status_line(job: &Job, now: u64) -> String {
    let until = job.ended.unwrap_or(now);
    let seconds = job
        .started
        .map_or(0, |started| until.saturating_sub(started));
    format!(
        "OK {} {} {} {seconds} {}\n",
        status_number(job.state),
        state_number(job),
        error_number(job),
        job.progress.verified_bytes
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parameters_are_read_as_go_reads_them() {
        let query = Some("file=/a%2Fb+c&dest=1-ff00:0:111,[10.0.0.1]:1&file=2&x");
        assert_eq!(parameter(query, "file").as_deref(), Some("/a/b c"));
        assert_eq!(
            parameter(query, "dest").as_deref(),
            Some("1-ff00:0:111,[10.0.0.1]:1")
        );
        assert_eq!(parameter(query, "x").as_deref(), Some(""));
        assert_eq!(parameter(query, "y"), None);
        assert_eq!(parameter(None, "y"), None);
    }

    proptest! {
        #[test]
        fn no_query_panics(query in "\\PC*", name in "[a-z%=&]*") {
            let _ = parameter(Some(&query), &name);
            let _ = id(Some(&query));
        }

        /// What is percent-encoded arrives.
        #[test]
        fn encoded_values_arrive(value in "\\PC*") {
            let encoded: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
            let query = format!("a=b&file={encoded}&c=d");
            prop_assert_eq!(parameter(Some(&query), "file"), Some(value));
        }
    }
}
