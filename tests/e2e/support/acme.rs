//! An authority that speaks ACME (RFC 8555) as far as clients need it, in plain text on this machine, and misbehaves on request. It looks at
//! proofs as a real one does, and verifies no signature.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, CertifiedIssuer, DnType, IsCa,
    KeyPair, KeyUsagePurpose, SerialNumber,
};
use serde_json::{Value, json};

/// Looks whether a name is whose who asks: kind, name, token, and what proves it (RFC 8555 §8.1).
pub type Look = Box<dyn Fn(&str, &str, &str, &str) -> Result<(), String> + Send + Sync>;

/// What it does wrong, and how long what it issues lives.
#[derive(Clone, Debug)]
pub struct Manners {
    /// So many of the next requests are refused for their nonce.
    pub bad_nonces: usize,
    /// Orders are refused with this status, kind of error, and Retry-After.
    pub refuses_orders: Option<(u16, &'static str, Option<u64>)>,
    /// It asks about this name, whatever was ordered.
    pub asks_about: Option<&'static str>,
    /// Certificates live for so long.
    pub life: Duration,
    /// What it says of renewals: from when to when, in seconds from now. Later certificates get nothing of the kind.
    pub window: Option<(i64, i64)>,
}

struct Order {
    names: Vec<String>,
    tokens: Vec<String>,
    /// `pending`, `valid` or `invalid`, each with why.
    states: Vec<(String, Option<String>)>,
    certificate: Option<String>,
    replaces: Option<String>,
}

struct State {
    manners: Manners,
    nonces: HashSet<String>,
    count: u64,
    accounts: HashMap<String, Value>,
    orders: Vec<Order>,
    /// What was asked: `GET /dir`.
    log: Vec<String>,
}

struct Inner {
    base: String,
    issuer: CertifiedIssuer<'static, KeyPair>,
    look: Look,
    state: Mutex<State>,
}

/// It runs until it is dropped; its thread ends with the process.
pub struct AcmeAuthority(Arc<Inner>);

struct Asked {
    method: String,
    path: String,
    body: Vec<u8>,
}

struct Told {
    status: u16,
    lines: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Told {
    fn json(status: u16, body: &Value) -> Told {
        Told { status, lines: Vec::new(), body: body.to_string().into_bytes() }
    }

    fn error(status: u16, kind: &str, detail: &str) -> Told {
        let body = json!({ "type": format!("urn:ietf:params:acme:error:{kind}"), "detail": detail, "status": status });
        Told::json(status, &body)
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Told {
        self.lines.push((name, value.into()));
        self
    }
}

impl AcmeAuthority {
    pub fn start(look: Look) -> AcmeAuthority {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let life = Duration::from_secs(90 * 24 * 3_600);
        let state = State {
            manners: Manners { bad_nonces: 0, refuses_orders: None, asks_about: None, life, window: None },
            nonces: HashSet::new(),
            count: 0,
            accounts: HashMap::new(),
            orders: Vec::new(),
            log: Vec::new(),
        };
        let inner = Arc::new(Inner { base, issuer, look, state: Mutex::new(state) });
        let serving = Arc::clone(&inner);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let inner = Arc::clone(&serving);
                std::thread::spawn(move || inner.serve(&stream));
            }
        });
        AcmeAuthority(inner)
    }

    /// One that looks for answers at this address, whatever the name.
    pub fn looking_at(plain: Arc<Mutex<Option<SocketAddr>>>) -> AcmeAuthority {
        AcmeAuthority::start(Box::new(move |kind, name, token, proof| {
            assert_eq!(kind, "http-01");
            let address = plain.lock().unwrap().ok_or("nobody listens yet")?;
            let got = super::Client::connect(address)
                .ask(&format!("GET /.well-known/acme-challenge/{token} HTTP/1.1\r\nHost: {name}\r\n\r\n"));
            match (got.status, got.text()) {
                (200, text) if text == proof => Ok(()),
                (status, text) => Err(format!("{status}: {text}")),
            }
        }))
    }

    pub fn directory(&self) -> String {
        format!("{}/dir", self.0.base)
    }

    /// Its own certificate.
    pub fn pem(&self) -> String {
        self.0.issuer.pem()
    }

    pub fn behave(&self, change: impl FnOnce(&mut Manners)) {
        change(&mut self.0.state.lock().unwrap().manners);
    }

    /// The names of each order so far, and what it was to replace.
    pub fn orders(&self) -> Vec<(Vec<String>, Option<String>)> {
        let state = self.0.state.lock().unwrap();
        state.orders.iter().map(|order| (order.names.clone(), order.replaces.clone())).collect()
    }

    /// How many certificates it has issued.
    pub fn issued(&self) -> usize {
        self.0.state.lock().unwrap().orders.iter().filter(|order| order.certificate.is_some()).count()
    }

    pub fn accounts(&self) -> Vec<Value> {
        self.0.state.lock().unwrap().accounts.values().cloned().collect()
    }

