// SPDX-License-Identifier: Apache-2.0
#include "tfplug/compiled/disk_cache.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"

namespace disk_cache_test {
namespace {

namespace fs = std::filesystem;
using tfplug::compiled_internal::CachedBinary;
using tfplug::compiled_internal::DiskCache;
using tfplug::compiled_internal::Sha256;

std::string HashOf(absl::string_view text) {
  Sha256 hash;
  hash.Add(text);
  return absl::BytesToHexString(hash.Finish());
}

TEST_CASE("SHA-256 of the texts in FIPS 180") {
  CHECK(HashOf("") ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(HashOf("abc") ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(HashOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(HashOf(std::string(1000000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("SHA-256 of a text in pieces") {
  for (size_t n = 0; n < 200; ++n) {
    std::string text;
    for (size_t i = 0; i < n; ++i) text.push_back(static_cast<char>(i * 7 + n));
    for (const size_t cut : {n / 3, n / 2, n}) {
      Sha256 hash;
      hash.Add(text.substr(0, cut));
      hash.Add(text.substr(cut));
      CHECK(absl::BytesToHexString(hash.Finish()) == HashOf(text));
    }
  }
}

// A temporary folder, and in it the folder of a cache.
class Fixture {
 public:
  Fixture() {
    const char* const tmp = std::getenv("TMPDIR");
    root_ = std::string(tmp != nullptr ? tmp : "/tmp") + "/disk_cache_XXXXXX";
    REQUIRE(mkdtemp(&root_[0]) != nullptr);
    folder_ = root_ + "/a/b";
    target_.name = "device";
    target_.compiler_version = "1";
  }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;
  ~Fixture() { fs::remove_all(root_); }

  CachedBinary Binary(const std::string& source = "source",
                      int64_t most_bytes = DiskCache::kMostBytes) const {
    return CachedBinary(target_, source, DiskCache(folder_, most_bytes));
  }
  // Writes the only file, and returns its path.
  std::string WriteOne(const std::string& binary = "binary") const {
    Binary().Write(binary);
    REQUIRE(Paths().size() == 1);
    CHECK(Binary().Read() == binary);
    return Paths()[0];
  }
  std::vector<std::string> Paths() const {
    std::vector<std::string> paths;
    if (!fs::exists(folder_)) return paths;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      paths.push_back(entry.path());
    }
    return paths;
  }

 protected:
  std::string root_, folder_;
  tfplug::Target target_;
};

mode_t ModeOf(const std::string& path) {
  struct stat info;
  REQUIRE(lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

TEST_CASE_FIXTURE(Fixture, "all that a binary depends on is part of its key") {
  CHECK(Binary().Read() == "");
  Binary().Write("binary");
  CHECK(Binary().Read() == "binary");
  CHECK(Binary("other source").Read() == "");
  target_.compiler_version = "2";
  CHECK(Binary().Read() == "");
  target_ = {};
  target_.name = "device1";  // the same text in other parts
  CHECK(Binary().Read() == "");
  target_.name = "";
  Binary().Write("binary");
  CHECK(Binary().Read() == "");
  CHECK(Paths().size() == 1);
}

TEST_CASE_FIXTURE(Fixture,
                  "files and folders are private, whatever the umask") {
  const mode_t before = umask(0);
  const std::string file = WriteOne();
  umask(before);
  CHECK(ModeOf(root_ + "/a") == 0700);
  CHECK(ModeOf(folder_) == 0700);
  CHECK(ModeOf(file) == 0600);
}

TEST_CASE_FIXTURE(Fixture, "a file that others can write is not read") {
  const std::string file = WriteOne();
  for (const mode_t mode : {0620, 0602, 0666}) {
    REQUIRE(chmod(file.c_str(), mode) == 0);
    CHECK(Binary().Read() == "");
  }
  Binary().Write("binary");  // replaces it
  CHECK(Binary().Read() == "binary");
}

TEST_CASE_FIXTURE(Fixture, "a folder that others can write is not used") {
  const std::string file = WriteOne();
  for (const mode_t mode : {0720, 0702, 0777, 01777}) {
    REQUIRE(chmod(folder_.c_str(), mode) == 0);
    CHECK(Binary().Read() == "");
    Binary("another").Write("binary");
    CHECK(Paths().size() == 1);
  }
  REQUIRE(chmod(folder_.c_str(), 0755) == 0);
  CHECK(Binary().Read() == "binary");
}

TEST_CASE_FIXTURE(Fixture, "files and folders of another user are not used") {
  if (geteuid() != 0) return;  // only root can create them
  const std::string file = WriteOne();
  REQUIRE(chown(file.c_str(), 65534, 65534) == 0);
  CHECK(Binary().Read() == "");
  REQUIRE(chown(file.c_str(), 0, 0) == 0);
  CHECK(Binary().Read() == "binary");
  REQUIRE(chown(folder_.c_str(), 65534, 65534) == 0);
  CHECK(Binary().Read() == "");
  Binary("another").Write("binary");
  CHECK(Paths().size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "only regular files are read") {
  const std::string file = WriteOne();
  const std::string moved = root_ + "/moved";
  REQUIRE(rename(file.c_str(), moved.c_str()) == 0);

  REQUIRE(mkfifo(file.c_str(), 0600) == 0);  // reading would wait for ever
  CHECK(Binary().Read() == "");
  REQUIRE(unlink(file.c_str()) == 0);

  for (const std::string& target : {std::string("/dev/zero"), moved}) {
    fs::create_symlink(target, file);
    CHECK(Binary().Read() == "");
    REQUIRE(unlink(file.c_str()) == 0);
  }

  fs::create_directory(file);
  CHECK(Binary().Read() == "");
  Binary().Write("binary");  // fails, and leaves nothing behind
  CHECK(Binary().Read() == "");
  CHECK(Paths().size() == 1);
  fs::remove(file);

  std::ofstream(file).close();
  REQUIRE(chmod(file.c_str(), 0600) == 0);
  CHECK(Binary().Read() == "");
  fs::resize_file(file, static_cast<uintmax_t>(1) << 40);  // takes no space
  CHECK(Binary().Read() == "");
}

TEST_CASE_FIXTURE(Fixture,
                  "a file is valid for its key alone, and as a whole") {
  const std::string file = WriteOne();
  std::ifstream stream(file, std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(stream), {}};
  const auto write = [&](const std::string& contents) {
    std::ofstream(file, std::ios::binary) << contents;
  };
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    write(bad);
    CHECK(Binary().Read() == "");
    write(good.substr(0, i));
    CHECK(Binary().Read() == "");
  }
  write(good + "x");
  CHECK(Binary().Read() == "");
  write(good);
  CHECK(Binary().Read() == "binary");

  Binary("another").Write("another binary");
  for (const std::string& path : Paths()) {
    if (path != file)
      fs::copy_file(file, path, fs::copy_options::overwrite_existing);
  }
  CHECK(Binary("another").Read() == "");
}

TEST_CASE_FIXTURE(Fixture, "the least recently used files are removed") {
  constexpr int64_t kMost = 4200;  // four files of 1000 bytes with their hashes
  const std::string binary(1000, 'x');
  const auto name = [](int i) { return "source " + std::to_string(i); };
  const auto use = [&](int i) { return Binary(name(i)).Read() == binary; };
  // Sets the times of all files back, so that later uses are later.
  const auto wait = [&] {
    for (const std::string& path : Paths()) {
      fs::last_write_time(path,
                          fs::last_write_time(path) - std::chrono::hours(1));
    }
  };
  fs::create_directories(folder_);
  std::ofstream(folder_ + "/notes.txt") << std::string(5000, 'n');
  fs::last_write_time(folder_ + "/notes.txt", fs::file_time_type::min());
  for (int i = 0; i < 4; ++i) {
    Binary(name(i), kMost).Write(binary);
    wait();
  }
  CHECK(use(0));
  wait();
  Binary(name(4), kMost).Write(binary);
  CHECK(use(0));
  CHECK(!use(1));
  CHECK(use(2));
  wait();
  Binary(name(5), kMost).Write(binary);
  CHECK(!use(3));
  CHECK(use(0));
  CHECK(Paths().size() == 5);  // with a file that is not ours
}

TEST_CASE_FIXTURE(Fixture, "a relative folder is not used") {
  folder_ = "relative";
  Binary().Write("binary");
  CHECK(Binary().Read() == "");
  CHECK(!fs::exists("relative"));
}

}  // namespace
}  // namespace disk_cache_test
