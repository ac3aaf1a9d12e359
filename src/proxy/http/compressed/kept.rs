//! Stored bodies are compressed once, for all who like the same coding, and kept so.
//!
//! A short one is compressed in the turn of who wants it first. A longer one is compressed by a task of its own, whoever leaves meanwhile, and
//! read along by all who come.

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use crate::cache::store::{CodedForm, Filling, Object, StoredBody};
use crate::compress::Coder;
use crate::config::model::cache::Coding;
use crate::message::Cause;
use crate::proxy::WorkerCtx;
use crate::proxy::http::answer_body::AnswerBody;
use crate::proxy::http::cached::fill::pour;
use crate::proxy::http::cached::reading::StoredReading;

use super::{AT_ONCE, CompressedBody};

/// A whole stored body in a coding. What was compressed at another level, before a reload, is as good. `None`: its client has it compressed
/// for itself alone.
pub(super) fn form(
    ctx: &Rc<WorkerCtx>,
    object: &Arc<Object>,
    coding: Coding,
    level: u32,
) -> Option<StoredReading> {
    match ctx.store.form(object, coding)? {
        CodedForm::Kept(form) => Some(StoredReading::form(form, &ctx.buffers)),
        CodedForm::Coming(filling) => StoredReading::coming(&filling, &ctx.buffers),
        CodedForm::Claimed(filling) => {
            let making = Making { ctx: Rc::clone(ctx), object: Arc::clone(object), coding, filling };
            making.begin(Coder::new(coding, level).ok()?)
        }
    }
}

/// A stored body that is being compressed. Where that ends before its end, those who read along are told.
struct Making {
    ctx: Rc<WorkerCtx>,
    object: Arc<Object>,
    coding: Coding,
    /// What has come of it.
    filling: Arc<Filling>,
}

impl Drop for Making {
    fn drop(&mut self) {
        // Nothing, where it has ended.
        self.filling.break_off(Cause::Shutdown);
        self.object.give_up_form(self.coding, &self.filling);
    }
}

impl Making {
    fn begin(self, coder: Coder) -> Option<StoredReading> {
        let plain = self.object.whole()?;
        let buffers = &self.ctx.buffers;
        let reading = StoredReading::coming(&self.filling, buffers)?;
        if plain.length() <= AT_ONCE as u64 {
            let form = self.at_once(plain, coder).ok()?;
            return Some(form.map_or(reading, |form| StoredReading::form(form, buffers)));
        }
        let plain = StoredReading::part(&self.object, 0, plain.length(), buffers);
        let source = CompressedBody::new(AnswerBody::Stored(plain), coder, false, buffers);
        let unfinished = self.ctx.unfinished.clone();
        unfinished.spawn_local(self.run(AnswerBody::Compressed(Box::new(source))));
        Some(reading)
    }

    fn at_once(&self, plain: &StoredBody, mut coder: Coder) -> io::Result<Option<StoredBody>> {
        let (mut at, mut out) = (0, Vec::new());
        while let Some((chunk, range)) = plain.part(at, plain.length()) {
            at += range.len() as u64;
            coder.push(&chunk[range], &mut out)?;
        }
        coder.end(&mut out)?;
        self.filling.append(&out);
        Ok(self.finish())
    }

    async fn run(self, mut source: AnswerBody) {
        // Whoever leaves, others will want it.
        let goes_on = || self.filling.outgrown().is_none() && !self.ctx.is_draining();
        if pour(&mut source, &self.filling, 1, goes_on).await {
            self.finish();
        }
    }

    /// All of it has come: it is kept, unless it is longer than what it was made of.
    fn finish(&self) -> Option<StoredBody> {
        let form = self.filling.body();
        if let Some(form) = &form {
            self.ctx.store.keep_form(&self.object, self.coding, form);
            self.ctx.cells.cache.compressed();
        }
        self.filling.finish();
        form
    }
}
