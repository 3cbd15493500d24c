// SPDX-License-Identifier: Apache-2.0
#include "tfplug/compiled/math_prelude.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tfplug/compiled/languages/plain_c.h"
#include "tfplug/compiled/prelude.h"

// The functions that languages may lack, as C without a library, compared with
// those of the system for numbers with 64 bits of precision.
namespace tfplug::math_prelude_test {
namespace {

using Unary = long double (*)(long double);
using Binary = long double (*)(long double, long double);

long double Lgamma(long double x) {
  int sign;
  return lgammal_r(x, &sign);
}
long double Rsqrt(long double x) { return 1 / sqrtl(x); }

struct Function {
  const char* name;
  double ulps;  // as in opcodes.def
  Unary unary;
  Binary binary;
};
const Function kFunctions[] = {
    {"fabs", 0, fabsl, nullptr},     {"floor", 0, floorl, nullptr},
    {"ceil", 0, ceill, nullptr},     {"rint", 0, rintl, nullptr},
    {"sqrt", 3, sqrtl, nullptr},     {"rsqrt", 2, Rsqrt, nullptr},
    {"exp", 3, expl, nullptr},       {"expm1", 3, expm1l, nullptr},
    {"log", 3, logl, nullptr},       {"log1p", 2, log1pl, nullptr},
    {"sin", 4, sinl, nullptr},       {"cos", 4, cosl, nullptr},
    {"tan", 5, tanl, nullptr},       {"asin", 4, asinl, nullptr},
    {"acos", 4, acosl, nullptr},     {"atan", 5, atanl, nullptr},
    {"sinh", 4, sinhl, nullptr},     {"cosh", 4, coshl, nullptr},
    {"tanh", 5, tanhl, nullptr},     {"asinh", 4, asinhl, nullptr},
    {"acosh", 4, acoshl, nullptr},   {"atanh", 5, atanhl, nullptr},
    {"erf", 16, erfl, nullptr},      {"erfc", 16, erfcl, nullptr},
    {"lgamma", 16, Lgamma, nullptr}, {"fmod", 0, nullptr, fmodl},
    {"pow", 16, nullptr, powl},      {"atan2", 6, nullptr, atan2l},
};

// The functions, compiled.
class Library {
 public:
  Library() {
    Target target;
    target.language = &PlainC();
    target.is_cpu = true;
    compiled_internal::SourceParts parts(target);
    std::string exported;
    for (const Function& function : kFunctions) {
      for (const char* type : {"f32", "f64"}) {
        const std::string name =
            parts.Function(function.name, std::strcmp(type, "f64") == 0);
        absl::StrAppend(&exported, type, " test_", name, "(", type, " x, ",
                        type, " y) { return ", name,
                        function.unary != nullptr ? "(x)" : "(x, y)", "; }\n");
      }
    }
    const char* const tmp = std::getenv("TMPDIR");
    std::string folder =
        std::string(tmp != nullptr ? tmp : "/tmp") + "/math_test_XXXXXX";
    REQUIRE(mkdtemp(&folder[0]) != nullptr);
    std::ofstream(folder + "/math.c") << parts.Prelude() << exported;
    const std::string command =
        "cc -std=c99 -O1 -fno-builtin -nostdlib -shared -fPIC -Wall -Werror "
        "-Wno-unused-function -Wl,--no-undefined -o " +
        folder + "/math.so " + folder + "/math.c";
    REQUIRE(std::system(command.c_str()) == 0);
    library_ = dlopen((folder + "/math.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library_ != nullptr);
    std::filesystem::remove_all(folder);
  }
  Library(const Library&) = delete;
  ~Library() { dlclose(library_); }

  template <class T>
  auto Find(const char* name) const {
    const std::string symbol =
        std::string(sizeof(T) == 4 ? "test_f32_" : "test_f64_") + name;
    const auto found =
        reinterpret_cast<T (*)(T, T)>(dlsym(library_, symbol.c_str()));
    REQUIRE((found != nullptr));
    return found;
  }

 private:
  void* library_;
};

// Returns the error in units in the last place.
template <class T>
double Error(T got, long double want) {
  const auto rounded = static_cast<T>(want);
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e30;
  if (got == rounded) return 0;
  if (!std::isfinite(got) || !std::isfinite(rounded)) {
    // The largest number and infinity are neighbours.
    const T most = std::numeric_limits<T>::max();
    return std::abs(got) >= most && std::abs(rounded) >= most &&
                   (got > 0) == (rounded > 0)
               ? 1
               : 1e30;
  }
  const T size = std::max(std::abs(rounded), std::numeric_limits<T>::min());
  const T ulp = size - std::nextafter(size, T(0));
  return static_cast<double>(fabsl(static_cast<long double>(got) - want) / ulp);
}

// Returns numbers of all sizes, fewer of the extremes, and all neighbourhoods of
// simple numbers.
template <class T>
std::vector<T> Numbers(size_t count, std::mt19937_64& random) {
  std::vector<T> all = {0, T(-0.0), std::numeric_limits<T>::infinity(),
                        -std::numeric_limits<T>::infinity(),
                        std::numeric_limits<T>::quiet_NaN()};
  const long double pi = acosl(-1);
  for (const long double x :
       {0.25L,  0.5L,    0.75L,       1.0L,        1.5L,       2.0L,   2.5L,
        3.0L,   8.0L,    22.0L,       40.0L,       pi / 4,     pi / 2, pi,
        3 * pi, 88 * pi, 710.0L,      88.73L,      104.0L,     256.0L, 1e4L,
        1e5L,   1e9L,    0.41421356L, 2.41421356L, 0.70710678L}) {
    T above = static_cast<T>(x), below = above;
    for (int i = 0; i < 12; ++i) {
      all.insert(all.end(), {above, below, -above, -below});
      above = std::nextafter(above, T(1e30));
      below = std::nextafter(below, T(-1e30));
    }
  }
  std::uniform_real_distribution<double> exponent(-8, 8), uniform(-12, 12);
  while (all.size() < count) {
    const uint64_t bits = random();
    T any;
    std::memcpy(&any, &bits, sizeof(any));
    all.push_back(any);
    const auto x = static_cast<T>(std::exp2(exponent(random)));
    all.push_back(bits % 2 == 0 ? x : -x);
    all.push_back(static_cast<T>(uniform(random)));
    all.push_back(static_cast<T>(std::round(uniform(random))));
  }
  return all;
}

template <class T>
void CheckAll(const Library& library) {
  const char* const count = std::getenv("MATH_NUMBERS");
  std::mt19937_64 random(7);
  const std::vector<T> numbers =
      Numbers<T>(count != nullptr ? std::stoul(count) : 40000, random);
  for (const Function& function : kFunctions) {
    const auto call = library.Find<T>(function.name);
    double worst = 0;
    T at = 0, other = 0, found = 0;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const T x = numbers[i], y = numbers[random() % numbers.size()];
      const T got = call(x, y);
      const long double want =
          function.unary != nullptr ? function.unary(x) : function.binary(x, y);
      double error = Error(got, want);
      // Beside its roots, the function is only as accurate as its terms.
      if (std::strcmp(function.name, "lgamma") == 0 && x < 0 &&
          fabsl(got - want) < 40 * std::numeric_limits<T>::epsilon()) {
        error = 0;
      }
      if (got == 0 && want == 0 && std::signbit(got) != std::signbit(want)) {
        error = 1e30;
      }
      if (!(error <= worst)) {
        worst = error;
        at = x;
        other = y;
        found = got;
      }
    }
    INFO(std::string(function.name), " of ", sizeof(T), " bytes at ", at,
         " and ", other, " is ", found);
    CHECK(worst <= function.ulps);
    if (count != nullptr) {
      MESSAGE(std::string(function.name), " ", sizeof(T), ": ", worst, " at ",
              at, " ", other);
    }
  }
}

TEST_CASE("portable functions are as accurate as opcodes.def demands") {
  const Library library;
  CheckAll<float>(library);
  CheckAll<double>(library);
}

TEST_CASE(
    "languages without a function of opcodes.def get one, which is compared") {
  const std::string definitions[] = {
#define TFPLUG_INTERNAL_OPCODE(name, text, function, arity, result, floats, \
                               ...)                                         \
#floats,
#include "tfplug/ir/opcodes.def"
  };
  const auto is_named = [](const auto& rows, const std::string& name) {
    return std::any_of(std::begin(rows), std::end(rows),
                       [&](const auto& row) { return name == row.name; });
  };
  const std::regex call("([a-z][a-z0-9_]*)\\(");
  for (const std::string& text : definitions) {
    for (std::sregex_iterator it(text.begin(), text.end(), call), end;
         it != end; ++it) {
      const std::string name = (*it)[1];
      CAPTURE(name);
      CHECK_MESSAGE(is_named(compiled_internal::kMathFunctions, name),
                    "add it to compiled/math_functions.h");
      CHECK_MESSAGE(is_named(kFunctions, name), "compare it in this test");
    }
  }
}

TEST_CASE("the first power of the largest number is finite") {
  const Library library;
  CHECK(library.Find<double>("pow")(-DBL_MAX, 1) == -DBL_MAX);
  CHECK(library.Find<float>("pow")(FLT_MAX, 1) == FLT_MAX);
}

}  // namespace
}  // namespace tfplug::math_prelude_test
