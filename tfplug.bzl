# SPDX-License-Identifier: Apache-2.0
"""Rules for TensorFlow plug-ins, with the flags of docs/guide/building.md."""

_COPTS = [
    "-std=c++17",
    "-fPIC",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    "-ffunction-sections",
    "-fdata-sections",
]

# With g++, these need 2 to 5 % more instructions for a launch than -O1, and compile in two
# thirds of its time.
GCC_SEPARATE_COPTS = [
    "-Og",
    "-finline-functions-called-once",
    "-finline-small-functions",
    "-fdse",
    "-fif-conversion",
    "-fif-conversion2",
    "-fssa-phiopt",
    "-ftree-bit-ccp",
    "-ftree-dse",
    "-ftree-pta",
    "-ftree-sra",
    "--param=ggc-min-heapsize=1000000",
]

def _separate_unit(name):
    """Writes a file that includes the parts of the library but the host's loops."""
    parts = Label("//:separate_parts")
    native.genrule(
        name = name,
        srcs = [parts],
        outs = [name + ".cc"],
        tags = ["manual"],
        cmd = "for f in $(locations %s); do echo \"#include \\\"tfplug/separate/$${f##*/}\\\"\"; done >$@" % parts,
    )

def _separate_library(plugin):
    """Returns the dependencies that contain what the plug-in compiles once. With
    --define=tfplug=compiled, the wheel of tfplug for the processor has it, compiled."""
    return select({
        str(Label("//:compiled")): [str(Label("@com_google_absl//:tfplug"))],
        "//conditions:default": [":" + plugin + "_tfplug", ":" + plugin + "_tfplug_host"],
    })

def tfplug_plugin(
        name,
        srcs,
        deps = [],
        copts = [],
        separate = False,
        separate_copts = ["-O1"],
        host_copts = ["-O1"],
        features = [],
        **kwargs):
    """Links libNAME.so, which TensorFlow loads. NAME is another name of the target.

    Args:
      name: the name of the library, without lib and .so.
      srcs: its sources and private headers.
      deps: libraries beside tfplug's. One with kernels of its own is a tfplug_library.
      copts: further options of the compiler.
      separate: whether op kernels and default passes are compiled once, as the target
        NAME_tfplug.
      separate_copts: its options. -O1 is as fast as -O2 for what prepares the work of a
        device; GCC_SEPARATE_COPTS compile sooner.
      host_copts: the options of the primitives that compute on the host, of which a
        device that uses them wants -O3.
      features: features of Bazel for the target.
      **kwargs: passed on to cc_binary.
    """
    tfplug = [Label("//:tfplug")]
    library = []
    if separate:
        copts = copts + ["-DTFPLUG_SEPARATE"]
        _separate_unit(name + "_tfplug_unit")
        for part, source, options in [
            ("_tfplug", name + "_tfplug_unit.cc", separate_copts),
            ("_tfplug_host", Label("//:separate_host"), host_copts),
        ]:
            native.cc_library(
                name = name + part,
                srcs = [source],
                copts = _COPTS + ["-DTFPLUG_SEPARATE"] + options,
                deps = tfplug,
                alwayslink = True,
                linkstatic = True,
                # Not of //..., which would compile them where nothing links them.
                tags = ["manual"],
            )
        library = _separate_library(name)
    native.alias(
        name = name,
        actual = "lib" + name + ".so",
        visibility = kwargs.get("visibility"),
    )
    native.cc_binary(
        name = "lib" + name + ".so",
        srcs = srcs,
        additional_linker_inputs = [Label("//:include/tfplug/plugin.map")],
        copts = _COPTS + copts,
        # For gold, Bazel passes --start-lib, which bfd does not know.
        features = ["-supports_start_end_lib"] + features,
        linkopts = [
            # Bazel prefers gold, which exports thread-local variables in spite of the
            # script, and lacks the last option.
            "-fuse-ld=bfd",
            "-Wl,--version-script=$(location " + str(Label("//:include/tfplug/plugin.map")) + ")",
            "-Wl,--gc-sections",
            "-Wl,--no-undefined",
            "-Wl,-z,nodynamic-undefined-weak",
        ],
        linkshared = True,
        linkstatic = True,
        deps = deps + library + tfplug,
        **kwargs
    )

def tfplug_library(
        name,
        srcs,
        hdrs = [],
        deps = [],
        copts = [],
        separate = False,
        **kwargs):
    """Compiles a library with kernels, passes or other registrations of a plug-in.

    Args:
      name: its name, for `deps` of a tfplug_plugin.
      srcs: its sources and private headers.
      hdrs: its headers.
      deps: libraries beside tfplug's.
      copts: further options of the compiler.
      separate: as that of the plug-in.
      **kwargs: passed on to cc_library.
    """
    native.cc_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        copts = _COPTS + (["-DTFPLUG_SEPARATE"] if separate else []) + copts,
        deps = deps + [Label("//:tfplug")],
        # Nothing names what registers itself: the linker would leave it out.
        alwayslink = True,
        linkstatic = True,
        **kwargs
    )

def tfplug_test(name, srcs, deps = [], copts = [], separate = None, **kwargs):
    """Builds a unit test of a plug-in, in which tfplug/testing.h replaces TensorFlow, and
    in which assert() is on.

    Args:
      name: its name.
      srcs: its sources, and those of the plug-in with its TFPLUG_REGISTER_DEVICE.
      deps: the plug-in's libraries, and a library for tests, such as GoogleTest.
      copts: further options of the compiler.
      separate: the plug-in with `separate`, whose library the test shares.
      **kwargs: passed on to cc_test.
    """
    library = []
    if separate:
        copts = copts + ["-DTFPLUG_SEPARATE"]
        library = _separate_library(separate)
    native.cc_test(
        name = name,
        srcs = srcs,
        # The options -c opt define NDEBUG, which turns assert() off.
        copts = _COPTS + ["-UNDEBUG"] + copts,
        deps = deps + library + [Label("//:tfplug")],
        linkstatic = True,
        **kwargs
    )
