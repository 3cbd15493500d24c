# SPDX-License-Identifier: Apache-2.0
"""What tfplug doctor concludes from a plug-in's file and from the log of the process
that tried it: the cause of a failure, where it was, and the remedy."""

import collections
import ctypes
import os
import re
import shutil
import signal
import struct
import subprocess

# What a message of the loader or of TensorFlow means, and what to do.
_REMEDIES = {
    "GLIBC": "The library was built for a newer Linux. Build it on the oldest one "
             "that your users have, or in a manylinux image.",
    "CXXABI": "The library needs a newer libstdc++. Build it with an older g++.",
    "undefined symbol: TF_": "This release of TensorFlow lacks a function that the "
        "plug-in needs. Install a release for which the plug-in is made, or a newer "
        "plug-in.",
    "undefined symbol: _Z": "The library needs C++ symbols of one release of "
        "TensorFlow. Install the release for which the plug-in is made.",
    **dict.fromkeys(
        ("_pywrap_tensorflow_internal.so: cannot open", "libtensorflow_"),
        "The plug-in is made for another release of TensorFlow, in which this library "
        "exists. Install that release, or a plug-in for this one."),
    "cannot open shared object file": "Install the library that is named, or link it "
        "statically. A vendor's driver is better loaded at run time: see "
        "tfplug::LoadDriver.",
    "undefined symbol": "The library needs a symbol that this TensorFlow does not "
        "export. Link it with -Wl,--no-undefined and without TensorFlow; tfplug looks "
        "up TensorFlow's functions at run time.",
    "visible_device_list": "TensorFlow before 2.19 counts the devices of all plug-ins "
        "together. Install 2.19 or newer, rebuild one of the plug-ins with this tfplug, "
        "or call tf.config.set_visible_devices with the CPU and only the first device "
        "that is not a CPU: each plug-in then has one device.",
    "file too short": "The file is damaged. Install its package again.",
    "invalid ELF header": "The file is damaged, or is no shared library. Install its "
        "package again, or remove it: TensorFlow loads every file named .so here.",
    "No JIT device registered": "Keras asks for XLA by itself. Register the default "
        "passes in the plug-in (TFPLUG_REGISTER_GRAPH_PASSES, in graph_pass.h), or "
        "call compile(..., jit_compile=False).",
    "Unsupported device type": "A graph pass of the plug-in aborts on nodes of devices "
        "that it does not know. Turn all plug-ins' passes off: "
        "tf.config.optimizer.set_experimental_options({'use_plugin_optimizers': "
        "False}).",
    "_GLOBAL__sub_I": "The constructor of a global variable fails. Do such work when a "
        "device is looked for, in Platform::DeviceCount, which may return an error.",
    "::Compute(": "If the kernel reads its tensors on the host: only the device may be able "
        "to access its memory; enqueue the work on the stream. If it is not yours, report "
        "this line, with the release of TensorFlow, to its author.",
    "SIGILL": "The library uses instructions that this processor lacks. Build it "
        "without -march=native.",
}
# Parts of the line in which a process that crashes states the cause.
_CAUSES = ("what():", "terminate called", "Check failed", " F tensorflow", "F0000")
# Lines that are no cause: reports of TensorFlow, of its loggers, and of signal handlers.
_REPORT = re.compile(r"[IW]\d{4} |.*: [IW] |WARNING: All log messages|To enable the follow"
                     r"ing instructions|Warning, backtrace signal handler|\*\*\* |\s")
ENTRY_POINTS = ("SE_InitPlugin", "TF_InitKernel", "TF_InitGraph", "TF_InitGraphPlugin",
                "TF_InitProfiler")
