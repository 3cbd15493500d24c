# SPDX-License-Identifier: Apache-2.0
"""Tests tfplug run with a plug-in for the device type SIM.

  run_graph_test.py PROJECT PLUGIN.so
"""

import contextlib
import io
import os
import pathlib
import sys
import tempfile
import types
import unittest

PROJECT, PLUGIN = pathlib.Path(sys.argv[1]), sys.argv[2]
sys.path.insert(0, str(PROJECT / "packaging/python"))
import run_graph  # noqa: E402

GRAPH = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "w" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT
    tensor_shape { dim { size: 2 } dim { size: 2 } } float_val: [1, 2, 3, 4] } } } }
node { name: "axes" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32
    tensor_shape { dim { size: 1 } } int_val: 1 } } } }
node { name: "y" op: "MatMul" input: "x" input: "w"
  attr { key: "T" value { type: DT_FLOAT } } }
node { name: "b" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT
    tensor_shape { dim { size: 2 } } float_val: [0, 0] } } } }
node { name: "biased" op: "BiasAdd" input: "y" input: "b"
  attr { key: "T" value { type: DT_FLOAT } } }
node { name: "z" op: "Relu" input: "biased" input: "^axes"
  attr { key: "T" value { type: DT_FLOAT } } }
node { name: "sum" op: "Sum" input: "z" input: "axes"
  attr { key: "T" value { type: DT_FLOAT } } }
"""


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "graph.pbtxt").write_text(GRAPH)

    def run_graph(self, **settings):
        """Returns the exit status, the output and the errors of Python's part."""
        options = dict(graph=self.folder / "graph.pbtxt", plugin=[PLUGIN], feed=[],
                       fetch=["z"], device="SIM:0", optimize="", release="2.21",
                       threads=4, seed=1, jitter=0, guards=False, save=None, places=False)
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            status = run_graph.run(types.SimpleNamespace(**{**options, **settings}))
        return status, out.getvalue(), errors.getvalue()

    def test_values(self):
        status, out, _ = self.run_graph(feed=["x=[[1,-2],[3,4]]"], fetch=["z", "sum"],
                                        places=True)
        self.assertEqual(status, 0)
        self.assertIn("z: float[2,2]: 0 0 15 22\nsum: float[2]: 0 37\n", out)
        self.assertIn("y (MatMul): SIM:0\n", out)
        self.assertIn("axes (Const): host\n", out)

    def test_the_optimizer_keeps_values_and_files_are_read_back(self):
        status, out, _ = self.run_graph(feed=["x=[[1,-2],[3,4]]"], optimize="SIM",
                                        save=self.folder)
        self.assertEqual((status, out), (0, "z: float[2,2]: 0 0 15 22\n"))
        status, out, _ = self.run_graph(feed=["x=[[1,-2],[3,4]]"], optimize="SIM",
                                        places=True)
        self.assertIn("the optimizer for SIM changed the graph\n", out)
        status, out, _ = self.run_graph(feed=[f"x={self.folder}/z.npy"], release="2.12")
        self.assertEqual((status, out), (0, "z: float[2,2]: 0 0 81 118\n"))
        status, out, _ = self.run_graph(feed=["y=half:[1,2]"], fetch=["y"])
        self.assertEqual((status, out), (0, "y: half[2]: 1 2\n"))

    def test_another_tensorflow(self):
        for release in ("2.12", "2.22"):
            status, out, _ = self.run_graph(feed=["x=[[1,-2],[3,4]]"], optimize="SIM",
                                            release=release, jitter=7, guards=True)
            self.assertEqual((status, out), (0, "z: float[2,2]: 0 0 15 22\n"))
        with tempfile.TemporaryFile("w+") as program_errors:
            original = os.dup(2)
            os.dup2(program_errors.fileno(), 2)
            try:
                status, _, _ = self.run_graph(feed=["x=[[1,-2],[3,4]]"], release="2.10")
            finally:
                os.dup2(original, 2)
                os.close(original)
            program_errors.seek(0)
            text = program_errors.read()
        self.assertEqual(status, 1)
        self.assertIn("TF_OpKernelConstruction_GetNodeDef", text)

    def test_mistakes(self):
        self.assertEqual(self.run_graph()[0], 1)
        for feed, error in (
                ("x=[[1,2],[3]]", "the lists differ in length"),
                ("x", "write NAME=VALUE"),
                ("x=text:[1]", "'text' is none of float, double"),
                ("x=nothing.npy", "No such file"),
                (f"x={self.folder}/graph.npy", "is not a .npy file")):
            (self.folder / "graph.npy").write_text(GRAPH)
            status, _, errors = self.run_graph(feed=[feed])
            self.assertEqual(status, 2)
            self.assertIn(error, errors)
        status, _, errors = self.run_graph(plugin=["nothing.so"])
        self.assertEqual((status, errors), (2, "tfplug run: there is no file nothing.so\n"))
        (self.folder / "graph.pbtxt").write_text("node { nome: 'x' }")
        status, _, errors = self.run_graph()
        self.assertEqual(status, 2)
        self.assertIn('no field named "nome"', errors)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
