"""Headless Chromium, driven over WebDriver by its own driver; nothing is installed for it."""

import base64
import contextlib
import json
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def missing() -> str:
    """Return what this machine lacks to drive a browser; empty: nothing."""
    absent = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"not on PATH: {', '.join(absent)}" if absent else ""


class Browser:
    def __init__(self, session: str) -> None:
        self._session = session

    def open(self, url: str) -> None:
        """Go to an address and wait until its document is loaded."""
        _ask(f"{self._session}/url", {"url": url})

    def run(self, script: str, *arguments: object) -> Any:
        """Return what the body of a function returns in the page."""
        body = {"script": script, "args": list(arguments)}
        return _ask(f"{self._session}/execute/sync", body)

    def wait(self, script: str, *arguments: object, seconds: float = 30.0) -> Any:
        end = time.monotonic() + seconds
        while not (value := self.run(script, *arguments)):
            if time.monotonic() > end:
                raise AssertionError(f"never true: {script} {arguments}\n{self.text()[:3000]}")
            time.sleep(0.02)
        return value

    def text(self) -> str:
        """Return what a reader sees."""
        shown: str = self.run("return document.body.innerText")
        return shown

    def texts(self, selector: str) -> list[str]:
        """Return the texts of the elements that a selector finds."""
        script = "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)"
        found: list[str] = self.run(script, selector)
        return found

    def click(self, selector: str, text: str) -> None:
        """Click the element that a selector finds and whose text is `text`, once it is there."""
        self.wait(
            "const found = [...document.querySelectorAll(arguments[0])]"
            ".find(e => e.textContent === arguments[1]); found?.click(); return Boolean(found)",
            selector,
            text,
        )

    def press(self, selector: str, key: str) -> None:
        script = "document.querySelector(arguments[0]).dispatchEvent("
        script += "new KeyboardEvent('keydown', {key: arguments[1], bubbles: true}))"
        self.run(script, selector, key)

    def console(self) -> list[str]:
        """Return warnings and errors of the page since the last call, refused scripts too."""
        logged = _ask(f"{self._session}/se/log", {"type": "browser"})
        return [entry["message"] for entry in logged]

    def devtools(self, command: str, **parameters: Any) -> Any:
        """Return the answer of a DevTools command."""
        body = {"cmd": command, "params": parameters}
        return _ask(f"{self._session}/goog/cdp/execute", body)

    def resize(self, width: int, height: int) -> None:
        """Have the page laid out at a size in CSS pixels."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def picture(self, path: Path) -> None:
        shot = self.devtools("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(shot["data"]))


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start a browser with an empty profile; it ends with its driver."""
    driver = subprocess.Popen(
        ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        address = _address(driver)
        options = {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": [*ARGUMENTS, f"--user-data-dir={profile}"]},
            "goog:loggingPrefs": {"browser": "WARNING"},
        }
        made = _ask(f"{address}/session", {"capabilities": {"alwaysMatch": options}})
        session = f"{address}/session/{made['sessionId']}"
        try:
            yield Browser(session)
        finally:
            _ask(session, method="DELETE")
    finally:
        driver.terminate()
        driver.wait()
        if driver.stdout is not None:
            driver.stdout.close()


def _address(driver: "subprocess.Popen[str]") -> str:
    assert driver.stdout is not None
    for line in driver.stdout:
        if found := re.search(r"started successfully on port (\d+)", line):
            return f"http://127.0.0.1:{found[1]}"
    raise AssertionError("chromedriver did not start")


def _ask(url: str, body: object = None, *, method: str = "POST") -> Any:
    data = None if method == "DELETE" else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    open_local: Callable[..., Any] = urllib.request.build_opener(
        urllib.request.ProxyHandler({})
    ).open
    try:
        with open_local(request, timeout=60) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise AssertionError(error.read().decode()[:2000]) from error
