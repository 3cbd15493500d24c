# SPDX-License-Identifier: Apache-2.0
"""Measures distribution on this machine: see tools/distribute."""

import argparse
import sys

import cost
import faults
import matrix

COMMANDS = {"matrix": matrix, "cost": cost, "faults": faults}


def main():
    parser = argparse.ArgumentParser(prog="tools/distribute")
    parser.add_argument("--python", default=sys.executable)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, module in COMMANDS.items():
        command = commands.add_parser(name, help=module.__doc__.split("\n")[0])
        module.add_options(command)
        command.add_argument("--write", action="store_true",
                             help="also write the section of docs/measured/distribute.md")
    options = parser.parse_args()
    return 0 if COMMANDS[options.command].run(options) else 1


sys.exit(main())
