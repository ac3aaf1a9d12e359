//! One listener in front of several targets, from YAML to the wire.

use super::support::{self, Client, Keel, fakes};

#[test]
fn a_listener_of_its_own_leads_to_a_target_without_one() {
    let backends = fakes(1);
    let text = format!(
        "listeners: {{front: {{bind: '127.0.0.1:0', routes: [{{target: web}}]}}}}\n\
         targets: {{web: {{health_check: off, backends: [{{url: 'http://{}'}}]}}}}\n",
        backends[0].addr()
    );
    let keel = Keel::start(&support::load(&text));
    let mut client = Client::connect(keel.address());
    assert_eq!(client.get("/").text(), "Hello from fake-1");
}
