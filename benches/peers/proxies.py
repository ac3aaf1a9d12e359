"""The proxies, each with a configuration that does the same work: HTTP or TCP, round robin over the same backends,
upstream keep-alive, `X-Forwarded-For` added, no health checks, one thread (or `threads`). Those that only answer what they
have stored are in caches.py."""

import os

import caches
from process import Failure, Program, accepts, free_port, wait_until, write

MODULE = "/usr/lib/nginx/modules/ngx_stream_module.so"


class Proxy:
    """A program that can stand between load and backends. `begin` writes its configuration and starts it."""

    def __init__(self, kind, name, program):
        self.kind, self.name, self.program = kind, name, program

    def takes_part(self, cached, multiplexes=False):
        return self.kind in (caches.CONFIGURED if cached else MULTIPLEXING if multiplexes else CONFIGURED)

    def begin(self, folder, site, cores):
        os.makedirs(folder, exist_ok=True)
        port = free_port()
        configured = caches.CONFIGURED if site.cached else CONFIGURED
        args = configured[self.kind](self.program, folder, port, site)
        program = Program(args, cores, os.path.join(folder, "log"))
        records = os.path.join(folder, "log" if self.kind == "haproxy" else "access.log")
        return Running(self, program, port, records)


class Site:
    """What is asked of a proxy: mode is http, https or tcp; backends are (address, port); so many idle connections to
    them are kept, where a proxy wants a number. `cached`: the bytes of the one answer that all are given to store, and that
    the floor has from the beginning; 0: nothing is stored. `multiplexes`: backends are asked over HTTP/2."""

    def __init__(self, mode, backends, files, threads=1, logs=False, descriptors=20000, kept=300, cached=0, multiplexes=False):
        self.mode, self.backends, self.files, self.threads = mode, backends, files, threads
        self.cached, self.multiplexes = cached, multiplexes
        self.logs, self.descriptors, self.kept = logs, descriptors, kept
        self.tls = mode == "https"


class Running:
    """A proxy at work."""

    def __init__(self, proxy, program, port, records):
        # `records` is where its access log goes, if it has one.
        self.proxy, self.program, self.port, self.records = proxy, program, port, records
        self.name = proxy.name
        wait_until(proxy.name, lambda: accepts(port) or not program.alive())
        if not program.alive():
            raise Failure(f"{proxy.name} did not start: {program.text().strip()[-1000:]}")


def evenkeel(program, folder, port, site):
    servers = "".join(f"      - {{host: {host}, port: {at}}}\n" for host, at in site.backends)
    log = f"access_log: {{path: {folder}/access.log, format: json}}\n" if site.logs else ""
    tls = f"    tls: {{cert_file: {site.files[1]}, cert_key: {site.files[2]}}}\n" if site.tls else ""
    upstream = "    upstream_protocol: h2\n" if site.multiplexes else ""
    text = f"""workers: {site.threads}
{log}targets:
  web:
    protocol: {site.mode}
    listener: {port}
{tls}{upstream}    health_check: off
    backends:
{servers}"""
    return [program, "--config", write(folder, "evenkeel.yaml", text)]


def haproxy(program, folder, port, site):
    """`http-reuse always`: its default `safe` sends each client's first request on a new connection. Records go to
    standard output, which is a file: HAProxy writes no files itself."""
    spoken = " proto h2" if site.multiplexes else ""
    servers = "".join(f"    server s{number} {host}:{at}{spoken}\n" for number, (host, at) in enumerate(site.backends))
    if site.mode == "tcp":
        mode, more = "tcp", ""
    else:
        mode, more = "http", "    option forwardfor\n    http-reuse always\n"
    log = f"    log stdout format raw local0\n    option {mode}log\n" if site.logs else ""
    crt = f" ssl crt {site.files[3]} alpn h2,http/1.1" if site.tls else ""
    text = f"""global
    nbthread {site.threads}
    maxconn {site.descriptors // 2 - 200}
    ssl-default-bind-options ssl-min-ver TLSv1.2
defaults
    mode {mode}
    balance roundrobin
    timeout connect 3s
    timeout client 60s
    timeout server 60s
{log}{more}frontend web
    bind 127.0.0.1:{port}{crt}
    default_backend all
backend all
{servers}"""
    return [program, "-db", "-f", write(folder, "haproxy.cfg", text)]


