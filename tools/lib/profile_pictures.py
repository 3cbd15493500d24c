# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of docs/guide/profiler.md: see tools/profile-pictures.

  profile_pictures.py PYTHON PLUGIN CHROMIUM FOLDER

Runs in an environment with xprof; PYTHON is one with TensorFlow.
"""

import asyncio
import base64
import contextlib
import gzip
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import aiohttp

TOOL = pathlib.Path(__file__).resolve().parent / "profile/main.py"

# What is recorded: steps of a small CNN, after one that builds the functions.
TRAINING = """
import numpy as np
import tensorflow as tf

with tf.device("SIM:0"):
    model = tf.keras.Sequential([
        tf.keras.Input((28, 28, 1)),
        tf.keras.layers.Conv2D(16, 3, activation="relu"),
        tf.keras.layers.MaxPooling2D(),
        tf.keras.layers.Conv2D(32, 3, activation="relu"),
        tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(
        from_logits=True), jit_compile=False)
    images = np.random.rand(64, 28, 28, 1).astype(np.float32)
    labels = np.random.randint(0, 10, 64)
    model.train_on_batch(images, labels)
    tf.profiler.experimental.stop(save=False)
    tf.profiler.experimental.start("profile")
    for step in range(6):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            model.train_on_batch(images, labels)
"""


@contextlib.contextmanager
def server(xprof, folder):
    """Runs TensorBoard's profiler on a free port of this machine; yields its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([xprof, f"--logdir={folder}", f"--port={port}"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"http://localhost:{port}/").close()
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.2)
        yield f"http://localhost:{port}"
    finally:
        process.terminate()
        process.wait()


async def photograph(chromium, url, picture, height, scripts=()):
    """Writes a picture of a page, after the JavaScript expressions in `scripts` have
    become true one after the other. Headless browsers' own --screenshot does not wait."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = subprocess.Popen(
            [chromium, "--headless=new", "--no-sandbox", "--disable-gpu",
             "--hide-scrollbars", f"--user-data-dir={profile}",
             "--remote-debugging-port=0", f"--window-size=1280,{height}", url],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            port_file = pathlib.Path(profile) / "DevToolsActivePort"
            while not port_file.exists():
                await asyncio.sleep(0.2)
            port = port_file.read_text().split()[0]
            await _photograph(f"http://127.0.0.1:{port}/json", picture, scripts)
        finally:
            browser.terminate()
            browser.wait()


async def _photograph(pages, picture, scripts):
    async with aiohttp.ClientSession() as session:
        async with session.get(pages) as answer:
            page, = [page for page in await answer.json() if page["type"] == "page"]
        async with session.ws_connect(page["webSocketDebuggerUrl"],
                                      max_msg_size=0) as socket:
            async def call(method, **parameters):
                await socket.send_json({"id": 1, "method": method, "params": parameters})
                while True:
                    answer = await socket.receive_json()
                    if answer.get("id") == 1:
                        return answer["result"]
            for script in scripts:
                for _ in range(300):
                    done = await call("Runtime.evaluate", expression=script)
                    if done["result"].get("value") is True:
                        break
                    await asyncio.sleep(0.5)
            await asyncio.sleep(2)
            image = await call("Page.captureScreenshot")
            pathlib.Path(picture).write_bytes(base64.b64decode(image["data"]))


# TensorBoard's page has the trace viewer in a frame, which can be shown alone. Only the
# viewer that loads parts of the trace, "trace_viewer@", has flows.
def viewer_of(url, run):
    """Returns the URL of a viewer that shows the convolution whose launch reached the
    device first, in three milliseconds."""
    data = (f"/data/plugin/profile/data?run={run}&tag=trace_viewer%40"
            f"&host={socket.gethostname()}&format=json")
    with urllib.request.urlopen(url + data) as answer:
        trace = json.loads(gzip.decompress(answer.read()))["traceEvents"]
    launches = {event["bind_id"]: event["ts"] for event in trace if "flow_out" in event}
    _, begin = min((event["ts"] - launches[event["bind_id"]], launches[event["bind_id"]])
                   for event in trace if "flow_in" in event
                   and "Conv2D" in event["name"] and event["bind_id"] in launches)
    begin = begin / 1000 - 0.3
    return (f"{url}/data/plugin/profile/trace_viewer_index.html?is_streaming=true"
            f"&is_oss=true&view_start={begin}&view_end={begin + 3}"
            f"&trace_data_url={urllib.parse.quote(data)}")


# Switches the arrows on, as the menu "Flow events" does.
SHOW_FLOWS = """
(() => {
  const view = document.querySelector("tr-ui-timeline-view");
  if (!view || !view.model || view.model.flowEvents.length == 0) return false;
  view.trackView.viewport.selectedFlowEvents = new Set(["gpu_launch"]);
  return true;
})()
"""


def main():
    python, plugin, chromium, pictures = sys.argv[1:]
    xprof = str(pathlib.Path(sys.executable).with_name("xprof"))
    pictures = pathlib.Path(pictures).resolve()
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "train.py").write_text(TRAINING)
        subprocess.run([python, "-B", TOOL, "--plugin", plugin, "train.py"],
                       check=True, cwd=folder)
        asyncio.run(photograph(
            chromium, (folder / "profile/profile.html").as_uri(),
            pictures / "profile.png", 1150, ["document.readyState == 'complete'"]))
        run = next((folder / "profile/plugins/profile").iterdir()).name
        with server(xprof, folder / "profile") as url:
            asyncio.run(photograph(chromium, viewer_of(url, run),
                                   pictures / "xprof.png", 1000, [SHOW_FLOWS]))


if __name__ == "__main__":
    main()
