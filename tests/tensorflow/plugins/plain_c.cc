// SPDX-License-Identifier: Apache-2.0
#include "plain_c.h"

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
#include "tfplug/graph_pass.h"
#include "tfplug/primitives/reference_backend.h"

namespace plain_c {
namespace {

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

// Runs a primitive of all recorders, with copies of the operands.
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
    tfplug::Launcher launcher =
        tfplug::MakeLauncher(*recorder, stream, scratch);
    run(launcher).IgnoreError();  // as the device itself reports it
  }
}
void RecordMap(Stream& stream, const tfplug::Expression& expression,
               tfplug::Operands inputs, tfplug::Operands outputs) {
  Record(stream, [&](tfplug::Launcher& launcher) {
    std::vector<tfplug::Operand> in(inputs.begin(), inputs.end()),
        out(outputs.begin(), outputs.end());
    return launcher.Map(expression, absl::MakeSpan(in), absl::MakeSpan(out));
  });
}
void RecordReduce(Stream& stream, const tfplug::Reduction& reduction,
                  tfplug::Operands inputs, tfplug::Operands outputs) {
  Record(stream, [&](tfplug::Launcher& launcher) {
    std::vector<tfplug::Operand> in(inputs.begin(), inputs.end()),
        out(outputs.begin(), outputs.end());
    return launcher.Reduce(reduction, absl::MakeSpan(in), absl::MakeSpan(out));
  });
}

}  // namespace

// ---- Programs ----------------------------------------------------------------

Program::~Program() {
  if (file >= 0) close(file);
}

tfplug::ProgramCache& Backend::Programs(Stream&) {
  static auto* const programs = [] {
    tfplug::Target target;
    target.language = &tfplug::PlainC();
    target.is_cpu = true;
    return new tfplug::ProgramCache(target);
  }();
  return *programs;
}

absl::StatusOr<std::string> Backend::Compile(Stream&,
                                             const std::string& source) {
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

absl::StatusOr<std::unique_ptr<Program>> Backend::Load(
    Stream&, const std::string& binary, const char*) {
  const std::lock_guard<std::mutex> lock(Memory::Get()->mutex);
  auto program = std::make_unique<Program>();
  const int file = memfd_create("kernel", MFD_CLOEXEC);
  const bool is_written = write(file, binary.data(), binary.size()) ==
                          static_cast<ssize_t>(binary.size());
  // A file that is open for writing cannot run.
  program->file =
      open(absl::StrCat("/proc/self/fd/", file).c_str(), O_RDONLY | O_CLOEXEC);
  close(file);
  if (is_written && program->file >= 0) return program;
  return absl::InternalError("a program could not be stored");
}

absl::Status Backend::Launch(Stream&, Program& program,
                             const tfplug::Grid& grid,
                             const tfplug::KernelArguments& arguments) {
  Memory& memory = *Memory::Get();
  const std::lock_guard<std::mutex> lock(memory.mutex);
  auto* const words = reinterpret_cast<uint32_t*>(kBase);
  const auto address = [](const void* to) {
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(to));
  };
  const size_t count = arguments.pointers.size();
  uint32_t* const list = words + 1;
  uint32_t* const pointers = list + count + 1;
  uint32_t* const parameters = pointers + (count + count % 2);
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

// ---- Primitives --------------------------------------------------------------

absl::Status Backend::Map(Stream& stream, const tfplug::Expression& expression,
                          tfplug::Operands inputs, tfplug::Operands outputs) {
  RecordMap(stream, expression, inputs, outputs);
  return Base::Map(stream, expression, inputs, outputs);
}
absl::Status Backend::Reduce(Stream& stream, const tfplug::Reduction& reduction,
                             tfplug::Operands inputs,
                             tfplug::Operands outputs) {
  RecordReduce(stream, reduction, inputs, outputs);
  return Base::Reduce(stream, reduction, inputs, outputs);
}
absl::Status Backend::MapLoops(Stream& stream,
                               const tfplug::Expression& expression,
                               absl::Span<tfplug::Operand> inputs,
                               absl::Span<tfplug::Operand> outputs) {
  RecordMap(stream, expression, inputs, outputs);
  return Base::MapLoops(stream, expression, inputs, outputs);
}
absl::Status Backend::ReduceLoops(Stream& stream, tfplug::Launcher& launcher,
                                  const tfplug::Reduction& reduction,
                                  absl::Span<tfplug::Operand> inputs,
                                  absl::Span<tfplug::Operand> outputs) {
  RecordReduce(stream, reduction, inputs, outputs);
  return Base::ReduceLoops(stream, launcher, reduction, inputs, outputs);
}
absl::Status Backend::MapFlat(Backend& self, Stream& stream,
                              const tfplug::Expression& expression,
                              const tfplug::FlatOperands& operands) {
  Record(stream, [&](tfplug::Launcher& launcher) {
    return launcher.MapFlat(expression, operands);
  });
  return Base::MapFlat(self, stream, expression, operands);
}
absl::Status Backend::MatMul(Stream& stream, tfplug::Launcher& launcher,
                             const tfplug::Operand& a, const tfplug::Operand& b,
                             const tfplug::Operand& c) {
  Record(stream,
         [&](tfplug::Launcher& other) { return other.MatMul(a, b, c); });
  return Base::MatMul(stream, launcher, a, b, c);
}
absl::Status Backend::MatMulMap(Stream& stream, tfplug::Launcher& launcher,
                                const tfplug::Operand& a,
                                const tfplug::Operand& b,
                                const tfplug::Expression& expression,
                                tfplug::Operands inputs,
                                tfplug::Operands outputs) {
  Record(stream, [&](tfplug::Launcher& other) {
    return other.MatMulMap(a, b, expression, inputs, outputs);
  });
  return Base::MatMulMap(stream, launcher, a, b, expression, inputs, outputs);
}

}  // namespace plain_c

TFPLUG_REGISTER_GRAPH_PASSES("PLAIN_C");
