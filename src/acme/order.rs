//! One order, from the first word to the certificate (RFC 8555 §7.4).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use instant_acme::{
    Account, AuthorizationStatus, CertificateIdentifier, ChallengeHandle, ChallengeType, Error, Identifier,
    NewOrder, Order, OrderStatus, RetryPolicy,
};
use rcgen::{
    CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384,
    PKCS_RSA_SHA256, RsaKeySize,
};
use tokio::time::{sleep, timeout};

use super::fault::{OrderFault, is, problem_words};
use super::hook::DnsRecord;
use super::nodes::proofs::{ProofSpread, SpreadProof};
use super::proof::proving;
use crate::config::model::tls::acme::{AcmeChallenge, AcmeConfig, DnsHook, OrderedCertificate, OrderedKey};
use crate::tls::{OfferedProof, Proofs};

/// How often an answer is asked for again that was refused for its nonce alone (RFC 8555 §6.5), beyond what the client does itself.
const NONCES: u32 = 5;
/// How often an answer is asked for again that did not come, and after what time.
const BREAKS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);
/// An authority looks from several places, one after the other, and some of them slowly.
const VALIDATION: Duration = Duration::from_secs(300);
/// And may take its time to sign.
const SIGNING: Duration = Duration::from_secs(180);
/// All of it, but for what is done in DNS.
const WHOLE: Duration = Duration::from_secs(900);
/// Programs that may take as long as they can: who has more names has a program that is quicker.
const HOOKS: u32 = 5;

/// What was issued, as PEM.
pub(super) struct Issue {
    /// The private key.
    pub(super) key: String,
    /// The chain, leaf first.
    pub(super) chain: String,
}

/// Repeats a call that is refused for its nonce alone, of which nothing has counted, and one that has broken off: whatever has become of it,
/// to ask once more does no harm (RFC 8555 §6.5, RFC 9110 §9.2.2 but for the signature).
macro_rules! patiently {
    ($call:expr) => {{
        let (mut nonces, mut breaks) = (NONCES, BREAKS);
        loop {
            match $call.await {
                Err(error) if nonces > 0 && is(&error, "badNonce") => nonces -= 1,
                Err(Error::Other(_)) if breaks > 0 => {
                    breaks -= 1;
                    sleep(PAUSE).await;
                }
                done => break done,
            }
        }
    }};
}

/// A proof that is there until the authority has looked, and a moment longer.
enum GivenProof {
    /// Workers give it.
    Offered { _proof: OfferedProof, spread: Option<SpreadProof> },
    /// It is in DNS.
    InDns { _record: DnsRecord },
}

/// By what names are proven, and who hears how far it is.
pub(super) struct Means<'a> {
    pub(super) proofs: &'a Arc<Proofs>,
    pub(super) hook: Option<&'a DnsHook>,
    /// The other nodes.
    pub(super) others: Option<&'a ProofSpread>,
    /// Called before the authority is asked to sign: from then on it may have issued a certificate, whatever comes of it.
    pub(super) signing: &'a (dyn Fn() + Sync),
}

/// Orders a certificate in the place of the one that `replaces` means. What was given to prove names is taken away behind it.
///
/// # Errors
/// There is none, and why.
pub(super) async fn order(
    account: &Account,
    ordered: &OrderedCertificate,
    replaces: Option<CertificateIdentifier<'static>>,
    means: &Means<'_>,
) -> Result<Issue, OrderFault> {
    // What the program may take for each name, and what it is then waited for.
    let in_dns = means.hook.map_or(Duration::ZERO, |hook| hook.wait + AcmeConfig::HOOK_TIMEOUT * HOOKS);
    let whole = WHOLE + in_dns;
    let ended = timeout(whole, run(account, ordered, replaces, means)).await;
    let late = || OrderFault::own(format!("timeout after {}", humantime::format_duration(whole)));
    ended.unwrap_or_else(|_| Err(late()))
}

