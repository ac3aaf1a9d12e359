//! A server of the library with its running config, so that a test can plan and reload texts.

use std::sync::{Arc, Mutex};

use evenkeel::config::{self, Flags, Loaded};
use evenkeel::reload::begun::Begun;
use evenkeel::reload::plan::Plan;
use evenkeel::reload::running::{Loader, ReloadOutcome, RunningConfig};
use evenkeel::server::{Options, Server};

/// A server with a config whose text can be replaced.
pub struct Lab {
    pub server: Server,
    pub running: Arc<RunningConfig>,
    folder: tempfile::TempDir,
    text: Arc<Mutex<String>>,
}

/// Reads a text as the file `evenkeel.yaml` of a folder.
pub fn read(text: &str, folder: &std::path::Path) -> anyhow::Result<Loaded> {
    Ok(config::load_text(text, "evenkeel.yaml", folder, &Flags::default(), &|_| None)?)
}

impl Lab {
    pub fn start(text: &str) -> Lab {
        Lab::start_in(tempfile::tempdir().unwrap(), text)
    }

    /// The text may name files of this folder.
    pub fn start_in(folder: tempfile::TempDir, text: &str) -> Lab {
        let loaded = read(text, folder.path()).unwrap_or_else(|error| panic!("{error:#}\n{text}"));
        let server = Server::start(&loaded.config, Options::default()).unwrap();
        let text = Arc::new(Mutex::new(text.to_owned()));
        let (from, path) = (Arc::clone(&text), folder.path().to_owned());
        let loader: Loader = Arc::new(move || read(&from.lock().unwrap(), &path));
        let begun = Begun::bare(loaded);
        let running = Arc::new(RunningConfig::new(server.reloader(), loader, Arc::new(|_, _| ()), begun));
        Lab { server, running, folder, text }
    }

    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// What a reload to this text would do.
    pub fn plan(&self, text: &str) -> Plan {
        let (text, path) = (text.to_owned(), self.folder.path().to_owned());
        let loader: Loader = Arc::new(move || read(&text, &path));
        self.server.control().unwrap().block_on(self.running.plan(Some(loader)))
    }

    /// Reloads to this text.
    pub fn reload(&self, text: &str) -> ReloadOutcome {
        text.clone_into(&mut self.text.lock().unwrap());
        self.server.control().unwrap().block_on(self.running.reload())
    }

    pub fn digest(&self) -> String {
        self.server.reloader().digest()
    }
}
