//! A backend that is added while the process serves: held to what those of the file are held to, and refused in the same words.

use std::path::Path;
use std::sync::Arc;

use super::effective::{Effective, EffectiveRows};
use super::error::{Problem, Wrong, quoted};
use super::model::{BackendAddress, BackendConfig, BackendState, Bind, Portion, Protocol};
use super::origin::{Origin, Spot, Written};
use super::raw::{PRIORITY_MAX, RawBackend, RawPortion, backend_url, name, out_of_range, probe_path};
use super::report::Report;
use super::validate::{BackendRules, identity, leads_to};

/// What somebody has said of it. The keys are those of a file.
#[derive(Clone, Debug)]
pub struct Addition<'a> {
    /// Its name; `None`: its address.
    pub name: Option<&'a str>,
    /// Where it is.
    pub url: &'a str,
    /// 0 to 256; `None`: 1.
    pub weight: Option<u32>,
    /// 0 to 254; `None`: 0.
    pub priority: Option<u32>,
    /// Behind every priority.
    pub backup: Option<bool>,
    /// Where it runs.
    pub zone: Option<&'a str>,
    /// What its probe asks for.
    pub health_path: Option<&'a str>,
    /// Who said so, and when.
    pub origin: Origin,
}

/// It as if the file had it.
#[derive(Clone, Debug, PartialEq)]
pub struct NewBackend {
    /// The accepted form.
    pub backend: BackendConfig,
    /// Its values in force.
    pub rows: Vec<Effective>,
}

/// Why it is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdditionFault {
    /// The key that is wrong.
    pub key: &'static str,
    /// What is wrong with it.
    pub problem: Problem,
    /// The target has such a backend.
    pub is_duplicate: bool,
}

/// Problems of one key after the other.
struct Faults {
    list: Vec<AdditionFault>,
    spot: Spot,
}

impl Faults {
    /// Does `work`, whose problems are those of `key`.
    fn of<T>(&mut self, key: &'static str, work: impl FnOnce(&mut Report, &Spot) -> T) -> T {
        let mut report = Report::about("", "");
        let done = work(&mut report, &self.spot);
        let problems = report.finish().list;
        let faults = problems.into_iter().map(|problem| AdditionFault { key, problem, is_duplicate: false });
        self.list.extend(faults);
        done
    }

    /// Reads what is written as `key`, if anything is.
    fn read<T, V>(
        &mut self,
        key: &'static str,
        written: Option<V>,
        read: impl FnOnce(V) -> Result<T, Wrong>,
    ) -> Option<Written<T>> {
        let written = written?;
        self.of(key, |report, spot| match read(written) {
            Ok(value) => Some(Written::new(value, spot.clone())),
            Err(wrong) => {
                report.wrong(spot, &format!("`{key}`"), wrong);
                None
            }
        })
    }
}

