// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_CHECK_KERNELS_H_
#define TFPLUG_CHECK_KERNELS_H_

#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "define_ops.h"
#include "graphs.h"
#include "plugin.h"
#include "tfplug/testing/optimizer_settings.h"

// Checks of a plug-in's kernels. A few ops with simple arguments are run.
namespace tfplug::check {

using testing::FakeKernel;
using testing::KernelRegistry;
using testing::KernelRun;

// Lists the kernels, and reports those that TensorFlow never uses.
inline void CheckKernels(Plugin& plugin) {
  Report& report = plugin.report();
  if (!plugin.InitKernels()) return;
  std::set<std::string> device_types;
  std::map<std::string, std::set<std::string>> ops;  // arguments in host memory
  std::map<std::string, int> exact;  // kernels by everything that selects them
  int count = 0;
  for (const auto& kernel : KernelRegistry::Get().kernels()) {
    if (IsDefined(kernel->op)) {
      ++count;
      ops[kernel->op].insert(kernel->host_memory.begin(),
                             kernel->host_memory.end());
    }
    device_types.insert(kernel->device_type);
    std::string key = kernel->op + " for " + kernel->device_type;
    if (!kernel->label.empty()) key += ", label " + kernel->label;
    key += ", priority " + std::to_string(kernel->priority);
    for (const auto& [attr, types] : kernel->type_constraints) {
      key += ", " + attr + " in";
      for (const auto type : types) {
        key += " " + std::to_string(static_cast<int>(type));
      }
    }
    if (++exact[key] == 2) {
      report.Error("registers the same kernel twice: " + key +
                   ". TensorFlow fails each node with 'multiple kernels'");
    }
    if (kernel->create_func == nullptr && kernel->compute_func == nullptr &&
        kernel->compute_async_func == nullptr) {
      report.Error("the kernel " + key + " has no functions");
    }
  }
  const bool has_device = plugin.init_plugin() != nullptr;
  if (!has_device || plugin.host() != nullptr) {
    const std::string type = has_device ? plugin.host()->device_type() : "";
    for (const std::string& other : device_types) {
      if (other == type || other == "CPU" || other == "GPU" ||
          other == "DEFAULT") {
        continue;
      }
      report.Warning(absl::StrCat(
          "registers kernels for device type '", other, "', but ",
          has_device ? absl::StrCat("its device has type '", type, "'")
                     : "adds no device: unless another plug-in does, no op "
                       "uses them"));
    }
  }
  std::string text = absl::StrCat(
      count, count == 1 ? " kernel of " : " kernels of ", ops.size(),
      ops.size() == 1 ? " op" : " ops", " in TensorFlow ", plugin.release.major,
      ".", plugin.release.minor, ops.empty() ? "" : ":");
  for (const auto& [op, on_host] : ops) {
    text += " " + op;
    if (!on_host.empty()) {
      absl::StrAppend(&text, "(", absl::StrJoin(on_host, ","), ")");
    }
  }
  report.Note(text);
  if (text.find('(') != std::string::npos) {
    report.Note("in parentheses: arguments that a kernel has in host memory");
  }
}

// Returns whether the passes undo what TensorFlow's memory optimizer makes of an
// AddN.
inline bool JoinsSums(Plugin& plugin) {
  const auto example = MakeExample(plugin, R"(
x, y, z: float[2,4] = Placeholder() {dtype=float}
zeros: float[2,4] = ZerosLike(x)
variable: float[2,4] = TemporaryVariable() {shape=shape[2,4], dtype=float, var_name="v"}
start: float[2,4] = Assign(variable, zeros) {validate_shape=false, use_locking=false}
a: float[2,4] = AssignAdd(start, x) {use_locking=false}
b: float[2,4] = AssignAdd(start, y) {use_locking=false}
c: float[2,4] = AssignAdd(start, z) {use_locking=false}
sum: float[2,4] = DestroyTemporaryVariable(start, ^a, ^b, ^c) {var_name="v"}
out: float[2,4] = Identity(sum)
)",
                                   {"out"});
  if (example == nullptr) return false;
  plugin.report().Step("optimize_func");
  const auto outcome = plugin.graph()->Optimize(example->bytes, example->item);
  const auto graph = Graph::Parse(outcome.graph);
  return graph.ok() && !graph->has_op("AssignAdd");
}

