#!/usr/bin/env python3
"""h2spec, the conformance suite for HTTP/2 that other people wrote, against a running evenkeel: over TLS, and over prior knowledge. All cases pass,
`--strict` ones too, and none is skipped. Takes h2spec from the PATH, or builds it with a Go toolchain into a temporary folder; needs openssl.
tests/e2e/h2_lab has the same cases, for where neither is there. Builds no evenkeel; takes about 10 s."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import lab  # noqa: E402
from cache_lab import Verdicts  # noqa: E402

# How many cases the oldest version has that is taken, without the strict ones.
CASES = 145
MODULE = "github.com/summerwind/h2spec/cmd/h2spec@latest"


def program(folder):
    """The path of h2spec."""
    if found := shutil.which("h2spec"):
        return found
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not os.path.exists(go):
        raise SystemExit("neither h2spec nor Go is installed")
    # Otherwise what Go downloads can't be removed with its folder.
    flags = f"{os.environ.get('GOFLAGS', '')} -modcacherw".strip()
    home = os.path.join(folder, "go")
    subprocess.run([go, "install", MODULE], check=True, capture_output=True, env={**os.environ, "GOPATH": home, "GOBIN": home, "GOFLAGS": flags})
    return os.path.join(home, "h2spec")


def serve(folder, protocol, more):
    """The port of an evenkeel in front of a backend."""
    backend, port = lab.Backend(1), lab.free_port()
    config = os.path.join(folder, f"{protocol}.yaml")
    with open(config, "w") as file:
        file.write(f"workers: 2\ntargets:\n  web:\n    protocol: {protocol}\n    listener: {port}\n    health_check: off\n    {more}\n"
                   f"    backends: [{{host: 127.0.0.1, port: {backend.port}}}]\n")
    keel = lab.Process(lab.program("evenkeel"), "--config", config)
    lab.wait_until("evenkeel", lambda: lab.accepts(port) or keel.process.poll() is not None)
    if keel.process.poll() is not None:
        raise SystemExit(keel.text())
    return port


def certificate(folder):
    """The keys of `tls` for a certificate that is made here."""
    pem = os.path.join(folder, "a.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", f"{pem}.key", "-out", pem],
                   check=True, capture_output=True)
    return "tls: {cert_file: a.pem, cert_key: a.pem.key}"


def judge(verdict, name, h2spec, port, *flags):
    """Runs all cases and tells what has failed, as h2spec says it."""
    printed = subprocess.run([h2spec, "--strict", "--timeout", "10", "--host", "127.0.0.1", "--port", str(port), *flags],
                             capture_output=True, text=True)
    text = printed.stdout + printed.stderr
    found = re.search(r"(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed", text)
    if not found:
        return verdict(f"h2spec, {name}", False, f"it has not ended well:\n{text}")
    total, passed, skipped, failed = map(int, found.groups())
    verdict(f"h2spec, {name}", passed == total and total >= CASES, f"{total} cases: {passed} passed, {skipped} skipped, {failed} failed")
    if failed:
        print(text[text.find("Failures:"):text.find("Finished in")].rstrip(), flush=True)


def main():
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--build", default="release", help="which build of evenkeel and fake_backend: release or debug")
    lab.BUILT = os.path.join(os.path.dirname(lab.BUILT), words.parse_args().build)
    verdict = Verdicts()
    try:
        with tempfile.TemporaryDirectory() as folder:
            h2spec = program(folder)
            judge(verdict, "TLS", h2spec, serve(folder, "https", certificate(folder)), "--tls", "--insecure")
            judge(verdict, "prior knowledge", h2spec, serve(folder, "http", "http2: on"))
    finally:
        lab.Process.end_all()
    verdict.end()


if __name__ == "__main__":
    main()
