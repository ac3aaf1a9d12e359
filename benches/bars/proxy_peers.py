#!/usr/bin/env python3
"""HAProxy and nginx in front of evenkeel and behind it, where the PROXY protocol tells whose a connection is: both versions, plain and over TLS, and what
version 2 has beside addresses. Needs Debian's haproxy and nginx with its stream module. Builds no evenkeel; takes some seconds."""

import argparse
import os
import shutil
import socket
import ssl
import sys
import tempfile

sys.dont_write_bytecode = True

import lab  # noqa: E402
from cache_lab import Verdicts  # noqa: E402
from h2spec import certificate  # noqa: E402

CLIENT = "127.0.0.9"


def peer(name):
    """Where a program is."""
    found = shutil.which(name) or f"/usr/sbin/{name}"
    if not os.path.exists(found):
        raise SystemExit(f"{name} is not installed")
    return found


def started(words, port, what):
    process = lab.Process(*words)
    lab.wait_until(what, lambda: lab.accepts(port) or process.process.poll() is not None)
    if process.process.poll() is not None:
        raise SystemExit(f"{what} has ended at once")
    return process


def evenkeel(folder, name, text, port):
    path = os.path.join(folder, f"{name}.yaml")
    with open(path, "w") as file:
        file.write(text)
    return started([lab.program("evenkeel"), "--config", path], port, f"evenkeel {name}")


def asked(port, tls=None, path="/"):
    """What a client of an address of its own is answered, and its port."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=10, source_address=(CLIENT, 0))
    own = connection.getsockname()[1]
    if tls:
        connection = tls.wrap_socket(connection, server_hostname="localhost")
    with connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    return answer.decode(errors="replace"), own


def told_of(answer):
    """The lines of an answer of evenkeel's that say what it was told."""
    return ", ".join(line for line in answer.split("\r\n") if line.startswith("X-")) or answer


def haproxy(folder, name, sections):
    path = os.path.join(folder, f"{name}.cfg")
    with open(path, "w") as file:
        file.write(f"global\n    maxconn 200\ndefaults\n    mode tcp\n    timeout connect 5s\n    timeout client 5s\n    timeout server 5s\n{sections}")
    return [peer("haproxy"), "-q", "-db", "-f", path]


