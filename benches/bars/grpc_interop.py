#!/usr/bin/env python3
"""grpc-go's interop client and server with an evenkeel between them, over TLS and over prior knowledge on both sides: every case that needs neither a
cloud nor several servers that the client itself chooses from. Beside them compressed messages, and with `--silent 3m` a stream with one message in that
time, with nothing set. Needs Go, which builds them into a temporary folder, and openssl. Builds no evenkeel; takes about a minute, with `--silent` that
much longer."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import lab  # noqa: E402
from cache_lab import Verdicts  # noqa: E402
from h2spec import certificate  # noqa: E402

GRPC = "google.golang.org/grpc"
CASES = ["empty_unary", "large_unary", "client_streaming", "server_streaming", "ping_pong", "empty_stream", "timeout_on_sleeping_server", "cancel_after_begin",
         "cancel_after_first_response", "status_code_and_message", "special_status_message", "custom_metadata", "unimplemented_method",
         "unimplemented_service"]


def build(folder, version):
    """The paths of client, server and what else is asked."""
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not os.path.exists(go):
        raise SystemExit("Go is not installed")
    # Otherwise what Go downloads can't be removed with its folder.
    flags = f"{os.environ.get('GOFLAGS', '')} -modcacherw".strip()
    source = os.path.join(folder, "source")
    os.mkdir(source)
    shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "grpc_more.go"), os.path.join(source, "main.go"))
    environment = {"GOPATH": os.path.join(folder, "go"), **os.environ, "GOFLAGS": flags}

    def run(*words):
        done = subprocess.run([go, *words], cwd=source, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)

    run("mod", "init", "more")
    run("get", f"{GRPC}@{version}", f"{GRPC}/interop/client@{version}", f"{GRPC}/interop/server@{version}")
    paths = [os.path.join(folder, name) for name in ("client", "server", "more")]
    for path, package in zip(paths, [f"{GRPC}/interop/client", f"{GRPC}/interop/server", "."]):
        run("build", "-o", path, package)
    return paths


def evenkeel(folder, name, protocol, more, backend):
    """The port of an evenkeel in front of a backend that speaks gRPC."""
    port = lab.free_port()
    config = os.path.join(folder, f"{name}.yaml")
    with open(config, "w") as file:
        file.write(f"workers: 2\ntargets:\n  calls:\n    protocol: {protocol}\n    listener: {port}\n    upstream_protocol: grpc\n    health_check: off\n    {more}\n"
                   f"    backends: [{{host: 127.0.0.1, port: {backend}}}]\n")
    keel = lab.Process(lab.program("evenkeel"), "--config", config)
    lab.wait_until("evenkeel", lambda: lab.accepts(port) or keel.process.poll() is not None)
    if keel.process.poll() is not None:
        raise SystemExit(keel.text())
    return port


def serve(*words, flag=False):
    """The port of a server that is started with these words and the port: behind `-port=`, or as a word."""
    port = lab.free_port()
    lab.Process(*words, f"-port={port}" if flag else str(port))
    lab.wait_until(words[0], lambda: lab.accepts(port))
    return port


def judge(verdict, name, client, port, *flags):
    for case in CASES:
        words = [client, "-server_host", "127.0.0.1", "-server_port", str(port), "-test_case", case, *flags]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        verdict(f"{name}: {case}", done.returncode == 0, "" if done.returncode == 0 else (done.stdout + done.stderr).strip()[-400:])


def main():
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--build", default="release", help="which build of evenkeel: release or debug")
    words.add_argument("--version", default="latest", help="which grpc-go")
    words.add_argument("--programs", help="a folder with `client`, `server` and `more`, instead of building them")
    words.add_argument("--silent", help="how long a stream is silent, such as 3m")
    given = words.parse_args()
    lab.BUILT = os.path.join(os.path.dirname(lab.BUILT), given.build)
    verdict = Verdicts()
    try:
        with tempfile.TemporaryDirectory() as folder:
            if given.programs:
                client, server, more = (os.path.join(given.programs, name) for name in ("client", "server", "more"))
            else:
                client, server, more = build(folder, given.version)
            tls = certificate(folder)
            pem = os.path.join(folder, "a.pem")
            plain = serve(server, flag=True)
            secure = serve(server, "-use_tls", f"-tls_cert_file={pem}", f"-tls_key_file={pem}.key", flag=True)
            judge(verdict, "prior knowledge", client, evenkeel(folder, "plain", "http", "http2: on", plain))
            port = evenkeel(folder, "secure", "https", f"{tls}\n    upstream_tls: {{ca_file: {pem}, server_name: localhost}}", secure)
            judge(verdict, "TLS", client, port, "-use_tls", "-use_test_ca", f"-ca_file={pem}", "-server_host_override=localhost")
            port = evenkeel(folder, "more", "http", "http2: on", serve(more, "serve"))
            for role in (["compressed"], *([["silent", given.silent]] if given.silent else [])):
                done = subprocess.run([more, role[0], str(port), *role[1:]], capture_output=True, text=True)
                verdict(" ".join(role), done.returncode == 0, done.stdout.strip())
    finally:
        lab.Process.end_all()
    verdict.end()


if __name__ == "__main__":
    main()
