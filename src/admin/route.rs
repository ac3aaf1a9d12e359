//! One thing that can be asked: how it is named, what it takes and who may.

use std::pin::Pin;
use std::sync::Arc;

use super::api::Api;
use super::exchange::answers::AdminAnswer;
use super::exchange::percent;
use super::exchange::problem_document::ProblemDocument;
use super::exchange::question::{BodyKind, Question};
use crate::config::model::Scope;

/// What comes of a question.
pub type AdminOutcome = Result<AdminAnswer, ProblemDocument>;

/// An outcome to come.
pub type Answering = Pin<Box<dyn Future<Output = AdminOutcome> + Send>>;

/// What answers. It is called inside of the control runtime when path, scope, query and body have been judged. That of a change is
/// brought to its end also where the client no longer waits.
pub type Handler = fn(Arc<Api>, Question) -> Answering;

/// One thing that can be asked.
#[derive(Clone, Copy, Debug)]
pub struct AdminRoute {
    /// In capitals. What is not `GET` is a change, unless `changes` says otherwise.
    pub method: &'static str,
    /// `{name}` stands for one segment of a path.
    pub path: &'static str,
    /// What a caller must at least have.
    pub scope: Scope,
    /// What it does, in one line.
    pub does: &'static str,
    /// What its body is.
    pub body: BodyKind,
    /// Which parameters its query may have.
    pub query: &'static [&'static str],
    /// The schemas of a JSON body and of the answer, by name; empty: none.
    pub schemas: (&'static str, &'static str),
    /// It changes what runs, so `If-Match` holds for it.
    pub changes: bool,
    /// What answers.
    pub handler: Handler,
}

impl AdminRoute {
    /// Something to look at.
    #[must_use]
    pub const fn read(path: &'static str, does: &'static str, handler: Handler) -> AdminRoute {
        AdminRoute {
            method: "GET",
            path,
            scope: Scope::Read,
            does,
            body: BodyKind::None,
            query: &[],
            schemas: ("", ""),
            changes: false,
            handler,
        }
    }

    /// Something to change, by those who have `scope`.
    #[must_use]
    pub const fn change(
        method: &'static str,
        path: &'static str,
        scope: Scope,
        does: &'static str,
        handler: Handler,
    ) -> AdminRoute {
        AdminRoute { method, scope, changes: true, ..AdminRoute::read(path, does, handler) }
    }

    /// The same with a body.
    #[must_use]
    pub const fn taking(self, body: BodyKind) -> AdminRoute {
        AdminRoute { body, ..self }
    }

    /// The same with a JSON body of this schema.
    #[must_use]
    pub const fn taking_json(self, schema: &'static str) -> AdminRoute {
        AdminRoute { body: BodyKind::Json, schemas: (schema, self.schemas.1), ..self }
    }

    /// The same with an answer of this schema.
    #[must_use]
    pub const fn giving(self, schema: &'static str) -> AdminRoute {
        AdminRoute { schemas: (self.schemas.0, schema), ..self }
    }

    /// The same with parameters of the query.
    #[must_use]
    pub const fn with(self, query: &'static [&'static str]) -> AdminRoute {
        AdminRoute { query, ..self }
    }

    /// The same where nothing is changed, though the method may say so.
    #[must_use]
    pub const fn changing_nothing(self) -> AdminRoute {
        AdminRoute { changes: false, ..self }
    }

    /// The same for whoever comes.
    #[must_use]
    pub const fn open(self) -> AdminRoute {
        AdminRoute { scope: Scope::Open, ..self }
    }

    /// The names of what stands in braces.
    pub fn parameters(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.path.split('/').filter_map(in_braces)
    }

    /// What stands in `path` for what is in braces, decoded; `None`: the path is another one, or is not encoded as it should be.
    #[must_use]
    pub fn values(&self, path: &str) -> Option<Vec<(&'static str, String)>> {
        let (mut own, mut asked) = (self.path.split('/'), path.split('/'));
        let mut values = Vec::new();
        loop {
            match (own.next(), asked.next()) {
                (None, None) => return Some(values),
                (Some(own), Some(asked)) => match in_braces(own) {
                    Some(name) => {
                        values.push((name, percent::strict(asked).filter(|text| !text.is_empty())?))
                    }
                    None if own == asked => {}
                    None => return None,
                },
                (None, Some(_)) | (Some(_), None) => return None,
            }
        }
    }

    /// The path with the segments of `asked` in place of what is in braces, as far as it has any.
    #[must_use]
    pub fn like(&self, asked: &str) -> String {
        let mut asked = asked.split('/').map(Some).chain(std::iter::repeat(None));
        let segments = self.path.split('/').map(|own| {
            let asked = asked.next().flatten().filter(|text| !text.is_empty());
            in_braces(own).and(asked).unwrap_or(own)
        });
        segments.collect::<Vec<_>>().join("/")
    }
}

/// The name of a segment that stands for any.
fn in_braces(segment: &'static str) -> Option<&'static str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}