// Writes each kernel's op, device type, arguments in host memory, attributes
// with their types, and whether the op is defined, for check_kernels.py.
inline void WriteKernels(Plugin& plugin) {
  if (!plugin.InitKernels()) return;
  for (const auto& kernel : KernelRegistry::Get().kernels()) {
    std::vector<std::string> attrs;
    for (const auto& [attr, types] : kernel->type_constraints) {
      attrs.push_back(absl::StrCat(attr, "=", absl::StrJoin(types, ",")));
    }
    plugin.report().Data(absl::StrJoin(
        {kernel->op, kernel->device_type,
         absl::StrJoin(kernel->host_memory, " "), absl::StrJoin(attrs, " "),
         IsDefined(kernel->op) ? "defined" : ""},
        ";"));
  }
}

// Does so, and writes the rewriters of TensorFlow's that a pass turns off, or
// whose work it undoes.
inline void WriteKernelsAndSettings(Plugin& plugin) {
  WriteKernels(plugin);
  if (plugin.init_graph() == nullptr || plugin.graph() == nullptr) return;
  const auto settings = testing::MergeSettings({plugin.graph()->configs()});
  if (!settings.ok()) return;
  std::vector<std::string> off = settings->off;
  if (JoinsSums(plugin)) off.push_back("memory_optimization");
  plugin.report().Data("off;" + absl::StrJoin(off, " "));
}

// An op with float arguments of one shape, and its value at `x`, `y`.
struct SimpleOp {
  const char* name;
  int inputs;
  float (*value)(float x, float y);
};
inline const std::vector<SimpleOp>& SimpleOps() {
  static const auto* const ops = new std::vector<SimpleOp>{
      {"Relu", 1, [](float x, float) { return x > 0 ? x : 0; }},
      {"Neg", 1, [](float x, float) { return -x; }},
      {"Square", 1, [](float x, float) { return x * x; }},
      {"Identity", 1, [](float x, float) { return x; }},
      {"Tanh", 1, [](float x, float) { return std::tanh(x); }},
      {"Exp", 1, [](float x, float) { return std::exp(x); }},
      {"Abs", 1, [](float x, float) { return std::fabs(x); }},
      {"AddV2", 2, [](float x, float y) { return x + y; }},
      {"Sub", 2, [](float x, float y) { return x - y; }},
      {"Mul", 2, [](float x, float y) { return x * y; }},
      {"Maximum", 2, [](float x, float y) { return x > y ? x : y; }},
  };
  return *ops;
}

// The simple ops for which a plug-in has a kernel.
class SimpleKernels {
 public:
  explicit SimpleKernels(Plugin& plugin) : plugin_(plugin) {
    device_ = plugin.device();
    if (device_ == nullptr || !plugin.InitKernels()) return;
    for (const SimpleOp& op : SimpleOps()) {
      if (KernelRegistry::Get().Find(NodeOf(op), type()) != nullptr) {
        ops_.push_back(op);
      }
    }
    if (ops_.empty()) {
      plugin.report().Skip(
          "none of the ops that this check runs has a float "
          "kernel");
    }
  }
  const std::vector<SimpleOp>& ops() const { return ops_; }

  // The result of a run.
  struct Result {
    absl::Status status;
    bool is_set = false;
    std::vector<int64_t> dims;
    std::vector<float> elements;
  };
  Result Run(const SimpleOp& op, const testing::Value<float>& x,
             const testing::Value<float>& y) {
    Result result;
    auto kernel = FakeKernel::Create(NodeOf(op), type());
    result.status = kernel.status();
    if (!kernel.ok()) return result;
    KernelRun run(**kernel, device_);
    run.AddInput<float>(x);
    if (op.inputs == 2) run.AddInput<float>(y);
    run.AddOutput(DataType::kFloat);
    result.status = run.Run();
    result.is_set = run.output(0) != nullptr;
    if (result.status.ok() && result.is_set) {
      auto value = run.Output<float>(0);
      result.dims = value.dims;
      result.elements = value.elements;
    }
    return result;
  }

