// SPDX-License-Identifier: Apache-2.0
#include "tfplug/base/driver_table.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace driver_table_test {
namespace {

enum vendorResult { kSuccess = 0, kBusy = 3, kFull = 4 };

vendorResult Launch(int groups, const char*) {
  return groups < 4 ? kSuccess : kFull;
}

int released = 0;
vendorResult Release(int* object) {
  released += *object;
  return kSuccess;
}

// tests/base/test_driver.cc defines test_driver_value.
class Vendor final : public tfplug::DriverTable<vendorResult> {
 public:
  absl::Status Load(const std::string& path) {
    return LoadAll({path}, {"install vendor 2"});
  }

  tfplug::DriverFunction<int(int)> value{*this, "test_driver_value"};

 private:
  absl::Status ToStatus(vendorResult, const char*) const override {
    return absl::InternalError("");
  }
};

class Functions final : public tfplug::DriverTable<vendorResult> {
 public:
  Functions() {
    launch.address = reinterpret_cast<void*>(&Launch);
    release.address = reinterpret_cast<void*>(&Release);
    name.address =
        reinterpret_cast<void*>(+[](vendorResult) { return "a name"; });
  }
  void Protect() { FailInForkedChildren(); }

  tfplug::DriverFunction<vendorResult(int, const char*)> launch{*this,
                                                                "launch"};
  tfplug::DriverFunction<vendorResult(int*)> release{*this, "release"};
  tfplug::DriverFunction<const char*(vendorResult)> name{*this, "name"};

 private:
  absl::Status ToStatus(vendorResult code,
                        const char* function) const override {
    const std::string text =
        function + (" failed with " + std::to_string(code));
    return code == kFull ? absl::ResourceExhaustedError(text)
                         : absl::InternalError(text);
  }
};

Functions functions;
using Object = tfplug::OwnedHandle<int*, functions, &Functions::release>;

// Returns how a forked child exits: with 0 if check() succeeds there.
int StatusInChild(bool (*check)()) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(check() ? 0 : 1);
  int result = -1;
  REQUIRE(waitpid(child, &result, 0) == child);
  return result;
}

TEST_CASE("DriverTable: a call converts the error code") {
  CHECK(functions.Call(functions.launch, 3, "text") == absl::OkStatus());
  CHECK(functions.Call(functions.launch, 4, nullptr) ==
        absl::ResourceExhaustedError("launch failed with 4"));
  CHECK(functions.Check(kBusy, "poll") ==
        absl::InternalError("poll failed with 3"));
  CHECK(functions.name(kSuccess) == std::string("a name"));
}

TEST_CASE("DriverTable: all functions of a library are found, or an error") {
  const char* const path = std::getenv("TFPLUG_TEST_DRIVER");
  REQUIRE(path != nullptr);
  static auto& vendor = *new Vendor;
  CHECK(absl::IsNotFound(vendor.Load("/no/such/driver.so")));
  REQUIRE(vendor.Load(path) == absl::OkStatus());
  CHECK(vendor.value(40) >= 41);
  CHECK(StatusInChild([] { return vendor.value(40) < 0; }) == 0);

  class Newer : public tfplug::DriverTable<vendorResult> {
   public:
    absl::Status Load(const std::string& library) {
      return FindAll(*tfplug::LoadDriver({library}, {"install vendor 3"}));
    }
    tfplug::DriverFunction<int(int)> missing{*this, "test_driver_new"};

   private:
    absl::Status ToStatus(vendorResult, const char*) const override {
      return absl::InternalError("");
    }
  } newer;
  CHECK(newer.Load(path) ==
        absl::NotFoundError("the driver " + std::string(path) +
                            " has no function test_driver_new: install vendor "
                            "3"));
}

TEST_CASE("OwnedHandle releases the object once") {
  int number = 5;
  released = 0;
  {
    Object object(&number);
    Object moved = std::move(object);
    CHECK(moved.get() == &number);
  }
  CHECK(released == 5);
  { Object empty; }
  CHECK(released == 5);
}

TEST_CASE("DriverTable: calls fail in a forked child, and only there") {
  functions.Protect();
  CHECK(StatusInChild([] {
          const absl::Status status =
              functions.Call(functions.launch, 3, nullptr);
          return absl::IsFailedPrecondition(status) &&
                 status.message().find("launch: the process was forked") == 0 &&
                 functions.name(kSuccess) == std::string("a name");
        }) == 0);
  CHECK(functions.Call(functions.launch, 3, nullptr).ok());
}

}  // namespace
}  // namespace driver_table_test