def nginx(folder, name, blocks):
    path = os.path.join(folder, f"{name}.conf")
    # As the distribution has it: a module that is loaded, if it is one.
    module = "/usr/lib/nginx/modules/ngx_stream_module.so"
    load = f"load_module {module};\n" if os.path.exists(module) else ""
    temporary = "".join(f"{of}_temp_path {folder}/{name}-{of};\n" for of in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    with open(path, "w") as file:
        file.write(f"{load}daemon off;\nmaster_process off;\npid {folder}/{name}.pid;\nerror_log stderr error;\nevents {{}}\n"
                   + blocks.replace("http {", "http {\naccess_log off;\n" + temporary))
    return [peer("nginx"), "-p", folder, "-c", path]


def in_front(folder, verdict, pem):
    """Each of them tells evenkeel, which answers with what it was told."""
    told, secured = lab.free_port(), lab.free_port()
    lines = "{X-Client: '{client_ip}', X-Tls: '{proxy_tls}', X-Alpn: '{proxy_alpn}', X-Authority: '{proxy_authority}', X-Cn: '{proxy_client_cn}', X-Id: '{proxy_unique_id}'}"
    answer = f"[{{respond: {{status: 200, body: told, headers: {lines}}}}}]"
    tls = f"{{cert_file: {pem}}}"
    evenkeel(folder, "inner", f"""workers: 1
listeners:
  plain: {{bind: {told}, proxy_protocol: {{from: 127.0.0.1}}, routes: {answer}}}
  secured: {{bind: {secured}, protocol: https, tls: {tls}, proxy_protocol: {{from: 127.0.0.1}}, routes: {answer}}}
""", told)
    context = ssl.create_default_context(cafile=pem)
    for version in ("", "-v2"):
        front, passing, ends = lab.free_port(), lab.free_port(), lab.free_port()
        more = " proxy-v2-options ssl,cert-cn,authority,unique-id" if version else ""
        started(haproxy(folder, f"front{version}", f"""
frontend a
    bind 127.0.0.1:{front}
    default_backend a
backend a
    server a 127.0.0.1:{told} send-proxy{version}
frontend b
    bind 127.0.0.1:{passing}
    default_backend b
backend b
    server b 127.0.0.1:{secured} send-proxy{version}
frontend c
    bind 127.0.0.1:{ends} ssl crt {pem}
    unique-id-format %[uuid]
    default_backend c
backend c
    server c 127.0.0.1:{told} send-proxy{version}{more}
"""), front, "HAProxy")
        name = f"HAProxy{version} in front"
        for where, (port, tls) in {"plain": (front, None), "TLS that it passes on": (passing, context), "TLS that it ends": (ends, context)}.items():
            answer, _ = asked(port, tls)
            verdict(f"{name}, {where}", f"X-Client: {CLIENT}\r\n" in answer, told_of(answer))
        if version:
            is_told = "X-Tls: TLSv1.3\r\n" in answer and "X-Authority: localhost\r\n" in answer and "X-Id: \r\n" not in answer
            verdict(f"{name}: TLS version, host name and number", is_told, told_of(answer))
    front = lab.free_port()
    started(nginx(folder, "front", f"stream {{ server {{ listen 127.0.0.1:{front}; proxy_protocol on; proxy_pass 127.0.0.1:{told}; }} }}\n"), front, "nginx")
    answer, _ = asked(front)
    verdict("nginx in front", f"X-Client: {CLIENT}\r\n" in answer, told_of(answer))


def behind(folder, verdict, pem):
    """evenkeel tells each of them, which answers with what it was told."""
    near, far = lab.free_port(), lab.free_port()
    started(haproxy(folder, "behind", f"""
frontend a
    mode http
    bind 127.0.0.1:{near} accept-proxy
    http-request return status 200 content-type text/plain lf-string "%[src]:%[src_port] %[dst_port] %[fc_pp_authority] %[fc_pp_unique_id]"
"""), near, "HAProxy")
    started(nginx(folder, "behind", f"""http {{ server {{ listen 127.0.0.1:{far} proxy_protocol;
 location / {{ return 200 "$proxy_protocol_addr:$proxy_protocol_port $proxy_protocol_server_port"; }} }} }}
"""), far, "nginx")
    context = ssl.create_default_context(cafile=pem)
    for version in ("v1", "v2"):
        for name, port in (("HAProxy", near), ("nginx", far)):
            for protocol in ("http", "https", "tcp"):
                here = lab.free_port()
                tls = f"    tls: {{cert_file: {pem}}}\n" if protocol == "https" else ""
                evenkeel(folder, f"outer-{version}-{name}-{protocol}", f"""workers: 1
targets:
  web:
    protocol: {protocol}
    listener: {here}
{tls}    send_proxy: {version}
    health_check: {{interval: 100ms}}
    backends: [{{host: 127.0.0.1, port: {port}}}]
""", here)
                is_up = lambda: asked(here, context if tls else None)[0].startswith("HTTP/1.1 200")  # noqa: E731
                lab.wait_until("a first verdict", is_up)
                answer, own = asked(here, context if tls else None)
                body = answer.split("\r\n\r\n")[1]
                is_right = f"{CLIENT}:{own} {here}" in body
                if version == "v2" and protocol == "https" and name == "HAProxy":
                    is_right = is_right and " localhost " in body and len(body.split()[-1]) == 32
                verdict(f"{version} to {name}, {protocol}", is_right, body)


def main():
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--build", default="release", help="which build of evenkeel: release or debug")
    lab.BUILT = os.path.join(os.path.dirname(lab.BUILT), words.parse_args().build)
    verdict = Verdicts()
    try:
        with tempfile.TemporaryDirectory() as folder:
            certificate(folder)
            pem = os.path.join(folder, "both.pem")
            with open(pem, "w") as both:
                for part in ("a.pem", "a.pem.key"):
                    with open(os.path.join(folder, part)) as file:
                        both.write(file.read())
            in_front(folder, verdict, pem)
            behind(folder, verdict, pem)
    finally:
        lab.Process.end_all()
    verdict.end()


if __name__ == "__main__":
    main()
