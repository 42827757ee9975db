//! Answers that are as described, and others.

use super::*;

const TEXT: &str = r##"{
    "paths": {
        "/a/{id}": {"get": {"responses": {
            "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}},
            "204": {"description": "nothing"}
        }}},
        "/a/b": {"get": {"responses": {"200": {"content": {"text/plain": {}}}}}},
        "/c": {"get": {"responses": {"200": {"content": {"application/json": {"schema": {"allOf": [
            {"$ref": "#/components/schemas/A"},
            {"oneOf": [
                {"type": "object", "required": ["state"], "properties": {"state": {"enum": ["done"]}}},
                {"type": "object", "required": ["state", "until"], "properties":
                    {"state": {"enum": ["waiting"]}, "until": {"type": "integer"}}}
            ]}
        ]}}}}}}}
    },
    "components": {"schemas": {"A": {
        "type": "object", "required": ["id"],
        "properties": {
            "id": {"type": "integer", "minimum": 1},
            "of": {"oneOf": [{"type": "null"}, {"type": "array", "items": {"enum": ["x"]}}]},
            "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "items": false, "minItems": 2}
        }
    }}}
}"##;

fn check(path: &str, status: u16, kind: Option<&str>, body: &str) -> Result<(), String> {
    Description::read(TEXT).check(&Answered {
        method: "GET",
        path,
        status,
        content_type: kind,
        body: body.as_bytes(),
    })
}

#[test]
fn answers_are_as_described_or_not() {
    let json = Some("application/json");
    for body in [
        r#"{"id":1}"#,
        r#"{"id":2,"of":null}"#,
        r#"{"id":2,"of":["x"]}"#,
        r#"{"id":2,"pair":[1,"x"]}"#,
    ] {
        assert_eq!(check("/a/1?b=c", 200, json, body), Ok(()), "{body}");
    }
    assert_eq!(check("/a/1", 204, None, ""), Ok(()));
    assert_eq!(
        check("/a/b", 200, Some("text/plain; version=1"), "x"),
        Ok(())
    );
    assert_eq!(check("/elsewhere", 200, None, "x"), Ok(()));
    for (path, status, kind, body, words) in [
        ("/a/1", 500, json, "{}", "500 is not described"),
        ("/a/1", 200, Some("text/plain"), "{}", "text/plain"),
        ("/a/1", 204, json, "{}", "the body of 204"),
        ("/a/b", 200, json, "{}", "application/json"),
        ("/a/1", 200, json, "{", "not JSON"),
        ("/a/1", 200, json, "{}", "\"id\" is missing"),
        (
            "/a/1",
            200,
            json,
            r#"{"id":"1"}"#,
            ".id: \"1\" is not of type",
        ),
        ("/a/1", 200, json, r#"{"id":0}"#, ".id: 0 is out of bounds"),
        (
            "/a/1",
            200,
            json,
            r#"{"id":1,"x":1}"#,
            "\"x\" is not described",
        ),
        ("/a/1", 200, json, r#"{"id":1,"of":["y"]}"#, "0 of oneOf"),
        (
            "/a/1",
            200,
            json,
            r#"{"id":1,"pair":[1]}"#,
            ".pair: 1 items",
        ),
        (
            "/a/1",
            200,
            json,
            r#"{"id":1,"pair":[1,2]}"#,
            ".pair[1]: 2 is not of type",
        ),
    ] {
        let error = check(path, status, kind, body).unwrap_err();
        assert!(error.contains(words), "{path} {body}: {error}");
    }
}

#[test]
fn objects_of_several_parts_have_the_fields_of_those_that_match() {
    let check = |body| check("/c", 200, Some("application/json"), body);
    assert_eq!(check(r#"{"id":1,"state":"done"}"#), Ok(()));
    assert_eq!(check(r#"{"id":1,"state":"waiting","until":5}"#), Ok(()));
    for (body, words) in [
        (r#"{"id":1,"state":"waiting"}"#, "0 of oneOf"),
        (
            r#"{"id":1,"state":"done","until":5}"#,
            "\"until\" is not described",
        ),
        (r#"{"id":1,"state":"done","x":5}"#, "\"x\" is not described"),
        (r#"{"state":"done"}"#, "\"id\" is missing"),
    ] {
        let error = check(body).unwrap_err();
        assert!(error.contains(words), "{body}: {error}");
    }
}