# A line that tfplug logs in a C function, with the code if it is of a failure.
_LOGGED = re.compile(r"\btfplug: (\w+): (?:([A-Z_]+): )?(.+)")
MACHINES = {"x86_64": 62, "aarch64": 183}  # e_machine of the ELF header
_DAMAGED = "Its file was not copied whole, or was altered: install its package again."
_COPY = "Copy it again, whole, or build it anew."
_THIS_MACHINE = "Install the plug-in's wheel for this machine."
_BUILD = "Build it for this machine, or name the library that the build wrote."
_NAME_LIBRARY = "name the library that the build writes, such as build/libmy_device.so."
# What begins with these bytes, or has a name that ends so, and is no shared library.
_BEGINNINGS = {b"\x7fELF": "an object file or a program",
               b"!<arch>\n": "a static library (an archive of object files)",
               b"PK\3\4": "a wheel or another zip file"}
_SOURCES = (".c", ".cc", ".cpp", ".cu", ".cxx", ".h", ".hpp")


def machine_of(header):
    """Returns the name of the processor that an ELF file's first bytes state."""
    number = int.from_bytes(header[18:20], "little")
    return next((name for name, each in MACHINES.items() if each == number),
                f"machine {number}")


def remedy_for(message):
    return next((remedy for text, remedy in _REMEDIES.items() if text in message), "")


# ---- The file --------------------------------------------------------------------

def _other_kind(path, header):
    """Returns what a file that is no shared library is, with the remedy for whoever named
    it."""
    if path.endswith(_SOURCES):
        return "is source code, not a shared library", f"Build it, and {_NAME_LIBRARY}"
    kind = next((kind for begin, kind in _BEGINNINGS.items() if header.startswith(begin)), "")
    if "zip" in kind:
        return f"is {kind}, not a shared library", (
            "Install the wheel (pip install), and run tfplug doctor without a name; or "
            f"{_NAME_LIBRARY}")
    return (f"is {kind}, not a shared library" if kind else
            "is not a shared library for Linux"), (
        f"Build the plug-in as a shared library (-shared), and {_NAME_LIBRARY}")


def file_problem(path, is_installed=True):
    """Returns why the loader cannot map this file, and the remedy, or "" twice. TensorFlow
    finds a plug-in that is installed; somebody has named another one."""
    if not os.path.isfile(path):
        return "", ""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        header = file.read(64)
        # e_type: 1 is an object file, 2 a program. An empty file is truncated.
        if header and header[:4] != b"\x7fELF" or header[16:18] in (b"\1\0", b"\2\0"):
            problem, remedy = _other_kind(str(path), header)
            return problem, ("Remove it, or install its package again: TensorFlow loads "
                             "every file named .so here.") if is_installed else remedy
        damaged = _DAMAGED if is_installed else _COPY
        other_machine = _THIS_MACHINE if is_installed else _BUILD
        if len(header) < 64:
            return f"is truncated: it has {size} bytes", damaged
        if header[4:6] != b"\2\1":
            return "is not for a 64-bit little-endian machine", other_machine
        if os.uname().machine in (set(MACHINES) - {machine_of(header)}):
            return (f"is for {machine_of(header)}, and this machine is "
                    f"{os.uname().machine}", other_machine)
        # Where the program and section headers, and the segments, end.
        program, sections = struct.unpack_from("<QQ", header, 32)
        entry, count, section_size, section_count = struct.unpack_from("<4H", header, 54)
        ends = [sections + section_size * section_count, program + entry * count]
        file.seek(program)
        table = file.read(entry * count)
        if entry == 56 and len(table) == entry * count:
            for at in range(0, len(table), entry):
                offset, = struct.unpack_from("<Q", table, at + 8)
                length, = struct.unpack_from("<Q", table, at + 32)
                ends.append(offset + length)
    if size < max(ends):
        return f"is truncated: it has {size} bytes of {max(ends)} or more", damaged
    return "", ""


# ---- The log of a process that failed ----------------------------------------------

