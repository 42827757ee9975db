//! What is wrong with a description itself.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Description;

impl Description {
    /// Its operations: path and method, as `get`.
    #[must_use]
    pub fn operations(&self) -> BTreeSet<(&str, &str)> {
        let operations = self.each_operation();
        let names = operations.map(|(path, method, _)| (path, method));
        names.collect()
    }

    /// What is wrong with it: references to what is not there, components that nothing refers to,
    /// parameters of a path that are not described, answers without words, operations of one name, words
    /// for readers of the code.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut used = BTreeSet::new();
        references(&self.0, &mut used);
        let is_missing = |name: &&&str| self.0.pointer(name.trim_start_matches('#')).is_none();
        let missing = used.iter().filter(is_missing);
        faults.extend(missing.map(|name| format!("{name} is not there")));
        for part in ["schemas", "responses"] {
            let all = self.0["components"][part].as_object();
            let names = all.into_iter().flatten().map(|(name, _)| name);
            let names = names.map(|name| format!("#/components/{part}/{name}"));
            let unused = names.filter(|name| !used.contains(name.as_str()));
            faults.extend(unused.map(|name| format!("nothing refers to {name}")));
        }
        let mut texts = Vec::new();
        descriptions(&self.0, &mut texts);
        let of_code = |text: &&&str| text.contains("[`") || text.contains("`None`");
        let of_code = texts.iter().filter(of_code);
        faults.extend(of_code.map(|text| format!("words of code: {text}")));
        let mut ids = BTreeSet::new();
        for (path, method, operation) in self.each_operation() {
            let parameters = operation["parameters"].as_array();
            let parameters = || parameters.into_iter().flatten();
            let in_path = path.split('{').skip(1);
            for name in in_path.filter_map(|part| part.split('}').next()) {
                if !parameters().any(|one| one["name"] == name && one["in"] == "path") {
                    faults.push(format!("{method} {path}: {name} is not described"));
                }
            }
            let id = operation["operationId"].as_str();
            if !id.is_some_and(|id| ids.insert(id)) {
                faults.push(format!(
                    "{method} {path}: the name {id:?} is missing or not its own"
                ));
            }
            let answers = operation["responses"].as_object();
            for (status, answer) in answers.into_iter().flatten() {
                if self.resolve(answer)["description"].as_str().is_none() {
                    faults.push(format!("{method} {path}: {status} is not described"));
                }
            }
        }
        faults
    }

    fn each_operation(&self) -> impl Iterator<Item = (&str, &str, &Value)> {
        let paths = self.0["paths"].as_object().into_iter().flatten();
        paths.flat_map(|(path, methods)| {
            let methods = methods.as_object().into_iter().flatten();
            methods.map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
        })
    }
}

/// Everything that a value refers to.
fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str));
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

/// Every description in a value.
fn descriptions<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("description").and_then(Value::as_str));
            fields.values().for_each(|value| descriptions(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| descriptions(value, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_found() {
        let text = r##"{
            "paths": {"/a/{id}": {
                "get": {"operationId": "a", "responses": {"200": {"$ref": "#/components/responses/B"}}},
                "put": {"operationId": "a", "parameters": [{"name": "id", "in": "path"}], "responses": {
                    "200": {}, "201": {"description": "c"}
                }}
            }},
            "components": {"schemas": {"C": {"description": "`None` or [`C`]"}}}
        }"##;
        let description = Description::read(text);
        let operations = [("/a/{id}", "get"), ("/a/{id}", "put")];
        assert_eq!(description.operations(), BTreeSet::from(operations));
        let expected = [
            "#/components/responses/B is not there",
            "nothing refers to #/components/schemas/C",
            "words of code: `None` or [`C`]",
            "get /a/{id}: id is not described",
            "get /a/{id}: 200 is not described",
            "put /a/{id}: the name Some(\"a\") is missing or not its own",
            "put /a/{id}: 200 is not described",
        ];
        assert_eq!(description.faults(), expected);
    }
}
