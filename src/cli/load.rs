//! From what was typed to the config: the file that was named, standard input, one of the usual name, or flags alone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::args::Settings;
use super::habits;
use super::serve::ConfigSource;
use crate::config::{self, Files, Flags, Loaded, SharedPart};
use crate::decision::verify;
use crate::reload::running::TextsLoader;
use crate::reload::together::SharedReading;

/// Loads the config that flags and file amount to.
pub(super) fn config(settings: &Settings) -> anyhow::Result<Loaded> {
    let env = |name: &str| std::env::var(name).ok();
    let (flags, file) = (settings.flags(), file(settings));
    match file.as_deref() {
        Some(path) if is_input(path) => {
            let loaded = config::load_from(std::io::stdin().lock(), "standard input", &flags, &env)?;
            let loaded = verify(loaded)?;
            // It can't be read again, so nobody is to watch what it names.
            Ok(Loaded { files: Files::default(), ..loaded })
        }
        path => Ok(verify(config::load(path, &flags, &env)?)?),
    }
}

/// The same once more while it serves.
fn again(settings: &Settings) -> anyhow::Result<Loaded> {
    match file(settings).as_deref() {
        Some(path) if is_input(path) => {
            anyhow::bail!("the config came from standard input, which can't be read again")
        }
        None => anyhow::bail!("there is no config file: all that is in force was said by flags"),
        Some(_) => config(settings),
    }
}

/// Whether a name stands for standard input.
fn is_input(path: &Path) -> bool {
    ["-", "/dev/stdin"].iter().any(|name| path == Path::new(name))
}

/// Where configs come from while it serves.
pub(super) fn source(settings: &Settings) -> ConfigSource {
    let (again_settings, text_settings) = (settings.clone(), settings.clone());
    let path = file(settings).filter(|path| !is_input(path));
    ConfigSource {
        file: path.clone(),
        unable: file(settings).filter(|path| is_input(path)).map(|_| {
            "the config came from standard input, which another process can't read: restart this one"
                .to_owned()
        }),
        texts: path.map(|path| with_texts(path, settings.flags())),
        shared: shared(settings),
        loader: Arc::new(move || again(&again_settings)),
        text: Arc::new(move |text, name, fence| {
            let env = |name: &str| std::env::var(name).ok();
            let flags = text_settings.flags();
            let file = file(&text_settings).filter(|file| !is_input(file));
            if let Some(fence) = fence {
                return Ok(verify(config::load_fenced(text, name, file.as_deref(), &flags, fence)?)?);
            }
            let loaded = match file {
                Some(file) => config::load_instead(text, name, &file, &flags, &env)?,
                None => config::load_text(text, name, Path::new(""), &flags, &env)?,
            };
            Ok(verify(loaded)?)
        }),
    }
}

/// How configs of a cluster are read; `None`: there is no file that says what is this node's own.
fn shared(settings: &Settings) -> Option<SharedReading> {
    let path = file(settings).filter(|path| !is_input(path))?;
    let env = |name: &str| std::env::var(name).ok();
    let (flags, own) = (settings.flags(), path.clone());
    let of_file = path.clone();
    Some(SharedReading {
        shared: Arc::new(move |text| Ok(verify(config::load_shared(&own, text, &flags, &env)?)?)),
        own: Arc::new(move || part(&config::text_of(&of_file)?, &of_file)),
        part: Arc::new(move |text| part(text, &path)),
        cache: None,
    })
}

fn part(text: &str, path: &Path) -> anyhow::Result<SharedPart> {
    let env = |name: &str| std::env::var(name).ok();
    let part = config::shared_part(text, path, &env);
    part.map_err(|uncut| anyhow::anyhow!("{}: {uncut}", path.display()))
}

/// The file as if other texts were in it and in those that it includes.
fn with_texts(path: PathBuf, flags: Flags) -> TextsLoader {
    Arc::new(move |texts| {
        let env = |name: &str| std::env::var(name).ok();
        Ok(verify(config::load_with(&path, texts, &flags, &env)?)?)
    })
}

/// The file that was named, or one of the usual name where nothing else says what to do.
fn file(settings: &Settings) -> Option<PathBuf> {
    if let Some(named) = settings.file() {
        return Some(named.to_owned());
    }
    let usual = habits::USUAL.iter().map(PathBuf::from).find(|path| path.is_file());
    usual.filter(|_| !settings.has_backends())
}