    /// It knows nobody any more.
    pub fn forget_accounts(&self) {
        self.0.state.lock().unwrap().accounts.clear();
    }
}

impl Inner {
    fn serve(&self, stream: &TcpStream) {
        let Some(asked) = read(stream) else { return };
        let told = self.answer(&asked);
        let nonce = {
            let mut state = self.state.lock().unwrap();
            state.count += 1;
            let nonce = format!("nonce{}", state.count);
            state.nonces.insert(nonce.clone());
            nonce
        };
        let mut head = format!(
            "HTTP/1.1 {} Done\r\nReplay-Nonce: {nonce}\r\nContent-Length: {}\r\nConnection: close\r\n",
            told.status,
            told.body.len()
        );
        for (name, value) in &told.lines {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let body = if asked.method == "HEAD" { &[][..] } else { &told.body };
        let mut stream = stream;
        // Who has gone need not be told.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
    }

    fn answer(&self, asked: &Asked) -> Told {
        self.state.lock().unwrap().log.push(format!("{} {}", asked.method, asked.path));
        let base = &self.base;
        match (&*asked.method, &*asked.path) {
            ("GET", "/dir") => {
                let mut directory = json!({
                    "newNonce": format!("{base}/nonce"), "newAccount": format!("{base}/account"),
                    "newOrder": format!("{base}/order"), "revokeCert": format!("{base}/revoke"),
                    "keyChange": format!("{base}/key"),
                });
                directory["renewalInfo"] = format!("{base}/ari").into();
                Told::json(200, &directory)
            }
            ("HEAD", "/nonce") => Told::json(200, &Value::Null),
            ("GET", path) if path.starts_with("/ari/") => self.advice(),
            ("POST", path) => self.post(path, &asked.body),
            _ => Told::error(404, "malformed", "nothing is here"),
        }
    }

    fn advice(&self) -> Told {
        let mut state = self.state.lock().unwrap();
        let Some((from, to)) = state.manners.window.take() else {
            return Told::error(404, "malformed", "nothing is said of this one").with("Retry-After", "21600");
        };
        let at = |seconds: i64| {
            let moment = time_text(seconds);
            Value::from(moment)
        };
        let body = json!({ "suggestedWindow": { "start": at(from), "end": at(to) } });
        Told::json(200, &body).with("Retry-After", "21600")
    }

    fn post(&self, path: &str, body: &[u8]) -> Told {
        let Ok(jws) = serde_json::from_slice::<Value>(body) else {
            return Told::error(400, "malformed", "no JWS");
        };
        let part = |name: &str| {
            let bytes = URL_SAFE_NO_PAD.decode(jws[name].as_str().unwrap_or_default()).unwrap_or_default();
            serde_json::from_slice::<Value>(&bytes).unwrap_or_default()
        };
        let (head, payload) = (part("protected"), part("payload"));
        assert_eq!(head["url"], format!("{}{path}", self.base));
        {
            let mut state = self.state.lock().unwrap();
            let is_known = state.nonces.remove(head["nonce"].as_str().unwrap_or_default());
            if state.manners.bad_nonces > 0 || !is_known {
                state.manners.bad_nonces = state.manners.bad_nonces.saturating_sub(1);
                return Told::error(400, "badNonce", "an old one");
            }
            let kid = head["kid"].as_str().unwrap_or_default();
            if path != "/account" && !state.accounts.contains_key(kid) {
                return Told::error(400, "accountDoesNotExist", "nobody is known by this name");
            }
        }
        let words: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let number =
            |place: usize| words.get(place).and_then(|word| word.parse::<usize>().ok()).unwrap_or(usize::MAX);
        match words[0] {
            "account" if words.len() == 1 => {
                let thumb = thumbprint(&head["jwk"]);
                let mut state = self.state.lock().unwrap();
                let id = format!("{}/account/{thumb}", self.base);
                state.accounts.insert(id.clone(), payload);
                Told::json(201, &json!({ "status": "valid" })).with("Location", id)
            }
            "account" => Told::json(200, &json!({ "status": "valid" })),
            "order" if words.len() == 1 => self.order(&payload),
            "order" => self.told_of(200, number(1)),
            "authorization" => self.authorization(number(1), number(2)),
            "challenge" => self.challenge(number(1), number(2), words[3], &head),
            "finalize" => self.finalize(number(1), &payload),
            "certificate" => {
                let state = self.state.lock().unwrap();
                let chain = state.orders[number(1)].certificate.clone().unwrap_or_default();
                Told { status: 200, lines: Vec::new(), body: chain.into_bytes() }
            }
            _ => Told::error(404, "malformed", "nothing is here"),
        }
    }

    fn order(&self, payload: &Value) -> Told {
        let number = {
            let mut state = self.state.lock().unwrap();
            let names: Vec<String> = payload["identifiers"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|one| Some(one["value"].as_str()?.to_owned()))
                .collect();
            let replaces = payload["replaces"].as_str().map(str::to_owned);
            let number = state.orders.len();
            let tokens =
                (0..names.len()).map(|name| format!("token-{number}-{name}-{:032x}", rand::random::<u128>()));
            let tokens = tokens.collect();
            let states = vec![("pending".to_owned(), None); names.len()];
            state.orders.push(Order { names, tokens, states, certificate: None, replaces });
            if let Some((status, kind, rest)) = state.manners.refuses_orders {
                let told = Told::error(status, kind, "not now");
                return match rest {
                    Some(seconds) => told.with("Retry-After", seconds.to_string()),
                    None => told,
                };
            }
            number
        };
        let location = format!("{}/order/{number}", self.base);
        self.told_of(201, number).with("Location", location)
    }

    fn told_of(&self, status: u16, number: usize) -> Told {
        let state = self.state.lock().unwrap();
        let order = &state.orders[number];
        let has = |wanted: &str| order.states.iter().any(|(state, _)| state == wanted);
        let now = match () {
            () if order.certificate.is_some() => "valid",
            () if has("invalid") => "invalid",
            () if has("pending") => "pending",
            () => "ready",
        };
        let base = &self.base;
        let authorizations: Vec<String> =
            (0..order.names.len()).map(|name| format!("{base}/authorization/{number}/{name}")).collect();
        let mut body = json!({
            "status": now, "authorizations": authorizations, "finalize": format!("{base}/finalize/{number}"),
        });
        if order.certificate.is_some() {
            body["certificate"] = format!("{base}/certificate/{number}").into();
        }
        if let Some(replaces) = &order.replaces {
            body["replaces"] = replaces.as_str().into();
        }
        Told::json(status, &body)
    }

    fn authorization(&self, number: usize, name: usize) -> Told {
        let state = self.state.lock().unwrap();
        let order = &state.orders[number];
        let (now, why) = &order.states[name];
        let written = &order.names[name];
        let challenge = |kind: &str| {
            let mut body = json!({
                "type": kind, "url": format!("{}/challenge/{number}/{name}/{kind}", self.base),
                "token": order.tokens[name], "status": now,
            });
            if let Some(why) = why {
                body["error"] = json!({ "type": "urn:ietf:params:acme:error:unauthorized", "detail": why });
            }
            body
        };
        let challenges = ["http-01", "tls-alpn-01", "dns-01"].map(challenge);
        Told::json(
            200,
            &json!({
                "identifier": { "type": "dns", "value": state.manners.asks_about.unwrap_or(written.trim_start_matches("*.")) },
                "wildcard": written.starts_with("*."), "status": now,
                "challenges": challenges,
            }),
        )
    }

    fn challenge(&self, number: usize, name: usize, kind: &str, head: &Value) -> Told {
        let (written, token) = {
            let state = self.state.lock().unwrap();
            let order = &state.orders[number];
            (order.names[name].clone(), order.tokens[name].clone())
        };
        let thumb =
            head["kid"].as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default().to_owned();
        let looked = (self.look)(kind, &written, &token, &format!("{token}.{thumb}"));
        let state = match looked {
            Ok(()) => ("valid".to_owned(), None),
            Err(why) => ("invalid".to_owned(), Some(why)),
        };
        self.state.lock().unwrap().orders[number].states[name] = state;
        Told::json(
            200,
            &json!({
                "type": kind, "url": format!("{}/challenge/{number}/{name}/{kind}", self.base), "token": token,
                "status": "processing",
            }),
        )
    }

    fn finalize(&self, number: usize, payload: &Value) -> Told {
        let request = URL_SAFE_NO_PAD.decode(payload["csr"].as_str().unwrap_or_default()).unwrap();
        let mut request = CertificateSigningRequestParams::from_der(&request.into()).unwrap();
        {
            let mut state = self.state.lock().unwrap();
            state.count += 1;
            let now = SystemTime::now();
            let params = &mut request.params;
            params.serial_number = Some(SerialNumber::from(state.count));
            params.use_authority_key_identifier_extension = true;
            // In whole seconds: what begins in this one holds already.
            (params.not_before, params.not_after) = (now.into(), (now + state.manners.life).into());
        }
        let certificate = request.signed_by(&self.issuer).unwrap();
        let chain = format!("{}{}", certificate.pem(), self.issuer.pem());
        self.state.lock().unwrap().orders[number].certificate = Some(chain);
        self.told_of(200, number)
    }
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { method, path, body })
}

/// RFC 7638.
fn thumbprint(jwk: &Value) -> String {
    let text =
        format!("{{\"crv\":{},\"kty\":{},\"x\":{},\"y\":{}}}", jwk["crv"], jwk["kty"], jwk["x"], jwk["y"]);
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
    URL_SAFE_NO_PAD.encode(digest)
}

/// So many seconds from now (RFC 3339).
fn time_text(seconds: i64) -> String {
    let span = Duration::from_secs(seconds.unsigned_abs());
    let at = if seconds < 0 { SystemTime::now() - span } else { SystemTime::now() + span };
    humantime::format_rfc3339_seconds(at).to_string()
}
