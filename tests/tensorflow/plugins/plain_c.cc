// SPDX-License-Identifier: Apache-2.0
// A device whose processor has 32 bits and a C compiler, but no library: `cc
// -m32` compiles each kernel, PlainC(), to a program, and each launch runs it.
// Device memory is shared with these processes, at the same addresses. If
// TFPLUG_LANGUAGE_SOURCES names a folder, the source of each kernel is stored
// there in all languages.
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiled/language_sources.h"
#include "reference_device.h"
#include "tfplug/graph_pass.h"
#include "tfplug/op_kernels/all.h"
#include "tfplug/op_kernels/array.h"
#include "tfplug/op_kernels/reduction.h"
#include "tfplug/op_kernels/register.h"
#include "tfplug/primitives/reference_backend.h"

namespace plain_c {
namespace {

using reference::Stream;
using tfplug::Expression, tfplug::Launcher, tfplug::Operand, tfplug::Operands;

// Addresses below 4 GiB that neither kind of process uses for anything else.
constexpr uint64_t kBase = 0x80000000, kSize = 0x60000000;
constexpr uint64_t kBlock = 64 << 10;  // at the base: a launch

// What follows a kernel, and runs it: the memory is file 3. The block has the
// number of groups, the list of arguments, and what it points to.
constexpr char kMain[] = R"code(
void* memcpy(void* to, const void* from, __SIZE_TYPE__ size) {
  for (__SIZE_TYPE__ i = 0; i < size; ++i) ((char*)to)[i] = ((char*)from)[i];
  return to;
}
void* memset(void* to, int byte, __SIZE_TYPE__ size) {
  for (__SIZE_TYPE__ i = 0; i < size; ++i) ((char*)to)[i] = (char)byte;
  return to;
}
static int call_system(int number, const void* argument) {
  int result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(argument)
                   : "memory");
  return result;
}
__attribute__((force_align_arg_pointer)) void _start(void) {
  const unsigned view_[6] = {$BASE, $SIZE, 3, 0x11, 3, 0};
  unsigned* const block_ = (unsigned*)$BASE;
  call_system(27, (void*)60);  // alarm
  if (call_system(90, view_) != (int)$BASE) call_system(1, (void*)1);
  for (unsigned group = 0; group < *block_; ++group) {
    $ENTRY(&group, (void**)(block_ + 1));
  }
  call_system(1, (void*)0);
}
)code";

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Memory {
 public:
  // Returns null if the addresses are taken.
  static Memory* Get() {
    static Memory* const memory = [] {
      rlimit limit;  // each kernel is an open file
      getrlimit(RLIMIT_NOFILE, &limit);
      limit.rlim_cur = limit.rlim_max;
      setrlimit(RLIMIT_NOFILE, &limit);
      auto* made = new Memory;
      made->file = memfd_create("plain_c", MFD_CLOEXEC);
      const bool is_mapped =
          ftruncate(made->file, kSize) == 0 &&
          mmap(reinterpret_cast<void*>(kBase), kSize, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_FIXED_NOREPLACE, made->file,
               0) == reinterpret_cast<void*>(kBase);
      return is_mapped ? made : nullptr;
    }();
    return memory;
  }

  int file = -1;
  std::mutex mutex;  // of the block, and of the descriptors of new programs
  uint64_t used = kBlock;
};

// TensorFlow divides what it gets, and returns nothing.
class Allocator : public tfplug::Allocator {
 public:
  absl::StatusOr<tfplug::DeviceMemory> Allocate(uint64_t size,
                                                int64_t) override {
    Memory& memory = *Memory::Get();
    const std::lock_guard<std::mutex> lock(memory.mutex);
    const uint64_t rounded = (size + 255) / 256 * 256;
    if (rounded < size || rounded > kSize - memory.used) {
      return absl::ResourceExhaustedError("the device is full");
    }
    void* const address = reinterpret_cast<void*>(kBase + memory.used);
    memory.used += rounded;
    return tfplug::DeviceMemory(address, size);
  }
  absl::Status Deallocate(tfplug::DeviceMemory) override {
    return absl::OkStatus();
  }
  absl::StatusOr<tfplug::MemoryUsage> Usage() override {
    return tfplug::MemoryUsage{
        static_cast<int64_t>(kSize - Memory::Get()->used),
        static_cast<int64_t>(kSize - kBlock)};
  }
};

class Device : public tfplug::Device<Stream, Allocator> {};

