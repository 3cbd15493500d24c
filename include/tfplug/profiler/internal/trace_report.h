// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PROFILER_INTERNAL_TRACE_REPORT_H_
#define TFPLUG_PROFILER_INTERNAL_TRACE_REPORT_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/base/internal/log.h"
#include "tfplug/base/internal/release.h"
#include "tfplug/profiler/internal/device_clock.h"
#include "tfplug/profiler/internal/recorder.h"
#include "tfplug/profiler/xspace.h"

#pragma GCC visibility push(hidden)

namespace tfplug::profiler_internal {

// Returns whether a release of TensorFlow keeps only 32 bits of the ids of
// threads, which are std::hash<std::thread::id>. Measured: 32 bits
// in 2.12, 2.15 and 2.18, 64 bits in 2.19 to 2.22.
inline bool ThreadIdsHave32Bits(internal::Release release) {
  return release.major == 2 && release.minor < 19;
}

// Writes the records of the last profile to an XSpace: the host's activities
// and, for each device, the work on its streams.
//
// The host's plane has the name of the CUPTI driver calls: TensorFlow merges a
// plane of this name into its own plane of host threads, by thread id, and
// assigns the steps to the events of our planes through `correlation_id`.
class TraceReport {
 public:
  TraceReport(const char* device_type, const DeviceClocks& clocks,
              XSpace& space)
      : device_type_(device_type), clocks_(clocks), space_(space) {}

  [[gnu::cold, gnu::noinline]] void Write() {
    dropped_ =
        Recorder::ForEach([&](int64_t thread, const internal::Record& record) {
          Read(thread, record);
        });
    WriteMemory();
    for (auto& [id, stream] : streams_) WriteStream(id, stream);
    if (dropped_ > 0) ReportDropped();
  }

 private:
  struct Work {
    internal::Record record;
    uint64_t begin_ns;  // 0 if unknown
    uint64_t end_ns;
  };
  using Stream = std::vector<Work>;
  // The times at which a device did some work, in Unix time; 0 if unknown.
  struct Times {
    uint64_t begin_ns = 0, end_ns = 0;
    bool is_omitted = false;
  };
  // The ids of lines: TensorBoard uses small ones for lines of its own.
  static constexpr int64_t kStreams = 100, kWaits = 1000;

  static bool IsCopy(internal::Activity kind) {
    return kind == internal::Activity::kHostToDevice ||
           kind == internal::Activity::kDeviceToHost ||
           kind == internal::Activity::kDeviceToDevice;
  }

  // Returns the ordinal of a stream's device.
  static int64_t OrdinalOf(uint32_t stream) {
    return static_cast<int64_t>(stream >> 16) - 1;
  }

  [[gnu::cold]] XPlane& Host() {
    if (host_ == nullptr) host_ = &space_.AddPlane("/host:CUPTI");
    return *host_;
  }

  [[gnu::cold]] void Read(int64_t thread, const internal::Record& record) {
    if (record.kind == internal::Activity::kDone) {
      times_[record.correlation] = {0, record.end_ns};
      return;
    }
    if (record.kind == internal::Activity::kTimed) return ReadTimes(record);
    if (record.kind == internal::Activity::kAllocate ||
        record.kind == internal::Activity::kDeallocate) {
      memory_.emplace_back(thread, record);
      return;
    }
    WriteHostEvent(thread, record);
    if (record.stream != 0) {
      streams_[record.stream].push_back({record, 0, record.end_ns});
    }
  }

  // Converts times of a device's clock. A record that enqueued no work has
  // none.
  [[gnu::cold]] void ReadTimes(const internal::Record& record) {
    const auto clock = clocks_.find(OrdinalOf(record.stream));
    Times& times = times_[record.correlation];
    if (record.end_ns == 0) {
      times.is_omitted = true;
    } else if (clock != clocks_.end()) {
      times.begin_ns = clock->second.ToUnix(record.begin_ns);
      times.end_ns = clock->second.ToUnix(record.end_ns);
    }
  }

  [[gnu::cold]] XLine& Thread(int64_t thread) {
    if (has_32_bits_) thread &= 0xffffffff;
    auto [found, is_new] = threads_.emplace(thread, nullptr);
    if (is_new) {
      found->second = &Host().AddLine(
          thread, "tfplug/" + std::to_string(thread), Recorder::started_ns());
    }
    return *found->second;
  }

