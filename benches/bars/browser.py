"""A real Chromium without a window, told what to do over the Chrome DevTools Protocol through two pipes."""

import json
import os
import shutil
import subprocess
import tempfile

FLAGS = ("--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-background-networking "
         "--disable-component-update --disable-sync --hide-scrollbars --enable-precise-memory-info --remote-debugging-pipe")


class Browser:
    def __init__(self):
        self.folder = tempfile.mkdtemp()
        orders, self.orders = os.pipe()
        self.answers, answers = os.pipe()

        def pipes():
            # Chromium reads its third descriptor and writes its fourth.
            os.dup2(orders, 203), os.dup2(answers, 204), os.dup2(203, 3), os.dup2(204, 4)

        self.process = subprocess.Popen(["chromium", *FLAGS.split(), f"--user-data-dir={self.folder}", "about:blank"], preexec_fn=pipes,
                                        close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(orders), os.close(answers)
        self.number, self.session, self.held, self.told = 0, None, b"", []
        target = self.order("Target.createTarget", url="about:blank")
        self.session = self.order("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "HeapProfiler"):
            self.order(f"{domain}.enable")

    def message(self):
        while b"\0" not in self.held:
            piece = os.read(self.answers, 1 << 20)
            if not piece:
                raise SystemExit("the browser has ended")
            self.held += piece
        one, _, self.held = self.held.partition(b"\0")
        return json.loads(one)

    def order(self, method, whole=False, **parameters):
        """`whole`: to the browser and not to its page."""
        self.number += 1
        order = {"id": self.number, "method": method, "params": parameters}
        if self.session and not whole:
            order["sessionId"] = self.session
        os.write(self.orders, json.dumps(order).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.number:
                if "error" in message:
                    raise SystemExit(f"{method}: {message['error']}")
                return message["result"]
            self.told.append(message)

    def eval(self, script):
        came = self.order("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in came:
            raise SystemExit(f"{script}: {came['exceptionDetails']}")
        return came["result"].get("value")

    def open(self, url):
        self.order("Page.navigate", url=url)

    def heap(self):
        """Bytes that scripts keep, without what is to be thrown away."""
        self.order("HeapProfiler.collectGarbage")
        return self.order("Runtime.getHeapUsage")["usedSize"]

    def tasks(self, wait):
        """Milliseconds of each task of the page's main thread while `wait` runs, by Chromium's own trace."""
        self.order("Tracing.start", whole=True, transferMode="ReportEvents", categories="toplevel,disabled-by-default-devtools.timeline")
        wait()
        self.told.clear()
        self.order("Tracing.end", whole=True)
        while not any(one.get("method") == "Tracing.tracingComplete" for one in self.told):
            self.told.append(self.message())
        events = [event for one in self.told if one.get("method") == "Tracing.dataCollected" for event in one["params"]["value"]]
        mains = {(event["pid"], event["tid"]) for event in events
                 if event.get("name") == "thread_name" and event["args"].get("name") == "CrRendererMain"}
        return sorted(event["dur"] / 1000 for event in events
                      if event.get("name", "").endswith("RunTask") and (event["pid"], event["tid"]) in mains and "dur" in event)

    def end(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