def nginx(program, folder, port, site):
    """Bodies stream, as they do in the others: no temporary files. A connection may carry any number of requests:
    nginx would close it after 1,000."""
    servers = "".join(f"        server {host}:{at} max_fails=0;\n" for host, at in site.backends)
    kept = max(site.kept, 2 * len(site.backends))
    if site.mode == "tcp":
        body = f"""stream {{
    upstream all {{
{servers}    }}
    server {{ listen 127.0.0.1:{port} backlog=4096; proxy_pass all; proxy_connect_timeout 3s; proxy_timeout 60s; }}
}}
"""
    else:
        log = f"access_log {folder}/access.log combined buffer=64k flush=1s" if site.logs else "access_log off"
        tls = f"""ssl_certificate {site.files[1]}; ssl_certificate_key {site.files[2]};
        ssl_protocols TLSv1.2 TLSv1.3;""" if site.tls else ""
        temporary = "".join(f"    {name}_temp_path {folder}/{name};\n"
                            for name in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
        body = f"""http {{
    {log};
{temporary}    client_max_body_size 0;
    keepalive_requests 1000000000;
    http2_max_concurrent_streams 256;
    keepalive_timeout 60s;
    upstream all {{
{servers}        keepalive {kept};
        keepalive_requests 1000000000;
    }}
    server {{
        listen 127.0.0.1:{port}{" ssl http2" if site.tls else ""} backlog=4096;
        {tls}
        location / {{
            proxy_pass http://all;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_request_buffering off;
            proxy_max_temp_file_size 0;
        }}
    }}
}}
"""
    load = f"load_module {MODULE};\n" if os.path.exists(MODULE) else ""
    user = "user root;\n" if os.getuid() == 0 else ""
    text = f"""{load}{user}worker_processes {site.threads};
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log error;
worker_rlimit_nofile {site.descriptors};
events {{ worker_connections {site.descriptors - 100}; }}
{body}"""
    return [program, "-c", write(folder, "nginx.conf", text), "-e", os.path.join(folder, "error.log")]


def envoy(program, folder, port, site):
    """Its circuit breakers stand at 1,024 connections and requests by default, which the crowd would meet."""
    points = ",".join(f"{{endpoint: {{address: {{socket_address: {{address: {host}, port_value: {at}}}}}}}}}"
                      for host, at in site.backends)
    log = (f"""access_log: [{{name: file, typed_config: {{"@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog,
              path: {folder}/access.log}}}}]""" if site.logs else "access_log: []")
    tls = f"""
      transport_socket:
        name: tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context:
            tls_certificates: [{{certificate_chain: {{filename: {site.files[1]}}}, private_key: {{filename: {site.files[2]}}}}}]
""" if site.tls else ""
    if site.mode == "tcp":
        filters = """name: tcp
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy
          stat_prefix: tcp
          cluster: all"""
    else:
        filters = f"""name: http
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: http
          use_remote_address: true
          {log}
          route_config: {{virtual_hosts: [{{name: all, domains: ["*"], routes: [{{match: {{prefix: /}}, route: {{cluster: all, timeout: 0s}}}}]}}]}}
          http_filters: [{{name: router, typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}}}]"""
    text = f"""static_resources:
  listeners:
  - name: web
    address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}
    filter_chains:
    - filters:
      - {filters}{tls}
  clusters:
  - name: all
    connect_timeout: 3s
    type: STATIC
    lb_policy: ROUND_ROBIN
    circuit_breakers: {{thresholds: [{{max_connections: 100000, max_pending_requests: 100000, max_requests: 100000}}]}}
    load_assignment: {{cluster_name: all, endpoints: [{{lb_endpoints: [{points}]}}]}}
"""
    return [program, "-c", write(folder, "envoy.yaml", text), "--concurrency", str(site.threads), "--disable-hot-restart",
            "-l", "error"]


MULTIPLEXING = ["evenkeel", "haproxy"]
CONFIGURED = {"evenkeel": evenkeel, "haproxy": haproxy, "nginx": nginx, "envoy": envoy}
