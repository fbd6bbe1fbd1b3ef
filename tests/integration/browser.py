# SPDX-License-Identifier: MIT
"""Controls a headless Chromium by the DevTools protocol over a pipe. It needs
no port and no driver, only the browser.
https://chromedevtools.github.io/devtools-protocol/"""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

import harness

NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "headless_shell",
    "google-chrome",
)
PATH = next(filter(None, map(shutil.which, NAMES)), None)

SWITCHES = (
    *("--headless", "--remote-debugging-pipe", "--no-first-run"),
    *("--disable-gpu", "--disable-extensions", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
    *("--disable-dev-shm-usage", "--mute-audio", "--hide-scrollbars"),
    # What a page might look up goes nowhere.
    "--host-resolver-rules=MAP * ~NOTFOUND",
)

KEYS = {
    "Enter": (13, "\r"),
    "Escape": (27, None),
    "Tab": (9, None),
    "ArrowLeft": (37, None),
    "ArrowUp": (38, None),
    "ArrowRight": (39, None),
    "ArrowDown": (40, None),
    "/": (191, "/"),
}


class Browser:
    """One tab of one browser; ends with close()."""

    def __init__(self, width=1280, height=900):
        self.home = tempfile.mkdtemp()
        self.number = 0
        self.unread = b""
        # What a page has complained about: errors of scripts, refusals of the
        # policy, requests that were made.
        self.complaints = []
        self.requests = []
        self._start()
        target = self.call(
            "Target.createTarget", url="about:blank", width=width, height=height
        )
        self.session = self.call(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def _start(self):
        their_in, self.to = os.pipe()
        self.back, their_out = os.pipe()

        def place():
            # Above all others, so that neither copy overwrites the other.
            source, sink = os.dup2(their_in, 98), os.dup2(their_out, 99)
            os.dup2(source, 3)
            os.dup2(sink, 4)

        # The sandbox needs rights that containers rarely have; root has none.
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen(
            [PATH, *SWITCHES, *sandbox, f"--user-data-dir={self.home}"],
            env={**os.environ, "HOME": self.home},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(3, 4),
            preexec_fn=place,
            start_new_session=True,
        )
        os.close(their_in)
        os.close(their_out)
        self.session = None

    def close(self):
        for fd in (self.to, self.back):
            os.close(fd)
        # Its own processes, and no other.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    # ---- the protocol ----

    def _receive(self, deadline):
        while b"\0" not in self.unread:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.back], [], [], left)[0]:
                raise AssertionError("the browser does not answer")
            more = os.read(self.back, 1 << 20)
            if not more:
                raise AssertionError("the browser has ended")
            self.unread += more
        message, _, self.unread = self.unread.partition(b"\0")
        message = json.loads(message)
        self._note(message)
        return message

    def _note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(
                details.get("exception", {}).get("description", details["text"])
            )
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(str(params["args"]))
        elif method == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + harness.DEADLINE_SECONDS
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self.number:
                break
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    # ---- a page ----

    def open(self, path, hash_=""):
        """Loads a file, and waits until its scripts have run."""
        self.complaints.clear()
        self.requests.clear()
        # Only another document is loaded anew for another hash.
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=f"file://{path}{hash_}")
        self.evaluate(
            "new Promise(done => document.readyState === 'complete' ? done()"
            " : addEventListener('load', () => done()))"
        )

    def evaluate(self, expression):
        """The value of an expression; promises are waited for."""
        result = self.call(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        if "exceptionDetails" in result:
            raise AssertionError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def texts(self, selector):
        """The text of each element, as it is shown."""
        return self.evaluate(
            f"[...document.querySelectorAll({json.dumps(selector)})]"
            ".map(e => e.innerText.trim())"
        )

    def attributes(self, selector, name):
        return self.evaluate(
            f"[...document.querySelectorAll({json.dumps(selector)})]"
            f".map(e => e.getAttribute({json.dumps(name)}))"
        )

    def click(self, selector, n=0):
        """With the mouse, so that what covers the element is clicked instead."""
        box = self.evaluate(
            f"(() => {{ const e = document.querySelectorAll({json.dumps(selector)})"
            f"[{n}]; e.scrollIntoView({{block: 'center'}});"
            " const b = e.getBoundingClientRect();"
            " return [b.x + Math.min(b.width / 2, 30), b.y + Math.min(b.height / 2, 8)]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=box[0],
                y=box[1],
                button="left",
                clickCount=1,
            )

    def tap(self, selector, n=0):
        """Taps the element in its middle, as a finger does."""
        x, y = self.evaluate(
            f"(() => {{ const e = document.querySelectorAll({json.dumps(selector)})"
            f"[{n}]; e.scrollIntoView({{block: 'center'}});"
            " const b = e.getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        # A page gets the event of its scrolling with its next frame.
        self.evaluate(
            "new Promise(done => requestAnimationFrame(() =>"
            " requestAnimationFrame(() => done())))"
        )
        touch = [{"x": x, "y": y}]
        for kind, points in (("touchStart", touch), ("touchEnd", [])):
            self.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)

    def press(self, key):
        code, text = KEYS[key]
        common = {"key": key, "windowsVirtualKeyCode": code}
        if text:
            common["text"] = text
        self.call("Input.dispatchKeyEvent", type="keyDown", **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def resize(self, width, height):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def emulate(self, theme="light", medium=""):
        self.call(
            "Emulation.setEmulatedMedia",
            media=medium,
            features=[{"name": "prefers-color-scheme", "value": theme}],
        )
