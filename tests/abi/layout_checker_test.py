# SPDX-License-Identifier: Apache-2.0
"""Tests that layout_test.py finds each kind of mistake in our headers.

Makes one mistake at a time in a copy of the headers and expects the error for it.
"""

import argparse
import pathlib
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/abi"))

import layout_test  # noqa: E402

# (header, text, replacement, expected error)
MISTAKES = [
    # None: main swaps two fields of the same type, so that only offsets change.
    ("sp_device.h", "const char* hardware_name", "const char* swapped_name",
     None),
    ("sp_device.h", "void* ext;", "int64_t ext;",
     "the type of SP_Device::ext differs from ours"),
    ("sp_device.h", "int32_t ordinal;", "int64_t ordinal;",
     "the type of SP_Device::ordinal differs from ours"),
    ("sp_timer_fns.h", "size_t struct_size;", "size_t struct_size; int added;",
     "the offset of SP_TimerFns::ext differs from ours"),
    ("sp_stream_executor.h", "(*memset)(const SP_Device* device, SP_Stream",
     "(*memset)(const SP_Device* device, SP_Event",
     "the type of SP_StreamExecutor::memset differs from ours"),
    ("sp_stream_executor.h", "uint32_t pattern", "uint64_t pattern",
     "the type of SP_StreamExecutor::memset32 differs from ours"),
    ("sp_stream_executor.h", "const void* host_src", "void* host_src",
     "the type of SP_StreamExecutor::memcpy_htod differs from ours"),
    ("sp_allocator_stats.h", "int8_t has_bytes_limit;",
     "bool has_bytes_limit;",
     "the type of SP_AllocatorStats::has_bytes_limit differs from ours"),
    ("sp_platform.h", "SP_PLATFORM_STRUCT_SIZE = 35",
     "SP_PLATFORM_STRUCT_SIZE = 40",
     "SP_PLATFORM_STRUCT_SIZE differs from ours"),
    ("enums.h", "SE_EVENT_PENDING = 2", "SE_EVENT_PENDING = 4",
     "our SE_EVENT_PENDING is wrong"),
    ("enums.h", "TF_BFLOAT16 = 14", "TF_BFLOAT16 = 19",
     "our TF_BFLOAT16 is wrong"),
    ("functions.h", "(*TF_SetStatus)(TF_Status* status, TF_Code code",
     "(*TF_SetStatus)(TF_Status* status, int code",
     "the signature of TF_SetStatus differs from ours"),
    ("functions.h", "(*TF_NumInputs)(TF_OpKernelContext* ctx",
     "(*TF_NumInputs)(TF_OpKernelConstruction* ctx",
     "the signature of TF_NumInputs differs from ours"),
    ("tf_tstring.h", "uint8_t raw[24]", "uint8_t raw[23]",
     "the type of TF_TString_Raw::raw differs from ours"),
    ("types.h", "const char* key,", "char* key,",
     "the signature of TF_ForEachPayload differs from ours"),
]


def swap(text, first, second):
    return (text.replace(first, "\0").replace(second, first)
            .replace("\0", second))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--include", required=True,
                        help="the wheel's tensorflow/include directory")
    parser.add_argument("--release")
    parser.add_argument("--cxx", default="g++")
    args = parser.parse_args()
    failures = []
    for header, old, new, words in MISTAKES:
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "tfplug/abi"
            shutil.copytree(ROOT / "include/tfplug/abi", copy)
            text = (copy / header).read_text(encoding="utf-8")
            if old not in text:
                failures.append(f"{header} has no `{old}`")
                continue
            if words is None:
                changed = swap(text, "hardware_name", "device_vendor")
                words = ("the offset of SP_Device::hardware_name differs from "
                         "ours")
            else:
                changed = text.replace(old, new, 1)
            (copy / header).write_text(changed, encoding="utf-8")
            _, _, complaints = layout_test.run(args.include, args.release,
                                               folder, args.cxx)
        if not any(words in c for c in complaints):
            failures.append(f"{header}, `{new}`: expected `{words}`, got "
                            f"{complaints or 'nothing'}")
    print("\n".join(failures) or
          f"All {len(MISTAKES)} mistakes are found.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
