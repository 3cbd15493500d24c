// SPDX-License-Identifier: Apache-2.0
#include "backend/backend.h"

#include <tfplug/host/host.h>
#include <tfplug/host/indexed.h>

#include <utility>

#include "backend/device_views.h"
#include "kernels/simd.h"

namespace cpu_sim {
namespace {

using tfplug::Operand;
using tfplug::Operands;

const tfplug::HostLoops& Loops() {
  return *static_cast<const tfplug::HostLoops*>(Simd().loops);
}

}  // namespace

absl::Status Backend::Map(Stream& stream, const tfplug::Expression& expression,
                          Operands inputs, Operands outputs) {
  TFPLUG_ASSIGN_OR_RETURN(PackedViews packed,
                          PackedViews::Make(stream, {inputs, outputs}));
  return stream.LaunchTask([expression, packed = std::move(packed),
                            count = inputs.size()] {
    const DeviceViews views = packed.Unpack();
    const Operands all = views;
    tfplug::HostMap(Loops(), expression, all.first(count), all.subspan(count));
  });
}

absl::Status Backend::Reduce(Stream& stream, const tfplug::Reduction& reduction,
                             Operands inputs, Operands outputs) {
  TFPLUG_ASSIGN_OR_RETURN(PackedViews packed,
                          PackedViews::Make(stream, {inputs, outputs}));
  return stream.LaunchTask(
      [reduction, packed = std::move(packed), count = inputs.size()] {
        const DeviceViews views = packed.Unpack();
        const Operands all = views;
        tfplug::HostReduce(Loops(), reduction, all.first(count),
                           all.subspan(count));
      });
}

absl::Status Backend::Scatter(Stream& stream, tfplug::Launcher& launcher,
                              tfplug::ScatterKind kind, const Operand& indices,
                              const Operand& updates, const Operand& output) {
  if (!tfplug::HostScatterSupports(kind, updates, output)) {
    return tfplug::Backend<Stream>::Scatter(stream, launcher, kind, indices,
                                            updates, output);
  }
  TFPLUG_ASSIGN_OR_RETURN(const DeviceViews views,
                          ForDevice(stream, {indices, updates, output}));
  return stream.LaunchTask([kind, views] {
    tfplug::HostScatter(Loops(), kind, views[0], views[1], views[2]);
  });
}

absl::Status Backend::Scan(Stream& stream, tfplug::Launcher& /*launcher*/,
                           tfplug::ReduceKind kind, const Operand& input,
                           const Operand& output) {
  TFPLUG_ASSIGN_OR_RETURN(const DeviceViews views,
                          ForDevice(stream, {input, output}));
  return stream.LaunchTask(
      [kind, views] { tfplug::HostScan(kind, views[0], views[1]); });
}

absl::Status Backend::Sort(Stream& stream, tfplug::Launcher& /*launcher*/,
                           const Operand& input, const Operand& values,
                           const Operand& indices) {
  TFPLUG_ASSIGN_OR_RETURN(const DeviceViews views,
                          ForDevice(stream, {input, values, indices}));
  return stream.LaunchTask(
      [views] { tfplug::HostSort(views[0], views[1], views[2]); });
}

}  // namespace cpu_sim
