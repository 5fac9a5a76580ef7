//! Reading a TOML file so that every problem is found at once, each with its line.
use serde::de::DeserializeOwned;
use std::cell::RefCell;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// One thing wrong with a study file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// Dotted name of the field, for example `split.train`.
    pub field: String,
    /// What was needed and what was there.
    pub what: String,
}
impl Problem {
    /// A problem of a file that could be parsed, found when it met its data. Of a dotted field that is not in `text` the
    /// line is that of the innermost table of it that is.
    pub(crate) fn of(file: &Path, text: &str, field: &str, what: String) -> Self {
        let (parsed, _) = DeTable::parse_recoverable(text);
        let (mut table, mut offset) = (parsed.get_ref(), 0);
        for key in field.split('.') {
            let Some(value) = table.get(key) else { break };
            offset = value.span().start;
            let Some(inner) = value.get_ref().as_table() else { break };
            table = inner;
        }
        Self { file: file.to_owned(), line: line(text, offset), field: field.to_owned(), what }
    }
}
impl Problem {
    /// As [`Self::of`], for the whole number `got` at `path` within one of the tables of `list`: the first that holds it there.
    pub(crate) fn of_listed(
        file: &Path,
        text: &str,
        (list, path): (&str, &str),
        got: u64,
        what: String,
    ) -> Self {
        let (parsed, _) = DeTable::parse_recoverable(text);
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        let tables = parsed.get_ref().get(list).and_then(|value| value.get_ref().as_array());
        let found = tables.into_iter().flat_map(|tables| tables.iter().enumerate()).find_map(
            |(i, table)| {
                let value = at(table, &path)?;
                (whole(value.get_ref()) == Some(got)).then(|| (i, value.span().start))
            },
        );
        let Some((i, offset)) = found else { return Self::of(file, text, list, what) };
        let field = format!("{list}[{}].{}", i + 1, path.join("."));
        Self { file: file.to_owned(), line: line(text, offset), field, what }
    }
}
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file.display(), self.line)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.what)
    }
}

/// A field of a study file: what the reference page, the reader and the hints agree on.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Table it stands in; empty for the top.
    pub section: &'static str,
    /// Its key.
    pub key: &'static str,
    /// What it may hold.
    pub needed: &'static str,
    /// What it is when left out; `None` if it must be given.
    pub default: Option<&'static str>,
    /// What it means.
    pub meaning: &'static str,
}

/// The text of a file and the problems found so far.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    file: &'a Path,
    text: &'a str,
    fields: &'static [Field],
    problems: RefCell<Vec<Problem>>,
}
impl<'a> Source<'a> {
    pub(crate) const fn new(file: &'a Path, text: &'a str, fields: &'static [Field]) -> Self {
        Self { file, text, fields, problems: RefCell::new(Vec::new()) }
    }
    /// Parses the text; syntax errors become problems.
    pub(crate) fn parse(&self) -> Spanned<DeTable<'a>> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in errors {
            self.report(
                error.span().map_or(0, |s| s.start),
                "",
                error.message().replace('\n', ", "),
            );
        }
        table
    }
    pub(crate) fn report(&self, offset: usize, field: &str, what: String) {
        self.problems.borrow_mut().push(Problem {
            file: self.file.to_owned(),
            line: line(self.text, offset),
            field: field.to_owned(),
            what,
        });
    }
    pub(crate) fn has_problems(&self) -> bool {
        !self.problems.borrow().is_empty()
    }
    /// The problems in the order of their lines.
    pub(crate) fn into_problems(self) -> Vec<Problem> {
        let mut problems = self.problems.into_inner();
        problems.sort_by(|a, b| (a.line, &a.field).cmp(&(b.line, &b.field)));
        problems.dedup();
        problems
    }
}

