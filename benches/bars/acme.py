#!/usr/bin/env python3
"""Certificates from Pebble, the test authority of Let's Encrypt, with its challenge server: by all three challenges while a fifth of all nonces and one in
twenty connections are refused and it takes seconds to look; renewed under full handshakes; when it says so (ARI); and over a time in which it is gone. Needs
Go, which builds both into a temporary folder (or `--pebble FOLDER` with them), curl and openssl. Builds no evenkeel; takes about eight minutes."""

import argparse
import json
import os
import random
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request

sys.dont_write_bytecode = True

import lab  # noqa: E402
from cache_lab import Verdicts  # noqa: E402
from reload_lab import Folder, Running  # noqa: E402

PEBBLE = "github.com/letsencrypt/pebble/v2/cmd"


def built(folder):
    """The folder of both programs."""
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not os.path.exists(go):
        raise SystemExit("Go is not installed")
    flags = f"{os.environ.get('GOFLAGS', '')} -modcacherw".strip()
    environment = {"GOPATH": folder.file("go"), **os.environ, "GOFLAGS": flags, "GOBIN": folder.file("bin")}
    for program in ("pebble", "pebble-challtestsrv"):
        subprocess.run([go, "install", f"{PEBBLE}/{program}@latest"], env=environment, check=True, capture_output=True)
    return folder.file("bin")


