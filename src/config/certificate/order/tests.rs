use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CustomExtension, DnType, IsCa, Issuer, KeyPair,
    SigningKey,
};

use super::*;

fn params(name: &str, is_authority: bool) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.use_authority_key_identifier_extension = true;
    if is_authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    params
}

/// It says that its issuer is at `http://ca.example/a.crt`.
fn telling(mut params: CertificateParams) -> CertificateParams {
    let uri = b"http://ca.example/a.crt";
    let oid = b"\x06\x08\x2b\x06\x01\x05\x05\x07\x30\x02";
    let location = [&[0x86, uri.len() as u8][..], uri].concat();
    let access = [&[0x30, (oid.len() + location.len()) as u8][..], oid, &location].concat();
    let content = [&[0x30, access.len() as u8][..], &access].concat();
    let extension = CustomExtension::from_oid_content(&[1, 3, 6, 1, 5, 5, 7, 1, 1], content);
    params.custom_extensions.push(extension);
    params
}

/// It bears a mark of a public log.
fn logged(mut params: CertificateParams) -> CertificateParams {
    let oid = [1, 3, 6, 1, 4, 1, 11129, 2, 4, 2];
    params.custom_extensions.push(CustomExtension::from_oid_content(&oid, vec![4, 2, 0, 0]));
    params
}

fn issued(params: CertificateParams, by: &Issuer<'_, impl SigningKey>) -> CertificateDer<'static> {
    params.signed_by(&KeyPair::generate().unwrap(), by).unwrap().der().clone()
}

fn said(chain: &[&CertificateDer<'static>]) -> String {
    let chain: Vec<CertificateDer<'static>> = chain.iter().map(|one| (*one).clone()).collect();
    disorder(&chain, |_| false).map_or_else(String::new, |Disorder { why, cure, is_doubtful }| {
        format!("{}{why}; {cure}", if is_doubtful { "perhaps: " } else { "" })
    })
}

#[test]
fn chains_are_told_that_are_out_of_order_or_have_a_gap_and_no_others() {
    let root = CertifiedIssuer::self_signed(params("Root", true), KeyPair::generate().unwrap()).unwrap();
    let upper =
        CertifiedIssuer::signed_by(params("Upper", true), KeyPair::generate().unwrap(), &root).unwrap();
    let lower =
        CertifiedIssuer::signed_by(params("Lower", true), KeyPair::generate().unwrap(), &upper).unwrap();
    let leaf = issued(params("leaf", false), &lower);
    let (root_der, upper_der, lower_der) = (root.der(), upper.der(), lower.der());
    // Another root that has issued the same intermediate.
    let other = CertifiedIssuer::self_signed(params("Other", true), KeyPair::generate().unwrap()).unwrap();
    let cross = params("Upper", true).signed_by(upper.key(), &other).unwrap().der().clone();
    for right in [
        &[&leaf][..],
        &[&leaf, lower_der],
        &[&leaf, lower_der, upper_der],
        &[&leaf, lower_der, upper_der, root_der],
        &[&leaf, lower_der, upper_der, &cross],
        &[&leaf, lower_der, &cross, upper_der, root_der, other.der()],
        &[root_der],
        // Nobody looks behind a root.
        &[root_der, other.der()],
    ] {
        assert_eq!(said(right), "", "{} certificates", right.len());
    }
    assert_eq!(
        said(&[&leaf, upper_der, lower_der]),
        "has its chain in the wrong order: certificate 2 is followed by certificate 3, which it has issued; each certificate is followed by that of its issuer: 1, 3, 2"
    );
    assert!(said(&[&leaf, root_der, lower_der, upper_der]).ends_with("1, 3, 4, 2"));
    assert_eq!(
        said(&[&leaf, upper_der, root_der]),
        "lacks the intermediate `Lower`, which has issued its certificate, and has `Upper` (certificate 2) instead; add its certificate behind the one that it has issued"
    );
    let telling_leaf = issued(telling(params("leaf", false)), &lower);
    assert_eq!(
        said(&[&telling_leaf, upper_der]),
        "lacks the intermediate `Lower`, which has issued its certificate; its certificate is at http://ca.example/a.crt: add it behind the others, as PEM"
    );
    assert!(said(&[&telling_leaf]).starts_with("perhaps: lacks the intermediate `Lower`"));
    let logged = issued(logged(telling(params("leaf", false))), &lower);
    assert!(
        said(&[&logged]).starts_with("lacks the intermediate `Lower`"),
        "no public authority issues from its root"
    );
    assert_eq!(said(&[&telling_leaf, lower_der]), "", "what else clients know nobody can say");
    // The same name, and another key.
    let namesake = CertifiedIssuer::self_signed(params("Lower", true), KeyPair::generate().unwrap()).unwrap();
    assert!(said(&[&leaf, namesake.der()]).starts_with("lacks the intermediate `Lower`"));
    // One too many, behind a chain that ends at a known root.
    let extra = [leaf.clone(), lower_der.clone(), upper_der.clone(), other.der().clone()];
    let known = |name: &[u8]| name == X509Certificate::from_der(root_der).unwrap().1.subject().as_raw();
    let found = disorder(&extra, known).unwrap();
    assert!(found.is_doubtful && found.why.starts_with("has `Other` (certificate 4), which has issued none"));
    // Whoever knows the root of a certificate needs nothing else.
    let of_root = issued(telling(params("leaf", false)), &root);
    let named = |name: &[u8]| name == X509Certificate::from_der(root_der).unwrap().1.subject().as_raw();
    assert_eq!(disorder(std::slice::from_ref(&of_root), named), None);
    assert!(disorder(&[of_root], |_| false).is_some());
}
