# SPDX-License-Identifier: Apache-2.0
"""Trains a small model of digits with several workers, which divide each batch.

  python train.py --workers 2                two workers on this machine, a device each
  python train.py --workers 2 --devices 2    ... two devices each
  python train.py --workers 4 --compare      also with one and two; draws a picture
  python train.py --workers 2 --link 1gbit,1ms
                                             ... each in a network namespace (as root)
  python train.py --hosts a:7000,b:7000 --index 0 --out /shared/run
                                             worker 0 of 2; start the other on host b

A run goes on from the last checkpoint in --out. If a worker fails, all are started
again, --restarts times at most; with --hosts, each starts its own. See
docs/guide/distribute.md.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

FOLDER = pathlib.Path(__file__).resolve().parent
TRY_AGAIN = 75  # worker.py's exit status if another worker failed
CAN_BE_REPEATED = (TRY_AGAIN, -signal.SIGKILL, -signal.SIGTERM)


def free_ports(count):
    """Returns ports of this machine that are unused now."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("localhost", 0))
    found = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return found


def environment(hosts, index, ordinals, device_type):
    """Returns the environment of a worker. None for `ordinals` is all devices."""
    result = dict(os.environ)
    # One worker needs no cluster.
    result.pop("TF_CONFIG", None)
    if len(hosts) > 1:
        result["TF_CONFIG"] = json.dumps({
            "cluster": {"worker": hosts}, "task": {"type": "worker", "index": index}})
    if ordinals is not None:
        prefix = f"{device_type}:" if device_type else ""
        result["TFPLUG_VISIBLE_DEVICES"] = ",".join(f"{prefix}{i}" for i in ordinals)
    return result


class Worker:
    """A process of worker.py whose output is printed with its number. `prefix` is put
    before its command line."""

    def __init__(self, index, env, arguments, prefix=()):
        self.index = index
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-B", FOLDER / "worker.py", *arguments], env=env,
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            errors="replace")
        self._printer = threading.Thread(target=self._print, daemon=True)
        self._printer.start()

    def _print(self):
        for line in self.process.stdout:
            print(f"[worker {self.index}] {line}", end="", flush=True)

    def finish(self):
        """Returns the exit status of a process that has ended."""
        self._printer.join()
        return self.process.returncode


def run_once(workers, grace):
    """Waits for all workers. After the first failure, the others have `grace` seconds to
    report it. Returns the exit statuses."""
    deadline = None
    while any(worker.process.poll() is None for worker in workers):
        if deadline is None and any(worker.process.poll() for worker in workers):
            deadline = time.monotonic() + grace
        if deadline is not None and time.monotonic() > deadline:
            for worker in workers:
                if worker.process.poll() is None:
                    print(f"[worker {worker.index}] did not end in {grace:g} s and is "
                          "killed", flush=True)
                    worker.process.kill()
        time.sleep(0.1)
    return [worker.finish() for worker in workers]


def start(count, devices, device_type, arguments, hosts=None):
    """Starts workers on this machine, each with its own devices, and in a host of
    `hosts`, a network.Network, if that is given."""
    places = ([f"{address}:7000" for address in hosts.addresses] if hosts else
              [f"localhost:{port}" for port in free_ports(count)])
    return [Worker(i, environment(places, i, range(i * devices, (i + 1) * devices),
                                  device_type), arguments,
                   hosts.command(i) if hosts else ())
            for i in range(count)]


def train(options, count, out, rest):
    """Trains with `count` workers on this machine. Returns the workers' results."""
    if not options.link or count == 1:
        return train_with(options, count, out, rest, None)
    import network
    try:
        hosts = network.Network(count, *options.link)
    except RuntimeError as error:
        sys.exit(f"--link: {error}")
    with contextlib.closing(hosts):
        results = train_with(options, count, out, rest, hosts)
        print("the workers sent", ", ".join(
            f"{sent / 1e6:.1f}" for sent in hosts.bytes_sent), "MB")
        return results


def train_with(options, count, out, rest, hosts):
    """Does what train() does in a network, or on loopback."""
    for attempt in range(options.restarts + 1):
        statuses = run_once(start(count, options.devices, options.type,
                                  ["--out", str(out), *rest], hosts), options.grace)
        if not any(statuses):
            return [json.loads((out / f"worker-{i}.json").read_text())
                    for i in range(count)]
        text = ", ".join(f"worker {i} ended with {status}"
                         for i, status in enumerate(statuses) if status)
        again = attempt < options.restarts and any(
            status in CAN_BE_REPEATED for status in statuses)
        print(text + ("; all are started again" if again else ""), flush=True)
        if not again:
            sys.exit(1)
    return None


def train_here(options, rest):
    """Trains as one of several hosts, each of which runs this program."""
    hosts = options.hosts.split(",")
    for host in hosts:
        if not re.fullmatch(r".+:\d+", host):
            sys.exit(f'--hosts has "{host}": write HOST:PORT for each worker')
    if not 0 <= options.index < len(hosts):
        sys.exit(f"--index must be 0 to {len(hosts) - 1}, the place in --hosts")
    for attempt in range(options.restarts + 1):
        worker = Worker(options.index,
                        environment(hosts, options.index, None, options.type),
                        ["--out", str(options.out), *rest])
        status, = run_once([worker], options.grace)
        if status not in CAN_BE_REPEATED:
            break
        print(f"worker {options.index} ended with {status}" +
              ("; it is started again" if attempt < options.restarts else ""), flush=True)
    sys.exit(1 if status < 0 else status)


def link(text):
    """Returns the bits per second and seconds of --link."""
    import network
    try:
        return network.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Other options are worker.py's: --model, --steps, --batch, --save-every, "
        "--timeout, --report, --seed.")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--devices", type=int, default=1, help="of each worker")
    parser.add_argument("--type", help="the devices' type, such as SIM")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(
        "build/distribute"), help="folder of checkpoints and results")
    parser.add_argument("--fresh", action="store_true", help="discard checkpoints")
    parser.add_argument("--restarts", type=int, default=3)
    parser.add_argument("--grace", type=float, default=90, metavar="SECONDS",
                        help="for other workers to end after the first has failed")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--link", type=link, metavar="RATE,DELAY",
                        help="bandwidth and latency between workers, such as 1gbit,1ms")
    parser.add_argument("--hosts", help="HOST:PORT,... of all workers")
    parser.add_argument("--index", type=int, default=0, help="this host's in --hosts")
    options, rest = parser.parse_known_args()
    if options.type:
        rest = ["--type", options.type, *rest]
    if options.hosts:
        train_here(options, rest)
    if options.workers < 1 or options.devices < 1:
        parser.error("--workers and --devices must be at least 1")
    # cpu_sim creates as many devices as it is asked for.
    os.environ.setdefault("CPU_SIM_DEVICES", str(options.workers * options.devices))

    counts = [options.workers]
    while options.compare and counts[0] > 1:
        counts.insert(0, counts[0] // 2)
    results = {}
    for count in counts:
        out = options.out / f"{count}x{options.devices}"
        if options.fresh or options.compare:
            shutil.rmtree(out, ignore_errors=True)
        print(f"{count} worker{'s' * (count > 1)}, {options.devices} "
              f"device{'s' * (options.devices > 1)} each:", flush=True)
        results[count] = train(options, count, out, rest)
    if options.compare:
        import picture
        path = options.out / "distribute.png"
        difference = picture.draw(path, results, options.devices)
        print(f"Largest relative difference of the losses: {difference:.1e}. "
              f"Picture: {path}")


if __name__ == "__main__":
    main()
