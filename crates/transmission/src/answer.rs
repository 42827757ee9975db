//! Bodies of requests become bodies of answers.

use crate::client::Client;
use crate::json::{Json, Object};
use crate::methods::{self, Call};
use crate::names::{Form, Name};
use crate::request::{Reply, Request, parse};

/// Answers the body of a request. `None` is no answer: status 204 of HTTP, for a notification of
/// JSON-RPC. All others have status 200, also errors, and the type `application/json`.
///
/// `session_id` is [`Session::id`](crate::Session::id). The client is called in this thread,
/// several times for some requests.
pub fn answer(body: &[u8], session_id: &str, client: &mut dyn Client) -> Option<Vec<u8>> {
    let request = match parse(body) {
        Ok(request) => request,
        Err((error, reply)) => {
            let (code, short) = error.code();
            return failure(&reply, code, short, &error.to_string());
        }
    };
    let Request {
        reply,
        method,
        args,
    } = request;
    let mut call = Call {
        args: &args,
        session_id,
        client,
    };
    if reply.is_notification() {
        // JSON-RPC 2.0, section 4.1: not even an error is answered.
        if methods::has_effect(&method) {
            let mut ignored = Json::new(Form::New);
            ignored.object(|result| drop(methods::run(&method, &mut call, result)));
        }
        return None;
    }
    let mut json = Json::new(reply.form);
    let mut failed = None;
    json.object(|object| {
        begin(&reply, object);
        let name = Name::new("result", "arguments");
        object.key(name).object(|result| {
            failed = methods::run(&method, &mut call, result).err();
        });
        if reply.form == Form::Old {
            object.field(Name::same("result"), "success");
        }
        end(&reply, object);
    });
    match failed {
        None => Some(json.into_text()),
        Some(error) => {
            let (code, short) = error.code();
            failure(&reply, code, short, &error.to_string())
        }
    }
}

/// An answer with an error, unless none is wanted.
fn failure(reply: &Reply, code: i32, short: &str, text: &str) -> Option<Vec<u8>> {
    if reply.is_notification() {
        return None;
    }
    let mut json = Json::new(reply.form);
    json.object(|object| {
        begin(reply, object);
        match reply.form {
            Form::Old => {
                object.key(Name::same("arguments")).object(|_| {});
                object.field(Name::same("result"), text);
            }
            Form::New => object.key(Name::same("error")).object(|error| {
                error.field(Name::same("code"), &code);
                error.field(Name::same("message"), short);
                if text != short {
                    let data = error.key(Name::same("data"));
                    data.object(|data| data.field(Name::same("error_string"), text));
                }
            }),
        }
        end(reply, object);
    });
    Some(json.into_text())
}

fn begin(reply: &Reply, object: &mut Object<'_>) {
    if reply.form == Form::New {
        object.field(Name::same("jsonrpc"), "2.0");
    }
}

fn end(reply: &Reply, object: &mut Object<'_>) {
    if let Some(id) = &reply.id {
        object.field(Name::new("id", "tag"), id);
    }
}