async fn run(
    account: &Account,
    ordered: &OrderedCertificate,
    replaces: Option<CertificateIdentifier<'static>>,
    means: &Means<'_>,
) -> Result<Issue, OrderFault> {
    let mut order = begin(account, ordered, replaces).await?;
    let given = offer(&mut order, ordered, means).await?;
    let in_dns = given.values().any(|proof| matches!(proof, GivenProof::InDns { .. }));
    if let (true, Some(hook)) = (in_dns, means.hook) {
        sleep(hook.wait).await;
    }
    if let Some(others) = means.others {
        let spread = given.values().filter_map(|proof| match proof {
            GivenProof::Offered { spread, .. } => spread.as_ref(),
            GivenProof::InDns { .. } => None,
        });
        others.seen(&ordered.names.join(", "), &spread.collect::<Vec<_>>()).await;
    }
    let policy = RetryPolicy::new().initial_delay(Duration::from_millis(250)).backoff(1.5);
    if !given.is_empty() {
        have_it_looked_at(&mut order, ordered.challenge).await?;
    }
    match patiently!(order.poll_ready(&policy.timeout(VALIDATION))) {
        Ok(OrderStatus::Ready) => {}
        Ok(_) => return Err(OrderFault::own(refusal(&mut order, None).await)),
        Err(error) => return Err(OrderFault::own(refusal(&mut order, Some(&error)).await)),
    }
    let (names, kind) = (ordered.names.clone(), ordered.key);
    // A key of RSA takes a while.
    let (key, request) = tokio::task::spawn_blocking(move || request(&names, kind))
        .await
        .map_err(|_| OrderFault::own("no key can be made"))?
        .map_err(|error| OrderFault::own(format!("no key can be made: {error}")))?;
    (means.signing)();
    match patiently!(order.finalize_csr(&request)) {
        Ok(()) => {}
        // An answer that did not come may have been that it was taken.
        Err(error) if matches!(error, Error::Other(_)) || is(&error, "orderNotReady") => {}
        Err(error) => return Err(OrderFault::of("the request was refused", &error)),
    }
    let chain = patiently!(order.poll_certificate(&policy.timeout(SIGNING)));
    let chain = chain.map_err(|error| OrderFault::of("nothing was issued", &error))?;
    Ok(Issue { key, chain })
}

async fn begin(
    account: &Account,
    ordered: &OrderedCertificate,
    replaces: Option<CertificateIdentifier<'static>>,
) -> Result<Order, OrderFault> {
    let names: Vec<Identifier> = ordered.names.iter().cloned().map(Identifier::Dns).collect();
    let refused = |error: &Error| {
        let fault = OrderFault::of("the order was refused", error);
        // Who gives no answer was not reached, as far as anybody knows.
        if matches!(error, Error::Other(_)) { fault.before_any_order() } else { fault }
    };
    if let Some(replaces) = replaces {
        let new = NewOrder::new(&names).replaces(replaces);
        match patiently!(account.new_order(&new)) {
            Ok(order) => return Ok(order),
            // That an authority takes it is a favour: one that does not know the old one takes an order like any other.
            Err(error) if is_about_replacing(&error) => {}
            Err(error) => return Err(refused(&error)),
        }
    }
    let order = patiently!(account.new_order(&NewOrder::new(&names)));
    order.map_err(|error| refused(&error))
}

/// Whether an order was refused for what it is to replace (RFC 9773 §5).
fn is_about_replacing(error: &Error) -> bool {
    match error {
        Error::Unsupported(_) => true,
        Error::Api(problem) => {
            problem.status == Some(409) || is(error, "alreadyReplaced") || is(error, "malformed")
        }
        Error::Other(why) => why.to_string().starts_with("replaces field mismatch"),
        _ => false,
    }
}

/// What an authority calls a challenge.
fn kind_of(challenge: AcmeChallenge) -> ChallengeType {
    match challenge {
        AcmeChallenge::Http01 => ChallengeType::Http01,
        AcmeChallenge::TlsAlpn01 => ChallengeType::TlsAlpn01,
        AcmeChallenge::Dns01 => ChallengeType::Dns01,
    }
}

/// Puts a proof for each name where the authority looks for it, by the token; none for names that it has seen to be ours lately.
async fn offer(
    order: &mut Order,
    ordered: &OrderedCertificate,
    means: &Means<'_>,
) -> Result<HashMap<String, GivenProof>, OrderFault> {
    let (mut given, mut left) = (HashMap::new(), NONCES);
    let kind = ordered.challenge;
    let mut all = order.authorizations();
    while let Some(authorization) = all.next().await {
        let mut authorization = match authorization {
            Ok(authorization) => authorization,
            Err(error) if left > 0 && (is(&error, "badNonce") || matches!(error, Error::Other(_))) => {
                left -= 1;
                sleep(PAUSE).await;
                // Those that are known cost nothing, and the one that was missed is asked for again.
                all = order.authorizations();
                continue;
            }
            Err(error) => return Err(OrderFault::of("no challenge", &error)),
        };
        match authorization.status {
            AuthorizationStatus::Valid => continue,
            AuthorizationStatus::Pending => {}
            other => return Err(OrderFault::own(format!("the authority holds a name for {other:?}"))),
        }
        // What is proven is what was ordered, whatever an authority asks about.
        let told = authorization.identifier().to_string();
        let Some(name) = ordered.names.iter().find(|name| **name == told).cloned() else {
            return Err(OrderFault::own("the authority asks about a name that was not ordered"));
        };
        let Some(handle) = authorization.challenge(kind_of(kind)) else {
            let kind = kind.name();
            return Err(OrderFault::own(format!("the authority does not prove {name} by {kind}")));
        };
        if !is_token(&handle.token) {
            return Err(OrderFault::own("the authority gives a token that is none (RFC 8555 §8.3)"));
        }
        if !given.contains_key(&handle.token) {
            given.insert(handle.token.clone(), prove(&handle, kind, &name, means).await?);
        }
    }
    Ok(given)
}

