"""Runs the commands of a page in their order, and writes the files that it shows: what the page says has to work.

    page.py PAGE NOT_EXECUTED

NOT_EXECUTED has the lines that nobody executes, with their reasons; so are those for a systemd that is not this one.
"""
import pathlib
import re
import subprocess
import sys

page = pathlib.Path(sys.argv[1]).read_text()
skipped = {line[2:].strip() for line in pathlib.Path(sys.argv[2]).read_text().splitlines() if line.startswith("$ ")}
version = int(re.search(r"systemd (\d+)", subprocess.check_output(["systemctl", "--version"], text=True)).group(1))
NOTIFY_RELOAD = "### systemd 253 and later"


def statements(block):
    """Lines, put together as long as the shell wants more."""
    whole = ""
    for line in block.splitlines():
        whole += line + "\n"
        looked = subprocess.run(["bash", "-n"], input=whole, text=True, capture_output=True)
        if looked.returncode == 0 and not looked.stderr and not line.endswith("\\"):
            if whole.strip():
                yield whole.strip()
            whole = ""


def write(path, text, mode):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    print(f"wrote {path}")


configs = 0
executed = 0
for found in re.finditer(r"^```(sh|ini|yaml)\n(.*?)^```", page, re.S | re.M):
    kind, block = found.groups()
    section = page[: found.start()].rpartition("\n#")[2]
    if section.startswith(NOTIFY_RELOAD[1:]) and version < 253:
        continue
    named = re.match(r"(?:#!.*\n)?# (/\S+)\n", block)
    if kind == "ini" or block.startswith("#!"):
        write(pathlib.Path(named.group(1)), block, 0o644)
        continue
    if kind == "yaml":
        configs += 1
        # The first one is the service's. The others are looked at where they belong.
        path = pathlib.Path("evenkeel.yaml" if configs == 1 else "/etc/evenkeel/another.yaml")
        write(path, block, 0o644)
        if configs > 1:
            subprocess.run(["evenkeel", "check", str(path)], check=True, stdout=subprocess.DEVNULL)
            path.unlink()
        continue
    for statement in statements(block):
        command = re.sub(r"\s+# .*", "", statement)
        if command in skipped:
            continue
        if re.search(r"systemctl .*(start|--now)", command):
            # More often than systemd lets anybody within ten seconds.
            subprocess.run(["systemctl", "reset-failed"], check=True)
        print(f"$ {command}", flush=True)
        done = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        executed += 1
        said = done.stdout + done.stderr
        print("".join(f"  {line}\n" for line in said.splitlines()[:6]), end="", flush=True)
        if done.returncode != 0:
            sys.exit(f"{command}\nended with {done.returncode}: {said}")
        if command.startswith("curl -i") and " 200 " not in said:
            sys.exit(f"{command}: {said}")
print(f"{executed} commands")