 private:
  static testing::Node NodeOf(const SimpleOp& op) {
    return {op.name, "node", {{"T", DataType::kFloat}}, {}};
  }
  std::string type() const { return plugin_.host()->device_type(); }

  Plugin& plugin_;
  FakeDevice* device_ = nullptr;
  std::vector<SimpleOp> ops_;
};

inline void CheckKernelResults(Plugin& plugin) {
  Report& report = plugin.report();
  SimpleKernels kernels(plugin);
  const testing::Value<float> x{{5}, {-2, -0.5f, 0, 0.5f, 2}};
  const testing::Value<float> y{{5}, {1, 2, 3, -4, 0.25f}};
  for (const SimpleOp& op : kernels.ops()) {
    report.Step(std::string("kernel of ") + op.name);
    const auto result = kernels.Run(op, x, y);
    if (!report.Ok(result.status, op.name) ||
        !report.Expect(result.is_set, std::string("the kernel of ") + op.name +
                                          " returns OK and sets no output")) {
      continue;
    }
    if (!report.Expect(
            result.dims == x.dims,
            absl::StrCat("the kernel of ", op.name, " returns the shape [",
                         absl::StrJoin(result.dims, ","),
                         "] instead of [5]: allocate the output "
                         "with the shape that the op defines"))) {
      continue;
    }
    for (size_t i = 0; i < x.elements.size(); ++i) {
      const float expected = op.value(x.elements[i], y.elements[i]);
      if (std::fabs(result.elements[i] - expected) < 1e-3f) continue;
      report.Error(absl::StrCat("the kernel of ", op.name, " returns ",
                                result.elements[i], " instead of ", expected));
      break;
    }
  }
}

inline void CheckKernelEmpty(Plugin& plugin) {
  Report& report = plugin.report();
  SimpleKernels kernels(plugin);
  for (const SimpleOp& op : kernels.ops()) {
    const std::string name = std::string("the kernel of ") + op.name;
    report.Step(name + " with an empty tensor");
    const auto result = kernels.Run(op, {{2, 0}, {}}, {{2, 0}, {}});
    if (report.Ok(result.status, name + " with an empty tensor")) {
      report.Expect(result.is_set,
                    name +
                        " sets no output if its input is empty: the next "
                        "node fails");
    }
  }
}

// Fails each call of TensorFlow that a kernel makes, one after the other.
inline void CheckKernelFaults(Plugin& plugin) {
  Report& report = plugin.report();
  SimpleKernels kernels(plugin);
  const testing::Value<float> x{{3}, {1, 2, 3}};
  for (const SimpleOp& op : kernels.ops()) {
    const std::string name = std::string("the kernel of ") + op.name;
    const int64_t calls = testing::CountCalls([&] { kernels.Run(op, x, x); });
    for (int64_t n = 1; n <= calls; ++n) {
      std::string failed;
      SimpleKernels::Result result;
      const testing::LeakCheck leaks;
      {
        const testing::Fault fault(n);
        report.Step(name + " while call " + std::to_string(n) + " fails");
        result = kernels.Run(op, x, x);
        failed = fault.failed();
      }
      const std::string when = name + ": when " + failed + " fails, it ";
      if (result.status.ok() && !result.is_set) {
        report.Error(when + "reports no error and sets no output");
        break;
      }
      if (result.status.ok() && result.elements.size() != x.elements.size()) {
        report.Error(when + "reports no error and returns nonsense");
        break;
      }
      const absl::Status leaked = leaks.Check();
      if (!leaked.ok()) {
        report.Error(when + "does not delete its objects: " +
                     std::string(leaked.message()));
        break;
      }
    }
  }
}

}  // namespace tfplug::check

#endif  // TFPLUG_CHECK_KERNELS_H_
