//! What a stored body was compressed to: kept beside it, once in each coding, for all who like that one.
//!
//! Invariants:
//!
//! 1. One makes a form at a time: whoever [claims](CodedForms::claim) it. The others read along with what it makes, as with any body that
//!    is coming. One that breaks off, or turns out not to be worth keeping, is free to be claimed again.
//! 2. What is kept is whole. It never changes and goes with its object, whoever still sends it.
//! 3. Forms come and go under the lock of the shard of their object's URL, where the weight of the entry is
//!    [told anew](super::CacheStore::keep_form): what is kept there is weighed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::model::cache::Coding;

use super::body::StoredBody;
use super::filling::Filling;

/// The forms of one body.
#[derive(Debug, Default)]
pub(super) struct CodedForms(Mutex<Vec<(Coding, Form)>>);

#[derive(Clone, Debug)]
enum Form {
    Kept(StoredBody),
    Coming(Arc<Filling>),
}

/// A stored body in a coding, for one who wants it so.
#[derive(Debug)]
pub enum CodedForm {
    /// It is here.
    Kept(StoredBody),
    /// Another one makes it.
    Coming(Arc<Filling>),
    /// This one makes it, for all who come: it fills this and then [keeps](super::CacheStore::keep_form) it.
    Claimed(Arc<Filling>),
}

impl CodedForms {
    fn lock(&self) -> MutexGuard<'_, Vec<(Coding, Form)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The form in this coding, if it is kept.
    pub(super) fn kept(&self, coding: Coding) -> Option<StoredBody> {
        self.lock().iter().find_map(|(other, form)| match form {
            Form::Kept(body) if *other == coding => Some(body.clone()),
            Form::Kept(_) | Form::Coming(_) => None,
        })
    }

    /// The form in this coding, or the right to make it. `most`: bytes that are kept of it at most; `filling` makes what is filled. `None`:
    /// there is no room.
    pub(super) fn claim(
        &self,
        coding: Coding,
        most: u64,
        filling: impl FnOnce(u64) -> Option<Arc<Filling>>,
    ) -> Option<CodedForm> {
        let mut forms = self.lock();
        match forms.iter().find(|(other, _)| *other == coding) {
            Some((_, Form::Kept(body))) => return Some(CodedForm::Kept(body.clone())),
            Some((_, Form::Coming(filling))) if !filling.is_spent() => {
                return Some(CodedForm::Coming(Arc::clone(filling)));
            }
            Some(_) | None => {}
        }
        let filling = filling(most)?;
        forms.retain(|(other, _)| *other != coding);
        forms.push((coding, Form::Coming(Arc::clone(&filling))));
        Some(CodedForm::Claimed(filling))
    }

    /// Keeps a form, or gives it up.
    pub(super) fn settle(&self, coding: Coding, kept: Option<StoredBody>) {
        let mut forms = self.lock();
        forms.retain(|(other, _)| *other != coding);
        forms.extend(kept.map(|body| (coding, Form::Kept(body))));
    }

    /// Gives up the right to make a form, if that is still what is coming: what was made of it is let go.
    pub(super) fn give_up(&self, coding: Coding, filling: &Arc<Filling>) {
        let is_it = |form: &Form| matches!(form, Form::Coming(other) if Arc::ptr_eq(other, filling));
        self.lock().retain(|(other, form)| *other != coding || !is_it(form));
    }

    /// Bytes of memory behind what is kept.
    pub(super) fn weight(&self) -> u64 {
        let weight = |form: &Form| match form {
            Form::Kept(body) => body.weight(),
            Form::Coming(_) => 0,
        };
        self.lock().iter().map(|(_, form)| weight(form)).sum()
    }
}

impl Clone for CodedForms {
    /// Those of the same body under another head. What is coming is coming for both.
    fn clone(&self) -> CodedForms {
        CodedForms(Mutex::new(self.lock().clone()))
    }
}