/// One table of the file. Getters return `None` after having reported why.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    source: &'a Source<'a>,
    /// Name in [`Field::section`].
    kind: &'static str,
    /// Dotted path shown to people.
    path: String,
    table: Option<&'a DeTable<'a>>,
    offset: usize,
}
impl<'a> Section<'a> {
    /// Opens a table and reports every key that [`Field`] does not list.
    pub(crate) fn open(
        source: &'a Source<'a>,
        kind: &'static str,
        path: String,
        table: Option<&'a DeTable<'a>>,
        offset: usize,
    ) -> Self {
        let section = Self { source, kind, path, table, offset };
        let known: Vec<&str> =
            source.fields.iter().filter(|f| f.section == kind).map(|f| f.key).collect();
        for key in table.into_iter().flat_map(DeTable::keys) {
            let name: &str = key.get_ref();
            if !known.contains(&name) {
                let mut what = "unknown key".to_owned();
                if let Some(near) = nearest(name, known.iter().copied()) {
                    what.push_str(&format!(", did you mean `{near}`?"));
                } else {
                    what.push_str(&format!("; known here: {}", known.join(", ")));
                }
                source.report(key.span().start, &section.name(name), what);
            }
        }
        section
    }
    /// Dotted name of `key`.
    fn name(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
    fn field(&self, key: &str) -> &'static Field {
        const MISSING: &Field =
            &Field { section: "", key: "", needed: "", default: None, meaning: "" };
        let found = self.source.fields.iter().find(|f| f.section == self.kind && f.key == key);
        debug_assert!(found.is_some(), "{}.{key} is read but not listed", self.kind);
        found.unwrap_or(MISSING)
    }
    pub(crate) fn value(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table?.get(key)
    }
    pub(crate) fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }
    /// Reports a problem with `key`, at its value or at the table.
    pub(crate) fn report(&self, key: &str, what: String) {
        let offset = self.value(key).map_or(self.offset, |v| v.span().start);
        let name = if key.is_empty() { self.path.clone() } else { self.name(key) };
        self.source.report(offset, &name, what);
    }
    pub(crate) fn wrong(&self, key: &str, got: &str) {
        self.report(key, format!("needs {}, got {got}", self.field(key).needed));
    }
    /// The value of `key` through `read`; an absent key gives the default or is reported.
    fn get<T>(
        &self,
        key: &str,
        default: Option<T>,
        read: impl FnOnce(&'a DeValue<'a>) -> Option<T>,
    ) -> Option<T> {
        let Some(value) = self.value(key) else {
            if default.is_none() {
                self.report(key, format!("missing; needs {}", self.field(key).needed));
            }
            return default;
        };
        let result = read(value.get_ref());
        if result.is_none() {
            let got = shown(value.get_ref());
            if matches!(value.get_ref(), DeValue::Float(_)) && real(value.get_ref()).is_none() {
                // Infinity is above every number, and still none that a setting can be.
                let needed = self.field(key).needed.replacen("a number", "a finite number", 1);
                self.report(key, format!("needs {needed}, got {got}"));
            } else {
                self.wrong(key, &got);
            }
        }
        result
    }
    pub(crate) fn text(&self, key: &str, default: Option<&'a str>) -> Option<&'a str> {
        self.get(key, default, DeValue::as_str)
    }
    pub(crate) fn choice<T: Copy>(
        &self,
        key: &str,
        choices: &[(&str, T)],
        default: Option<T>,
    ) -> Option<T> {
        let value = self.value(key);
        if let Some(word) = value.and_then(|v| v.get_ref().as_str()) {
            let found = choices.iter().find(|(name, _)| *name == word);
            if found.is_none() {
                let names: Vec<String> = choices.iter().map(|(n, _)| format!("\"{n}\"")).collect();
                let mut what = format!("needs one of {}, got \"{word}\"", names.join(", "));
                if let Some(near) = nearest(word, choices.iter().map(|(n, _)| *n)) {
                    what.push_str(&format!("; did you mean \"{near}\"?"));
                }
                self.report(key, what);
            }
            return found.map(|(_, t)| *t);
        }
        self.get(key, default, |_| None)
    }
    pub(crate) fn whole(
        &self,
        key: &str,
        range: RangeInclusive<u64>,
        default: Option<u64>,
    ) -> Option<u64> {
        let beyond = self.value(key).and_then(|v| whole(v.get_ref()));
        if let Some(got) = beyond.filter(|n| !range.contains(n)) {
            // Where the limit depends on other settings or on the data, its words alone would leave one guessing.
            let (needed, most) = (self.field(key).needed, range.end());
            let here = if needed.contains(&most.to_string()) {
                String::new()
            } else {
                format!(" (here {} to {most})", range.start())
            };
            self.report(key, format!("needs {needed}{here}, got {got}"));
            return None;
        }
        self.get(key, default, |v| whole(v).filter(|n| range.contains(n)))
    }
    pub(crate) fn real(
        &self,
        key: &str,
        ok: impl Fn(f64) -> bool,
        default: Option<f64>,
    ) -> Option<f64> {
        self.get(key, default, |v| real(v).filter(|x| ok(*x)))
    }
    /// A whole number that counts things in memory.
    pub(crate) fn size(
        &self,
        key: &str,
        range: RangeInclusive<u64>,
        default: Option<usize>,
    ) -> Option<usize> {
        let number = self.whole(key, range, default.map(|d| d as u64))?;
        usize::try_from(number).ok()
    }
    /// A list of such numbers.
    pub(crate) fn sizes(
        &self,
        key: &str,
        range: &RangeInclusive<u64>,
        default: Option<Vec<usize>>,
    ) -> Option<Vec<usize>> {
        self.list(key, default, |v| {
            whole(v).filter(|n| range.contains(n)).and_then(|n| usize::try_from(n).ok())
        })
    }
    /// A table that another crate defines and checks. Its reader stops at its first problem and does not always say where: the
    /// key is found by leaving out one after the other, and the reader is asked again without it.
    pub(crate) fn deserialize<T: DeserializeOwned>(
        &self,
        key: &str,
        check: impl Fn(&T) -> Result<(), String>,
    ) -> Option<T> {
        let read = |value: &Spanned<DeValue<'a>>| {
            T::deserialize(ValueDeserializer::from(value.clone()))
                .map_err(|error| with_range(&error.message().replace('\n', ", ")))
                .and_then(|table| check(&table).map(|()| table))
        };
        let empty = || Spanned::new(self.offset..self.offset, DeValue::Table(DeTable::new()));
        let mut value = self.value(key).cloned().unwrap_or_else(empty);
        let (mut whole, mut left_out) = (true, Vec::<Vec<String>>::new());
        loop {
            let what = match read(&value) {
                Ok(table) => return whole.then_some(table),
                Err(what) => what,
            };
            whole = false;
            let missed = |path: &Vec<String>| path.last().is_some_and(|key| what == missing(key));
            let path = if let Some(i) = left_out.iter().position(missed) {
                // Missing because it was wrong and left out. Its table has told all else before.
                let mut path = left_out.swap_remove(i);
                path.pop();
                path
            } else {
                let path = culprit(&value, &what, &|value| read(value).err());
                let name = path.iter().fold(self.name(key), |name, key| format!("{name}.{key}"));
                let offset = at(&value, &path).map_or(self.offset, |v| v.span().start);
                self.source.report(offset, &name, what);
                path
            };
            if path.is_empty() {
                return None;
            }
            value = without(&value, &path);
            left_out.push(path);
        }
    }
    fn list<T>(
        &self,
        key: &str,
        default: Option<Vec<T>>,
        read: impl Fn(&'a DeValue<'a>) -> Option<T>,
    ) -> Option<Vec<T>> {
        self.get(key, default, |v| v.as_array()?.iter().map(|e| read(e.get_ref())).collect())
    }
    pub(crate) fn reals(
        &self,
        key: &str,
        ok: impl Fn(f64) -> bool,
        default: Option<Vec<f64>>,
    ) -> Option<Vec<f64>> {
        self.list(key, default, |v| real(v).filter(|x| ok(*x))).filter(|l| self.filled(key, l))
    }
    /// A number, or a list of them; empty if left out.
    pub(crate) fn real_or_reals(&self, key: &str, ok: impl Fn(f64) -> bool) -> Option<Vec<f64>> {
        self.get(key, Some(Vec::new()), |v| match v.as_array() {
            Some(list) => list.iter().map(|e| real(e.get_ref()).filter(|x| ok(*x))).collect(),
            None => real(v).filter(|x| ok(*x)).map(|x| vec![x]),
        })
    }
    pub(crate) fn texts(&self, key: &str, default: Option<Vec<&'a str>>) -> Option<Vec<&'a str>> {
        self.list(key, default, DeValue::as_str)
    }
    fn filled<T>(&self, key: &str, list: &[T]) -> bool {
        if list.is_empty() {
            self.wrong(key, "an empty list");
        }
        !list.is_empty()
    }
    /// A number, or one of the given words.
    pub(crate) fn real_or_word(
        &self,
        key: &str,
        word: &str,
        ok: impl Fn(f64) -> bool,
    ) -> Option<Option<f64>> {
        self.get(key, Some(None), |v| {
            if v.as_str() == Some(word) { Some(None) } else { real(v).filter(|x| ok(*x)).map(Some) }
        })
    }
    /// A sub-table. An absent one is read as empty, so that its required fields are reported one by one.
    pub(crate) fn table(&self, key: &str, kind: &'static str) -> Self {
        let value = self.value(key);
        let table = value.and_then(|v| v.get_ref().as_table());
        if value.is_some() && table.is_none() {
            self.wrong(key, value.map_or("nothing", |v| v.get_ref().type_str()));
        }
        let offset = value.map_or(self.offset, |v| v.span().start);
        Self::open(self.source, kind, self.name(key), table, offset)
    }
    /// An array of tables; empty if absent.
    pub(crate) fn tables(&self, key: &str, kind: &'static str) -> Vec<Self> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let Some(array) = value.get_ref().as_array() else {
            self.wrong(key, value.get_ref().type_str());
            return Vec::new();
        };
        let mut sections = Vec::new();
        for (i, element) in array.iter().enumerate() {
            let path = format!("{}[{}]", self.name(key), i + 1);
            match element.get_ref().as_table() {
                Some(table) => sections.push(Self::open(
                    self.source,
                    kind,
                    path,
                    Some(table),
                    element.span().start,
                )),
                None => self.wrong(key, element.get_ref().type_str()),
            }
        }
        sections
    }
}