  [[gnu::cold]] void WriteHostEvent(int64_t thread,
                                    const internal::Record& record) {
    XEvent event =
        Thread(thread).AddEvent(record.name, record.begin_ns, record.end_ns);
    if (record.correlation != 0) {
      event.Set("correlation_id", record.correlation);
    }
    if (record.node != nullptr) event.Set("node", record.node);
    if (record.kind == internal::Activity::kLaunch) {
      event.Set("step", static_cast<int64_t>(record.values[0]));
    } else if (record.kind == internal::Activity::kGraphPass) {
      event.Set("nodes_before", record.values[0]);
      event.Set("nodes_after", record.values[1]);
    } else if (record.values[0] != 0) {
      event.Set("bytes", record.values[0]);
    }
  }

  // Writes the uses of memory in the order of time, under the names that the
  // memory viewer of TensorBoard reads. An allocator without statistics gets
  // those of the profile: memory that was allocated before does not count.
  [[gnu::cold]] void WriteMemory() {
    struct Use {
      uint64_t in_use = 0, peak = 0;
    };
    std::sort(memory_.begin(), memory_.end(), [](const auto& a, const auto& b) {
      return a.second.begin_ns < b.second.begin_ns;
    });
    std::unordered_map<uint32_t, Use> uses;
    std::unordered_map<uint64_t, uint64_t> sizes;
    for (auto& [thread, record] : memory_) {
      uint64_t& size = sizes[record.correlation];
      Use& use = uses[record.stream];
      const bool is_allocation = record.kind == internal::Activity::kAllocate;
      if (is_allocation) {
        size = record.values[0];
        use.in_use += size;
        use.peak = std::max(use.peak, use.in_use);
      } else {
        use.in_use -= size;
      }
      if (record.values[2] != 0) use = {record.values[1], record.values[2]};
      XEvent event = Thread(thread).AddEvent(
          is_allocation ? "MemoryAllocation" : "MemoryDeallocation",
          record.begin_ns, record.begin_ns);
      const auto set = [&](const char* name, uint64_t value) {
        event.Set(name, static_cast<int64_t>(value));
      };
      event.Set("allocator_name", std::string(device_type_) + "_" +
                                      std::to_string(OrdinalOf(record.stream)) +
                                      "_tfplug");
      set("requested_bytes", size);
      set("allocation_bytes", size);
      set("bytes_allocated", use.in_use);
      set("peak_bytes_in_use", use.peak);
      set("bytes_available",
          record.values[3] - std::min(use.in_use, record.values[3]));
      set("addr", record.correlation);
      if (!is_allocation) size = 0;
    }
  }

  [[gnu::cold]] void WriteStream(uint32_t id, Stream& stream) {
    const int64_t device = OrdinalOf(id);
    const int64_t ordinal = id & 0xffff;
    uint64_t unfinished = 0;
    for (Work& work : stream) {
      if (work.record.correlation == 0) continue;  // It blocked the host.
      const Times times = times_[work.record.correlation];
      work.begin_ns = times.begin_ns;
      work.end_ns = times.end_ns;
      unfinished += times.end_ns == 0 && !times.is_omitted;
    }
    dropped_ += unfinished;
    std::sort(stream.begin(), stream.end(), [](const Work& a, const Work& b) {
      return std::make_pair(a.end_ns, a.record.begin_ns) <
             std::make_pair(b.end_ns, b.record.begin_ns);
    });
    XLine* line = nullptr;
    XLine* waits = nullptr;
    uint64_t busy_until_ns = 0;
    for (const Work& work : stream) {
      if (work.end_ns == 0) continue;
      const bool is_wait = work.record.kind == internal::Activity::kWait;
      const bool has_begin = work.begin_ns != 0 && !is_wait;
      const uint64_t begin_ns = std::max(
          busy_until_ns, has_begin ? work.begin_ns : work.record.begin_ns);
      busy_until_ns = std::max(busy_until_ns, work.end_ns);
      XLine*& to = is_wait ? waits : line;
      if (to == nullptr) {
        std::string name = "Stream #" + std::to_string(ordinal);
        name += is_wait ? " waits" : "(" + Purpose(stream) + ")";
        to = &Device(device).AddLine(ordinal + (is_wait ? kWaits : kStreams),
                                     name, Recorder::started_ns());
      }
      WriteWork(*to, work, begin_ns);
    }
  }

