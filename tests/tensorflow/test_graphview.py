# SPDX-License-Identifier: Apache-2.0
"""tools/graphview, on the graphs in tests/graphview/ and a real SavedModel."""

import pathlib
import re
import subprocess
import sys

import harness

DATA = harness.ROOT / "tests/graphview"
BEFORE, AFTER = DATA / "before.pbtxt", DATA / "after.pbtxt"


def graphview(*arguments):
    """(exit status, what it printed) of tools/graphview, in this Python."""
    run = subprocess.run(
        [sys.executable, str(harness.ROOT / "tools/graphview_main.py"),
         *map(str, arguments)], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False, encoding="utf-8")
    return run.returncode, run.stdout


def test_differences_in_words():
    code, output = graphview(BEFORE, AFTER)
    assert code == 0
    assert output == (DATA / "diff.txt").read_text(encoding="utf-8")


def test_what_only_has_another_name_is_renamed(tmp_path):
    before = DATA / "renamed_before.pbtxt"
    after = DATA / "renamed_after.pbtxt"
    code, output = graphview(before, after)
    assert code == 0
    assert output == (DATA / "renamed.txt").read_text(encoding="utf-8")
    out = tmp_path / "out.dot"
    assert graphview(before, after, "--out", out)[0] == 0
    picture = out.read_text(encoding="utf-8")
    for words in ("4 renamed", "<S>old/add</S>", "#dbeaff"):
        assert words in picture, words
    # An edge from one renamed node to another has not changed.
    assert re.search(r'n0_\d -> n0_\d \[color="#8c959f", style=solid', picture)


def test_the_other_way_round():
    _, output = graphview(AFTER, BEFORE)
    assert "graph: 17 nodes, 4 added, 1 removed, 2 changed\n" in output
    assert "    op: _FusedConv2D -> Relu\n" in output
    assert "    control: removed ^log\n" in output


def test_no_differences():
    assert graphview(AFTER, AFTER) == (0, "no differences\n")


def test_one_graph_in_words():
    assert graphview(AFTER) == (0, "graph: 14 nodes\nupdate: 4 nodes\n")


def test_picture(tmp_path):
    out = tmp_path / "picture.svg"
    code, output = graphview(BEFORE, AFTER, "--out", out)
    assert (code, output) == (0, "")
    picture = out.read_text(encoding="utf-8")
    for words in ("before.pbtxt → after.pbtxt", "function update",
                  "_FusedMatMul", "dense/MatMul", "3 added", "4 removed",
                  "3 changed", "float [?,224,224,3]"):
        assert words in picture, words
    # A node of each kind in its colour, and the line of an edge that is gone.
    for color in ("#d8f5e0", "#ffe6e3", "#fff3c9"):
        assert picture.count(f'fill="{color}"') >= 2, color
    assert 'stroke="#cf222e"' in picture
    for suffix, magic in ((".png", b"\x89PNG"), (".pdf", b"%PDF")):
        code, output = graphview(BEFORE, AFTER, "--diff", "--out",
                                 tmp_path / f"picture{suffix}")
        assert code == 0 and "_FusedConv2D" in output
        assert (tmp_path / f"picture{suffix}").read_bytes()[:4] == magic


def chain(path, length, op_of_the_middle):
    """A GraphDef of nodes one behind the other."""
    nodes = [f'node {{ name: "n{i}" op: '
             f'"{op_of_the_middle if i == length // 2 else "Relu"}" '
             + (f'input: "n{i - 1}" ' if i else "") + "}"
             for i in range(length)]
    path.write_text("\n".join(nodes), encoding="utf-8")
    return path


def test_of_a_big_graph_only_what_is_near(tmp_path):
    before = chain(tmp_path / "before.pbtxt", 1000, "Relu")
    after = chain(tmp_path / "after.pbtxt", 1000, "Tanh")
    out = tmp_path / "out.dot"
    assert graphview(before, after, "--out", out)[0] == 0
    text = out.read_text(encoding="utf-8")
    shown = [i for i in range(1000) if f'tooltip="n{i}"' in text]
    assert shown == [499, 500, 501]
    assert text.count("… 1 more") == 2
    assert graphview(before, after, "--out", out, "--distance", "3")[0] == 0
    assert out.read_text(encoding="utf-8").count("tooltip=") == 7
    assert graphview(before, "--out", out, "--around", "^n7$")[0] == 0
    assert out.read_text(encoding="utf-8").count("tooltip=") == 3
    code, output = graphview(before, "--out", out)
    assert code == 2
    assert "1000 nodes are too many" in output and "--around" in output


def test_what_is_no_graph(tmp_path):
    wrong = tmp_path / "wrong.pb"
    wrong.write_bytes(b"\xFF\xFF")
    for path, words in ((wrong, "neither a serialised GraphDef nor"),
                        (tmp_path / "none.pb", "No such file"),
                        (pathlib.Path(__file__), "neither")):
        code, output = graphview(path)
        assert code == 2 and words in output, output
    wrong = tmp_path / "wrong.pbtxt"
    wrong.write_text("node { nome: 'x' }", encoding="utf-8")
    assert 'no field named "nome"' in graphview(wrong)[1]
    code, output = graphview(BEFORE, "--out", tmp_path / "picture.bmp")
    assert code == 2 and ".svg" in output


def save_model(folder):
    import tensorflow as tf

    class Model(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
        def half(self, x):
            return x / 2

    tf.saved_model.save(Model(), folder)


def test_saved_model(tmp_path):
    assert harness.run(save_model, str(tmp_path / "model"), plugin=False).ok
    code, output = graphview(tmp_path / "model", "--out", tmp_path / "m.svg",
                             "--diff")
    assert code == 0 and "__inference_half" in output, output
    picture = (tmp_path / "m.svg").read_text(encoding="utf-8")
    assert "RealDiv" in picture and ">model<" in picture
