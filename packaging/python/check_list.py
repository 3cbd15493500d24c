# SPDX-License-Identifier: Apache-2.0
"""The checks of tfplug check: what each finds, and what to do about it."""

import dataclasses

try:
    from tfplug import check_symbols
except ImportError:  # Run from the source tree.
    import check_symbols


@dataclasses.dataclass
class Check:
    name: str
    text: str
    remedy: str
    needs: tuple = ()  # Checks without which this one says nothing.
    crash: str = "error"  # The level of a failure: TensorFlow may not get that far.


_LINK = ("Compile with -fvisibility=hidden, and link with a version script that exports "
         "the entry points only and with -Wl,--exclude-libs,ALL.")
_CRASH = ("A crash is most often a kernel that reads its tensors, which are the device's "
          "memory, on the host, as HostMap does, or an address that was not looked up. For "
          "a backtrace, see the page \"Debug a "
          "plug-in\" of tfplug's documentation.")
_BASIC = ("registration",)
_DEVICE = ("devices",)
_STREAM = ("devices", "handles", "allocation")
_WORK = (*_STREAM, "host-callback")
_PASS = ("graph-registration",)

_ALL = (
    Check("file", "The file is a shared object for Linux.",
          "Pass the plug-in's .so, whole, as its build wrote it."),
    Check("entry-points", "The library exports the functions that TensorFlow looks up.",
          "Export SE_InitPlugin, TF_InitKernel, TF_InitGraph or TF_InitProfiler, with C "
          "linkage and default visibility. tfplug's macros do, such as "
          "TFPLUG_REGISTER_DEVICE, in a file that is linked into the library.", ("file",)),
    Check("exports", "No symbol is exported that another library's code may be bound to.",
          _LINK, ("file",)),
    Check("libraries", "The libraries that it needs are here, and are not TensorFlow's.",
          "Install what is missing, or link it statically; load a vendor's driver with "
          "dlopen and RTLD_DEEPBIND when a device is first looked for.", ("file",)),
    Check("releases", "Which releases of TensorFlow have the symbols that it needs.",
          "Look TensorFlow's functions up with dlsym, and use none of its C++ symbols.",
          ("file",)),
    Check("load", "The library loads, with all its symbols bound.",
          "See the loader's message. A constructor of a global variable that fails ends "
          "the process: do such work in the entry point.", ("file", "entry-points")),
    Check("struct-sizes", "Every struct's struct_size is set, to its size in a release.",
          "Set struct_size of every struct that you fill, to TensorFlow's macro for that "
          "struct.", ("load",)),
    Check("names", "The platform's name and type outlive SE_InitPlugin.",
          "Use string literals or static strings: TensorFlow keeps the pointers.",
          ("load",)),
    Check("registration", "Registration succeeds, and all required functions are set.",
          "Set the field that is named, or return zero devices where the plug-in cannot "
          "work: a failed registration aborts `import tensorflow`.",
          ("load", "struct-sizes", "names")),
    Check("type-name", "The device type is no name that TensorFlow takes for its own.",
          "Choose a type without CPU and GPU in it. Users whose code names GPUs set "
          "TFPLUG_DEVICE_TYPE=NAME=GPU: see the page \"What differs from a GPU\" of "
          "tfplug's documentation.", _BASIC),
    Check("devices", "Every device can be created, and reports its memory.",
          "Set SP_Device and device_memory_usage for each ordinal below the count.",
          _BASIC),
    Check("handles", "create_stream, create_event and create_timer set their handles.",
          "Set the out-parameter to a new object, or the status to an error.", _DEVICE),
    Check("allocation", "Memory of every size is distinct and can be freed.",
          "Return disjoint memory, aligned to 256 bytes, with SP_DeviceMemoryBase::size set; "
          "accept null in deallocate.", _DEVICE),
    Check("alignment", "Device and host memory is aligned to 256 bytes.",
          "Allocate with an alignment of 256.", (*_DEVICE, "allocation")),
    Check("aligned-alloc", "aligned_alloc gets sizes that are multiples of the alignment.",
          "Round the size up, with a check for overflow.", (*_DEVICE, "allocation")),
    Check("huge-allocation", "An allocation that is too large is refused cleanly.",
          "Set opaque to null; check additions to the size for overflow; catch "
          "exceptions.", (*_DEVICE, "allocation")),
    Check("statistics", "get_allocator_stats counts real allocations.",
          "Count in allocate and deallocate, or return false.",
          (*_DEVICE, "allocation")),
    Check("host-callback", "host_callback runs each task once and returns true.",
          "Enqueue each task, also those that come while others run. In C, return true, which "
          "is not TF_OK's value.", _STREAM),
    Check("late-reads", "Enqueued work does not read a call's arguments after it returns.",
          "Copy what the task needs into it: capture by value, and SP_DeviceMemoryBase's "
          "fields rather than its address.", _WORK),
    Check("copies", "Copies of any size, at any offset, move exactly those bytes.",
          "Copy `size` bytes to the address in `opaque`, which may lie within an "
          "allocation.", (*_STREAM, "late-reads")),
    Check("fills", "mem_zero, memset and memset32 fill exactly the bytes asked for.",
          "The pattern comes before the size, and the size is in bytes.", (*_STREAM, "copies")),
    Check("events", "Events are pending until the work before them is done.",
          "Complete an event only when the stream reaches it; record it anew each time.",
          _WORK),
    Check("order", "Streams keep their order, and wait for what they are told to.",
          "See the comment of the function that is named in stream_executor.h.",
          (*_WORK, "copies", "events")),
    Check("timers", "Timers measure nanoseconds between two points of a stream.",
          "Take the time when the stream reaches the point, in nanoseconds.", _WORK),
    Check("environment", "Allocations and copies do not read the environment.",
          "Read variables once, in the entry point: getenv is slow, and unsafe beside "
          "setenv.", (*_STREAM, "copies")),
    Check("random-programs", "Random programs on four streams end as on a model.",
          "The steps are the smallest program that fails.",
          (*_WORK, "copies", "fills", "events", "order")),
    Check("layouts", "It works with the structs of every release, 2.5 to 2.22.",
          "Fill no more than the struct_size that TensorFlow passes; two fields were "
          "inserted in the middle of structs (2.7 and 2.10).",
          (*_BASIC, "random-programs")),
    Check("threads", "Eight threads on four streams end with the right sums.",
          "TensorFlow calls every function from several threads at once: guard what they "
          "share.", (*_WORK, "copies", "events", "order")),
    Check("kernels", "Kernels register, each once, for the plug-in's device.",
          "Remove the second registration, or give it another type or priority; give "
          "kernels the type of a device that the plug-in adds.",
          _BASIC),
    Check("kernel-ops", "Kernels name ops, arguments and attributes that TensorFlow has.",
          "Correct the name in TF_NewKernelBuilder, TF_KernelBuilder_HostMemory or "
          "TF_KernelBuilder_TypeConstraint; with tfplug, in TFPLUG_REGISTER_KERNEL.",
          (*_BASIC, "kernels")),
    Check("kernel-sets", "Ops that TensorFlow uses together have kernels together.",
          "Register the kernels that are named, or turn off the rewriter in "
          "TP_OptimizerConfigs.", (*_BASIC, "kernels", "kernel-ops")),
    Check("kernel-results", "Kernels of simple ops compute what the ops do.",
          f"Compare the kernel with TensorFlow's for the CPU. {_CRASH}",
          (*_STREAM, "kernels", "copies")),
    Check("kernel-empty", "Kernels of simple ops set their output for empty tensors.",
          "Allocate the output before returning early, and refuse no shape for its size.",
          (*_STREAM, "kernels", "kernel-results")),
    Check("kernel-faults", "Kernels of simple ops survive failures of TensorFlow's calls.",
          "Check the status of each call, and delete statuses and tensors on every path.",
          (*_STREAM, "kernels", "kernel-results")),
    Check("graph-registration", "The graph pass registers.",
          "Set device_type and optimize_func.", ("load",)),
    Check("graph-type", "The passes are for the type of the plug-in's device.",
          "Set TP_OptimizerRegistrationParams::device_type to SP_Platform::type; with "
          "tfplug, give TFPLUG_REGISTER_GRAPH_PASSES the text of Platform::kType.",
          (*_PASS, *_BASIC)),
    Check("graph-small", "A small graph stays valid; what TensorFlow preserves is kept.",
          "Edit only nodes that the pass has proved it may edit; keep versions and the "
          "function library.", _PASS),
    Check("graph-empty", "Graphs without nodes, or with one, are accepted.",
          "An empty graph has no bytes: malloc(0) may return null without a failure.",
          _PASS),
    Check("graph-foreign-device", "Nodes of a device that it does not know are left alone.",
          "Skip nodes on other device types instead of aborting.",
          (*_PASS, "graph-small")),
    Check("graph-large", "A graph of 5,000 nodes is optimized in time.",
          "Look nodes up in a hash table.", (*_PASS, "graph-small")),
    Check("graph-cyclic", "A while loop, which has a cycle, stays valid.",
          "Ignore the edge from NextIteration to Merge in topological orders.",
          (*_PASS, "graph-small")),
    Check("graph-malformed", "Malformed graphs do not crash the pass.",
          "Return INVALID_ARGUMENT.", (*_PASS, "graph-small"), "warning"),
    Check("graph-leaks", "The pass deletes the objects that it creates.",
          "Delete each TF_Buffer, TF_GraphProperties and TF_Status once.",
          (*_PASS, "graph-small")),
    Check("graph-results", "Graphs have the same values before and after the passes.",
          "If the results differ after the passes, fuse only what computes the same; a "
          "value may have other users, be fetched or be fed.",
          (*_PASS, *_WORK, "copies", "events", "order", "kernel-results",
           "graph-small")),
    Check("profiler", "The profiler follows TensorFlow's protocol, twice.",
          "Own nothing in the structs, which are destroyed at once; set size_in_bytes; "
          "write at most that much; call a device's plane /device:GPU:0.", _BASIC),
    Check("together", "Several plug-ins have distinct types and equal settings.",
          "Install one of them, or let both leave TensorFlow's rewriters alone.",
          ("load",)),
    Check("tensorflow", "The TensorFlow of this environment loads it and trains with it.",
          "tfplug doctor tries all plug-ins of this environment.", ("file",)),
    Check("op-sweep", "Kernels compute what TensorFlow's kernels for the CPU do.",
          "Run the command that is named, and see the page \"Judge the kernels of a device\" "
          f"of tfplug's documentation. {_CRASH}",
          (*_STREAM, "kernels", "kernel-results")),
)
CHECKS = {check.name: check for check in _ALL}

# The checks that only read the file.
ON_FILES = {"file": check_symbols.check_file,
            "entry-points": check_symbols.check_entry_points,
            "exports": check_symbols.check_exports,
            "libraries": check_symbols.check_libraries,
            "releases": check_symbols.check_releases}
