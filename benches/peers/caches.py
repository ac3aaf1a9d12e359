"""The caches, each with a configuration that answers out of memory what a backend has said once; and the floor under them:
a program that has the answer from the beginning, and only receives a request and sends these bytes. Nobody logs."""

import os

from process import write

# From this length on nginx is better off with sendfile(2), which hands the pages of a file to the socket and copies nothing. Below
# it is one more system call.
SENDFILE = 16 * 1024
# What Varnish writes into its log in shared memory for each request; nobody reads it here, and it is a quarter of a small hit.
UNREAD = ("Begin End Link SessOpen SessClose ReqStart ReqMethod ReqURL ReqProtocol ReqHeader ReqAcct Hit Timestamp VCL_call VCL_return "
          "RespProtocol RespStatus RespReason RespHeader RespUnset").split()


def evenkeel(program, folder, port, site):
    """The backend's date is an old one, and its answers are stale by that: an hour goes before what they say."""
    servers = ", ".join(f"{{host: {host}, port: {at}}}" for host, at in site.backends)
    text = f"""workers: {site.threads}
targets:
  web:
    health_check: off
    backends: [{servers}]
listeners:
  front:
    bind: 127.0.0.1:{port}
    protocol: http
    routes: [{{target: web, cache: {{ttl_override: 1h}}}}]
"""
    return [program, "--config", write(folder, "evenkeel.yaml", text)]


def nginx(program, folder, port, site):
    """Files of the cache stay open, so that a hit opens none; the kernel has them in memory."""
    sendfile = "on" if site.cached >= SENDFILE else "off"
    servers = " ".join(f"server {host}:{at};" for host, at in site.backends)
    temporary = "".join(f"    {name}_temp_path {folder}/{name};\n" for name in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
    user = "user root;\n" if os.getuid() == 0 else ""
    text = f"""{user}worker_processes {site.threads};
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log error;
worker_rlimit_nofile {site.descriptors};
events {{ worker_connections {site.descriptors - 100}; }}
http {{
    access_log off;
    sendfile {sendfile};
{temporary}    keepalive_requests 1000000000;
    keepalive_timeout 60s;
    proxy_cache_path {folder}/stored keys_zone=stored:16m max_size=256m inactive=1h use_temp_path=off;
    open_file_cache max=10000 inactive=1h;
    open_file_cache_valid 1h;
    upstream all {{ {servers} }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{
            proxy_pass http://all;
            proxy_cache stored;
            proxy_cache_valid 200 1h;
        }}
    }}
}}
"""
    return [program, "-c", write(folder, "nginx.conf", text), "-e", os.path.join(folder, "error.log")]


def varnish(program, folder, port, site):
    """Enough threads for all connections from the beginning, as each needs one while it is busy. As root it changes no user:
    that one could not read our folder."""
    host, at = site.backends[0]
    jail = ["-j", "none"] if os.getuid() == 0 else []
    pool = ["-p", "thread_pools=1", "-p", "thread_pool_min=100", "-p", "thread_pool_max=2000"]
    mask = ["-p", "vsl_mask=" + ",".join(f"-{tag}" for tag in UNREAD)]
    return [program, "-F", *jail, "-n", os.path.join(folder, "varnish"), "-a", f"127.0.0.1:{port}", "-b", f"{host}:{at}",
            "-s", "malloc,256m", "-T", "none", *pool, *mask]


def floor(program, folder, port, site):
    return [program, "backend", "--listen", f"127.0.0.1:{port}", "--body", str(site.cached), "--cacheable"]


CONFIGURED = {"evenkeel": evenkeel, "nginx": nginx, "varnish": varnish, "floor": floor}
