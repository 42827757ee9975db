//! The description of the API has the routes, and only these.

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;

fn description() -> Value {
    serde_json::from_str(openapi::TEXT).unwrap()
}

#[test]
fn the_description_has_each_route_and_only_these() {
    let routes = api().list.into_iter();
    let routes: BTreeSet<_> = routes
        .map(|(method, path)| (path.to_owned(), method.as_str().to_lowercase()))
        .collect();
    let description = description();
    let paths = description["paths"].as_object().unwrap().iter();
    let described: BTreeSet<_> = paths
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().keys();
            methods.map(move |method| (path.clone(), method.clone()))
        })
        .collect();
    assert_eq!(routes, described);
}

#[test]
fn what_the_description_refers_to_is_in_it() {
    fn check(value: &Value, all: &Value) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(name)) = map.get("$ref") {
                    let pointer = name.strip_prefix('#').unwrap();
                    assert!(all.pointer(pointer).is_some(), "{name}");
                }
                map.values().for_each(|value| check(value, all));
            }
            Value::Array(list) => list.iter().for_each(|value| check(value, all)),
            _ => {}
        }
    }
    let description = description();
    check(&description, &description);
    // Parameters of a path are described.
    for (path, methods) in description["paths"].as_object().unwrap() {
        let names = path
            .split('{')
            .skip(1)
            .filter_map(|part| part.split('}').next());
        for name in names {
            for (method, operation) in methods.as_object().unwrap() {
                let mut parameters = operation["parameters"].as_array().unwrap().iter();
                assert!(
                    parameters.any(|one| one["name"] == name),
                    "{method} {path}: {name}"
                );
            }
        }
    }
}