impl BackendRules {
    /// The backend that `addition` asks for, at `index` among the backends of the target; `beside`: those that are there, `binds`:
    /// where the target itself listens.
    ///
    /// # Errors
    /// All that is wrong with it, in the order of the keys.
    pub fn add(
        &self,
        addition: &Addition<'_>,
        index: usize,
        beside: &[BackendConfig],
        binds: &[Bind],
    ) -> Result<NewBackend, Vec<AdditionFault>> {
        let spot = Spot { origin: addition.origin.clone(), place: None };
        let mut faults = Faults { list: Vec::new(), spot };
        let usual = if self.protocol == Some(Protocol::Http) { "http" } else { "tcp" };
        let place = faults.read("url", Some(addition.url), |url| {
            let place = backend_url(url, usual)?;
            match &place.address {
                BackendAddress::Unix(path) if !path.is_absolute() => Err(relative(path)),
                BackendAddress::Unix(_) | BackendAddress::Host { .. } => Ok(place),
            }
        });
        let most = u32::from(Portion::WEIGHT_MAX);
        let portion = RawPortion {
            weight: faults.read("weight", addition.weight, |weight| within(weight, most)),
            backup: faults.read("backup", addition.backup, Ok),
            priority: faults.read("priority", addition.priority, |number| within(number, PRIORITY_MAX)),
            zone: faults.read("zone", addition.zone, |zone| name(zone).map(Arc::from)),
        };
        if let (Some(true), Some(_)) = (addition.backup, addition.priority) {
            faults.of("priority", |report, spot| {
                let note = "keep one of them; a backup comes behind every `priority`";
                report.spot(spot, "`backup` and `priority` in one backend").note(note);
            });
        }
        let raw_name = faults.read("name", addition.name, name);
        let health_path = faults.read("health_path", addition.health_path, probe_path);
        let Some(place) = place.filter(|_| faults.list.is_empty()) else { return Err(faults.list) };
        let raw = RawBackend { name: raw_name, health_path, portion, ..RawBackend::at(place) };
        let mut rows = EffectiveRows::default();
        let backend = faults.of("url", |report, _| self.accept(index, &raw, report, &mut rows));
        faults.of("url", |report, spot| refuse_loop(&self.target, &backend, binds, spot, report));
        faults.list.extend(self.duplicate(&backend, beside));
        if !faults.list.is_empty() {
            return Err(faults.list);
        }
        debug_assert_eq!(backend.state, BackendState::Up);
        Ok(NewBackend { backend, rows: rows.into_list() })
    }

    /// One that has the address or the name already.
    fn duplicate(&self, new: &BackendConfig, beside: &[BackendConfig]) -> Option<AdditionFault> {
        let target = quoted(&self.target);
        let own = identity(&new.address);
        let mut report = Report::about("", "");
        let key = if let Some(first) = beside.iter().find(|other| identity(&other.address) == own) {
            let message = format!("the backend `{}` is there twice in the target {target}", new.address);
            report.whole(message).note(format!("the first is {}", quoted(&first.name)));
            "url"
        } else if beside.iter().any(|other| other.name == new.name) {
            let named = quoted(&new.name);
            report.whole(format!("two backends of the target {target} have the name {named}"));
            "name"
        } else {
            return None;
        };
        let problem = report.finish().list.pop()?;
        Some(AdditionFault { key, problem, is_duplicate: true })
    }
}

/// What the URL of a backend says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedBackend {
    /// Where it is.
    pub address: BackendAddress,
    /// What it speaks; `None`: a unix socket, whose URL does not say.
    pub protocol: Option<Protocol>,
    /// Whether with TLS; `None` as above.
    pub tls: Option<bool>,
}

impl NamedBackend {
    /// Reads a URL.
    ///
    /// # Errors
    /// What is wrong with it, as a predicate.
    pub fn of(url: &str) -> Result<NamedBackend, String> {
        let place = backend_url(url, "http").map_err(|wrong| wrong.message)?;
        Ok(NamedBackend { address: place.address, protocol: place.protocol, tls: place.tls })
    }
}

impl BackendAddress {
    /// One text for every way to write the same address.
    #[must_use]
    pub fn identity(&self) -> String {
        identity(self).to_string()
    }
}

fn relative(path: &Path) -> Wrong {
    Wrong::new(
        format!("is {}, which is no path from the root", quoted(&path.display().to_string())),
        "`unix:/path`",
    )
}

fn within(number: u32, most: u32) -> Result<u32, Wrong> {
    if number <= most {
        return Ok(number);
    }
    Err(out_of_range(number, &format!("a whole number from 0 to {most}"), false))
}

