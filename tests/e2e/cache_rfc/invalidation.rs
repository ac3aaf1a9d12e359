//! What changes things makes what is stored of them invalid (RFC 9111 §4.4).

use super::case::{Case, Step, case, get};
use super::run::run;

#[test]
fn invalidation() {
    run(&cases());
}

fn fresh() -> Step {
    get().saying(&["Cache-Control: max-age=100000", "Last-Modified: @0", "Date: @0"])
}

pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "FOO"] {
        let name = method.to_ascii_lowercase().replace('-', "_");
        let change = || get().method(method).sending("abc");
        all.extend([
            case(
                format!("rfc9111_4_4_{name}"),
                [fresh(), change(), get().origin_lacks(&["If-Modified-Since"])],
            ),
            case(format!("rfc9111_4_4_{name}_that_redirects"), [fresh(), change().status(303), get()]),
            case(format!("rfc9111_4_4_{name}_that_fails"), [fresh(), change().status(500), get().stored()]),
            case(
                format!("rfc9111_4_4_{name}_that_is_refused"),
                [fresh(), change().status(403), get().stored()],
            ),
        ]);
        for line in ["Location", "Content-Location"] {
            let case_name = format!("rfc9111_4_4_{name}_and_{}", line.to_ascii_lowercase().replace('-', "_"));
            let place = format!("{line}: /{case_name}/target");
            all.push(case(
                case_name,
                [fresh().at("/target"), change().saying(&[&place]), get().at("/target")],
            ));
        }
    }
    for method in ["OPTIONS", "HEAD"] {
        let name = method.to_ascii_lowercase();
        let safe = get().method(method).asking(&["Cache-Control: no-cache"]).saying(&["Last-Modified: @0"]);
        all.push(case(format!("rfc9111_4_4_{name}_is_safe"), [fresh(), safe, get().stored().in_time()]));
    }
    let place = |name: &str, line: &str, is_gone: bool| {
        let last = get().at("/target");
        case(
            name,
            [
                fresh().at("/target"),
                get().method("POST").sending("x").saying(&[line]),
                if is_gone { last } else { last.stored() },
            ],
        )
    };
    all.extend([
        place(
            "rfc9111_4_4_a_location_of_the_same_origin",
            "Location: http://a.example/rfc9111_4_4_a_location_of_the_same_origin/target",
            true,
        ),
        place(
            "rfc9111_4_4_a_location_of_the_same_origin_with_its_port",
            "Location: HTTP://A.example:80/rfc9111_4_4_a_location_of_the_same_origin_with_its_port/target",
            true,
        ),
        place(
            "rfc9111_4_4_a_location_of_another_host",
            "Location: http://b.example/rfc9111_4_4_a_location_of_another_host/target",
            false,
        ),
        place(
            "rfc9111_4_4_a_location_of_another_scheme",
            "Location: https://a.example/rfc9111_4_4_a_location_of_another_scheme/target",
            false,
        ),
        place(
            "rfc9111_4_4_a_content_location_of_another_host",
            "Content-Location: //b.example/rfc9111_4_4_a_content_location_of_another_host/target",
            false,
        ),
        place("rfc3986_5_2_a_relative_location", "Location: rfc3986_5_2_a_relative_location/target", true),
        place(
            "rfc3986_5_2_a_location_with_dots",
            "Location: /x/../rfc3986_5_2_a_location_with_dots/./target#here",
            true,
        ),
        case(
            "rfc9111_4_4_all_variants",
            [
                fresh().asking(&["Foo: 1"]).saying(&["Vary: Foo"]),
                fresh().asking(&["Foo: 2"]).saying(&["Vary: Foo"]),
                get().method("PUT").sending("x"),
                get().asking(&["Foo: 1"]).origin_lacks(&["If-Modified-Since"]),
                get().asking(&["Foo: 2"]).origin_lacks(&["If-Modified-Since"]),
            ],
        ),
        case(
            "rfc9111_4_4_the_query_is_a_part_of_the_url",
            [fresh().at("?a=1"), get().method("PUT").sending("x").at("?a=2"), get().at("?a=1").stored()],
        ),
        case(
            "rfc9111_4_4_the_url_with_its_query",
            [fresh().at("?a=1"), get().method("PUT").sending("x").at("?a=1"), get().at("?a=1")],
        ),
        case(
            "rfc9111_4_4_what_was_asked_for_afterwards_is_stored",
            [fresh(), get().method("DELETE").status(204), fresh(), get().stored_of(3)],
        ),
        case("rfc9111_2_another_query_is_another_key", [fresh().at("?test=1"), get().at("?test=2")]),
        case(
            "rfc9111_2_the_same_query_is_the_same_key",
            [fresh().at("?test=1"), get().at("?test=1").stored()],
        ),
        case("rfc9111_2_an_empty_query_is_a_query", [fresh().at("?"), get()]),
        case("rfc9111_2_another_path_is_another_key", [fresh().at("/a"), get().at("/A")]),
        case(
            "rfc3986_6_2_2_one_path_in_several_forms",
            [fresh().at("/a%2Db"), get().at("/x/../a-b").stored()],
        ),
    ]);
    all
}
