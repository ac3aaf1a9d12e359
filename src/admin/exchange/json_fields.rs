//! The fields of a JSON object in a request: read one by one, each with its place in what is said about it.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::problem_document::ProblemDocument;
use crate::config::model::distinct_json::{Indistinct, distinct, escaped};

/// An object of which each field is taken once, and none may be left.
#[derive(Debug)]
pub struct JsonFields {
    fields: Map<String, Value>,
    /// What may stand in it: all that was asked for so far.
    known: Vec<String>,
    /// Its place in the body: a JSON pointer, empty for the body itself.
    place: String,
}

impl JsonFields {
    /// The object that `bytes` are.
    ///
    /// # Errors
    /// They are none, or a field of an object in it stands there twice: another program may have read the other one.
    pub fn of(bytes: &[u8]) -> Result<JsonFields, ProblemDocument> {
        if bytes.is_empty() {
            return Err(ProblemDocument::at("", "a JSON object is missing"));
        }
        match distinct(bytes) {
            Ok(Value::Object(fields)) => Ok(JsonFields { fields, known: Vec::new(), place: String::new() }),
            Ok(_) => Err(ProblemDocument::at("", "a JSON object")),
            Err(Indistinct::Twice(place)) => Err(ProblemDocument::twice(&place)),
            Err(Indistinct::NoJson(error)) => Err(ProblemDocument::plain(
                hyper::StatusCode::BAD_REQUEST,
                format!("the body is no JSON: {error}"),
            )),
        }
    }

    /// The place of a field: a JSON pointer.
    #[must_use]
    pub fn pointer(&self, name: &str) -> String {
        format!("{}/{}", self.place, escaped(name))
    }

    /// What is wrong with a field: `/weight: a whole number from 0 to 256`.
    #[must_use]
    pub fn wrong(&self, name: &str, expected: &str) -> ProblemDocument {
        ProblemDocument::at(&self.pointer(name), expected)
    }

    /// Whether a field is there and `null`, which is not the same as absent where it takes something away.
    pub fn is_null(&mut self, name: &str) -> bool {
        self.know(name);
        self.fields.get(name).is_some_and(Value::is_null)
    }