/// The target would send its requests to itself.
fn refuse_loop(target: &str, new: &BackendConfig, binds: &[Bind], spot: &Spot, report: &mut Report) {
    if binds.iter().any(|bind| leads_to(&new.address, bind)) {
        let message = format!(
            "the backend `{}` is where the target {} itself listens, so its requests would go round in circles",
            new.address,
            quoted(target)
        );
        report.spot(spot, message).expected("the address and port of the server that is to answer");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Flags, Loaded, load_text};

    fn loaded(text: &str) -> Loaded {
        load_text(text, "t.yaml", Path::new("/"), &Flags::default(), &|_| None).expect("valid")
    }

    const WEB: &str = "targets: {web: {protocol: http, listener: 127.0.0.1:8080, health_check: {path: /up}, \
                       backends: [{host: LOCALHOST, port: 1, name: b1}]}}";

    fn ask(url: &str) -> Addition<'_> {
        let origin = Origin::Hand { who: "uid 0".into(), at_ms: 0 };
        Addition {
            name: None,
            url,
            weight: None,
            priority: None,
            backup: None,
            zone: None,
            health_path: None,
            origin,
        }
    }

    fn add(loaded: &Loaded, addition: &Addition<'_>) -> Result<NewBackend, Vec<AdditionFault>> {
        let beside = &loaded.config.targets[0].backends;
        loaded.backend_rules[0].add(addition, beside.len(), beside, &loaded.config.listeners[0].binds)
    }

    #[test]
    fn it_is_what_the_file_would_have_made_of_it() {
        let new =
            add(&loaded(WEB), &Addition { weight: Some(3), ..ask("http://10.0.0.1:80") }).expect("taken");
        let text = WEB.replace("name: b1}", "name: b1}, {url: 'http://10.0.0.1:80', weight: 3}");
        let written = loaded(&text);
        assert_eq!(new.backend, written.config.targets[0].backends[1]);
        let rows: Vec<String> = new.rows.iter().map(|row| format!("{} = {}", row.path, row.value)).collect();
        let of_file = written.effective.iter().filter(|row| row.path.starts_with("targets.web.backends[1]."));
        let of_file: Vec<String> = of_file.map(|row| format!("{} = {}", row.path, row.value)).collect();
        assert_eq!(rows, of_file);
        let weight = new.rows.iter().find(|row| row.path.ends_with(".weight")).expect("there");
        assert_eq!(weight.origin.to_string(), "by hand, uid 0, 1970-01-01T00:00:00Z");
    }

    #[test]
    fn what_the_file_may_not_say_nobody_may() {
        let loaded = loaded(WEB);
        let told = |addition: Addition<'_>| {
            let faults = add(&loaded, &addition).expect_err("refused");
            let fault = faults.first().expect("one").clone();
            (fault.key, fault.problem.message, fault.is_duplicate)
        };
        let plain = |url| ask(url);
        assert_eq!(
            told(plain("http://localhost.:1")),
            ("url", "the backend `localhost.:1` is there twice in the target `web`".into(), true)
        );
        assert_eq!(
            told(Addition { name: Some("b1"), ..plain("http://a:2") }),
            ("name", "two backends of the target `web` have the name `b1`".into(), true)
        );
        let (key, message, _) = told(plain("tcp://a:2"));
        assert_eq!((key, &*message), ("url", "this backend speaks tcp, but the target `web` speaks http"));
        assert_eq!(told(plain("a:2")).1, "`url` is `a:2`, which has no scheme");
        assert_eq!(told(plain("unix:a.sock")).1, "`url` is `a.sock`, which is no path from the root");
        assert!(told(plain("http://127.0.0.1:8080")).1.contains("round in circles"));
        let wrong = Addition { weight: Some(257), name: Some("a/b"), ..plain("http://a:2") };
        assert_eq!(told(wrong.clone()).1, "`weight` is 257, which is too large");
        assert_eq!(add(&loaded, &wrong).expect_err("refused").len(), 2, "all that is wrong is told");
        let both = Addition { backup: Some(true), priority: Some(1), ..plain("http://a:2") };
        let (key, message, _) = told(both);
        assert_eq!((key, &*message), ("priority", "`backup` and `priority` in one backend"));
    }
}
