// SPDX-License-Identifier: Apache-2.0
#include "tfplug/base/load_driver.h"

#include <doctest/doctest.h>
#include <tfplug/base/internal/python_updates.h>
#include <tfplug/base/internal/tensorflow.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

// tests/base/test_driver.cc defines and calls a function of the same name.
extern "C" __attribute__((visibility("default"))) int test_driver_collision() {
  return 1;
}

// Functions of Python's library, which record their calls.
namespace python {
struct State {
  int is_initialized = 1, result = 0;
  std::string log;
} state;
}  // namespace python
extern "C" {
__attribute__((visibility("default"))) int Py_IsInitialized() {
  return python::state.is_initialized;
}
__attribute__((visibility("default"))) int PyGILState_Ensure() {
  python::state.log += "lock; ";
  return 7;
}
__attribute__((visibility("default"))) void PyGILState_Release(int lock) {
  python::state.log += "unlock " + std::to_string(lock) + "; ";
}
__attribute__((visibility("default"))) int PyRun_SimpleString(
    const char* text) {
  python::state.log += std::string(text) + "; ";
  return python::state.result;
}
}

namespace tfplug::load_driver_test {
namespace {

std::string TestDriver() {
  const char* const path = std::getenv("TFPLUG_TEST_DRIVER");
  REQUIRE(path != nullptr);
  return path;
}

// Must run first, because symbols are bound when a library is first loaded.
TEST_CASE("LoadDriver: the driver binds to its own symbols") {
  const auto driver = LoadDriver({"libno_such_driver.so.1", TestDriver()});
  REQUIRE(driver.ok());
  CHECK(driver->path() == TestDriver());
  int (*value)(int);
  CHECK(driver->Get("test_driver_value", &value).ok());
  CHECK(value(40) == (internal::HasSanitizerRuntime() ? 41 : 42));
  CHECK((driver->Find<int(int)>("test_driver_value") == value));
  const void* const inside = reinterpret_cast<const void*>(value);
  CHECK(internal::LibraryPath(inside) == TestDriver());
  CHECK(internal::LibraryBase(inside) < inside);
  CHECK((internal::LibraryBase(nullptr) == nullptr));
  CHECK((internal::LibraryPath(nullptr) == nullptr));
  // It has the name of one of TensorFlow's libraries.
  CHECK((internal::FindInProcess("test_driver_value") == inside));
  CHECK((internal::FindInProcess("test_driver_new") == nullptr));
}

TEST_CASE(
    "RunInPython: the program has its own namespace, and the lock is held") {
  python::state = python::State();
  python::state.is_initialized = 0;
  CHECK(internal::RunInPython("x = 1\n", "f(x)"));
  CHECK(python::state.log.empty());
  python::state.is_initialized = 1;
  CHECK(internal::RunInPython("x = 1\n", "f(x)"));
  CHECK(python::state.log ==
        "lock; exec(r'''x = 1\nf(x)\n''', {}); unlock 7; ");
  python::state.result = -1;
  CHECK_FALSE(internal::RunInPython("", "f(x)"));
}

TEST_CASE("WrapPythonUpdates: its arguments are literals of Python") {
  const auto wrap = [] {
    python::state.log.clear();
    return internal::WrapPythonUpdates(
        "SIM", {{"Assign", DataType::kFloat}},
        {{"A", "B", "o", {DataType::kDouble, DataType::kInt32}}});
  };
  python::state = python::State();
  CHECK(wrap().ok());
  CHECK(python::state.log.find(
            "\nwrap_variable_updates(\"SIM\", {(\"Assign\", 1), (\"\", 0)}, "
            "{\"A\": (\"B\", \"o\", [2, 3, ]), })\n") != std::string::npos);
  python::state.result = -1;
  CHECK(absl::IsInternal(wrap()));
  ::setenv("TFPLUG_PYTHON_UPDATES", "0", 1);
  CHECK(wrap().ok());
  CHECK(python::state.log.empty());
  ::unsetenv("TFPLUG_PYTHON_UPDATES");
}

TEST_CASE("Driver: the path of a library that was searched for") {
  CHECK(LoadDriver({"libc.so.6"})->path().front() == '/');
}

TEST_CASE("Driver: a missing symbol is an error with the remedy") {
  DriverOptions options;
  options.remedy = "install vendor-driver 2";
  const auto driver = LoadDriver({TestDriver()}, options);
  REQUIRE(driver.ok());
  int (*value)(int) = [](int x) { return x; };
  CHECK(driver->Get("test_driver_new", &value) ==
        absl::NotFoundError("the driver " + TestDriver() +
                            " has no function test_driver_new: install "
                            "vendor-driver 2"));
  CHECK((value == nullptr));
  CHECK((driver->Find<void()>("test_driver_new") == nullptr));
}

TEST_CASE("LoadDriver: the error lists every library that it tried") {
  const absl::Status status =
      LoadDriver({"libno_such_driver.so.1", "/no/such/driver.so"}).status();
  CHECK(absl::IsNotFound(status));
  const std::string message(status.message());
  CHECK(message.find("cannot load the driver: libno_such_driver.so.1: ") == 0);
  CHECK(message.find("; /no/such/driver.so: ") != std::string::npos);
  CHECK(
      message.find("; install the device's driver or a newer version of it") !=
      std::string::npos);
}

std::filesystem::path MakeFolder() {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() /
                                       ("tfplug" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  return folder;
}

TEST_CASE("LoadDriversListedIn: files in folders, or those of a variable") {
  const std::filesystem::path folder = MakeFolder();
  const auto list = [&](const std::string& name) {
    std::filesystem::copy_file(TestDriver(), folder / (name + ".so"));
    std::filesystem::create_directory(folder / name);
    std::ofstream(folder / name / "list")
        << "\n/no/such/driver.so\n"
        << (folder / (name + ".so")).string() << "\n";
  };
  const auto is_loaded = [&](const std::string& name) {
    return internal::FindLibrary((folder / (name + ".so")).c_str()) != nullptr;
  };
  for (const std::string name : {"a", "b", "c", "d"}) list(name);
  constexpr char kName[] = "TFPLUG_TEST_DRIVERS";
  LoadDriversListedIn(kName, {"/no/such/folder", folder / "a"});
  CHECK(is_loaded("a"));
  const std::string places =
      (folder / "b").string() + ":" + (folder / "c" / "list").string();
  ::setenv(kName, places.c_str(), 1);
  LoadDriversListedIn(kName, {folder / "d"});
  ::unsetenv(kName);
  CHECK(is_loaded("b"));
  CHECK(is_loaded("c"));
  CHECK_FALSE(is_loaded("d"));
  std::filesystem::remove_all(folder);
}

TEST_CASE("LibrariesIn: a list, a manifest in JSON, other files") {
  const std::filesystem::path folder = MakeFolder();
  const std::string file = folder / "driver.json";
  const auto libraries = [&](const char* text) {
    std::ofstream(file) << text;
    std::string all;
    for (const std::string& name : internal::LibrariesIn(file)) {
      all += name + ";";
    }
    return all;
  };
  CHECK(libraries("liba.so.1\n/b/libb.so\n") == "liba.so.1;/b/libb.so;");
  CHECK(libraries("\n{\"ICD\": {\n\"library_path\" : \"libc.so\"}}") ==
        "libc.so;");
  CHECK(libraries("{\"library_path\":\"/d/libd.so\"}") == "/d/libd.so;");
  CHECK(libraries("{\"library_path\":\"../libe.so\"}") ==
        (folder / "../libe.so").string() + ";");
  for (const char* text : {"", "{}", "{\"library_path\"",
                           "{\"library_path\":", "{\"library_path\": \"lib"}) {
    CAPTURE(text);
    CHECK(libraries(text) == "");
  }
  CHECK(internal::LibrariesIn(folder / "missing").empty());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tfplug::load_driver_test
