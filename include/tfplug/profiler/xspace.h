// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PROFILER_XSPACE_H_
#define TFPLUG_PROFILER_XSPACE_H_

#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/strings/string_view.h"
#include "tfplug/base/internal/wire.h"

#pragma GCC visibility push(hidden)

// Builds a tensorflow.profiler.XSpace, the format of TensorFlow's profiles,
// directly in its serialized form:
//
//   tfplug::XSpace space;
//   tfplug::XPlane& plane = space.AddPlane("/device:GPU:0 (MY_DEVICE:0)");
//   tfplug::XLine& line = plane.AddLine(1, "Stream #1(Compute)", start_ns);
//   line.AddEvent("MatMul", begin_ns, end_ns)
//       .Set("tf_op", "dense/MatMul:MatMul")
//       .Set("correlation_id", 7);
//
// Times are nanoseconds since the epoch (Unix time). TensorBoard's profiler
// shows a device completely only if the name of its plane begins with
// "/device:GPU:" and an ordinal; other names are shown in the trace viewer at
// best. Lines with the names of streams, as above, count as the device's work.
namespace tfplug {

class XLine;
class XPlane;

// One event of a line. Set adds a named value ("stat"), each name once; the
// temporary object must not outlive the full expression.
class XEvent {
 public:
  XEvent(const XEvent&) = delete;
  XEvent& operator=(const XEvent&) = delete;
  inline ~XEvent();

  XEvent& Set(absl::string_view name, absl::string_view value) {
    std::string& stat = Begin(name);
    internal::AppendField(stat, kStringValue, value);
    return End(stat);
  }
  XEvent& Set(absl::string_view name, const char* value) {
    return Set(name, absl::string_view(value));
  }
  XEvent& Set(absl::string_view name, int64_t value) {
    std::string& stat = Begin(name);
    internal::AppendField(stat, kIntValue, static_cast<uint64_t>(value));
    return End(stat);
  }
  XEvent& Set(absl::string_view name, int value) {
    return Set(name, static_cast<int64_t>(value));
  }
  XEvent& Set(absl::string_view name, uint64_t value) {
    std::string& stat = Begin(name);
    internal::AppendField(stat, kUintValue, value);
    return End(stat);
  }
  XEvent& Set(absl::string_view name, double value) {
    std::string& stat = Begin(name);
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    internal::AppendVarint(stat, internal::MakeTag(2, internal::kFixed64Type));
    stat.append(bytes, sizeof(bytes));
    return End(stat);
  }

 private:
  friend class XLine;
  // The fields of XStat.
  enum { kUintValue = 3, kIntValue = 4, kStringValue = 5 };

  XEvent(XLine& line, XPlane& plane) : line_(line), plane_(plane) {}
  inline std::string& Begin(absl::string_view name);
  inline XEvent& End(const std::string& stat);

  XLine& line_;
  XPlane& plane_;
};

// A row of the trace viewer: events on one thread or stream.
class XLine {
 public:
  XLine(XPlane& plane, int64_t id, absl::string_view name, uint64_t start_ns)
      : plane_(plane), start_ns_(start_ns) {
    internal::AppendField(bytes_, 1, static_cast<uint64_t>(id));
    internal::AppendField(bytes_, 2, name);
    internal::AppendField(bytes_, 3, start_ns);
  }
  XLine(const XLine&) = delete;
  XLine& operator=(const XLine&) = delete;

  // Adds an event. A part before the line's `start_ns` is cut off; an event
  // that ends before it begins gets no duration.
  inline XEvent AddEvent(absl::string_view name, uint64_t begin_ns,
                         uint64_t end_ns);

 private:
  friend class XEvent;
  friend class XSpace;

  XPlane& plane_;
  const uint64_t start_ns_;
  std::string bytes_;
  std::string event_;  // the event that is being built
  std::string stat_;
};

// A device, or the threads of the host.
class XPlane {
 public:
  XPlane(absl::string_view name, int64_t id) {
    internal::AppendField(bytes_, 1, static_cast<uint64_t>(id));
    internal::AppendField(bytes_, 2, name);
  }
  XPlane(const XPlane&) = delete;
  XPlane& operator=(const XPlane&) = delete;

  // Adds a row. `id` is unique in the plane; `start_ns` is at or before the
  // begin of its events. The reference stays valid.
  XLine& AddLine(int64_t id, absl::string_view name, uint64_t start_ns) {
    return lines_.emplace_back(*this, id, name, start_ns);
  }

 private:
  friend class XEvent;
  friend class XLine;
  friend class XSpace;
  using Ids = std::unordered_map<std::string, uint64_t>;

  // Returns the id of the name in the map `field` of the plane.
  uint64_t IdOf(Ids& ids, int field, absl::string_view name) {
    const auto [found, is_new] = ids.emplace(std::string(name), ids.size() + 1);
    if (is_new) {
      std::string metadata, entry;
      internal::AppendField(metadata, 1, found->second);
      internal::AppendField(metadata, 2, name);
      internal::AppendField(entry, 1, found->second);
      internal::AppendField(entry, 2, absl::string_view(metadata));
      internal::AppendField(bytes_, field, absl::string_view(entry));
    }
    return found->second;
  }
  uint64_t EventId(absl::string_view name) { return IdOf(events_, 4, name); }
  uint64_t StatId(absl::string_view name) { return IdOf(stats_, 5, name); }

  std::string bytes_;
  std::deque<XLine> lines_;
  Ids events_, stats_;
};

// A profile: the contents of an .xplane.pb file.
class XSpace {
 public:
  XSpace() = default;
  XSpace(const XSpace&) = delete;
  XSpace& operator=(const XSpace&) = delete;

  // Adds a plane. The trace viewer merges planes of devices with the same `id`.
  // The reference stays valid.
  XPlane& AddPlane(absl::string_view name, int64_t id = 0) {
    return planes_.emplace_back(name, id);
  }

  // Returns the serialized message. An XSpace without planes is empty.
  std::string Serialize() const {
    std::string space, bytes;
    for (const XPlane& plane : planes_) {
      bytes = plane.bytes_;
      for (const XLine& line : plane.lines_) {
        internal::AppendField(bytes, 3, absl::string_view(line.bytes_));
      }
      internal::AppendField(space, 1, absl::string_view(bytes));
    }
    return space;
  }

 private:
  std::deque<XPlane> planes_;
};

inline XEvent XLine::AddEvent(absl::string_view name, uint64_t begin_ns,
                              uint64_t end_ns) {
  constexpr uint64_t kPicoseconds = 1000;  // in a nanosecond
  if (begin_ns < start_ns_) begin_ns = start_ns_;
  if (end_ns < begin_ns) end_ns = begin_ns;
  event_.clear();
  internal::AppendField(event_, 1, plane_.EventId(name));
  internal::AppendField(event_, 2, (begin_ns - start_ns_) * kPicoseconds);
  internal::AppendField(event_, 3, (end_ns - begin_ns) * kPicoseconds);
  return XEvent(*this, plane_);
}

inline XEvent::~XEvent() {
  internal::AppendField(line_.bytes_, 4, absl::string_view(line_.event_));
}

inline std::string& XEvent::Begin(absl::string_view name) {
  line_.stat_.clear();
  internal::AppendField(line_.stat_, 1, plane_.StatId(name));
  return line_.stat_;
}

inline XEvent& XEvent::End(const std::string& stat) {
  internal::AppendField(line_.event_, 4, absl::string_view(stat));
  return *this;
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PROFILER_XSPACE_H_
