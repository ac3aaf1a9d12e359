"""Certificates that are swapped while clients shake hands, and keys that do not fit."""

import json
import os
import shutil
import socket
import ssl
import subprocess
import time

import lab
from lab import wait_until
from reload_lab import Fakes, Folder, Running, knows

# From the last rename on until the new certificate is served.
SOON = 2


class Live:
    """The folder that the config names, with a pair for each name. Renames are what a tool for certificates does."""

    def __init__(self, folder, names):
        self.folder, self.names = folder, names
        os.mkdir(folder.file("live"))
        self.swap(0)

    def put(self, number, name, kind):
        target = self.folder.file("live", f"{name}.{kind}")
        shutil.copyfile(self.folder.file("sets", str(number), f"{name}.{kind}"), target + ".new")
        os.replace(target + ".new", target)

    def swap(self, number):
        for name in self.names:
            self.put(number, name, "pem")
            self.put(number, name, "key")

    def wanted(self, number, name):
        with open(self.folder.file("sets", str(number), f"{name}.pem")) as file:
            return ssl.PEM_cert_to_DER_cert(file.read())


def served(context, port, name):
    """The certificate that a client gets who asks for this name."""
    with socket.create_connection(("127.0.0.1", port), 5) as plain, context.wrap_socket(plain, server_hostname=name) as secure:
        return secure.getpeercert(True)


def digest(path):
    """A hash over the state of the process, by its admin socket."""
    with socket.socket(socket.AF_UNIX) as api:
        api.settimeout(10)
        api.connect(path)
        api.sendall(b"GET /api/v1/config/digest HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: api.recv(65536), b""))
    return json.loads(answer.partition(b"\r\n\r\n")[2])["digest"]


def shaking(options, folder, port, names, seconds):
    command = [lab.program("rig"), "crowd", "--https", f"127.0.0.1:{port}", "--trust", folder.file("sets", "ca.pem"), "--handshakes",
               str(options.rate), "--seconds", str(seconds)]
    for name in names:
        command += ["--host", name]
    rig = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    rig.stdout.readline()
    return rig


def run(options, verdict):
    program = lab.program("evenkeel")
    if not options.signal and not knows(program, "watch: on"):
        raise SystemExit("this build watches no files: --signal sends SIGHUP instead")
    folder, names = Folder(), [f"name{number}.test" for number in range(options.names)]
    rig = None
    try:
        hosts = [word for name in names for word in ("--host", name)]
        os.mkdir(folder.file("sets"))
        sets = max(options.swaps, options.wrong) + 2
        subprocess.run([lab.program("rig"), "certificate", folder.file("sets"), "--sets", str(sets), *hosts], check=True)
        live = Live(folder, names)
        pairs = "".join(f"        - {{cert_file: live/{name}.pem, cert_key: live/{name}.key}}\n" for name in names)
        watch = f"watch: {'off' if options.signal else 'on'}\n" if knows(program, "watch: on") else ""
        api = folder.file("admin.sock")
        has_api = knows(program, f"admin: {{socket: {api}}}")
        watch += f"admin: {{socket: {api}}}\n" if has_api else ""
        keel = Running(f"{watch}log_format: json\ntargets:\n  web:\n    protocol: https\n    listener: 0\n    health_check: off\n    tls:\n"
                       f"      certificates:\n{pairs}    backends: [{{host: 127.0.0.1, port: {Fakes(1).ports[0]}}}]\n", folder)
        port, context = keel.port("web"), ssl.create_default_context(cafile=folder.file("sets", "ca.pem"))

        def changed():
            if options.signal:
                keel.hang_up()

        rig = shaking(options, folder, port, names, (options.swaps + 1) * options.apart)
        took, late = [], 0
        due = time.monotonic()
        for number in range(1, options.swaps + 1):
            due += options.apart
            live.swap(number)
            changed()
            renamed, left = time.monotonic(), list(names)
            while left and time.monotonic() < max(due, renamed + SOON):
                left = [name for name in left if served(context, port, name) != live.wanted(number, name)]
                time.sleep(0.02)
            late += len(left)
            took.append(time.monotonic() - renamed)
            time.sleep(max(0, due - time.monotonic()))
        seen = json.loads(rig.communicate()[0])
        said = keel.said("reload")
        refused = [event["message"] for event in said if "refused" in event["message"]]
        slowest = max(took) if took else 0
        verdict("certificates, swapped", seen["handshake"]["failed"] == 0 and seen["handshake"]["begun"] > 0,
                f"{options.swaps} times {options.names} pairs, {options.apart} s apart: {seen['handshake']['failed']} of {seen['handshake']['begun']} full "
                f"handshakes failed; p99 {seen['handshake']['p99_us'] / 1000:.1f} ms {seen['told'][:3]}")
        verdict("certificates, served", not late and slowest <= SOON,
                f"all new ones at the latest {slowest:.2f} s after the last rename (bar: {SOON} s), late {late}; reloads {len(said)}, refused "
                f"{len(refused)} {refused[:2]}")

        rig = shaking(options, folder, port, names, (options.wrong + 1) * options.apart)
        since, due = len(keel.look()), time.monotonic()
        before = {name: served(context, port, name) for name in names}
        state = digest(api) if has_api else None
        for number in range(options.wrong):
            due += options.apart
            # A key of another set: never the one before, and never the one that fits.
            place = [other for other in range(sets) if other != options.swaps][number]
            live.put(place, names[number % len(names)], "key")
            if number:
                live.put(options.swaps, names[(number - 1) % len(names)], "key")
            changed()
            time.sleep(max(0, due - time.monotonic()))
        seen = json.loads(rig.communicate()[0])
        messages = keel.said("reload refused", since)
        other = [event["message"] for event in keel.said("reload", since) if "refused" not in event["message"]]
        stayed = state == (digest(api) if has_api else None)
        same = all(served(context, port, name) == before[name] for name in names)
        verdict("certificates, wrong pairs", seen["handshake"]["failed"] == 0 and len(messages) == options.wrong and not other and same and stayed,
                f"{options.wrong} times: {len(messages)} messages, {len(other)} reloads, {seen['handshake']['failed']} of {seen['handshake']['begun']} "
                f"handshakes failed, the old ones served on: {same}, the digest of the state stayed: {stayed if has_api else 'not told'}; {messages[0]['message'] if messages else ''} {other[:2]}")
        # The pair that fits again is taken.
        live.swap(sets - 1)
        changed()
        wait_until("the right pair", lambda: served(context, port, names[0]) == live.wanted(sets - 1, names[0]))
    finally:
        if rig and rig.poll() is None:
            rig.kill()
            rig.wait()
        folder.end()
