//! The texts that a config was read from, if that is still what is in the files.

use std::path::PathBuf;
use std::sync::Arc;

use super::wanted::SourceText;
use crate::config::effective::number_of;
use crate::config::include::{FILE_MAX, read};
use crate::config::origin::SourceFile;

/// A file that a config was read from, and a number for what was in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceStamp {
    name: Arc<str>,
    path: PathBuf,
    content: u64,
}

impl SourceStamp {
    /// Of a file that was read.
    pub(in crate::config) fn of(source: &SourceFile) -> SourceStamp {
        let content = number_of([source.text.as_bytes()]);
        SourceStamp { name: Arc::clone(&source.name), path: source.path.clone(), content }
    }
}

/// Reads the texts of a config again. Blocks for as long as the file system does.
///
/// # Errors
/// The name of the first file in which something else is now, or nothing.
pub fn sources(stamps: &[SourceStamp]) -> Result<Vec<SourceText>, Arc<str>> {
    let read = |stamp: &SourceStamp| {
        let text =
            read(&stamp.path, FILE_MAX).ok().filter(|text| number_of([text.as_bytes()]) == stamp.content);
        let text = text.ok_or_else(|| Arc::clone(&stamp.name))?;
        Ok(SourceText { name: Arc::clone(&stamp.name), path: stamp.path.clone(), text: text.into() })
    };
    stamps.iter().map(read).collect()
}
