//! Errors of requests, and parameters of queries.

use axum::http::StatusCode;
use hawser_coordinator::ChangeError;
use hawser_http::JsonError;

/// Longest body of a request, in bytes.
pub(crate) const MAX_BODY: usize = 64 * 1024;

/// The answer to a change that is not made.
pub(crate) fn refused(error: ChangeError) -> JsonError {
    let status = match &error {
        ChangeError::Denied(_) => StatusCode::FORBIDDEN,
        ChangeError::Unknown(_) => StatusCode::NOT_FOUND,
        ChangeError::Conflict(_) => StatusCode::CONFLICT,
        ChangeError::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    };
    JsonError(status, error.to_string())
}

pub(crate) fn bad(reason: impl Into<String>) -> JsonError {
    JsonError(StatusCode::BAD_REQUEST, reason.into())
}

/// Makes a change, which blocks until it is on disk.
pub(crate) async fn change<T: Send + 'static>(
    make: impl FnOnce() -> Result<T, ChangeError> + Send + 'static,
) -> Result<T, JsonError> {
    match tokio::task::spawn_blocking(make).await {
        Ok(made) => made.map_err(refused),
        Err(error) => Err(JsonError(
            StatusCode::INTERNAL_SERVER_ERROR,
            error.to_string(),
        )),
    }
}

/// A number in a path, as that of a link.
pub(crate) fn number(what: &str, text: &str) -> Result<u64, JsonError> {
    let unknown = |_| {
        JsonError(
            StatusCode::NOT_FOUND,
            format!("there is no {what} {text:?}"),
        )
    };
    text.parse().map_err(unknown)
}

/// The parameters of a query. Each one is read by name; what is not known is refused.
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub fn new(query: Option<&str>, known: &[&str]) -> Result<Self, JsonError> {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned();
        let pairs: Vec<_> = pairs.collect();
        match pairs
            .iter()
            .find(|(name, _)| !known.contains(&name.as_str()))
        {
            Some((name, _)) => Err(bad(format!(
                "there is no parameter {name:?}: there are {}",
                known.join(", ")
            ))),
            None => Ok(Self(pairs)),
        }
    }

    /// The number of a parameter, if it is given.
    pub fn number(&self, name: &str) -> Result<Option<u64>, JsonError> {
        let Some((_, text)) = self.0.iter().find(|(key, _)| key == name) else {
            return Ok(None);
        };
        let number = text.parse().map(Some);
        number.map_err(|_| bad(format!("{name}={text:?} is not a number")))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_query_is_read_or_refused(query: String) {
            if let Ok(query) = Query::new(Some(&query), &["a"]) {
                let _ = query.number("a");
            }
        }

        #[test]
        fn numbers_of_a_query_are_read(number: u64) {
            let query = Query::new(Some(&format!("a={number}")), &["a", "b"]).unwrap();
            prop_assert_eq!(query.number("a").unwrap(), Some(number));
            prop_assert_eq!(query.number("b").unwrap(), None);
        }
    }
}
