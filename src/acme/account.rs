//! As whom we come to an authority: an account of its own for each, kept over restarts.

use instant_acme::{Account, AccountCredentials, Error, ExternalAccountKey, NewAccount};
use serde::{Deserialize, Serialize};

use super::client::AcmeClient;
use super::fault::{OrderFault, is};
use super::shelf::Shelf;
use crate::config::model::tls::acme::AcmeConfig;

/// How often whatever was refused for its nonce alone is tried again.
const NONCES: u32 = 5;

/// What is kept of an account.
#[derive(Serialize, Deserialize)]
struct KeptAccount {
    credentials: AccountCredentials,
    /// What the authority was told last.
    contacts: Vec<String>,
}

/// Comes back to an account that is known; `None`: there is none.
///
/// # Errors
/// The authority does not answer, or what is known of the account is of no use.
pub(super) async fn open(config: &AcmeConfig, shelf: &Shelf) -> Result<Option<Account>, OrderFault> {
    let Some(bytes) = shelf.account().map_err(OrderFault::own)? else { return Ok(None) };
    let Ok(kept) = serde_json::from_slice::<KeptAccount>(&bytes) else {
        shelf.lose_account().map_err(OrderFault::own)?;
        return Ok(None);
    };
    let credentials = copy(&kept.credentials)?;
    let builder = Account::builder_with_http(Box::new(client(config)));
    let account = builder.from_credentials(kept.credentials).await;
    let account = account.map_err(|error| OrderFault::of("the authority can't be asked", &error))?;
    if kept.contacts != config.contacts {
        let contacts = urls(config);
        let contacts: Vec<&str> = contacts.iter().map(String::as_str).collect();
        // One that does not take them is asked again by the next process; certificates are issued all the same.
        if account.update_contacts(&contacts).await.is_ok() {
            keep(shelf, credentials, config)?;
        }
    }
    Ok(Some(account))
}

/// Makes an account, and keeps it.
///
/// # Errors
/// The authority makes none, or it can't be kept.
pub(super) async fn make(config: &AcmeConfig, shelf: &Shelf) -> Result<Account, OrderFault> {
    let contacts = urls(config);
    let contacts: Vec<&str> = contacts.iter().map(String::as_str).collect();
    let new = NewAccount { contact: &contacts, terms_of_service_agreed: true, only_return_existing: false };
    let external = config
        .external_account
        .as_ref()
        .map(|external| ExternalAccountKey::new(external.id.clone(), &external.key));
    let mut left = NONCES;
    let made = loop {
        let builder = Account::builder_with_http(Box::new(client(config)));
        match builder.create(&new, url(config), external.as_ref()).await {
            Err(error) if left > 0 && is(&error, "badNonce") => left -= 1,
            made => break made,
        }
    };
    let (account, credentials) =
        made.map_err(|error: Error| OrderFault::of("no account was made", &error))?;
    keep(shelf, credentials, config)?;
    Ok(account)
}

fn client(config: &AcmeConfig) -> AcmeClient {
    AcmeClient::new(&config.directory, config.authorities.clone())
}

fn url(config: &AcmeConfig) -> String {
    let directory = &config.directory;
    let scheme = if directory.is_tls { "https" } else { "http" };
    format!("{scheme}://{}{}", directory.authority(), directory.path)
}

fn urls(config: &AcmeConfig) -> Vec<String> {
    config.contacts.iter().map(|contact| format!("mailto:{contact}")).collect()
}

/// Credentials are taken by who uses them.
fn copy(credentials: &AccountCredentials) -> Result<AccountCredentials, OrderFault> {
    let text = serde_json::to_vec(credentials).and_then(|text| serde_json::from_slice(&text));
    text.map_err(|_| OrderFault::own("what is known of the account is of no use"))
}

fn keep(shelf: &Shelf, credentials: AccountCredentials, config: &AcmeConfig) -> Result<(), OrderFault> {
    let kept = KeptAccount { credentials, contacts: config.contacts.clone() };
    let bytes = serde_json::to_vec(&kept).map_err(|error| OrderFault::own(error.to_string()))?;
    shelf.keep_account(&bytes).map_err(OrderFault::own)
}