/// Letters of base64url, and not many.
fn is_token(token: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=256).contains(&token.len()) && token.bytes().all(fits)
}

async fn prove(
    handle: &ChallengeHandle<'_>,
    challenge: AcmeChallenge,
    name: &str,
    means: &Means<'_>,
) -> Result<GivenProof, OrderFault> {
    let proof = handle.key_authorization();
    let spread = async |asked: &str| match means.others {
        Some(others) => {
            let spread = others.spread(challenge, asked, proof.as_str()).await;
            let told = |why| OrderFault::own(format!("the other nodes can't be told what to answer: {why}"));
            spread.map(Some).map_err(told)
        }
        None => Ok(None),
    };
    match challenge {
        AcmeChallenge::Http01 => {
            let offered = means.proofs.answer(&handle.token, proof.as_str());
            Ok(GivenProof::Offered { _proof: offered, spread: spread(&handle.token).await? })
        }
        AcmeChallenge::TlsAlpn01 => {
            let certified = proving(name, proof.digest().as_ref())
                .map_err(|error| OrderFault::own(format!("no proof can be made: {error}")))?;
            let offered = means.proofs.certify(name, certified);
            Ok(GivenProof::Offered { _proof: offered, spread: spread(name).await? })
        }
        AcmeChallenge::Dns01 => {
            let hook = means.hook.ok_or_else(|| OrderFault::own("there is no `dns_hook`"))?;
            let record = DnsRecord::add(hook, name, proof.dns_value()).await.map_err(OrderFault::own)?;
            Ok(GivenProof::InDns { _record: record })
        }
    }
}

/// Tells the authority that it may look.
async fn have_it_looked_at(order: &mut Order, challenge: AcmeChallenge) -> Result<(), OrderFault> {
    let mut all = order.authorizations();
    while let Some(authorization) = all.next().await {
        let mut authorization = authorization.map_err(|error| OrderFault::of("no challenge", &error))?;
        if authorization.status != AuthorizationStatus::Pending {
            continue;
        }
        let Some(mut handle) = authorization.challenge(kind_of(challenge)) else { continue };
        let ready = patiently!(handle.set_ready());
        ready.map_err(|error| OrderFault::of("the authority does not look", &error))?;
    }
    Ok(())
}

/// Why names were not found to be ours, as far as the authority says.
async fn refusal(order: &mut Order, error: Option<&Error>) -> String {
    let mut all = order.authorizations();
    let mut told = Vec::new();
    while let Some(Ok(mut authorization)) = all.next().await {
        let name = authorization.identifier().to_string();
        let Ok(state) = patiently!(authorization.refresh()) else { continue };
        if state.status == AuthorizationStatus::Valid {
            continue;
        }
        if let Some(problem) = state.challenges.iter().find_map(|challenge| challenge.error.as_ref()) {
            told.push(format!("{name}: {}", problem_words(problem)));
        }
    }
    if told.is_empty() {
        return match error {
            Some(error) => OrderFault::of("the names were not proven", error).why,
            None => "the names were not proven, and the authority does not say why".to_owned(),
        };
    }
    told.join("; ")
}

/// A new key (PEM), and the request for its certificate (DER).
fn request(names: &[String], kind: OrderedKey) -> Result<(String, Vec<u8>), rcgen::Error> {
    let key = match kind {
        OrderedKey::EcdsaP256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
        OrderedKey::EcdsaP384 => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
        OrderedKey::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
        OrderedKey::Rsa3072 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_3072),
        OrderedKey::Rsa4096 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096),
    }?;
    let mut params = CertificateParams::new(names.to_vec())?;
    params.distinguished_name = DistinguishedName::new();
    let request = params.serialize_request(&key)?;
    Ok((key.serialize_pem(), request.der().to_vec()))
}