  [[gnu::cold]] static void WriteWork(XLine& line, const Work& work,
                                      uint64_t begin_ns) {
    const internal::Record& record = work.record;
    const bool is_launch = record.kind == internal::Activity::kLaunch;
    XEvent event =
        line.AddEvent(IsCopy(record.kind) ? CopyName(record.kind) : record.name,
                      begin_ns, work.end_ns);
    if (record.correlation != 0) {
      event.Set("correlation_id", record.correlation);
    }
    if (is_launch) {
      std::string op(record.name);
      if (record.node != nullptr) op = std::string(record.node) + ":" + op;
      event.Set("tf_op", op);
      event.Set("kernel_details",
                "regs:0 static_shared:0 dynamic_shared:0 grid:1,1,1 "
                "block:1,1,1 occ_pct:0");
    } else if (record.kind != internal::Activity::kWait) {
      event.Set("memcpy_details",
                "kind_src:" + std::string(SourceOf(record.kind)) +
                    " kind_dst:" + TargetOf(record.kind) +
                    " size:" + std::to_string(record.values[0]) +
                    " dest:0 async:" + (record.correlation != 0 ? "1" : "0"));
      event.Set("bytes", record.values[0]);
    }
  }

  [[gnu::cold]] XPlane& Device(int64_t ordinal) {
    auto [found, is_new] = devices_.emplace(ordinal, nullptr);
    if (is_new) {
      const std::string index = std::to_string(ordinal);
      // Plug-ins in one process should have different ids, below 500.
      uint32_t hash = 0;
      for (const char* c = device_type_; *c != '\0'; ++c) {
        hash = hash * 31 + static_cast<unsigned char>(*c);
      }
      found->second = &space_.AddPlane(
          "/device:GPU:" + index + " (" + device_type_ + ":" + index + ")",
          ordinal % 16 + 16 * static_cast<int64_t>(hash % 30));
    }
    return *found->second;
  }

  // Returns what TensorBoard calls the stream.
  [[gnu::cold]] static std::string Purpose(const Stream& stream) {
    std::string purpose;
    const auto add = [&](bool has, const char* name) {
      if (has) absl::StrAppend(&purpose, purpose.empty() ? "" : ",", name);
    };
    const auto has = [&](internal::Activity kind) {
      return std::any_of(
          stream.begin(), stream.end(),
          [kind](const Work& work) { return work.record.kind == kind; });
    };
    add(has(internal::Activity::kLaunch), "Compute");
    add(has(internal::Activity::kHostToDevice), "MemcpyH2D");
    add(has(internal::Activity::kDeviceToHost), "MemcpyD2H");
    add(has(internal::Activity::kDeviceToDevice), "MemcpyD2D");
    add(has(internal::Activity::kFill), "Memset");
    return purpose;
  }
  [[gnu::cold]] static const char* CopyName(internal::Activity kind) {
    return kind == internal::Activity::kHostToDevice   ? "MemcpyH2D"
           : kind == internal::Activity::kDeviceToHost ? "MemcpyD2H"
                                                       : "MemcpyD2D";
  }
  [[gnu::cold]] static const char* SourceOf(internal::Activity kind) {
    return kind == internal::Activity::kHostToDevice ? "pageable" : "device";
  }
  [[gnu::cold]] static const char* TargetOf(internal::Activity kind) {
    return kind == internal::Activity::kDeviceToHost ? "pageable" : "device";
  }

  [[gnu::cold]] void ReportDropped() {
    const std::string text =
        std::to_string(dropped_) +
        " events are missing: the buffers were full, or their work did not end "
        "in time; record a shorter profile";
    Host()
        .AddLine(-1, "tfplug", Recorder::started_ns())
        .AddEvent("dropped events", Recorder::started_ns(),
                  Recorder::started_ns())
        .Set("dropped", dropped_);
    internal::LogWarning("collect_data_xspace", text.c_str());
  }

  const char* const device_type_;
  const DeviceClocks& clocks_;
  XSpace& space_;
  const bool has_32_bits_ = ThreadIdsHave32Bits(internal::CurrentRelease());
  XPlane* host_ = nullptr;
  uint64_t dropped_ = 0;
  std::vector<std::pair<int64_t, internal::Record>> memory_;  // with the thread
  std::unordered_map<int64_t, XLine*> threads_;
  std::unordered_map<int64_t, XPlane*> devices_;
  std::unordered_map<uint32_t, Stream> streams_;
  std::unordered_map<uint64_t, Times> times_;  // by correlation
};

}  // namespace tfplug::profiler_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PROFILER_INTERNAL_TRACE_REPORT_H_