def logged(log, *places):
    """Returns what a plug-in that is made with tfplug wrote itself, of these C functions
    or of all: (level, text, remedy) triples. A failure in an entry point is an error, unless
    it is of TensorFlow, which lacks something (UNIMPLEMENTED)."""
    found = []
    for place, code, text in dict.fromkeys(_LOGGED.findall(log)):
        if places and place not in places:
            continue
        # The last clause of tfplug's messages says what to do.
        fact, _, advice = text.rpartition("; ")
        is_error = code not in ("", "UNIMPLEMENTED") and place in ENTRY_POINTS
        found.append(("error" if is_error else "warning",
                      f"{place}: {fact or text}", remedy_for(text) or (
                          sentence(advice) if fact else
                          'See the page "Error messages" of tfplug\'s documentation.')))
    return found


def sentence(clause):
    """Returns a clause as a sentence, in which a name of a file or in code keeps its case."""
    is_name = re.match(r"\S*(/|::|_)", clause)
    return (clause if is_name else clause[:1].upper() + clause[1:]).rstrip(".") + "."


def what_happened(status, log, libraries):
    """Returns one line about a child that ended with this status: the signal or the
    exception, the cause, and the functions of the plug-ins in which it was."""
    raised = re.search(r"^\*\*\* Received signal (\d+)", log, re.MULTILINE)
    if raised or status < 0:  # TensorFlow's handler aborts after any signal.
        number = int(raised[1]) if raised else -status
        return " ".join(filter(None, (
            f"{signal.Signals(number).name}." if _cause(log) else
            signal.Signals(number).name, _cause(log), _where(log, libraries))))
    lines = [line for line in log.splitlines() if line.strip() and
             not _REPORT.match(line)]
    if "Traceback (most recent call last):" in log and lines:
        return lines[-1].strip()
    return " ".join([f"it ended the process with status {status}.", *lines[-1:]])


def _cause(log):
    lines = [line.strip() for line in log.splitlines()]
    return next((line for cause in _CAUSES for line in lines if cause in line), "")


def _where(log, libraries):
    """Returns the innermost functions in the plug-ins, from the stack that TensorFlow's
    signal handler wrote."""
    files = {os.path.basename(each): each for each in libraries}
    frames = []
    for path, symbol, offset in re.findall(
            r"^(/[^(\n]*)\(([^+)\n]*)\+0x([0-9a-f]+)\)\[0x", log, re.MULTILINE):
        if os.path.basename(path) in files:
            frames.append((path, symbol, offset))
    if not frames:
        # Another library crashed, or the plug-in's code was not on the stack.
        inner = re.search(r"^\s+File \".*", log, re.MULTILINE)
        return f"Python was at{inner[0].replace('  File', '')}" if inner else ""
    path = frames[0][0]
    names = [_demangled(symbol) if symbol else _function_at(path, offset)
             for path, symbol, offset in frames]
    names = list(collections.OrderedDict.fromkeys(map(_short, names)))[:6]
    return f"in {', called by '.join(names)} ({os.path.basename(path)})"


def _short(name):
    """Returns a function's name with an ellipsis for template arguments and for long
    lists of parameters."""
    for _ in range(name.count("<")):  # the innermost ones first
        name = re.sub(r"(?<!operator)<[^<>]*>", "…", name)
    return re.sub(r"\([^()]{41,}\)", "(…)", re.sub("…+", "<…>", name))


def _demangled(symbol):
    try:
        demangle = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    except OSError:
        return symbol
    demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    text = demangle(symbol.encode(), None, None, ctypes.byref(status))
    return ctypes.string_at(text).decode(errors="replace") if text else symbol


def _function_at(path, offset):
    """Returns the function at an offset that has no exported symbol."""
    if shutil.which("addr2line"):
        done = subprocess.run(
            # The address is that after the call.
            ["addr2line", "-Cfe", path, f"0x{int(offset, 16) - 1:x}"], check=False,
            text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        name, *place = done.stdout.splitlines() or ["??"]
        if name != "??":
            line = re.search(r"[^/?:]+:\d+", place[0]) if place else None
            return f"{name} at {line[0]}" if line else name
    return f"the code at +0x{offset}"
