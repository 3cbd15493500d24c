# SPDX-License-Identifier: Apache-2.0
"""Uses tfplug as other projects do: as a Meson subproject, installed, and as a Python
package; with Meson, pkg-config and CMake.

  consumer_test.py PROJECT_ROOT WORK_DIR [ConsumerTest | PythonPackageTest]
      (environment: CXX, PKG_CONFIG_PATH for Abseil; the second needs meson-python, and
      the build two directories above WORK_DIR, for tfplug's compiled library)
"""

import hashlib
import importlib.util
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import unittest

ROOT, WORK = (pathlib.Path(p) for p in sys.argv[1:3])
BUILD = WORK.parents[1]
del sys.argv[1:3]
MESON = os.environ.get("MESON", "meson")
SOURCE = ROOT / "tests/consumer"
WORK.mkdir(parents=True, exist_ok=True)


def run(*command, **variables):
    words = [str(word) for word in command]
    result = subprocess.run(
        words,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if result.returncode != 0:
        lines = result.stdout.splitlines()
        raise AssertionError("\n".join([shlex.join(words), *lines[-40:]]))
    return result.stdout


def check_symbols(plugin):
    run(sys.executable, ROOT / "tests/symbols_test.py", plugin,
        "--expect", "SE_InitPlugin")  # fmt: skip


def abseil():
    """Returns the prefix of the Abseil that pkg-config finds."""
    return run("pkg-config", "--variable=prefix", "absl_status").strip()


def check_pkg_config(directory, work):
    path = f"{directory}:{os.environ.get('PKG_CONFIG_PATH', '')}"
    flags = run("pkg-config", "--cflags", "--libs", "tfplug-plugin",
                PKG_CONFIG_PATH=path)  # fmt: skip
    plugin = work / "libminimal_device.so"
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    run(*compiler, "-std=c++17", "-O2", "-fPIC", "-shared", "-o", plugin,
        SOURCE / "minimal_device.cc", *shlex.split(flags))  # fmt: skip
    check_symbols(plugin)
    return plugin


def check_flags(tfplug):
    """The flags that tfplug prints are pkg-config's, which need not be there."""
    path = f"{tfplug('--pkgconfigdir')}:{tfplug('abseil', '--pkgconfigdir')}"
    for options in (["--cflags"], ["--libs"], ["--cflags", "--libs"]):
        found = tfplug(*options, PATH="/nowhere").split()
        expected = run("pkg-config", *options, "tfplug-plugin", PKG_CONFIG_PATH=path).split()
        assert set(found) == set(map(os.path.normpath, expected)), (found, expected)


def check_sbom(tfplug, built, plugin):
    run("strip", "-o", plugin, built)
    document = json.loads(tfplug("sbom", plugin, "--version", "1.2"))
    (about, *contained) = document["packages"]
    digest = hashlib.sha256(plugin.read_bytes()).hexdigest()
    assert about["checksums"][0]["checksumValue"] == digest, about
    assert about["versionInfo"] == "1.2", about
    version = run("pkg-config", "--modversion", "absl_status").strip()
    found = {each["name"]: each["versionInfo"] for each in contained}
    assert found.keys() == {"tfplug", "abseil-cpp"}, found
    assert found["tfplug"] == tfplug("--version"), found
    assert found["abseil-cpp"].startswith(version), (found, version)
    kinds = [each["relationshipType"] for each in document["relationships"]]
    assert kinds == ["DESCRIBES", "CONTAINS", "CONTAINS"], kinds


def check_cmake(where, build, *arguments, is_new=True, **variables):
    if is_new:
        shutil.rmtree(build, ignore_errors=True)
    run("cmake", "-G", "Ninja", "-S", SOURCE, "-B", build, where, *arguments,
        "-DCMAKE_BUILD_TYPE=Release", **variables)  # fmt: skip
    run("cmake", "--build", build)
    run("ctest", "--test-dir", build)
    check_symbols(build / "libminimal_device.so")


def write_documented(language, name, project):
    """Writes the project in docs/guide/building.md whose build file is in `language`."""
    page = (ROOT / "docs/guide/building.md").read_text(encoding="utf-8")
    (text,) = re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    shutil.rmtree(project, ignore_errors=True)
    project.mkdir()
    (project / name).write_text(text)
    shutil.copy(SOURCE / "minimal_device.cc", project / "my_device.cc")


def extend(project, build_file, *lists):
    """Adds the kernel and the test of the project's README, as that says."""
    readme = (project / "README.md").read_text()
    kernel, test = re.findall(r"^```cpp\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    (project / "src/relu.cc").write_text(kernel)
    (project / "tests/relu.cc").write_text(test)
    text = (project / build_file).read_text()
    for old, new in lists:
        assert text.count(old) == 1, f"{build_file} has not one {old}"
        text = text.replace(old, new)
    (project / build_file).write_text(text)
    assert f"`{lists[1][1]}`" in readme, f"the README does not name {lists[1][1]}"


def check_new_projects(tfplug, work):
    """Writes projects with `tfplug new`; builds the tests of one and runs them."""
    file = work / "file"
    file.write_text("")
    for name, *more in (
            ("Upper",), ("1st",), ("npu2",), ("my-device",), ("my_cpu",), ("gpu",),
            ("class",), ("lambda",), ("template",), ("time",), ("test",), ("tensorflow",),
            ("keras",), ("pip",), ("a" * 300,), ("driver",),
            ("backend", "--from", "cuda_like"), ("blas", "--from", "cuda_like"),
            ("acme", "--directory", file), ("acme", "--directory", file / "below"),
            ("acme", "--directory", "/proc/acme"),
            ("acme", "--build", "bazel", "--from", "vulkan")):
        directory = work / f"refused_{name[:9]}"
        try:
            tfplug("new", name, *([] if "--directory" in more else
                                  ["--directory", directory]), *more)
        except AssertionError as error:
            assert not directory.exists()
            assert f"tfplug new {name[:60]}: " in str(error), error
            assert "Traceback" not in str(error), error
        else:
            raise AssertionError(f"tfplug new {name} succeeded")

    meson, cmake = work / "with_meson", work / "with_cmake"
    tfplug("new", "acme", "--directory", meson)
    tfplug("new", "acme", "--build", "cmake", "--directory", cmake)
    for project in (meson, cmake):
        for path in project.rglob("*.*"):
            assert not path.is_file() or "my_device" not in path.read_text().lower()
        script = (project / "build.sh").read_text()
        tests = script.index("test ", script.index("pip wheel -v"))  # -v: with progress
        assert tests < script.index("pip install --no-deps"), "it installs untested"
        container = json.loads((project / ".devcontainer/devcontainer.json").read_text())
        stages = re.findall(r"AS (\w+)$", (project / "Dockerfile").read_text(), re.M)
        assert container["build"]["target"] in stages, stages
        assert "TODO" not in (project / ".github/workflows/build.yml").read_text()
    path = f"{tfplug('--pkgconfigdir')}:{os.environ.get('PKG_CONFIG_PATH', '')}"
    extend(meson, "meson.build", ("device = files(", "device = files('src/relu.cc', "),
           ("['conformance']", "['conformance', 'relu']"))
    extend(cmake, "CMakeLists.txt", ("set(DEVICE ", "set(DEVICE src/relu.cc "),
           ("foreach(name conformance)", "foreach(name conformance relu)"))
    run(MESON, "setup", meson / "build", meson, PKG_CONFIG_PATH=path)
    log = run(MESON, "compile", "-C", meson / "build", "conformance", "relu")
    assert "warning:" not in log, log
    run(meson / "build/conformance")
    run(meson / "build/relu")
    check_cost(meson / "build/compile_commands.json")
    run("cmake", "-G", "Ninja", "-S", cmake, "-B", cmake / "build",
        f"-Dtfplug_DIR={tfplug('--cmakedir')}",
        f"-DCMAKE_PREFIX_PATH={abseil()}")  # fmt: skip
    assert "\nrelu: " in run("ninja", "-C", cmake / "build", "-t", "targets")


def check_other_processor(tfplug, plugin, work):
    """Wheels are tagged by the library's processor, and each has its own Abseil."""
    machine = os.uname().machine
    other = "aarch64" if machine == "x86_64" else "x86_64"
    library = bytearray(plugin.read_bytes())
    library[18:20] = {"x86_64": 62, "aarch64": 183}[other].to_bytes(2, "little")
    copy = work / "libother.so"
    copy.write_bytes(library)
    if importlib.util.find_spec("wheel") and not importlib.util.find_spec("auditwheel"):
        command = ("--name", "some", "--version", "1.0", "--directory", work / "dist")
        wheels = []
        for path, processor in ((plugin, machine), (copy, other)):
            out = tfplug("wheel", path, *command)
            assert out.endswith(f"/some-1.0-py3-none-linux_{processor}.whl"), out
            wheels.append(pathlib.Path(out.splitlines()[-1]))
        # pip would install two of one version for one processor.
        old = wheels[1].with_name(wheels[1].name.replace("linux", "manylinux_2_28"))
        newer = wheels[1].with_name(wheels[1].name.replace("1.0", "1.0.1"))
        for path in (old, newer):
            path.write_text("")
        out = tfplug("wheel", copy, *command)
        for line in (f"removed {old}, ", f"{newer} is of another version: "):
            assert f"\ntfplug wheel: {line}" in "\n" + out, out
        assert set(wheels[0].parent.iterdir()) == {*wheels, newer}, out
        try:
            tfplug("wheel", plugin, *command, "--library", copy)
        except AssertionError as error:
            assert f"is for {other}, and" in str(error), error
        else:
            raise AssertionError("a wheel has libraries for two processors")
    compiler = work / "other-g++"
    compiler.write_text(f"#!/bin/sh\necho {other}-linux-gnu\n")
    compiler.chmod(0o755)
    found = run("env", f"CXX={compiler}", sys.executable,
                ROOT / "packaging/python/abseil.py", "--cached").strip()
    assert f"{other}-abseil-" in found or not found, found


def check_cost(commands):
    """Checks what makes a first build cheap: the library is in two files, of which g++
    compiles the host's loops with -O1 and the rest with -Og, the author's have at most
    -O2, g++ seldom collects garbage, and the conformance test lacks the functions for
    kernels and passes."""
    entries = json.loads(commands.read_text())
    levels = {entry["output"]: re.findall(r" -O(\w) ", entry["command"])[-1]
              for entry in entries}
    for command in (entry["command"] for entry in entries):
        assert ("clang" in command.split(" -")[0]
                or " --param=ggc-min-heapsize=" in command), command
    library = [levels.pop(output) for output in list(levels) if "tfplug_O" in output]
    assert sorted(library) == ["1", "g"], levels
    assert levels and max(levels.values()) <= "2", levels
    (test,) = (output for output in levels if "conformance" in output)
    headers = run("ninja", "-C", commands.parent, "-t", "deps", test)
    assert "/fake_device.h" in headers, headers
    assert "/graph_functions.h" not in headers, headers


def check_recipes(work):
    """Installs the port of vcpkg, and has a consumer find it. The recipes of others have
    the same flags."""
    prefix = work / "vcpkg"
    for directory in (prefix, work / "vcpkg-build"):
        shutil.rmtree(directory, ignore_errors=True)
    port = ROOT / "packaging/vcpkg"
    run("cmake", f"-DPORT={port}", f"-DPREFIX={prefix}", f"-DMESON={MESON}", "-P",
        SOURCE / "vcpkg.cmake")  # fmt: skip
    check_cmake(f"-DCMAKE_PREFIX_PATH={prefix};{abseil()}", work / "with_vcpkg")
    flags = run("pkg-config", "--cflags", "--libs-only-other", "tfplug-plugin",
                PKG_CONFIG_PATH=f"{prefix}/share/pkgconfig:"
                f"{os.environ.get('PKG_CONFIG_PATH', '')}")  # fmt: skip
    flags = {flag.split("=")[0] for flag in re.findall(r"-[fW]\S+", flags)}
    assert "-Wl,--gc-sections" in flags and "-fvisibility" in flags, flags
    # Bazel's archive of the library would lose TF_InitKernel.
    for recipe, left_out in (("packaging/conan/conanfile.py", set()),
                             ("tfplug.bzl", {"-Wl,--exclude-libs,ALL"})):
        text = (ROOT / recipe).read_text()
        missing = {flag for flag in flags if flag not in text} - left_out
        assert not missing, f"{recipe} lacks {missing}"
    # What g++ gets for tfplug's op kernels and passes.
    recipes = {recipe: set(re.findall(r"(?<![-\w])-f(?:dse|if-\w+|inline-\w[-\w]*|"
                                      r"ssa-\w+|tree-\w[-\w]*)(?![-\w])",
                                      (ROOT / recipe).read_text()))
               for recipe in ("meson.build", "tfplug.bzl", "packaging/tfplugConfig.cmake.in",
                              "packaging/template/meson/meson.build")}
    assert all(each == recipes["tfplug.bzl"] and len(each) == 10
               for each in recipes.values()), recipes
    version = re.search(r"\n  version: '([^']+)'", (ROOT / "meson.build").read_text())[1]
    assert json.loads((port / "vcpkg.json").read_text())["version"] == version
    assert f'version = "{version}"' in (ROOT / "MODULE.bazel").read_text()
    needs = f'bazel_dep(name = "tfplug", version = "{version}")'
    assert needs in (ROOT / "packaging/template/bazel/MODULE.bazel").read_text()


def check_bazel(tfplug, work):
    """Builds the project that docs/guide/building.md has for Bazel, from the Python package
    and the prebuilt Abseil, without a network."""
    project, rules = work / "with_bazel", pathlib.Path(tfplug("--bazelrules"))
    shutil.rmtree(project, ignore_errors=True)
    page = (ROOT / "docs/guide/building.md").read_text(encoding="utf-8")
    build = re.findall(r"^```starlark\n(load.*?)^```", page, re.MULTILINE | re.DOTALL)
    options = re.findall(r"^    bazel (build .*)$", page, re.MULTILINE)
    project.mkdir()
    (project / "BUILD.bazel").write_text(
        build[0] + 'tfplug_test(name = "false_test", srcs = ["false_test.cc"])\n')
    (project / "false_test.cc").write_text(
        "#include <cassert>\nint main() { assert(false); }\n")
    (project / "WORKSPACE").write_text("")
    for name, text in zip(("device.cc", "kernels.cc"), re.findall(
            r"^```cpp\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)):
        (project / name).write_text(text)
    test = (ROOT / "packaging/template/common/README.md").read_text()
    (project / "relu_test.cc").write_text(
        re.findall(r"^```cpp\n(.*?)^```", test, re.M | re.S)[1])
    command = options[0].replace("$(tfplug --bazeldir)", tfplug("--bazeldir")).replace(
        "$(tfplug abseil)", abseil()).split()

    def build(directory, *targets):
        run("env", "-C", directory, "bazel", "--batch", f"--output_user_root={work}/bazel",
            *command[:-1], *targets, "--spawn_strategy=local",
            *(f"--override_repository={each.name}={each}" for each in rules.iterdir()))

    build(project, command[-1], "//:relu_test", "//:false_test")
    plugin = project / "bazel-bin/libmy_device.so"
    run(sys.executable, ROOT / "tests/symbols_test.py", plugin, "--expect", "SE_InitPlugin",
        "--expect", "TF_InitKernel")  # fmt: skip
    run(project / "bazel-bin/relu_test")
    assert subprocess.run(project / "bazel-bin/false_test", check=False).returncode != 0

    made = work / "made_with_bazel"
    shutil.rmtree(made, ignore_errors=True)
    tfplug("new", "acme", "--build", "bazel", "--directory", made)
    for path in made.rglob("*.*"):
        assert not path.is_file() or "my_device" not in path.read_text().lower()
    build(made, "//:acme", "//:conformance")
    run(sys.executable, ROOT / "tests/symbols_test.py", made / "bazel-bin/libacme.so",
        "--expect", "SE_InitPlugin", "--expect", "TF_InitKernel", "--expect", "TF_InitGraph",
        "--expect", "TF_InitGraphPlugin", "--expect", "TF_InitProfiler")
    run(made / "bazel-bin/conformance")


def check_renamed(tfplug, work):
    """The command in docs/guide/first_device.md makes the project of another name."""
    page = (ROOT / "docs/guide/first_device.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^    (grep -rl.*)$", page, re.MULTILINE)
    texts = []
    for name in ("my_device", "my_chip"):
        project = work / f"renamed_{name}"
        shutil.rmtree(project, ignore_errors=True)
        tfplug("new", name, "--directory", project)
        if name == "my_device":
            run("env", "-C", project, "bash", "-c", command)
        texts.append({path.relative_to(project): path.read_text()
                      for path in project.rglob("*") if path.is_file()})
    assert texts[0] == texts[1], "a renamed project differs from a new one"


def check_copied_examples(tfplug, work):
    """Builds copies of the examples with tfplug's library, compiled: whole plug-ins, and
    devices of which the tests run where there is a driver."""
    path = f"{tfplug('--pkgconfigdir')}:{tfplug('abseil', '--pkgconfigdir')}"
    compiler = {"CXX": os.environ.get("CXX", "c++")}
    if shutil.which("clang++"):  # in place of g++, behind a compiler cache
        compiler["CXX"] = " ".join([*shlex.split(compiler["CXX"])[:-1], "clang++"])
    headers = {"opencl": "CL/cl.h", "vulkan": "glslang/Public/resource_limits_c.h"}
    for origin in ("vulkan", "cuda_like", "opencl"):
        if not pathlib.Path("/usr/include", headers.get(origin, "")).exists():
            continue
        project = work / f"from_{origin}"
        tfplug("new", "acme", "--from", origin, "--directory", project)
        left = [path.name for path in (project / "src").rglob("*.h")
                if re.search(rf"\b{origin.upper()}_\w*H_\b", path.read_text())]
        assert left == [], f"include guards of the example are left: {left}"
        run(MESON, "setup", "-Doptimization=0", project / "build", project,
            PKG_CONFIG_PATH=path, **compiler)  # fmt: skip
        run(MESON, "compile", "-C", project / "build", "conformance")
        run(MESON, "test", "-C", project / "build", "--no-rebuild",
            TFPLUG_CACHE_DIR=str(work))  # fmt: skip
        if origin == "vulkan":  # Links glslang.
            run(MESON, "compile", "-C", project / "build", "acme")
    run(MESON, "compile", "-C", project / "build")
    check_symbols(project / "build/libacme.so")


class ConsumerTest(unittest.TestCase):
    def test_subproject(self):
        project = WORK / "project"
        shutil.rmtree(project, ignore_errors=True)
        shutil.copytree(SOURCE, project)
        (project / "subprojects").mkdir(exist_ok=True)
        (project / "subprojects/tfplug").symlink_to(ROOT)
        build = project / "build"
        run(MESON, "setup", build, project)
        run(MESON, "test", "-C", build)
        check_symbols(build / "libminimal_device.so")
        own_tests = list((build / "subprojects/tfplug").glob("tests/*"))
        self.assertEqual(own_tests, [], "a subproject must not build our tests")
        documented = WORK / "documented_meson"
        write_documented("meson", "meson.build", documented)
        (documented / "subprojects").mkdir()
        (documented / "subprojects/tfplug").symlink_to(ROOT)
        run(MESON, "setup", documented / "build", documented)

    def test_installed(self):
        first, prefix, build = WORK / "first", WORK / "prefix", WORK / "install"
        for directory in (first, prefix, build):
            shutil.rmtree(directory, ignore_errors=True)
        run(MESON, "setup", build, ROOT, f"--prefix={first}", "--libdir=lib",
            "-Dtests=disabled", "-Dexamples=disabled")  # fmt: skip
        run(MESON, "install", "-C", build)
        first.rename(prefix)  # Nothing in it may depend on its place.
        check_recipes(WORK)
        check_pkg_config(prefix / "share/pkgconfig", WORK)
        check_cmake(f"-DCMAKE_PREFIX_PATH={prefix};{abseil()}", WORK / "cmake")
        documented = WORK / "documented_cmake"
        write_documented("cmake", "CMakeLists.txt", documented)
        run("cmake", "-G", "Ninja", "-S", documented, "-B", documented / "build",
            f"-DCMAKE_PREFIX_PATH={prefix};{abseil()}")  # fmt: skip

    def test_cmake_without_abseil_names_the_remedy(self):
        prefix = WORK / "headers"
        shutil.rmtree(prefix, ignore_errors=True)
        build = WORK / "headers_build"
        run(MESON, "setup", "--wipe" if build.exists() else "--reconfigure", build, ROOT,
            f"--prefix={prefix}", "-Dtests=disabled", "-Dexamples=disabled")  # fmt: skip
        run(MESON, "install", "-C", build)
        with self.assertRaisesRegex(AssertionError, r"(?s)tfplug abseil.*SOURCE_DIR"):
            check_cmake(f"-DCMAKE_PREFIX_PATH={prefix}", WORK / "no_abseil",
                        "-DTFPLUG_ABSEIL_URL=file:///nowhere.tar.gz",
                        "-DCMAKE_IGNORE_PREFIX_PATH=/usr",
                        XDG_CACHE_HOME=str(WORK))  # fmt: skip
        # The remedy works in the same build directory.
        check_cmake(f"-DCMAKE_PREFIX_PATH={prefix};{abseil()}", WORK / "no_abseil",
                    is_new=False)  # fmt: skip


class PythonPackageTest(unittest.TestCase):
    def test_python_package(self):
        wheels, site = WORK / "wheels", WORK / "site"
        shutil.rmtree(wheels, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
        for directory in (wheels, WORK / "wheels_again"):
            run(*pip, "wheel", "--no-deps", "--no-build-isolation", "--no-index",
                "-w", directory, ROOT, SOURCE_DATE_EPOCH="1700000000")  # fmt: skip
        (wheel,) = wheels.iterdir()
        self.assertEqual(wheel.read_bytes(),
                         (WORK / "wheels_again" / wheel.name).read_bytes(),
                         "two builds of the wheel differ")
        self.assertRegex(wheel.name, r"^tfplug-[0-9.]+-py3-none-any\.whl$")

        def install(wheel, site):
            """Returns a function that runs one of the programs in the wheel."""
            shutil.rmtree(site, ignore_errors=True)
            run(*pip, "install", "--no-deps", "--no-index", "--target", site, wheel)

            def tfplug(*arguments, program="tfplug", **variables):
                return run(site / "bin" / program, *arguments,
                           PYTHONPATH=str(site), **variables).strip()
            return tfplug

        tfplug = install(wheel, site)
        plugin = check_pkg_config(tfplug("--pkgconfigdir"), site)
        check_flags(tfplug)
        check_sbom(tfplug, plugin, site / "stripped.so")
        check_other_processor(tfplug, plugin, site)
        moved = WORK / "moved"
        shutil.rmtree(moved, ignore_errors=True)
        shutil.copytree(site / "tfplug", moved)
        again = check_pkg_config(moved / "share/pkgconfig", moved)
        self.assertEqual(plugin.read_bytes(), again.read_bytes(),
                         "a plug-in must not depend on the directory of the headers")
        check_cmake(f"-Dtfplug_DIR={tfplug('--cmakedir')}", site / "cmake",
                    f"-DCMAKE_PREFIX_PATH={abseil()}")  # fmt: skip
        self.assertIn(tfplug("--version"), wheel.name)
        header = pathlib.Path(tfplug("--includes")[2:]) / "tfplug/plugin.h"
        self.assertTrue(header.is_file())
        check_new_projects(tfplug, site)
        check_renamed(tfplug, site)
        compiled = WORK / "compiled"
        wheel_of_processor = run(sys.executable, ROOT / "tools/lib/compiled_wheel.py",
                                 wheel, BUILD, abseil()).strip()
        check_copied_examples(install(wheel_of_processor, compiled), compiled)
        if shutil.which("bazel"):
            check_bazel(tfplug, site)
        for command in (("sbom", "/nowhere.so"), ("sbom", WORK),
                        ("wheel", plugin, "--version", "1.0", "--directory", "/proc/x")):
            with self.assertRaisesRegex(AssertionError, rf"(?m)^tfplug {command[0]}: /.*: "
                                        r"(No such|Is a)"):
                tfplug(*command)
        for command in ("coverage", "op-sweep", "profile"):
            usage = tfplug(command, "--help").split("\n", 1)[0]
            self.assertIn(f"usage: tfplug {command} ", usage)
        self.assertEqual(tfplug("--list", program="tfplug-check"),
                         tfplug("check", "--list"))


if __name__ == "__main__":
    unittest.main()
