"""A headless Chromium, driven by the DevTools protocol over two pipes: no other package and no port."""

import base64
import json
import os
import subprocess
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.needs import find

COMMANDS_FD, ANSWERS_FD = 3, 4
"""The descriptors that `--remote-debugging-pipe` uses; messages end with a NUL."""
KEY_CODES = {"Escape": 27, "Enter": 13, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


class Page:
    """One tab."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._number, self._rest, self._session = 0, b"", ""
        self.events: deque[dict[str, Any]] = deque()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> Any:
        """The result of one command."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._commands, data) :]
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            data = os.read(self._answers, 1 << 20)
            assert data, "the browser is gone"
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)  # type: ignore[no-any-return]

    def open(self, path: Path, fragment: str = "") -> None:
        """Load a file in a new document and wait until it shows its picture."""
        self.call("Page.navigate", url="about:blank")
        self.events.clear()
        self.call("Page.navigate", url=f"file://{path}{fragment}")
        self.wait("performance.getEntriesByName('first picture').length === 1")

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        options = {"returnByValue": True, "awaitPromise": True, "userGesture": True}
        answer = self.call("Runtime.evaluate", expression=expression, **options)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until a JavaScript expression is true."""
        code = f"""new Promise((done, fail) => {{
            const end = performance.now() + 20000;
            const look = () => ({condition}) ? done() : performance.now() > end ? fail("no: " + {condition!r})
                : setTimeout(look, 10);
            look();
        }})"""
        self.run(code)

    def text(self, selector: str) -> str:
        """The text that is shown in an element."""
        return str(self.run(f"document.querySelector({selector!r}).innerText"))

    def key(self, key: str) -> None:
        """Press and release a key."""
        options: dict[str, Any] = {"key": key}
        if len(key) == 1:
            options["text"] = key
        else:
            options["windowsVirtualKeyCode"] = KEY_CODES[key]
            options["text"] = "\r" if key == "Enter" else ""  # without it nothing that has the focus is pressed
        self.call("Input.dispatchKeyEvent", type="keyDown", **options)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text: str) -> None:
        """Insert a text into the focused field."""
        self.call("Input.insertText", text=text)

    def mouse(self, kind: str, x: float, y: float) -> None:
        """A mouse event; `click` is press and release."""
        if kind != "click":
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y)
            return
        for each in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=each, x=x, y=y, button="left", clickCount=1)

    def click(self, selector: str) -> None:
        """Click into the middle of an element."""
        box = self.box(selector)
        self.mouse("click", box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    def box(self, selector: str) -> dict[str, float]:
        """Where an element is on the screen."""
        return self.run(f"document.querySelector({selector!r}).getBoundingClientRect().toJSON()")  # type: ignore[no-any-return]

    def resize(self, width: int, height: int, ratio: float = 1) -> None:
        """The size of the window in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio, mobile=False
        )

    def media(self, **features: str) -> None:
        """Set media features; `prefers_color_scheme="dark"`."""
        each = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", features=each)

    def cpu(self) -> float:
        """The CPU time in milliseconds that the page's main thread has spent on tasks, and not waited for it."""
        self.call("Performance.enable", timeDomain="threadTicks")
        metrics = {each["name"]: each["value"] for each in self.call("Performance.getMetrics")["metrics"]}
        return 1000 * float(metrics["TaskDuration"])

    def screenshot(self, path: Path) -> None:
        """Write what is shown as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def problems(self) -> list[str]:
        """Requests besides the page itself, errors and warnings since the page was opened."""
        self.call("Runtime.evaluate", expression="0")
        found = []
        for event in self.events:
            params = event.get("params", {})
            match event.get("method"):
                case "Network.requestWillBeSent" if not params["request"]["url"].startswith(("file:", "data:")):
                    found.append(f"request: {params['request']['url']}")
                case "Runtime.exceptionThrown":
                    found.append(f"exception: {params['exceptionDetails']}")
                case "Log.entryAdded":
                    found.append(f"log: {params['entry']['text']}")
        return found


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """A running browser with its profile in `folder`."""
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run"]
    more = ["--disable-extensions", "--disable-background-networking", "--hide-scrollbars", f"--user-data-dir={folder}"]
    read_commands, commands = os.pipe()
    answers, write_answers = os.pipe()

    def place_pipes() -> None:
        low, high = os.dup(read_commands), os.dup(write_answers)
        os.dup2(low, COMMANDS_FD)
        os.dup2(high, ANSWERS_FD)

    process = subprocess.Popen(
        [find("chromium"), *options, *more],
        preexec_fn=place_pipes,
        close_fds=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(read_commands)
    os.close(write_answers)
    try:
        page = Page(commands, answers)
        yield page
        page._session = ""
        page.call("Browser.close")
        process.wait(10)
    finally:
        process.kill()
        process.wait()
        os.close(commands)
        os.close(answers)
