//! The text of a configuration file.

use std::ffi::OsString;
use std::fmt;
use std::ops::Range;

use clap::{Arg, ArgAction, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Most typing errors in a name for which a suggestion is made.
const MAX_TYPING_ERRORS: usize = 2;

/// The default of one flag of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The names of the command and of those above it, from the highest.
    pub command: Vec<String>,
    /// The long name of the flag.
    pub flag: String,
    value: Value,
    /// Where it is in the file, from 1.
    pub line: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    /// Of a flag without a value.
    Switch(bool),
    /// Once, or for each time that the flag is given.
    Texts(Vec<String>),
}

impl Setting {
    /// The same as arguments.
    pub fn args(&self) -> Vec<OsString> {
        let flag = &self.flag;
        match &self.value {
            Value::Switch(true) => vec![format!("--{flag}").into()],
            Value::Switch(false) => Vec::new(),
            Value::Texts(texts) => texts
                .iter()
                .map(|text| format!("--{flag}={text}").into())
                .collect(),
        }
    }
}

/// Why a file is wrong, and what to do about it: `3: hawser get has no flag --limt: …`.
#[derive(Debug, PartialEq, Eq)]
pub struct Wrong {
    line: usize,
    reason: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.reason)
    }
}

/// All settings of a file for the commands of `program`.
pub fn parse(text: &str, program: &Command) -> Result<Vec<Setting>, Wrong> {
    let mut reader = Reader {
        text,
        path: Vec::new(),
        settings: Vec::new(),
    };
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().unwrap_or_default();
        reader.wrong(at, error.message().to_owned())
    })?;
    reader.table(table.get_ref(), program)?;
    Ok(reader.settings)
}

/// The settings that the table `section` of a file has for the flags of the command `path` of `program`. Other
/// tables are not looked at, and `elsewhere` has flags that do not belong there, each with where it does.
pub fn parse_section(
    text: &str,
    section: &str,
    path: &[&str],
    elsewhere: &[(&str, &str)],
    program: &Command,
) -> Result<Vec<Setting>, Wrong> {
    let mut reader = Reader {
        text,
        path: path.iter().map(|name| (*name).to_owned()).collect(),
        settings: Vec::new(),
    };
    let all = DeTable::parse(text).map_err(|error| {
        let at = error.span().unwrap_or_default();
        reader.wrong(at, error.message().to_owned())
    })?;
    let found = all
        .get_ref()
        .iter()
        .find(|(key, _)| key.get_ref() == section);
    let Some((_, found)) = found else {
        return Ok(Vec::new());
    };
    let Some(table) = found.get_ref().as_table() else {
        return Err(reader.wrong(found.span(), format!("{section} takes a table")));
    };
    for (name, place) in elsewhere {
        if let Some((key, _)) = table.iter().find(|(key, _)| key.get_ref() == name) {
            let reason = format!("{name} does not belong below [{section}]: write {place}");
            return Err(reader.wrong(key.span(), reason));
        }
    }
    let mut command = Some(program);
    for name in path {
        command = command.and_then(|command| command.find_subcommand(name));
    }
    if let Some(command) = command {
        reader.table(table, command)?;
    }
    Ok(reader.settings)
}

struct Reader<'a> {
    text: &'a str,
    /// The command that is read.
    path: Vec<String>,
    settings: Vec<Setting>,
}

impl Reader<'_> {
    fn table(&mut self, table: &DeTable<'_>, command: &Command) -> Result<(), Wrong> {
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            match value.get_ref() {
                DeValue::Table(below) => {
                    let visible = |found: &&Command| !found.is_hide_set();
                    let Some(found) = command.find_subcommand(name).filter(visible) else {
                        return Err(self.no_command(key, command));
                    };
                    self.path.push(found.get_name().to_owned());
                    self.table(below, found)?;
                    self.path.pop();
                }
                _ => {
                    let flag = self.flag(key, command)?;
                    let value = self.value(flag, value)?;
                    self.settings.push(Setting {
                        command: self.path.clone(),
                        flag: name.to_owned(),
                        value,
                        line: self.line(key.span()),
                    });
                }
            }
        }
        Ok(())
    }

    fn flag<'c>(
        &self,
        key: &Spanned<impl AsRef<str>>,
        command: &'c Command,
    ) -> Result<&'c Arg, Wrong> {
        let name = key.get_ref().as_ref();
        if self.path.is_empty() {
            let reason =
                format!("{name} belongs to no command: put it below [COMMAND], such as [get]");
            return Err(self.wrong(key.span(), reason));
        }
        let flags = || command.get_arguments().filter(|arg| is_setting(arg));
        let found = flags().find(|arg| arg.get_long() == Some(name));
        found.ok_or_else(|| {
            let names = flags().filter_map(Arg::get_long);
            let path = self.path.join(" ");
            let remedy = match near(name, names) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("hawser {path} --help shows those that it has"),
            };
            let reason = format!("hawser {path} has no flag --{name}: {remedy}");
            self.wrong(key.span(), reason)
        })
    }

    fn value(&self, flag: &Arg, value: &Spanned<DeValue<'_>>) -> Result<Value, Wrong> {
        let name = flag.get_long().unwrap_or_default();
        let takes = |what: &str| Err(self.wrong(value.span(), format!("{name} takes {what}")));
        if !flag.get_action().takes_values() {
            return match value.get_ref() {
                DeValue::Boolean(on) => Ok(Value::Switch(*on)),
                _ => takes("true or false"),
            };
        }
        let Some(list) = value.get_ref().as_array() else {
            return match text(value.get_ref()) {
                Some(text) => Ok(Value::Texts(vec![text])),
                None => takes("a text, a number, or true or false"),
            };
        };
        let several = matches!(flag.get_action(), ArgAction::Append);
        let texts: Option<Vec<String>> = list.iter().map(|value| text(value.get_ref())).collect();
        match texts {
            Some(texts) if several => Ok(Value::Texts(texts)),
            Some(_) => takes("one value, no list"),
            None => takes("a list of texts or numbers"),
        }
    }

    fn no_command(&self, key: &Spanned<impl AsRef<str>>, command: &Command) -> Wrong {
        let name = key.get_ref().as_ref();
        let commands = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set());
        let above: String = self.path.iter().map(|name| format!("{name} ")).collect();
        let remedy = match near(name, commands.map(Command::get_name)) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("hawser {above}--help shows those that there are"),
        };
        self.wrong(
            key.span(),
            format!("there is no command hawser {above}{name}: {remedy}"),
        )
    }

    fn line(&self, at: Range<usize>) -> usize {
        let before = self.text.get(..at.start).unwrap_or(self.text);
        before.matches('\n').count() + 1
    }

    fn wrong(&self, at: Range<usize>, reason: String) -> Wrong {
        let line = self.line(at);
        Wrong { line, reason }
    }
}

/// Whether a file may have a default for it.
fn is_setting(arg: &Arg) -> bool {
    !matches!(
        arg.get_action(),
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
    )
}

/// A value as it stands in an argument; `None` for dates, lists and tables.
fn text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Boolean(on) => Some(on.to_string()),
        _ => None,
    }
}

/// The name that was probably meant.
fn near<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.map(|name| (strsim::damerau_levenshtein(typed, name), name));
    let near = near.filter(|(wrong, _)| *wrong <= MAX_TYPING_ERRORS).min();
    near.map(|(_, name)| name)
}
