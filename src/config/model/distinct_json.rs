//! JSON in which no object has a field twice. The usual reading takes the last of them without a word, other programs take the first:
//! what somebody has looked at and let pass would not be what is done.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Why bytes are no such JSON.
#[derive(Debug)]
pub enum Indistinct {
    /// They are no JSON at all.
    NoJson(serde_json::Error),
    /// The field at this JSON pointer is there again.
    Twice(String),
}

/// The JSON that `bytes` are.
///
/// # Errors
/// They are none, or an object has a field twice.
pub fn distinct(bytes: &[u8]) -> Result<Value, Indistinct> {
    let way = Way::default();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let read = Distinct(&way).deserialize(&mut deserializer);
    let read = read.and_then(|value| deserializer.end().map(|()| value));
    read.map_err(|error| way.twice.take().map_or(Indistinct::NoJson(error), Indistinct::Twice))
}

/// A part of a JSON pointer (RFC 6901).
#[must_use]
pub fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Where the reading is.
#[derive(Default)]
struct Way {
    /// A JSON pointer.
    place: RefCell<String>,
    /// The field that is there again.
    twice: RefCell<Option<String>>,
}

impl Way {
    /// Reads what is at `name` inside of what is being read.
    fn into<T, E>(&self, name: &str, read: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let length = {
            let mut place = self.place.borrow_mut();
            let length = place.len();
            place.push('/');
            place.push_str(name);
            length
        };
        let value = read()?;
        self.place.borrow_mut().truncate(length);
        Ok(value)
    }
}

#[derive(Clone, Copy)]
struct Distinct<'a>(&'a Way);

impl<'de> DeserializeSeed<'de> for Distinct<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Distinct<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        loop {
            let next = self.0.into(&values.len().to_string(), || list.next_element_seed(self))?;
            let Some(value) = next else { return Ok(Value::Array(values)) };
            values.push(value);
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = object.next_key::<String>()? {
            let value = self.0.into(&escaped(&name), || {
                if fields.contains_key(&name) {
                    self.0.twice.replace(Some(self.0.place.borrow().clone()));
                    return Err(A::Error::custom("a field stands there twice"));
                }
                object.next_value_seed(self)
            })?;
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whatever_has_each_field_once_is_read_as_by_anybody(text in r#"[\[\]{}:,"a-c0-3.eE\\u -]{0,24}"#) {
            match (distinct(text.as_bytes()), serde_json::from_str::<Value>(&text)) {
                (Ok(own), Ok(usual)) => prop_assert_eq!(own, usual),
                (Err(Indistinct::NoJson(own)), Err(usual)) => prop_assert_eq!(own.to_string(), usual.to_string()),
                (Err(Indistinct::Twice(place)), _) => prop_assert!(place.starts_with('/')),
                (own, usual) => prop_assert!(false, "{text}: {own:?}, {usual:?}"),
            }
        }
    }

    #[test]
    fn numbers_texts_and_depth_are_those_of_the_usual_reading() {
        let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        for text in [
            r#"{"a": [1, -1, 1.5, 1e400, 18446744073709551615, 18446744073709551616, true, null, "\u00e4\ud83d\ude00"]}"#,
            r#"{"a": 1} x"#,
            r#"{"a": 1,}"#,
            "\"\\ud800\"",
            &deep(100),
            &deep(200),
        ] {
            let usual = serde_json::from_str::<Value>(text).map_err(|error| error.to_string());
            let own = distinct(text.as_bytes()).map_err(|error| match error {
                Indistinct::NoJson(error) => error.to_string(),
                Indistinct::Twice(place) => panic!("{text}: {place}"),
            });
            assert_eq!(own, usual, "{text}");
        }
    }
}
