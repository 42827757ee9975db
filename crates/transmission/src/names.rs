//! The two spellings of every name, and the form of a request that chooses between them.

use std::borrow::Cow;

/// The form of a request, which its answer has too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `method`, `arguments`, `tag`; names in camelCase or kebab-case.
    Old,
    /// JSON-RPC 2.0 (rpc-version-semver 6.0.0); names in snake_case.
    New,
}

/// A name in both forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// In snake_case.
    pub new: &'static str,
    /// In camelCase, kebab-case or snake_case: Transmission's old names follow no rule.
    pub old: &'static str,
}

impl Name {
    /// A name that differs between the forms.
    pub const fn new(new: &'static str, old: &'static str) -> Self {
        Self { new, old }
    }

    /// A name that is the same in both forms.
    pub const fn same(name: &'static str) -> Self {
        Self::new(name, name)
    }

    /// The name in this form.
    pub const fn of(self, form: Form) -> &'static str {
        match form {
            Form::Old => self.old,
            Form::New => self.new,
        }
    }
}

/// A name of a request in snake_case: `downloadDir`, `download-dir` and `download_dir` are one
/// name, as they are for Transmission 4.1.
pub(crate) fn canonical(name: &str) -> Cow<'_, str> {
    let is_canonical = |byte: u8| byte != b'-' && !byte.is_ascii_uppercase();
    if name.bytes().all(is_canonical) {
        return Cow::Borrowed(name);
    }
    let mut written = String::with_capacity(name.len() + 8);
    for char in name.chars() {
        match char {
            '-' => written.push('_'),
            'A'..='Z' => {
                if !written.is_empty() {
                    written.push('_');
                }
                written.push(char.to_ascii_lowercase());
            }
            _ => written.push(char),
        }
    }
    Cow::Owned(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_name_are_one() {
        for name in ["download_dir", "download-dir", "downloadDir"] {
            assert_eq!(canonical(name), "download_dir");
        }
        assert_eq!(canonical("Name"), "name");
        assert_eq!(canonical(""), "");
        assert_eq!(canonical("größe"), "größe");
    }
}
