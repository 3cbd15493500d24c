// SPDX-License-Identifier: Apache-2.0
// The emulated NVRTC: compiles kernels with the system's C++ compiler. Their
// source is C++ for the host where __CUDACC__ is not defined.
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "emulator/binary.h"
#include "emulator/exports.h"
#include "emulator/nvrtc_check.h"

extern char** environ;

namespace cuda_like {

struct _nvrtcProgram {
  std::string source;
  std::string log;
  std::string binary;
};

namespace {

// A directory that is removed with its files.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    const char* const parent = getenv("TMPDIR");
    path_ =
        std::string(parent != nullptr ? parent : "/tmp") + "/cuda_like-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~ScratchDirectory() {
    for (const char* name : {"kernel.cc", "kernel.so", "log"}) {
      unlink(File(name).c_str());
    }
    rmdir(path_.c_str());
  }

  bool exists() const { return !path_.empty(); }
  std::string File(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the process's environment. LoadDriver loads a driver with
// RTLD_DEEPBIND, which binds `environ` to libc's variable even if the program
// has a copy of it that libc uses instead, as Debian's Python has.
char** Environment() {
  void* const program = dlopen(nullptr, RTLD_LAZY);
  void* const found = dlsym(program, "environ");
  return found != nullptr ? *static_cast<char***>(found) : environ;
}

// Runs a command, with its output in a file, and returns whether it succeeded.
bool RunCommand(const std::vector<std::string>& command,
                const std::string& output) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 1, output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  pid_t process;
  int status = posix_spawnp(&process, arguments[0], &files, nullptr,
                            arguments.data(), Environment());
  posix_spawn_file_actions_destroy(&files);
  if (status != 0) {
    std::ofstream(output) << "cannot run " << command[0] << ": "
                          << strerror(status) << "\n";
    return false;
  }
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status == 0;
}

std::string CompilerName() {
  const char* const name = getenv("CUDA_LIKE_CXX");
  return name != nullptr && *name != '\0' ? name : "c++";
}

nvrtcResult Compile(_nvrtcProgram& program,
                    const std::vector<std::string>& options) {
  program.log = emulator::CheckWithNvrtc(program.source, options);
  if (!program.log.empty()) return NVRTC_ERROR_COMPILATION;
  const ScratchDirectory scratch;
  if (!scratch.exists()) return NVRTC_ERROR_INTERNAL_ERROR;
  const std::string source = scratch.File("kernel.cc");
  const std::string library = scratch.File("kernel.so");
  const std::string log = scratch.File("log");
  std::ofstream(source, std::ios::binary) << program.source;
  const char* const level =
      emulator::HasWideVectors() ? "-march=x86-64-v3" : "-w";
  const bool compiled =
      RunCommand({CompilerName(), "-std=c++17", "-O2", "-ftree-vectorize",
                  level, "-shared", "-fPIC", "-w", "-ffp-contract=off",
                  "-fno-math-errno", "-fno-exceptions", "-o", library, source},
                 log);
  program.log = Read(log);
  if (!compiled) return NVRTC_ERROR_COMPILATION;
  const std::string code = Read(library);
  emulator::BinaryHeader header;
  emulator::Magic().copy(header.magic, sizeof(header.magic));
  header.size = code.size();
  program.binary.assign(reinterpret_cast<const char*>(&header), sizeof(header));
  program.binary += code;
  return NVRTC_SUCCESS;
}

}  // namespace

nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = emulator::kCudaVersion / 1000;
  *minor = 0;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source,
                               const char* /*name*/, int headers,
                               const char* const* /*contents*/,
                               const char* const* /*names*/) {
  if (headers != 0) return NVRTC_ERROR_INVALID_INPUT;
  *program = new _nvrtcProgram{source, {}, {}};
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count,
                                const char* const* options) {
  try {
    // The host has one architecture.
    std::vector<std::string> others;
    for (int i = 0; i < count; ++i) {
      const std::string option = options[i];
      if (option[0] != '-') return NVRTC_ERROR_INVALID_OPTION;
      if (option.rfind("--gpu-architecture=", 0) != 0) others.push_back(option);
    }
    return Compile(*program, others);
  } catch (...) {
    return NVRTC_ERROR_INTERNAL_ERROR;
  }
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* bytes) {
  *bytes = program->binary.size();
  return program->binary.empty() ? NVRTC_ERROR_INVALID_PROGRAM : NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* cubin) {
  program->binary.copy(cubin, program->binary.size());
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* bytes) {
  *bytes = program->log.size() + 1;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return NVRTC_SUCCESS;
}

}  // namespace cuda_like
