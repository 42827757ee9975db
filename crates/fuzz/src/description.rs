//! What an API's description (OpenAPI) says of answers, compared with the answers.

mod faults;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The description of an API.
#[derive(Debug, Clone)]
pub struct Description(Value);

/// An answer to compare with a description.
#[derive(Debug, Clone, Copy)]
pub struct Answered<'a> {
    /// The method of the request, as `GET`.
    pub method: &'a str,
    /// Its path; a query is ignored.
    pub path: &'a str,
    /// The status of the answer.
    pub status: u16,
    /// Its header `Content-Type`.
    pub content_type: Option<&'a str>,
    /// Its body.
    pub body: &'a [u8],
}

impl Description {
    /// Reads a description.
    ///
    /// # Panics
    /// If the text is not JSON.
    #[must_use]
    pub fn read(text: &str) -> Self {
        Self(serde_json::from_str(text).expect("a description is JSON"))
    }

    /// Compares an answer with the description. Paths and methods that it does not have are passed over.
    /// More is asked than by OpenAPI: a field that is not described is an error.
    ///
    /// # Errors
    /// What the description does not say.
    pub fn check(&self, answer: &Answered) -> Result<(), String> {
        let Some(operation) = self.operation(answer.method, answer.path) else {
            return Ok(());
        };
        let (status, name) = (answer.status.to_string(), answer.content_type);
        let described = operation["responses"].get(&status);
        let described = described.ok_or_else(|| format!("the status {status} is not described"))?;
        let response = self.resolve(described);
        // RFC 9110, 15.5.2: a client must know how to authenticate.
        if answer.status == 401 && response["headers"]["WWW-Authenticate"].is_null() {
            return Err("401 has no header WWW-Authenticate".to_owned());
        }
        for (header, about) in response["headers"].as_object().into_iter().flatten() {
            let schema = self.resolve(&about["schema"]);
            if !schema.is_object() {
                return Err(format!("the header {header} has no schema"));
            }
        }
        let Some(kinds) = response["content"].as_object() else {
            return match answer.body.is_empty() {
                true => Ok(()),
                false => Err(format!("the body of {status} is not described")),
            };
        };
        // Parameters, as the version of a format, may differ.
        let base = |kind: &str| kind.split(';').next().unwrap_or_default().trim().to_owned();
        let is_it = |kind: &&String| {
            // Content of any kind, as files have it.
            name.is_some_and(|name| *kind == "*/*" || base(name) == base(kind))
        };
        let kind = kinds.keys().find(is_it);
        let kind = kind.ok_or_else(|| format!("the kind {name:?} of {status} is not described"))?;
        let schema = &kinds[kind]["schema"];
        if base(kind) != "application/json" || schema.is_null() {
            return Ok(());
        }
        let value = serde_json::from_slice(answer.body);
        let value: Value = value.map_err(|error| format!("the body is not JSON: {error}"))?;
        self.matches(schema, &value)
            .map_err(|error| format!("the body of {status}{error}"))
    }

    fn operation(&self, method: &str, path: &str) -> Option<&Value> {
        let path = path.split('?').next().unwrap_or_default();
        let paths = self.0["paths"].as_object()?;
        let names: Vec<&str> = path.split('/').collect();
        let is_it = |template: &str, literal: bool| {
            let parts: Vec<&str> = template.split('/').collect();
            let same = |(part, name): (&&str, &&str)| {
                let is_parameter = part.starts_with('{');
                part == name || (is_parameter && !literal && !name.is_empty())
            };
            parts.len() == names.len() && parts.iter().zip(&names).all(same)
        };
        // A path without parameters comes first.
        let found = [true, false].iter().find_map(|literal| {
            let mut paths = paths.iter();
            paths.find(|(template, _)| is_it(template, *literal))
        });
        found?.1.get(method.to_ascii_lowercase())
    }

    fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        let Some(name) = value["$ref"].as_str() else {
            return value;
        };
        let found = self.0.pointer(name.trim_start_matches('#'));
        found.unwrap_or(&Value::Null)
    }

    /// Compares a value with a schema. An error begins with the place in the value.
    fn matches(&self, schema: &Value, value: &Value) -> Result<(), String> {
        self.conforms(schema, value)?;
        let Some(fields) = value.as_object() else {
            return Ok(());
        };
        let mut known = BTreeSet::new();
        self.collect_fields(schema, value, &mut known);
        match fields.keys().find(|name| !known.contains(name.as_str())) {
            Some(name) if !known.is_empty() => {
                Err(format!(": the field {name:?} is not described"))
            }
            _ => Ok(()),
        }
    }

    /// The fields that a schema describes of a value, also in the parts that it consists of.
    fn collect_fields<'a>(
        &'a self,
        schema: &'a Value,
        value: &Value,
        known: &mut BTreeSet<&'a str>,
    ) {
        let schema = self.resolve(schema);
        let properties = schema["properties"].as_object().into_iter().flatten();
        known.extend(properties.map(|(name, _)| name.as_str()));
        for key in ["allOf", "oneOf", "anyOf"] {
            for part in schema[key].as_array().into_iter().flatten() {
                if self.conforms(part, value).is_ok() {
                    self.collect_fields(part, value, known);
                }
            }
        }
    }

    /// The same as [`matches`](Self::matches), without fields that are not described.
    fn conforms(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let schema = self.resolve(schema);
        for (key, most) in [("oneOf", 1), ("anyOf", usize::MAX)] {
            if let Some(all) = schema[key].as_array() {
                let matching = all.iter().filter(|one| self.conforms(one, value).is_ok());
                let count = matching.count();
                if count < 1 || count > most {
                    return Err(format!(": {value} is {count} of {key}"));
                }
            }
        }
        if let Some(all) = schema["allOf"].as_array() {
            all.iter().try_for_each(|one| self.conforms(one, value))?;
        }
        let kinds = match &schema["type"] {
            Value::String(kind) => vec![kind.as_str()],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if !kinds.is_empty() && !kinds.iter().any(|kind| is_of(kind, value)) {
            return Err(format!(": {value} is not of type {kinds:?}"));
        }
        if let Some(known) = schema["enum"].as_array()
            && !known.contains(value)
        {
            return Err(format!(": {value} is not one of {known:?}"));
        }
        let number = value.as_f64();
        let bound = |key: &str| number.zip(schema[key].as_f64());
        if bound("minimum").is_some_and(|(number, least)| number < least)
            || bound("maximum").is_some_and(|(number, most)| number > most)
        {
            return Err(format!(": {value} is out of bounds"));
        }
        match value {
            Value::Object(fields) => self.fields(schema, fields),
            Value::Array(items) => self.items(schema, items),
            _ => Ok(()),
        }
    }

    fn items(&self, schema: &Value, items: &[Value]) -> Result<(), String> {
        let length = u64::try_from(items.len()).ok();
        let bound = |key: &str| length.zip(schema[key].as_u64());
        if bound("minItems").is_some_and(|(length, least)| length < least)
            || bound("maxItems").is_some_and(|(length, most)| length > most)
        {
            return Err(format!(": {} items", items.len()));
        }
        let first = schema["prefixItems"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        let rest = &schema["items"];
        for (at, item) in items.iter().enumerate() {
            let of = first.get(at).unwrap_or(rest);
            if *of == Value::Bool(false) {
                return Err(format!("[{at}]: there is one item too many"));
            }
            let matching = self.matches(of, item);
            matching.map_err(|error| format!("[{at}]{error}"))?;
        }
        Ok(())
    }

    fn fields(&self, schema: &Value, fields: &Map<String, Value>) -> Result<(), String> {
        let mut required = schema["required"].as_array().into_iter().flatten();
        if let Some(name) = required.find(|name| !fields.contains_key(name.as_str().unwrap_or("")))
        {
            return Err(format!(": the field {name} is missing"));
        }
        let known = schema["properties"].as_object().into_iter().flatten();
        for (name, of) in known {
            if let Some(value) = fields.get(name) {
                let matching = self.matches(of, value);
                matching.map_err(|error| format!(".{name}{error}"))?;
            }
        }
        Ok(())
    }
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "null" => value.is_null(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
