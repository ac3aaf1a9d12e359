//! Changes by hand written into the file: a turn of its own, in which nothing else is read.
//!
//! Read again, rewritten by spans, loaded from memory and compared with what is in force, and only then written, each file by a
//! rename. Whatever fails before the first rename changes nothing. The files come first and the store second: after a crash
//! between the two the file says what the entries say, and never neither of them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::background::background;
use super::begun::now_ms;
use super::difference::difference;
use super::kept::Unkept;
use super::running::{ConfigInForce, Occasion, Refusal, RunningConfig, TextsLoader};
use super::together::sharing::Together;
use super::trial::replacement::Replacement;
use crate::config::{
    ChangedLine, Instead, Loaded, Rewritten, SourceText, Unwritten, Wanted, rewrite, sources,
};
use crate::events;
use crate::overlay::{
    Author, EntryReport, Laid, OverlayEntry, Saving, is_same, lay, reconcile, report, saving,
};

/// What was saved, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveReport {
    /// The files that were written.
    pub files: Vec<SavedFile>,
    /// Changes by hand that the file says now: they are over.
    pub saved: Vec<EntryReport>,
    /// Those that it does not say.
    pub left: Vec<LeftEntry>,
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedFile {
    /// As messages name it.
    pub file: String,
    /// The lines that differ.
    pub lines: Vec<ChangedLine>,
}

/// A change by hand that is none of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftEntry {
    /// The change.
    pub entry: EntryReport,
    /// Why it is left.
    pub reason: String,
}

/// Why nothing was saved.
#[derive(Clone, Debug)]
pub enum SaveFault {
    /// There is no file.
    NoFile,
    /// What is in force is the cluster's config, of this revision.
    OfCluster(u64),
    /// This file is not what was read when the config in force was.
    Edited(Arc<str>),
    /// All that somebody has to write himself.
    ByHand(Vec<Unwritten>),
    /// What the files would say is not what is in force.
    Unequal(String),
    /// Another config is on trial.
    OnTrial(Refusal),
    /// It can't be written, or nothing can be kept.
    Unkept(Unkept),
}

/// What is done with the files.
struct Writing {
    loader: TextsLoader,
    file: Arc<Loaded>,
    laid: Laid,
    wanted: Vec<Wanted>,
    left: Vec<OverlayEntry>,
}

impl RunningConfig {
    /// Writes what is changed by hand into the files, and logs it. Called inside of the control runtime.
    ///
    /// # Errors
    /// Nothing has changed.
    pub async fn save(&self, author: &Author) -> Result<SaveReport, SaveFault> {
        let mut last = self.last.lock().await;
        let outcome = self.save_in_turn(&mut last.force, author).await;
        self.show(&last.force);
        outcome
    }

    async fn save_in_turn(
        &self,
        force: &mut ConfigInForce,
        author: &Author,
    ) -> Result<SaveReport, SaveFault> {
        if let Some(row) = self.together.as_ref().and_then(Together::in_force) {
            return Err(SaveFault::OfCluster(row.number));
        }
        let loader = self.texts.clone().ok_or(SaveFault::NoFile)?;
        if let Some(trial) = &force.trial {
            return Err(SaveFault::OnTrial(trial.view.refusal()));
        }
        if let Some(reason) = force.kept().fault() {
            return Err(SaveFault::Unkept(Unkept::because(reason)));
        }
        let entries = force.kept().entries().to_vec();
        let Saving { wanted, saved, left } = saving(&force.laid, &entries);
        let shown = |entries: &[OverlayEntry]| report(&force.file, entries, &force.laid.aside, now_ms());
        let (left, reasons): (Vec<OverlayEntry>, Vec<String>) =
            left.into_iter().map(|(entry, reason)| (entry, reason.to_string())).unzip();
        let shown_left = shown(&left).into_iter().zip(reasons);
        let shown_left = shown_left.map(|(entry, reason)| LeftEntry { entry, reason }).collect();
        let mut report = SaveReport { files: Vec::new(), saved: shown(&saved), left: shown_left };
        if wanted.is_empty() {
            return Ok(report);
        }
        let (file, laid) = (Arc::clone(&force.file), force.laid.clone());
        let writing = Writing { loader, file, laid, wanted, left: left.clone() };
        let unwritten = |error: std::io::Error| SaveFault::Unkept(error.into());
        report.files = background(move || writing.write()).await.map_err(unwritten)??;
        let files: Vec<&str> = report.files.iter().map(|file| &*file.file).collect();
        let lines: Vec<String> = saved.iter().map(ToString::to_string).collect();
        events::overlay_saved(&author.to_string(), &files, &lines);
        let next_id = force.kept().next_id();
        force.kept().hold(&left, next_id);
        if self.turn(force, Occasion::Reread).await.is_err() {
            // The files say it; the entries are over once they can be read.
            force.kept().hold(&entries, next_id);
        }
        Ok(report)
    }
}

impl Writing {
    /// All of it: gives the files that differ.
    fn write(&self) -> Result<Vec<SavedFile>, SaveFault> {
        let sources = sources(&self.file.sources).map_err(SaveFault::Edited)?;
        let rewritten = rewrite(&self.file.effective, &sources, &self.wanted).map_err(SaveFault::ByHand)?;
        self.verify(&sources, &rewritten)?;
        let failed = |error: std::io::Error| SaveFault::Unkept(error.into());
        let prepare = |one: &Rewritten| Replacement::prepare(&sources[one.source].path, one.text.as_bytes());
        let prepared: Vec<Replacement> =
            rewritten.iter().map(prepare).collect::<Result<_, _>>().map_err(failed)?;
        // Writing has taken its time.
        crate::config::sources(&self.file.sources).map_err(SaveFault::Edited)?;
        for (done, replacement) in prepared.into_iter().enumerate() {
            if let Err(error) = replacement.swap() {
                // All or nothing, as far as a disk that fails lets anybody promise that.
                for one in &rewritten[..done] {
                    let source = &sources[one.source];
                    let before = Replacement::prepare(&source.path, source.text.as_bytes());
                    before.and_then(Replacement::swap).map_err(failed)?;
                }
                return Err(failed(error));
            }
        }
        let saved =
            |one: Rewritten| SavedFile { file: sources[one.source].name.to_string(), lines: one.lines };
        Ok(rewritten.into_iter().map(saved).collect())
    }

    /// Loads what would be written, and compares it with what is in force.
    fn verify(&self, sources: &[SourceText], rewritten: &[Rewritten]) -> Result<(), SaveFault> {
        let mut texts: Instead =
            sources.iter().map(|source| (source.path.clone(), Arc::clone(&source.text))).collect();
        for one in rewritten {
            texts.insert(sources[one.source].path.clone(), one.text.as_str().into());
        }
        let loaded = (self.loader)(&texts);
        let loaded = Arc::new(loaded.map_err(|error| {
            let why = format!("{error:#}");
            SaveFault::Unequal(why.lines().next().unwrap_or_default().to_owned())
        })?);
        let reconciled = reconcile(&self.left, &loaded, now_ms());
        let laid = lay(&loaded, &reconciled.entries);
        let force = &self.laid.loaded;
        if is_same(&force.config, &laid.loaded.config) {
            return Ok(());
        }
        let differing = difference(&force.effective, &laid.loaded.effective);
        let first = differing.first().map(ToString::to_string);
        Err(SaveFault::Unequal(first.unwrap_or_else(|| "the order of the backends".to_owned())))
    }
}
