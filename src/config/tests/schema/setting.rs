//! What a key needs around it so that a config with it can load.

use serde_json::{Value, json};

use super::super::certificates::Certs;
use super::super::{access, auth, cache, cluster, ordered};

/// `WEB` as JSON with `value` at a key, and what that key needs around it.
pub(super) fn web_with(path: &str, value: Value) -> Value {
    let mut web = json!({ "targets": { "web": {
        "protocol": "http", "listener": 8080, "backends": [{ "host": "a", "port": 1 }],
    } } });
    if path.starts_with("listeners") {
        web["listeners"] = json!({ "front": { "bind": 8081, "routes": [{ "target": "web" }] } });
    }
    let target = &mut web["targets"]["web"];
    let (cert, ca) = (Certs::shared().path("both.pem"), Certs::shared().path("ca.pem"));
    let is_https = value.as_str().is_some_and(|word| word.eq_ignore_ascii_case("https"));
    if is_https || path.starts_with("targets.<name>.tls") {
        target["protocol"] = "https".into();
        target["tls"] = json!({ "cert_file": cert, "certificates": [{ "cert_file": cert }] });
    }
    if path.starts_with("listeners") && (is_https || path.contains(".tls")) {
        let front = &mut web["listeners"]["front"];
        front["protocol"] = "https".into();
        front["tls"] = json!({ "cert_file": cert, "certificates": [{ "cert_file": cert }] });
    }
    let is_passthrough = path.ends_with("].passthrough") && value != Value::Bool(false);
    if path.ends_with(".match.alpn") || is_passthrough {
        web["listeners"]["front"] = json!({ "bind": 8081, "protocol": "tcp" });
        web["targets"]["mail"] = json!({ "backends": [{ "host": "b", "port": 2 }] });
        web["listeners"]["front"]["routes"] = json!([{ "target": "mail", "passthrough": true }]);
    }
    if ["timeouts.flow", "limits.reply_factor", "limits.replies", "health_check.dns"]
        .iter()
        .any(|key| path.ends_with(key))
    {
        web["targets"]["web"]["protocol"] = "udp".into();
        if path.starts_with("listeners") {
            web["targets"]["web"] = json!({ "backends": [{ "host": "a", "port": 1 }] });
            web["listeners"]["front"]["protocol"] = "udp".into();
        }
    }
    ordered::set_up(path, &mut web);
    if path.ends_with("certificates[].dir") {
        for (owner, at) in [("listeners", "front"), ("targets", "web")] {
            if let Some(item) = web.pointer_mut(&format!("/{owner}/{at}/tls/certificates/0")) {
                *item = json!({});
            }
        }
    }
    if path.ends_with(".tls.cipher_suites") {
        // Each suite is for a certificate of one of these kinds.
        let rsa = Certs::shared().path("rsa.pem");
        for (owner, at) in [("listeners", "front"), ("targets", "web")] {
            if let Some(item) = web.pointer_mut(&format!("/{owner}/{at}/tls/certificates/0")) {
                *item = json!({ "cert_file": rsa });
            }
        }
    }
    let mut none = Value::Null;
    let route = web.pointer_mut("/listeners/front/routes/0").unwrap_or(&mut none);
    for action in ["split", "redirect", "respond"] {
        if path.starts_with(&format!("listeners.<name>.routes[].{action}")) {
            *route = json!({});
        }
    }
    match path {
        "listeners.<name>.routes[].split.by" => route["split"]["targets"] = json!({ "web": 1 }),
        path if path.starts_with("listeners.<name>.routes[].split.by.") => {
            *route = json!({ "split": { "targets": { "web": 1 } } });
        }
        "listeners.<name>.routes[].redirect.status" => route["redirect"]["to"] = "/".into(),
        "listeners.<name>.routes[].respond.content_type" => route["respond"]["body"] = "b".into(),
        _ => {}
    }
    let target = &mut web["targets"]["web"];
    if path == "targets.<name>.health_check.grpc" || path == "targets.<name>.retries.on" {
        target["upstream_protocol"] = "grpc".into();
    }
    if path.starts_with("targets.<name>.hash_key") {
        target["balance"] = "maglev".into();
    }
    if ["admin.token_file", "admin.hosts", "admin.configure_over_tcp", "admin.tls"]
        .iter()
        .any(|key| path.starts_with(key))
    {
        web["admin"] = json!({ "listener": 9900 });
    }
    if path.contains("rate_limit") && path != "rate_limits" {
        web["rate_limits"]["web"] = json!({ "rate": "1/s" });
    }
    for (owner, at) in [("listeners", "front"), ("targets", "web")] {
        if path.starts_with(&format!("{owner}.<name>.proxy_protocol.")) {
            web[owner][at]["proxy_protocol"]["from"] = "10.0.0.0/8".into();
        }
    }
    auth::set_up(path, &mut web);
    cache::set_up(path, &mut web);
    cluster::set_up(path, &mut web);
    if path.starts_with("webhooks[]") {
        web["webhooks"] = json!([{ "url": "http://hooks.example/a" }]);
    }
    if path.starts_with("metrics.statsd.") {
        web["metrics"]["statsd"] = json!({ "to": "udp://a:1" });
    }
    if path.starts_with("tracing.") {
        web["tracing"] = json!({ "otlp": "https://c.example:4318" });
    }
    if path.starts_with("tests[]") {
        let expect = if path.starts_with("tests[].expect.") { json!({}) } else { json!({ "target": "web" }) };
        web["tests"] = json!([{ "request": "GET https://shop.example/", "expect": expect }]);
    }
    if path == "admin.configure_over_tcp" {
        web["admin"]["token_file"] = Certs::shared().path("tokens").into();
    }
    if path.starts_with("admin.tls") {
        web["admin"]["tls"] = json!({ "cert_file": cert });
    }
    if path.starts_with("listeners.<name>.routes[].mirror.") {
        web["targets"]["shadow"] = json!({ "backends": [{ "host": "s", "port": 1 }] });
        web["listeners"]["front"]["routes"][0]["mirror"] = json!({ "target": "shadow" });
    }
    let target = &mut web["targets"]["web"];
    match path {
        path if path.contains(".tls.client_crl") => {
            let owner = if path.starts_with("listeners") { "/listeners/front" } else { "/targets/web" };
            let tls = web.pointer_mut(&format!("{owner}/tls")).unwrap();
            tls["client_ca"] = Certs::shared().path("clients.pem").into();
            tls["client_crl"] = Certs::shared().path("crl.pem").into();
        }
        "listeners.<name>.tls.client_auth" => web["listeners"]["front"]["tls"]["client_ca"] = ca.into(),
        "targets.<name>.tls.client_auth" => target["tls"]["client_ca"] = ca.into(),
        "targets.<name>.upstream_tls.client_key" => target["upstream_tls"]["client_cert"] = cert.into(),
        "targets.<name>.timeouts.tls" => target["upstream_tls"] = json!({}),
        "targets.<name>.owner" => target["max_in_flight"] = 1.into(),
        "targets.<name>.bounded_load" => target["balance"] = "ring_hash".into(),
        "servers" => web.as_object_mut().unwrap().retain(|_, _| false),
        "access_log.format" | "access_log.sample" => web["access_log"]["path"] = "stdout".into(),
        "targets.<name>.health_check.expect"
        | "targets.<name>.health_check.host"
        | "targets.<name>.health_check.body" => {
            target["health_check"]["path"] = "/".into();
        }
        "targets.<name>.outlier.ejection_max" => target["outlier"]["ejection"] = "1ms".into(),
        // Not all backends may weigh nothing.
        "targets.<name>.backends[].weight" => {
            target["backends"].as_array_mut().unwrap().push(json!({ "host": "b", "port": 2 }))
        }
        "targets.<name>.backends[].url"
        | "targets.<name>.backends[].srv"
        | "targets.<name>.backends[].file" => {
            target["backends"][0] = json!({});
        }
        "targets.<name>.backends[].dns" => target["backends"][0] = json!({ "port": 1 }),
        "targets.<name>.backends[].family" => {
            target["backends"][0] = json!({ "dns": "a.example", "port": 1 })
        }
        _ => {}
    }
    let pointer = pointer_to(path);
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    // The groups on the way are made by naming them.
    let parent = parent.split('/').skip(1).fold(&mut web, |at, step| match step.parse::<usize>() {
        Ok(index) => &mut at[index],
        Err(_) => &mut at[step],
    });
    parent[key] = value;
    access::complete(path, parent);
    web
}

/// Where a key stands in what `web_with` makes.
pub(super) fn pointer_to(path: &str) -> String {
    let path = path.replace("listeners.<name>", "listeners.front").replace("<name>", "web");
    format!("/{}", path.replace("[]", ".0").replace('.', "/"))
}