class Unreliable:
    """Stands before a port and resets one in so many connections at once."""

    def __init__(self, port, one_in):
        self.to, self.one_in, self.cut = port, one_in, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            if self.one_in and random.randrange(self.one_in) == 0:
                self.cut += 1
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.to), 5)
            except OSError:
                client.close()
                continue
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=(one, other), daemon=True).start()

    @staticmethod
    def pump(one, other):
        try:
            while data := one.recv(65536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Authority:
    """Pebble and its challenge server."""

    def __init__(self, bin, folder, life, one_in, ports=None, slow=False):
        self.bin, self.folder, self.slow = bin, folder, slow
        self.http, self.tls, self.dns, self.told, self.directory, self.steered = ports or [lab.free_port() for _ in range(6)]
        self.front = Unreliable(self.directory, one_in)
        openssl = lambda *words: subprocess.run(["openssl", *words], check=True, capture_output=True)
        new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        at = folder.file
        openssl("req", "-x509", *new, "-keyout", at("ca.key"), "-out", at("ca.pem"), "-days", "2", "-subj", "/CN=ca", "-addext", "basicConstraints=critical,CA:TRUE")
        openssl("req", *new, "-keyout", at("own.key"), "-out", at("own.csr"), "-subj", "/CN=localhost")
        with open(at("names"), "w") as file:
            file.write("subjectAltName=DNS:localhost,IP:127.0.0.1")
        openssl("x509", "-req", "-in", at("own.csr"), "-CA", at("ca.pem"), "-CAkey", at("ca.key"), "-CAcreateserial", "-days", "2", "-extfile", at("names"),
                "-out", at("own.pem"))
        with open(at("pebble.json"), "w") as file:
            json.dump({"pebble": {
                "listenAddress": f"127.0.0.1:{self.directory}", "managementListenAddress": f"127.0.0.1:{self.steered}", "certificate": at("own.pem"),
                "privateKey": at("own.key"), "httpPort": self.http, "tlsPort": self.tls, "ocspResponderURL": "", "externalAccountBindingRequired": False,
                "retryAfter": {"authz": 1, "order": 1}, "profiles": {"default": {"description": "the only one", "validityPeriod": life}}}}, file)
        with open(at("hook"), "w") as file:
            file.write("#!/bin/sh\ncase $1 in\n" + "".join(
                f"{word}) exec curl -sf -d \"{{\\\"host\\\":\\\"$2.\\\",\\\"value\\\":\\\"$3\\\"}}\" http://127.0.0.1:{self.told}/{path} ;;\n"
                for word, path in (("add", "set-txt"), ("remove", "clear-txt"))) + "esac\n")
        os.chmod(at("hook"), 0o755)
        self.server = lab.Process(os.path.join(bin, "pebble-challtestsrv"), "-dnsserver", f"127.0.0.1:{self.dns}", "-http01", "", "-https01", "", "-tlsalpn01", "",
                                  "-doh", "", "-management", f"127.0.0.1:{self.told}", "-defaultIPv6", "")
        lab.wait_until("the challenge server", lambda: lab.accepts(self.told))
        self.start()

    def start(self):
        os.environ.update(PEBBLE_WFE_NONCEREJECT="20", PEBBLE_VA_SLEEPTIME="3", PEBBLE_VA_NOSLEEP="0" if self.slow else "1")
        self.pebble = lab.Process(os.path.join(self.bin, "pebble"), "-config", self.folder.file("pebble.json"), "-dnsserver", f"127.0.0.1:{self.dns}", "-strict")
        lab.wait_until("Pebble", lambda: lab.accepts(self.directory))
        with open(self.folder.file("root.pem"), "wb") as file:
            file.write(self.ask("roots/0"))

    def ask(self, path, body=None):
        trust = ssl.create_default_context(cafile=self.folder.file("ca.pem"))
        with urllib.request.urlopen(f"https://localhost:{self.steered}/{path}", body, 10, context=trust) as answer:
            return answer.read()

    def stop(self):
        self.pebble.process.terminate()
        self.pebble.process.wait()

    def config(self, entries):
        return (f"state_dir: state\nwatch: off\nlog_format: json\nadmin: {{socket: {self.folder.file('admin.sock')}}}\n"
                f"acme: {{directory: \"https://localhost:{self.front.port}/dir\", ca_file: ca.pem, contact: [ops@example.com], dns_hook: hook, dns_wait: 0s}}\n"
                f"listeners:\n  plain: {{bind: \"127.0.0.1:{self.http}\", access: {{allow: [192.0.2.0/24]}}, routes: [{{redirect: {{to: \"https://x.example/\"}}}}]}}\n"
                f"  front:\n    bind: 127.0.0.1:{self.tls}\n    protocol: https\n    tls: {{certificates: [{entries}]}}\n    routes: [{{respond: {{status: 200}}}}]\n")

    def shown(self, name):
        """The certificate that clients see who trust the authority; `None`: they trust none."""
        trust = ssl.create_default_context(cafile=self.folder.file("root.pem"))
        try:
            with socket.create_connection(("127.0.0.1", self.tls), 5) as tcp, trust.wrap_socket(tcp, server_hostname=name) as session:
                return session.getpeercert(True)
        except (OSError, ssl.SSLError):
            return None


def wait(what, condition, seconds):
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            return None
        time.sleep(0.1)
    return time.monotonic() - began


def failures(keel):
    return [event["fields"]["reason"] for event in keel.said("no certificate for") if "reason" in event["fields"]]


ALL = [("http-01", "a.example.com", "{acme: [a.example.com, www.a.example.com], challenge: http-01}"),
       ("tls-alpn-01", "b.example.com", "{acme: b.example.com, challenge: tls-alpn-01, key_type: rsa-2048}"),
       ("dns-01", "x.c.example.com", "{acme: [\"*.c.example.com\", c.example.com]}")]


def obtained(bin, verdict):
    folder = Folder()
    authority = Authority(bin, folder, 7776000, 20, slow=True)
    keel = Running(authority.config(", ".join(entry for _, _, entry in ALL)), folder)
    for challenge, name, _ in ALL:
        # A cut in the middle of an order fails it, and the next comes a minute later.
        took = wait(name, lambda: authority.shown(name), 240)
        verdict(f"obtained by {challenge}", took is not None, f"{name} after {took or 240:.1f} s")
    told = failures(keel)
    verdict("what was refused", None, f"{authority.front.cut} connections reset, a fifth of all nonces refused, {len(told)} orders begun anew: {told}")
    # ARI: what Pebble says of a certificate is asked at a start.
    before = authority.shown("a.example.com")
    at = lambda moment: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
    # Its time has come; one that was over before there was a certificate would be nonsense.
    window = {"suggestedWindow": {"start": at(time.time() - 60), "end": at(time.time())}}
    body = json.dumps({"Certificate": ssl.DER_cert_to_PEM_cert(before), "ARIResponse": json.dumps(window)}).encode()
    authority.ask("set-renewal-info/", body)
    keel.end()
    authority.front.one_in = 0
    keel = Running(authority.config(", ".join(entry for _, _, entry in ALL)), folder)
    others = [authority.shown(name) for _, name, _ in ALL[1:]]
    took = wait("renewal", lambda: authority.shown("a.example.com") not in (before, None), 60)
    same = [authority.shown(name) for _, name, _ in ALL[1:]] == others
    verdict("renewed when the authority says", took is not None and same, f"after {took or 60:.1f} s; the others stay: {same}")
    keel.end()
    authority.stop()
    authority.server.end()
    folder.end()


def renewed(bin, verdict, options):
    folder = Folder()
    authority = Authority(bin, folder, 60, 0)
    keel = Running(authority.config("{acme: a.example.com}"), folder)
    wait("the first", lambda: authority.shown("a.example.com"), 60)
    words = [lab.program("rig"), "crowd", "--https", f"127.0.0.1:{authority.tls}", "--trust", folder.file("root.pem"), "--handshakes", str(options.rate),
             "--seconds", str(options.seconds), "--host", "a.example.com"]
    done = subprocess.run(words, capture_output=True, text=True)
    seen = json.loads(done.stdout.splitlines()[-1])["handshake"] if done.returncode == 0 else {"failed": done.stderr, "begun": 0}
    issued = len(keel.said("the certificate for a.example.com was issued"))
    verdict("renewed under full handshakes", not seen["failed"] and seen["begun"] > 0 and issued >= 3,
            f"{seen['begun']} handshakes in {options.seconds} s, {seen['failed']} failed, {issued} certificates issued")
    keel.end()
    authority.stop()
    authority.server.end()
    folder.end()


def gone(bin, verdict):
    folder = Folder()
    authority = Authority(bin, folder, 240, 0)
    keel = Running(authority.config("{acme: a.example.com}"), folder)
    wait("the first", lambda: authority.shown("a.example.com"), 60)
    first = authority.shown("a.example.com")
    authority.stop()
    took = wait("a failure", lambda: failures(keel), 200)
    serves = authority.shown("a.example.com") == first
    told = keel.said("no certificate for")[-1]["fields"]
    verdict("gone: it serves on and backs off", took is not None and serves and told.get("again_seconds", 0) >= 50,
            f"{told.get('reason')}; again in {told.get('again_seconds')} s; the old one is shown: {serves}")
    authority.start()
    took = wait("another", lambda: authority.shown("a.example.com") not in (first, None), 120)
    verdict("back: it recovers", took is not None, f"another certificate {took or 120:.0f} s later, by an account that it made anew")
    keel.end()
    authority.stop()
    authority.server.end()
    folder.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pebble", help="a folder with pebble and pebble-challtestsrv")
    parser.add_argument("--rate", type=int, default=100, help="full handshakes a second")
    parser.add_argument("--seconds", type=int, default=120, help="of handshakes")
    parser.add_argument("--only", nargs="*", default=["obtained", "renewed", "gone"])
    options = parser.parse_args()
    verdict, folder = Verdicts(), Folder()
    try:
        bin = options.pebble or built(folder)
        if "obtained" in options.only:
            obtained(bin, verdict)
        if "renewed" in options.only:
            renewed(bin, verdict, options)
        if "gone" in options.only:
            gone(bin, verdict)
    finally:
        lab.Process.end_all()
        folder.end()
    verdict.end()


if __name__ == "__main__":
    main()