struct Platform : tfplug::Platform<Device> {
  static constexpr char kName[] = "PLAIN_C", kType[] = "PLAIN_C";
  absl::StatusOr<int> DeviceCount() override {
    if (Memory::Get() != nullptr) return 1;
    return absl::UnavailableError("addresses below 4 GiB are in use");
  }
};
TFPLUG_REGISTER_DEVICE(Platform);

// ---- Sources in all languages ------------------------------------------------

// Stores a source in a folder, under a name that depends on its contents.
struct Store {
  void operator()(const std::string& source) const {
    if (!one->has_doubles && source.find("f64") != source.npos) return;
    const std::string path =
        absl::StrCat(folder, "/", one->name, "_",
                     absl::Hex(std::hash<std::string>()(source)));
    const std::string part = absl::StrCat(path, ".", getpid());
    std::ofstream(part, std::ios::binary) << source;
    std::rename(part.c_str(), absl::StrCat(path, one->extension).c_str());
  }

  const char* folder;
  const language_sources::Case* one;
};
using Recorder = language_sources::SourceBackend<Stream, Store>;

// Runs a primitive of all recorders.
template <class Run>
void Record(Stream& stream, Run run) {
  static const auto* const recorders = [] {
    auto* made = new std::vector<std::unique_ptr<Recorder>>;
    const char* const folder = std::getenv("TFPLUG_LANGUAGE_SOURCES");
    if (folder == nullptr || *folder == '\0') return made;
    setenv("TFPLUG_CACHE_DIR", "", 1);
    for (const auto& one : language_sources::Cases()) {
      made->push_back(
          std::make_unique<Recorder>(one.target, Store{folder, &one}));
    }
    return made;
  }();
  for (const auto& recorder : *recorders) {
    tfplug::HostScratch scratch;
    Launcher launcher = tfplug::MakeLauncher(*recorder, stream, scratch);
    run(launcher).IgnoreError();  // as the device itself reports it
  }
}
// Does so with copies of the operands, which a primitive may change.
template <class Run>
void RecordLoops(Stream& stream, Operands inputs, Operands outputs, Run run) {
  Record(stream, [&](Launcher& launcher) {
    std::vector<Operand> in(inputs.begin(), inputs.end()),
        out(outputs.begin(), outputs.end());
    return run(launcher, absl::MakeSpan(in), absl::MakeSpan(out));
  });
}

// ---- Programs ----------------------------------------------------------------

// The file of a program that runs all groups of a launch.
struct Program : tfplug::Program {
  explicit Program(int file) : file(file) {}
  ~Program() override { close(file); }

  const int file;
};

class Backend final : public tfplug::CompiledBackend<Stream, Program> {
 public:
  using Base = tfplug::CompiledBackend<Stream, Program>;

  tfplug::ProgramCache& Programs(Stream&) override {
    static auto* const programs = [] {
      tfplug::Target target;
      target.language = &tfplug::PlainC();
      target.is_cpu = true;
      return new tfplug::ProgramCache(target);
    }();
    return *programs;
  }

  absl::StatusOr<std::string> Compile(Stream&,
                                      const std::string& source) override {
    std::string folder =
        std::filesystem::temp_directory_path() / "plain_c_XXXXXX";
    if (mkdtemp(&folder[0]) == nullptr) {
      return absl::InternalError("no temporary folder can be created");
    }
    constexpr char kSignature[] = "(const unsigned* group_index";
    const size_t end = source.find(kSignature);
    const size_t begin = source.rfind(' ', end) + 1;
    const std::string base = absl::StrCat(folder, "/kernel");
    std::ofstream(base + ".c")
        << source
        << absl::StrReplaceAll(kMain,
                               {{"$BASE", absl::StrCat(kBase, "u")},
                                {"$SIZE", absl::StrCat(kSize, "u")},
                                {"$ENTRY", source.substr(begin, end - begin)}});
    const std::string command = absl::StrCat(
        "cc -m32 -std=c99 -O1 -msse2 -mfpmath=sse -ffp-contract=off "
        "-ffreestanding -fno-tree-loop-distribute-patterns -fno-pie -static "
        "-nostdlib -w -o ",
        base, " ", base, ".c -lgcc > ", base, ".log 2>&1");
    const int code = std::system(command.c_str());
    const std::string binary = ReadFile(base), log = ReadFile(base + ".log");
    std::filesystem::remove_all(folder);
    if (code != 0) return absl::InternalError(log);
    return binary;
  }

