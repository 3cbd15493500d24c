# SPDX-License-Identifier: Apache-2.0
"""Hosts on this machine: network namespaces, joined by links of a set bandwidth and
latency. Needs root, iproute2 and /dev/net/tun.

All packets pass through this process, which delays them: not every kernel has tc's
netem, and it shows each byte that a host sends.
"""

import collections
import contextlib
import fcntl
import heapq
import itertools
import os
import re
import select
import struct
import subprocess
import threading
import time

_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 1, 0x1000
_MTU = 9000  # bytes of a packet: "jumbo frames"
_QUEUE = 1000  # packets that wait at a host; later ones are lost, as on a switch
_UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def parse(text):
    """Returns the bits per second and seconds in a text such as "100mbit,5ms"."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]bit),(\d+(?:\.\d+)?)(us|ms|s)", text)
    if not found or float(found[1]) == 0:
        raise ValueError(f'cannot read the link "{text}": write, for example, 100mbit,5ms')
    return float(found[1]) * _UNITS[found[2]], float(found[3]) * _UNITS[found[4]]


class Network:
    """Hosts that can reach each other.

    Args:
      count: of hosts, 250 at most.
      rate: bits per second that a host can send.
      delay: seconds that a packet travels, one way.
    """

    def __init__(self, count, rate, delay):
        self.rate, self.delay = rate, delay
        self.addresses = [f"10.77.0.{i + 1}" for i in range(count)]
        self._names = [f"tfplug-{os.getpid()}-{i}" for i in range(count)]
        self._cut = set()
        self.bytes_sent = [0] * count
        self._running = True
        with contextlib.ExitStack() as stack:
            self._devices = [self._add_host(i, stack) for i in range(count)]
            self._stack = stack.pop_all()
        self._thread = threading.Thread(target=self._forward, daemon=True)
        self._thread.start()

    def _add_host(self, i, stack):
        """Creates a namespace; returns the descriptor of its network device."""
        name, device = self._names[i], self.device(i)
        try:
            tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            stack.callback(os.close, tun)
            fcntl.ioctl(tun, _TUNSETIFF, struct.pack(
                "16sH", device.encode(), _IFF_TUN | _IFF_NO_PI))
            _ip("netns", "add", name)
            stack.callback(_ip, "netns", "delete", name)
            _ip("link", "set", device, "netns", name)
            _ip("-n", name, "address", "add", f"{self.addresses[i]}/24", "dev", device)
            for link, *options in ((device, "mtu", str(_MTU), "txqueuelen", "10000"),
                                   ("lo",)):
                _ip("-n", name, "link", "set", link, *options, "up")
        except (OSError, subprocess.CalledProcessError) as error:
            raise RuntimeError(
                "cannot create a network namespace; it needs root, the package iproute2 "
                f"and /dev/net/tun: {getattr(error, 'stderr', None) or error}") from error
        return tun

    def device(self, host):
        """Returns the name of the host's network device."""
        return f"tp{os.getpid()}-{host}"

    def command(self, host):
        """Returns the beginning of a command line that runs on the host."""
        return ["ip", "netns", "exec", self._names[host]]

    def cut(self, host):
        """Loses all packets from and to the host."""
        self._cut.add(host)

    def heal(self, host):
        """Ends what cut() began."""
        self._cut.discard(host)

    def close(self):
        """Removes the hosts; their processes must have ended."""
        self._running = False
        self._thread.join()
        self._stack.close()

    def _forward(self):
        # The packets must be on time, also if all processors are busy.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), -15)
        number, travelling = itertools.count(), []
        idle = [0.0] * len(self._devices)  # when a host has sent all that waits
        waiting = collections.Counter()
        while self._running:
            pause = max(0.0, travelling[0][0] - time.monotonic()) if travelling else 0.2
            ready, _, _ = select.select(self._devices, [], [], min(pause, 0.2))
            now = time.monotonic()
            for tun in ready:
                source = self._devices.index(tun)
                for packet in _packets(tun):
                    target = packet[19] - 1  # the last byte of an IPv4 address
                    if packet[0] >> 4 != 4 or not 0 <= target < len(self._devices):
                        continue
                    self.bytes_sent[source] += len(packet)
                    if waiting[source] >= _QUEUE or self._cut & {source, target}:
                        continue
                    waiting[source] += 1
                    idle[source] = (max(now, idle[source]) + len(packet) * 8 / self.rate)
                    heapq.heappush(travelling, (idle[source] + self.delay, next(number),
                                                source, target, packet))
            while travelling and travelling[0][0] <= now:
                _, _, source, target, packet = heapq.heappop(travelling)
                waiting[source] -= 1
                with contextlib.suppress(OSError):  # as if the packet were lost
                    os.write(self._devices[target], packet)


def _packets(tun):
    for _ in range(64):  # then it is another host's turn
        try:
            yield os.read(tun, _MTU)
        except BlockingIOError:
            return


def _ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, text=True, capture_output=True)
