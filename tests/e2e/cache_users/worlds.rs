//! Worlds: a kind of listener, two routes with caches, and how the origins answer for each path.

use std::fmt::{self, Display};
use std::fs;
use std::sync::Arc;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use fake_backend::Authority;
use rustls::ClientConfig;

use super::super::auth_lab::Service;
use super::super::support::tls::{TLS13, client_config};
use super::answers::Spec;
use super::asks::{Case, USERS};
use super::chance::Draws;
use super::origin::{Book, start};

/// Who is asked how for who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Plain,
    Split,
    Basic,
    Forward,
    Token,
    Certificate,
}

impl Kind {
    pub const ALL: [Kind; 6] =
        [Kind::Plain, Kind::Split, Kind::Basic, Kind::Forward, Kind::Token, Kind::Certificate];

    /// A user shows who it is in header lines.
    pub fn asks_by_lines(self) -> bool {
        matches!(self, Kind::Basic | Kind::Forward | Kind::Token)
    }

    /// Backends are told of the user in `X-User`.
    pub fn says_user(self) -> bool {
        matches!(self, Kind::Forward | Kind::Token)
    }

    /// `Authorization` of a user.
    pub fn credentials(self, user: &str) -> String {
        match self {
            Kind::Basic => format!("Basic {}", STANDARD.encode(format!("{user}:pw"))),
            Kind::Token => format!("Bearer {}", token(user)),
            _ => format!("Bearer session={user}"),
        }
    }
}

fn signer() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap()
}