  absl::StatusOr<std::unique_ptr<Program>> Load(Stream&,
                                                const std::string& binary,
                                                const char*) override {
    const std::lock_guard<std::mutex> lock(Memory::Get()->mutex);
    const int file = memfd_create("kernel", MFD_CLOEXEC);
    const bool is_written = write(file, binary.data(), binary.size()) ==
                            static_cast<ssize_t>(binary.size());
    // A file that is open for writing cannot run.
    const int readable = open(absl::StrCat("/proc/self/fd/", file).c_str(),
                              O_RDONLY | O_CLOEXEC);
    close(file);
    if (is_written && readable >= 0) return std::make_unique<Program>(readable);
    return absl::InternalError("a program could not be stored");
  }

  absl::Status Launch(Stream&, Program& program, const tfplug::Grid& grid,
                      const tfplug::KernelArguments& arguments) override {
    Memory& memory = *Memory::Get();
    const std::lock_guard<std::mutex> lock(memory.mutex);
    auto* const words = reinterpret_cast<uint32_t*>(kBase);
    const auto address = [](const void* to) {
      return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(to));
    };
    const size_t count = arguments.pointers.size();
    uint32_t* const list = words + 1;
    uint32_t* const pointers = list + count + 1;
    uint32_t* const parameters = pointers + count;  // a multiple of 8 bytes
    words[0] = grid.groups * grid.rows;
    for (size_t i = 0; i < count; ++i) {
      list[i] = address(pointers + i);
      pointers[i] = address(arguments.pointers[i]);
    }
    list[count] = address(parameters);
    std::memcpy(parameters, arguments.parameters, arguments.parameters_size);

    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, memory.file, 3);
    const std::string path = absl::StrCat("/proc/self/fd/", program.file);
    char name[] = "kernel";
    char *const words_of_command[] = {name, nullptr}, *const none[] = {nullptr};
    pid_t process;
    int status = posix_spawn(&process, path.c_str(), &files, nullptr,
                             words_of_command, none);
    posix_spawn_file_actions_destroy(&files);
    if (status != 0) {
      return absl::InternalError(
          absl::StrCat("a kernel cannot be started: ", std::strerror(status)));
    }
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
    if (status == 0) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("a kernel's process ended with status ", status));
  }

  // Record the sources, and call the base's.
  absl::Status MapLoops(Stream& stream, const Expression& expression,
                        absl::Span<Operand> inputs,
                        absl::Span<Operand> outputs) {
    RecordLoops(stream, inputs, outputs,
                [&](Launcher& other, auto in, auto out) {
                  return other.Map(expression, in, out);
                });
    return Base::MapLoops(stream, expression, inputs, outputs);
  }
  absl::Status ReduceLoops(Stream& stream, Launcher& launcher,
                           const tfplug::Reduction& reduction,
                           absl::Span<Operand> inputs,
                           absl::Span<Operand> outputs) {
    RecordLoops(stream, inputs, outputs,
                [&](Launcher& other, auto in, auto out) {
                  return other.Reduce(reduction, in, out);
                });
    return Base::ReduceLoops(stream, launcher, reduction, inputs, outputs);
  }
  static absl::Status MapFlat(Backend& self, Stream& stream,
                              const Expression& expression,
                              const tfplug::FlatOperands& operands) {
    Record(stream, [&](Launcher& other) {
      return other.MapFlat(expression, operands);
    });
    return Base::MapFlat(self, stream, expression, operands);
  }
  absl::Status MatMul(Stream& stream, Launcher& launcher, const Operand& a,
                      const Operand& b, const Operand& c) override {
    Record(stream, [&](Launcher& other) { return other.MatMul(a, b, c); });
    return Base::MatMul(stream, launcher, a, b, c);
  }
  absl::Status MatMulMap(Stream& stream, Launcher& launcher, const Operand& a,
                         const Operand& b, const Expression& expression,
                         Operands inputs, Operands outputs) override {
    Record(stream, [&](Launcher& other) {
      return other.MatMulMap(a, b, expression, inputs, outputs);
    });
    return Base::MatMulMap(stream, launcher, a, b, expression, inputs, outputs);
  }
  // Only a class that has these, too, has its MapLoops and ReduceLoops called.
  absl::Status Map(Stream& stream, const Expression& expression,
                   Operands inputs, Operands outputs) override {
    return Base::Map(stream, expression, inputs, outputs);
  }
  absl::Status Reduce(Stream& stream, const tfplug::Reduction& reduction,
                      Operands inputs, Operands outputs) override {
    return Base::Reduce(stream, reduction, inputs, outputs);
  }
};

}  // namespace
}  // namespace plain_c

TFPLUG_REGISTER_BACKEND(plain_c::Backend, tfplug::AllOps);
TFPLUG_REGISTER_HOST_KERNELS(tfplug::ArrayOps, tfplug::ReductionOps);
TFPLUG_REGISTER_GRAPH_PASSES("PLAIN_C");
