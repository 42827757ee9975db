//! Answers are written as they are made, without a tree of values: a list of 10,000 torrents costs
//! its text.

use serde::Serialize;

use crate::names::{Form, Name};

/// A JSON text under construction, with names as of one form.
#[derive(Debug)]
pub(crate) struct Json {
    text: Vec<u8>,
    form: Form,
}

impl Json {
    pub fn new(form: Form) -> Self {
        let text = Vec::new();
        Self { text, form }
    }

    /// The form of its names.
    pub const fn form(&self) -> Form {
        self.form
    }

    /// The text so far.
    pub fn into_text(self) -> Vec<u8> {
        self.text
    }

    /// Writes a value. A number that is not finite, which JSON has no text for, becomes 0.
    pub fn value<T: Serialize + ?Sized>(&mut self, value: &T) {
        let start = self.text.len();
        // Writing to memory does not fail; a value that has no JSON would.
        if serde_json::to_writer(&mut self.text, value).is_err() {
            self.text.truncate(start);
            self.text.extend_from_slice(b"null");
        }
    }

    /// Writes a fraction, a ratio or the like.
    pub fn real(&mut self, value: f64) {
        self.value(&if value.is_finite() { value } else { 0.0 });
    }

    /// Writes an object with the fields that `fill` writes.
    pub fn object(&mut self, fill: impl FnOnce(&mut Object<'_>)) {
        self.text.push(b'{');
        fill(&mut Object {
            json: self,
            is_empty: true,
        });
        self.text.push(b'}');
    }

    /// Writes an array with what `each` writes for every item.
    pub fn array<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut Self, T),
    ) {
        self.elements(|elements| {
            for item in items {
                each(elements.next(), item);
            }
        });
    }

    /// Writes an array with the elements that `fill` writes.
    pub fn elements(&mut self, fill: impl FnOnce(&mut Elements<'_>)) {
        self.text.push(b'[');
        fill(&mut Elements {
            json: self,
            is_empty: true,
        });
        self.text.push(b']');
    }
}

/// An object under construction. Each name must be written once.
#[derive(Debug)]
pub(crate) struct Object<'a> {
    json: &'a mut Json,
    is_empty: bool,
}

impl Object<'_> {
    /// Writes a name; one value must follow.
    pub fn key(&mut self, name: Name) -> &mut Json {
        if !self.is_empty {
            self.json.text.push(b',');
        }
        self.is_empty = false;
        self.json.value(name.of(self.json.form));
        self.json.text.push(b':');
        self.json
    }

    /// Writes a field.
    pub fn field<T: Serialize + ?Sized>(&mut self, name: Name, value: &T) {
        self.key(name).value(value);
    }
}

/// An array under construction.
#[derive(Debug)]
pub(crate) struct Elements<'a> {
    json: &'a mut Json,
    is_empty: bool,
}

impl Elements<'_> {
    /// Begins the next element; one value must follow.
    pub fn next(&mut self) -> &mut Json {
        if !self.is_empty {
            self.json.text.push(b',');
        }
        self.is_empty = false;
        self.json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_values_are_valid_json_in_either_form() {
        for (form, expected) in [
            (
                Form::Old,
                r#"{"downloadDir":"/a\"b","list":[1.5,0.0],"empty":{}}"#,
            ),
            (
                Form::New,
                r#"{"download_dir":"/a\"b","list":[1.5,0.0],"empty":{}}"#,
            ),
        ] {
            let mut json = Json::new(form);
            json.object(|object| {
                object.field(Name::new("download_dir", "downloadDir"), "/a\"b");
                object
                    .key(Name::same("list"))
                    .array([1.5, f64::NAN], |json, item| json.real(item));
                object.key(Name::same("empty")).object(|_| {});
            });
            assert_eq!(String::from_utf8(json.into_text()).unwrap(), expected);
        }
    }
}