fn token(user: &str) -> String {
    let claims =
        format!(r#"{{"iss": "https://id.example", "aud": "shop", "exp": 4000000000, "sub": "{user}"}}"#);
    let signed = [r#"{"alg": "EdDSA"}"#, &claims].map(|part| URL_SAFE_NO_PAD.encode(part)).join(".");
    let signature = URL_SAFE_NO_PAD.encode(signer().sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

/// What all worlds share: origins, a service that knows the users, certificates, files.
pub struct Ground {
    pub book: Arc<Book>,
    origins: [String; 2],
    service: Service,
    folder: tempfile::TempDir,
    /// Of each user, and of somebody without a certificate.
    pub clients: Vec<(Option<&'static str>, Arc<ClientConfig>)>,
}

impl Ground {
    pub fn new() -> Ground {
        let book = Arc::new(Book::default());
        let origins = ["web", "other"].map(|target| start(target, &book).to_string());
        let service = Service::new(|head| {
            let user = USERS.iter().find(|user| head.contains(&format!("session={user}")));
            let answer = user.map(|user| {
                format!(
                    "HTTP/1.1 200 OK\r\nX-User: {user}\r\nSet-Cookie: sso={user}\r\nContent-Length: 0\r\n\r\n"
                )
            });
            answer.unwrap_or("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n".to_owned()).into_bytes()
        });
        let folder = tempfile::tempdir().unwrap();
        let put = |name, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let line = |user: &&str| format!("{user}:{}\n", bcrypt::hash("pw", 4).unwrap());
        put("users", &USERS.iter().map(line).collect::<String>());
        let public = URL_SAFE_NO_PAD.encode(signer().public_key());
        put("keys", &format!(r#"{{"keys": [{{"kty": "OKP", "crv": "Ed25519", "x": "{public}"}}]}}"#));
        let authority = Authority::new("test authority");
        let own = authority.issue(["localhost"]);
        put("ca.pem", authority.ca_pem());
        put("own.pem", &own.cert_pem);
        put("own.key", &own.key_pem);
        let client = |user: Option<&'static str>| {
            let issued = user.map(|user| authority.issue_client(user));
            (user, Arc::new(client_config(&[authority.ca_pem()], TLS13, issued.as_ref())))
        };
        let clients = USERS.iter().map(|user| client(Some(*user))).chain([client(None)]).collect();
        Ground { book, origins, service, folder, clients }
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// The config of a world.
    pub fn config(&self, world: &World) -> String {
        let (users, keys) = (self.file("users"), self.file("keys"));
        let rule = match world.kind {
            Kind::Basic => format!("auth: {{who: {{basic: {{users_file: '{users}', realm: R}}}}}}\n"),
            Kind::Forward => {
                "auth: {who: {forward: {target: sso, path: /, copy_headers: [X-User]}}}\n".into()
            }
            Kind::Token => format!(
                "auth: {{who: {{jwt: {{jwks_file: '{keys}', issuer: 'https://id.example', audience: shop, claims_to_headers: {{sub: X-User}}}}}}}}\n"
            ),
            _ => String::new(),
        };
        let asks = world.kind.asks_by_lines();
        let who = if world.kind == Kind::Basic { "X-Who: '{user}', " } else { "" };
        let tls = format!(
            "    protocol: https\n    tls: {{cert_file: '{}', cert_key: '{}', client_ca: '{}', client_auth: optional}}\n",
            self.file("own.pem"),
            self.file("own.key"),
            self.file("ca.pem")
        );
        let split = "split: {targets: {web: 50, other: 50}, by: {header: X-Shard}}";
        format!(
            "workers: 2\n{rule}listeners:\n  front:\n    bind: 127.0.0.1:0\n{}    routes:\n      \
             - {{name: open, match: {{header: {{X-Route: open}}}}, {}target: web, cache: {}, headers: {{request: {{set: {{X-Zone: open}}}}}}}}\n      \
             - {{name: all, {}{}, cache: {}, headers: {{request: {{set: {{{who}X-Zone: all}}}}}}}}\n\
             targets:\n  web: {{health_check: off, backends: [{{url: 'http://{}'}}]}}\n  \
             other: {{health_check: off, backends: [{{url: 'http://{}'}}]}}\n  \
             sso: {{health_check: off, backends: [{{url: 'http://{}'}}]}}\n",
            if world.kind == Kind::Certificate { &tls } else { "" },
            if asks { "auth: off, " } else { "" },
            world.policies[0].text,
            if asks { "auth: who, " } else { "" },
            if world.kind == Kind::Split { split } else { "target: web" },
            world.policies[1].text,
            self.origins[0],
            self.origins[1],
            self.service.address,
        )
    }
}

/// What a route says of its cache.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    text: String,
    /// Answers that say nothing are stored, and errors of them.
    pub ttl: bool,
    pub negative: bool,
    pub overrides: bool,
    pub ignores_cookies: bool,
    pub headers: Vec<&'static str>,
    query: Option<&'static str>,
}

impl Policy {
    fn some(chance: &mut Draws) -> Policy {
        let mut policy = Policy::default();
        let mut keys = Vec::new();
        policy.overrides = chance.one_in(5);
        if policy.overrides {
            keys.push("ttl_override: 100s");
        } else {
            let ttl = chance.of(&["ttl: off", "ttl: 100s", "ttl: 100s", "ttl: 1ms"]);
            policy.ttl = ttl != "ttl: off";
            keys.push(ttl);
            policy.negative = chance.one_in(3);
            if policy.negative {
                keys.push("negative_ttl: 100s");
            }
        }
        policy.ignores_cookies = chance.one_in(5);
        if policy.ignores_cookies {
            keys.push("ignore_cookies: true");
        }
        if chance.one_in(4) {
            let (name, text) = chance.of(&[
                ("x-api-key", "headers: [X-Api-Key]"),
                ("accept-language", "headers: [Accept-Language]"),
                ("cookie", "headers: [Cookie]"),
            ]);
            policy.headers.push(name);
            keys.push(text);
        }
        if chance.one_in(3) {
            policy.query = Some("q");
            keys.push("query: [q]");
        }
        for key in ["stale_while_revalidate: 30s", "stale_if_error: 30s", "reloads: off", "fill: true"] {
            if chance.one_in(4) {
                keys.push(key);
            }
        }
        policy.text = format!("{{{}}}", keys.join(", "));
        policy
    }

    /// What of a query tells objects apart, and backends get.
    pub fn counted(&self, query: &str) -> String {
        let Some(name) = self.query else { return query.to_owned() };
        let counts = |parameter: &&str| parameter.split('=').next() == Some(name);
        query.split('&').filter(counts).collect::<Vec<_>>().join("&")
    }
}

pub struct World {
    pub seed: u64,
    pub kind: Kind,
    /// Of the routes `open` and `all`.
    policies: [Policy; 2],
    /// For each path, how its origins answer.
    specs: Vec<(&'static str, Vec<Spec>)>,
}

impl World {
    pub fn new(seed: u64) -> World {
        let mut chance = Draws(seed);
        let kind = Kind::ALL[(seed % Kind::ALL.len() as u64) as usize];
        let policies = [(); 2].map(|()| Policy::some(&mut chance));
        let often = kind.asks_by_lines() || kind == Kind::Certificate;
        let mut ways =
            |path| (path, (0..chance.of(&[1, 1, 1, 2, 3])).map(|_| Spec::some(&mut chance, often)).collect());
        World { seed, kind, policies, specs: ["/a", "/b/c", "/d"].map(&mut ways).into() }
    }

    pub fn policy(&self, route: &str) -> &Policy {
        &self.policies[usize::from(route == "all")]
    }

    pub fn specs(&self, case: &Case) -> &[Spec] {
        &self.specs.iter().find(|(path, _)| *path == case.path).unwrap().1
    }
}

impl Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "world {}, {:?}", self.seed, self.kind)?;
        for (route, policy) in ["open", "all"].iter().zip(&self.policies) {
            writeln!(f, "  {route}: cache: {}", policy.text)?;
        }
        for (path, specs) in &self.specs {
            for spec in specs {
                writeln!(f, "  {path}: {} {:?} {:?}", spec.meaning.status, spec.lines, spec.etag)?;
            }
        }
        Ok(())
    }
}