    /// A field as it is; `None`: absent or `null`.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.know(name);
        self.fields.remove(name).filter(|value| !value.is_null())
    }

    /// A whole number.
    ///
    /// # Errors
    /// It is there and no whole number of this range.
    pub fn whole(&mut self, name: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, ProblemDocument> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let (least, most) = (range.start(), range.end());
        let expected = || self.wrong(name, &format!("a whole number from {least} to {most}"));
        value.as_u64().filter(|number| range.contains(number)).map(Some).ok_or_else(expected)
    }

    /// A text.
    ///
    /// # Errors
    /// It is there and no text.
    pub fn text(&mut self, name: &str) -> Result<Option<String>, ProblemDocument> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "a text")),
        }
    }

    /// True or false.
    ///
    /// # Errors
    /// It is there and neither.
    pub fn switch(&mut self, name: &str) -> Result<Option<bool>, ProblemDocument> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(is_on)) => Ok(Some(is_on)),
            Some(_) => Err(self.wrong(name, "true or false")),
        }
    }

    /// One of a few words, each with what it means.
    ///
    /// # Errors
    /// It is there and none of them.
    pub fn choice<T: Copy>(&mut self, name: &str, all: &[(&str, T)]) -> Result<Option<T>, ProblemDocument> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let found = value.as_str().and_then(|text| all.iter().find(|(word, _)| *word == text));
        found.map(|(_, meaning)| Some(*meaning)).ok_or_else(|| {
            let words: Vec<String> = all.iter().map(|(word, _)| format!("`{word}`")).collect();
            self.wrong(name, &format!("one of {}", words.join(", ")))
        })
    }

    /// An object inside.
    ///
    /// # Errors
    /// It is there and none.
    pub fn object(&mut self, name: &str) -> Result<Option<JsonFields>, ProblemDocument> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Object(fields)) => {
                Ok(Some(JsonFields { fields, known: Vec::new(), place: self.pointer(name) }))
            }
            Some(_) => Err(self.wrong(name, "an object")),
        }
    }

    /// The end: all that may be there has been asked for.
    ///
    /// # Errors
    /// There is more.
    pub fn end(mut self) -> Result<(), ProblemDocument> {
        self.fields.retain(|name, _| !self.known.contains(name));
        let Some(name) = self.fields.keys().next() else { return Ok(()) };
        let likeness = |known: &String| strsim::jaro_winkler(known, name);
        let nearest = self.known.iter().max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
        let nearest = nearest.filter(|known| likeness(known) > 0.8);
        let meant = nearest.map_or(String::new(), |known| format!("; did you mean {}?", self.pointer(known)));
        Err(self.wrong(name, &format!("there is no such field{meant}")))
    }

    fn know(&mut self, name: &str) {
        if !self.known.iter().any(|known| known == name) {
            self.known.push(name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> JsonFields {
        JsonFields::of(text.as_bytes()).expect("an object")
    }

    fn detail<T: std::fmt::Debug>(of: Result<T, ProblemDocument>) -> (u16, String, Option<Box<str>>) {
        let problem = of.expect_err("a problem");
        (problem.status, problem.detail, problem.pointer)
    }

    #[test]
    fn what_is_right_is_taken() {
        let mut body =
            fields(r#"{"weight": 7, "state": "b", "note": "x", "now": true, "in": {"a": 1}, "gone": null}"#);
        assert_eq!(body.whole("weight", 0..=256).expect("right"), Some(7));
        assert_eq!(body.choice("state", &[("a", 1), ("b", 2)]).expect("right"), Some(2));
        assert_eq!(body.text("note").expect("right").as_deref(), Some("x"));
        assert_eq!(body.switch("now").expect("right"), Some(true));
        assert_eq!(
            body.object("in").expect("right").expect("there").whole("a", 1..=1).expect("right"),
            Some(1)
        );
        assert!(body.is_null("gone") && !body.is_null("other"));
        assert_eq!(body.whole("other", 0..=1).expect("absent"), None);
        body.end().expect("nothing is left");
    }

    #[test]
    fn a_field_that_stands_there_twice_is_refused_at_any_depth() {
        for (text, place) in [
            (r#"{"weight": 1, "state": "up", "weight": 2}"#, "/weight"),
            (r#"{"weight": 1, "weight": 1}"#, "/weight"),
            (r#"{"weight": null, "weight": 1}"#, "/weight"),
            (r#"{"a": {"b": [0, {"c/d": 1, "c/d": 2}]}}"#, "/a/b/1/c~1d"),
            (r#"{"a": {"": 1, "": 2}}"#, "/a/"),
            (r#"{"weight": 1, "w\u0065ight": 2}"#, "/weight"),
            (r#"[{"a": 1}, {"a": 1, "a": 1}]"#, "/1/a"),
        ] {
            let told = detail(JsonFields::of(text.as_bytes()));
            assert_eq!(
                told,
                (400, format!("{place}: this field stands there twice"), Some(place.into())),
                "{text}"
            );
        }
        // The same name in another object is another field.
        let mut body = fields(r#"{"a": {"a": 1}, "b": [{"a": 1}, {"a": 1}]}"#);
        assert!(body.take("a").is_some() && body.take("b").is_some());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let at = |pointer: &str, detail: &str| (422, detail.to_owned(), Some(pointer.into()));
        let range = "/weight: a whole number from 0 to 256";
        for wrong in ["-1", "257", "1.5", "\"7\"", "[]", "true"] {
            let told = detail(fields(&format!(r#"{{"weight": {wrong}}}"#)).whole("weight", 0..=256));
            assert_eq!(told, at("/weight", range), "{wrong}");
        }
        let words = [("up", 1), ("drain", 2)];
        let told = detail(fields(r#"{"state": "dran"}"#).choice("state", &words));
        assert_eq!(told, at("/state", "/state: one of `up`, `drain`"));
        assert_eq!(detail(fields(r#"{"a/b": 1}"#).text("a/b")), at("/a~1b", "/a~1b: a text"));
        let mut inner = fields(r#"{"in": {"a": 1}}"#).object("in").expect("right").expect("there");
        assert_eq!(detail(inner.switch("a")), at("/in/a", "/in/a: true or false"));
        let mut body = fields(r#"{"weigth": 1}"#);
        assert_eq!(body.whole("weight", 0..=1).expect("absent"), None);
        assert_eq!(
            detail(body.end()),
            at("/weigth", "/weigth: there is no such field; did you mean /weight?")
        );
        assert_eq!(detail(JsonFields::of(b"[]")), at("", "the body: a JSON object"));
        assert_eq!(detail(JsonFields::of(b"")).0, 422);
        assert_eq!(detail(JsonFields::of(b"{\"a\": }")).0, 400);
        assert_eq!(detail(JsonFields::of(b"\xff")).0, 400);
    }
}
