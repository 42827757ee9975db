//! Bodies become requests.

use serde_json::{Map, Value};

use crate::args::Args;
use crate::error::RequestError;
use crate::limits::{MAX_BODY, MAX_VALUES};
use crate::names::{Form, canonical};

/// A request.
#[derive(Debug)]
pub(crate) struct Request {
    /// Where its answer goes.
    pub reply: Reply,
    /// The method in snake_case.
    pub method: String,
    /// Its arguments.
    pub args: Args,
}

/// What an answer repeats of its request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reply {
    pub form: Form,
    /// `tag` or `id`. A request of the old form without a tag gets an answer without one; one of
    /// JSON-RPC without an id is a notification and gets no answer.
    pub id: Option<Value>,
}

impl Reply {
    /// To what cannot be related to a request. JSON-RPC 2.0, section 5: the id is null then.
    const fn unrelated() -> Self {
        Self {
            form: Form::New,
            id: Some(Value::Null),
        }
    }

    /// Whether no answer is wanted.
    pub fn is_notification(&self) -> bool {
        self.form == Form::New && self.id.is_none()
    }
}

/// Reads a request.
///
/// # Errors
/// What is wrong, and where the answer goes that says so.
pub(crate) fn parse(body: &[u8]) -> Result<Request, (RequestError, Reply)> {
    let unrelated = |error| (error, Reply::unrelated());
    let object = object(body).map_err(unrelated)?;
    match object.get("jsonrpc") {
        None => old(object),
        Some(Value::String(version)) if version == "2.0" => new(object),
        Some(_) => Err(unrelated(RequestError::Version)),
    }
}

fn object(body: &[u8]) -> Result<Map<String, Value>, RequestError> {
    if body.len() > MAX_BODY {
        return Err(RequestError::TooLong);
    }
    if values(body) > MAX_VALUES {
        return Err(RequestError::TooManyValues);
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(Value::Array(_)) => Err(RequestError::Batch),
        Ok(_) => Err(RequestError::NotObject),
        Err(error) => Err(RequestError::Json(error.to_string())),
    }
}

/// How many values a valid JSON text has, at most: each begins the text or follows one of `[{,:`.
fn values(body: &[u8]) -> usize {
    let (mut count, mut is_text, mut is_escaped) = (1, false, false);
    for byte in body {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b'[' | b'{' | b',' | b':' if !is_text => count += 1,
            _ => {}
        }
    }
    count
}

fn old(mut object: Map<String, Value>) -> Result<Request, (RequestError, Reply)> {
    // Transmission repeats integers alone; there are clients that send texts.
    let id = object.remove("tag");
    let reply = Reply {
        form: Form::Old,
        id: id.filter(|tag| tag.is_number() || tag.is_string()),
    };
    finish(object, "arguments", reply)
}

fn new(mut object: Map<String, Value>) -> Result<Request, (RequestError, Reply)> {
    let id = object.remove("id");
    if let Some(Value::Bool(_) | Value::Array(_) | Value::Object(_)) = id {
        return Err((RequestError::Id, Reply::unrelated()));
    }
    let form = Form::New;
    finish(object, "params", Reply { form, id })
}

fn finish(
    mut object: Map<String, Value>,
    arguments: &'static str,
    reply: Reply,
) -> Result<Request, (RequestError, Reply)> {
    let Some(Value::String(method)) = object.remove("method") else {
        return Err((RequestError::NoMethod, reply));
    };
    let args = match object.remove(arguments) {
        None | Some(Value::Null) => Args::default(),
        Some(Value::Object(map)) => Args::new(map),
        Some(_) => return Err((RequestError::Arguments(arguments), reply)),
    };
    Ok(Request {
        reply,
        method: canonical(&method).into_owned(),
        args,
    })
}

#[cfg(test)]
mod tests {
    use hawser_fuzz::fuzz;
    use serde_json::json;

    use super::*;

    fn refused(body: &str) -> (RequestError, Reply) {
        parse(body.as_bytes()).expect_err(body)
    }

    #[test]
    fn requests_of_both_forms_are_read() {
        let old = parse(br#"{"method":"torrent-get","arguments":{"ids":1},"tag":4}"#).unwrap();
        assert_eq!(old.method, "torrent_get");
        assert_eq!(old.reply.form, Form::Old);
        assert_eq!(old.reply.id, Some(json!(4)));
        let new = parse(br#"{"jsonrpc":"2.0","method":"torrent_get","id":"a"}"#).unwrap();
        assert_eq!(new.method, "torrent_get");
        assert_eq!(new.reply.form, Form::New);
        assert_eq!(new.reply.id, Some(json!("a")));
        let bare = parse(br#"{"method":"session-stats","arguments":null,"tag":[]}"#).unwrap();
        assert_eq!(bare.reply.id, None);
        assert!(!bare.reply.is_notification());
        let notification = parse(br#"{"jsonrpc":"2.0","method":"torrent_stop"}"#).unwrap();
        assert!(notification.reply.is_notification());
        let null = parse(br#"{"jsonrpc":"2.0","method":"torrent_stop","id":null}"#).unwrap();
        assert!(!null.reply.is_notification());
    }

    #[test]
    fn what_is_no_request_is_refused_by_name() {
        for (body, error) in [
            ("[]", RequestError::Batch),
            ("1", RequestError::NotObject),
            (r#"{"jsonrpc":"1.0","id":1}"#, RequestError::Version),
            (r#"{"jsonrpc":"2.0","id":[1]}"#, RequestError::Id),
        ] {
            assert_eq!(refused(body), (error, Reply::unrelated()));
        }
        assert!(matches!(refused("{").0, RequestError::Json(_)));
        let (error, reply) = refused(r#"{"tag":7}"#);
        assert_eq!((error, reply.id), (RequestError::NoMethod, Some(json!(7))));
        let (error, _) = refused(r#"{"jsonrpc":"2.0","method":"x","params":[1],"id":1}"#);
        assert_eq!(error, RequestError::Arguments("params"));
    }

    #[test]
    fn length_values_and_nesting_are_bounded() {
        let many = format!("[{}0]", "0,".repeat(MAX_VALUES));
        assert_eq!(refused(&many).0, RequestError::TooManyValues);
        assert!(matches!(
            refused(&"[".repeat(1000)).0,
            RequestError::Json(_)
        ));
        let long = format!("\"{}\"", "a".repeat(MAX_BODY));
        assert_eq!(refused(&long).0, RequestError::TooLong);
        // Commas within a text are no values.
        let text = format!(
            "\"{}\\\"{}\"",
            ",".repeat(MAX_VALUES),
            ",".repeat(MAX_VALUES)
        );
        assert_eq!(refused(&text).0, RequestError::NotObject);
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let valid = [
            r#"{"method":"torrent-get","arguments":{"ids":[1,"x"],"fields":["id"]},"tag":4}"#,
            r#"{"jsonrpc":"2.0","method":"session_get","params":{"fields":["version"]},"id":1.5}"#,
            r#"{"jsonrpc":"2.0","method":"a\"b\\","id":null}"#,
        ];
        let valid: Vec<_> = valid.iter().map(|text| text.as_bytes().to_vec()).collect();
        fuzz(&valid, |input| {
            if let Err((error, reply)) = parse(input) {
                assert!(!error.to_string().is_empty());
                assert!(reply.id.is_none_or(|id| !id.is_object()));
            }
        });
    }
}