/// What serde says of a number out of range, with the range in place of the name of a type.
fn with_range(what: &str) -> String {
    for (name, range) in [
        ("u8", "0 to 255"),
        ("u16", "0 to 65535"),
        ("u32", "0 to 4294967295"),
        ("u64", "0 to 9223372036854775807"),
        ("usize", "0 to 9223372036854775807"),
    ] {
        if let Some(what) = what.strip_suffix(&format!("expected {name}")) {
            return format!("{what}expected a whole number from {range}");
        }
    }
    what.to_owned()
}
/// What serde says of a field that is not there.
fn missing(key: &str) -> String {
    format!("missing field `{key}`")
}
/// The value at a path of keys.
fn at<'v, 'a>(root: &'v Spanned<DeValue<'a>>, path: &[String]) -> Option<&'v Spanned<DeValue<'a>>> {
    path.iter().try_fold(root, |value, key| value.get_ref().as_table()?.get(key.as_str()))
}
/// A copy that lacks the key at the end of a path.
fn without<'a>(root: &Spanned<DeValue<'a>>, path: &[String]) -> Spanned<DeValue<'a>> {
    fn leave_out(value: &mut DeValue<'_>, path: &[String]) {
        let (DeValue::Table(table), [key, rest @ ..]) = (value, path) else { return };
        if rest.is_empty() {
            table.remove(key.as_str());
        } else if let Some(inner) = table.get_mut(key.as_str()) {
            leave_out(inner.get_mut(), rest);
        }
    }
    let mut root = root.clone();
    leave_out(root.get_mut(), path);
    root
}
/// The path to the key without which a reader no longer says `what`; empty if it is about the table itself.
fn culprit<'a>(
    root: &Spanned<DeValue<'a>>,
    what: &str,
    complains: &dyn Fn(&Spanned<DeValue<'a>>) -> Option<String>,
) -> Vec<String> {
    let mut path = Vec::new();
    while let Some(table) = at(root, &path).and_then(|value| value.get_ref().as_table()) {
        let mut keys: Vec<String> = table.keys().map(|key| key.get_ref().to_string()).collect();
        keys.sort_by_key(|key| key == "kind"); // decides how all others are read: suspected last
        let guilty = keys.into_iter().find(|key| {
            path.push(key.clone());
            let now = complains(&without(root, &path));
            path.pop();
            let instead = now.as_deref() == Some(&missing(key));
            now.as_deref() != Some(what) && !(instead && what.starts_with("missing field"))
        });
        match guilty {
            Some(key) => path.push(key),
            None => break,
        }
    }
    path
}
/// The line of a place in a text, from 1.
fn line(text: &str, offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or(text);
    before.bytes().filter(|b| *b == b'\n').count() + 1
}
fn whole(value: &DeValue<'_>) -> Option<u64> {
    let integer = value.as_integer()?;
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}
/// A finite number; whole numbers are read as reals too.
fn real(value: &DeValue<'_>) -> Option<f64> {
    let number = match value {
        DeValue::Float(float) => float.as_str().parse::<f64>().ok()?,
        #[expect(clippy::cast_precision_loss, reason = "settings of interest are far below 2^53")]
        DeValue::Integer(integer) => {
            i64::from_str_radix(integer.as_str(), integer.radix()).ok()? as f64
        }
        _ => return None,
    };
    number.is_finite().then_some(number)
}
/// A value as written, for messages.
fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(s) => format!("\"{s}\""),
        DeValue::Integer(i) => i.as_str().to_owned(),
        DeValue::Float(f) => f.as_str().to_owned(),
        DeValue::Boolean(b) => b.to_string(),
        DeValue::Datetime(d) => d.to_string(),
        DeValue::Array(a) => {
            format!("[{}]", a.iter().map(|v| shown(v.get_ref())).collect::<Vec<_>>().join(", "))
        }
        DeValue::Table(_) => "a table".to_owned(),
    }
}
/// The known word most like `word`, if it is like enough to be a slip.
pub(crate) fn nearest<'n>(word: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    known
        .map(|name| (strsim::damerau_levenshtein(word, name), name))
        .filter(|(distance, name)| *distance <= 1.max(name.len() / 3))
        .min()
        .map(|(_, name)| name)
}
