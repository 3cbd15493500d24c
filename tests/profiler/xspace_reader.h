// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_PROFILER_XSPACE_READER_H_
#define TFPLUG_TESTS_PROFILER_XSPACE_READER_H_

#include <doctest/doctest.h>
#include <tfplug/base/internal/wire.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// Reads a serialized XSpace into plain structs. Malformed bytes throw.
namespace xspace {

struct Event {
  std::string name;
  uint64_t begin_ps = 0, duration_ps = 0;  // begin_ps counts from the line's
  std::map<std::string, std::string> stats;
};
struct Line {
  uint64_t id = 0, start_ns = 0;
  std::string name;
  std::vector<Event> events;
};
struct Plane {
  std::string name;
  std::vector<Line> lines;

  // Returns the events of all lines with this name, or of all lines.
  std::vector<Event> Events(const std::string& name) const {
    std::vector<Event> found;
    for (const Line& line : lines) {
      for (const Event& event : line.events) {
        if (event.name == name) found.push_back(event);
      }
    }
    return found;
  }
};

using Reader = tfplug::internal::WireReader;
using Names = std::map<uint64_t, std::string>;

inline void Check(bool ok) { REQUIRE_MESSAGE(ok, "the XSpace is malformed"); }

inline std::string Stat(absl::string_view bytes, const Names& names,
                        std::string* name) {
  std::string value;
  Reader field(bytes);
  while (field.Next()) {
    switch (field.number()) {
      case 1:
        Check(names.count(field.varint()) == 1);
        *name = names.at(field.varint());
        break;
      case 2: {
        double number;
        Check(field.bytes().size() == sizeof(number));
        std::memcpy(&number, field.bytes().data(), sizeof(number));
        value = std::to_string(number);
        break;
      }
      case 3:
        value = std::to_string(field.varint());
        break;
      case 4:
        value = std::to_string(static_cast<int64_t>(field.varint()));
        break;
      case 5:
        value = std::string(field.bytes());
        break;
      default:
        Check(false);
    }
  }
  Check(field.ok());
  return value;
}

inline Event ReadEvent(absl::string_view bytes, const Names& events,
                       const Names& stats) {
  Event event;
  Reader field(bytes);
  while (field.Next()) {
    if (field.number() == 1) {
      Check(events.count(field.varint()) == 1);
      event.name = events.at(field.varint());
    } else if (field.number() == 2) {
      event.begin_ps = field.varint();
    } else if (field.number() == 3) {
      event.duration_ps = field.varint();
    } else {
      Check(field.number() == 4);
      std::string name;
      const std::string value = Stat(field.bytes(), stats, &name);
      Check(event.stats.emplace(name, value).second);
    }
  }
  Check(field.ok());
  return event;
}

inline Names ReadNames(absl::string_view plane, int map) {
  Names names;
  for (Reader field(plane); field.Next();) {
    if (field.number() != map) continue;
    uint64_t id = 0;
    for (Reader entry(field.bytes()); entry.Next();) {
      if (entry.number() == 1) id = entry.varint();
      if (entry.number() != 2) continue;
      for (Reader metadata(entry.bytes()); metadata.Next();) {
        if (metadata.number() == 1) Check(metadata.varint() == id);
        if (metadata.number() == 2) names[id] = std::string(metadata.bytes());
      }
    }
  }
  return names;
}

inline std::vector<Plane> Read(absl::string_view space) {
  std::vector<Plane> planes;
  Reader in_space(space);
  while (in_space.Next()) {
    Check(in_space.Is(1, tfplug::internal::kBytesType));
    const absl::string_view bytes = in_space.bytes();
    const Names events = ReadNames(bytes, 4), stats = ReadNames(bytes, 5);
    Plane plane;
    for (Reader field(bytes); field.Next();) {
      if (field.number() == 2) plane.name = std::string(field.bytes());
      if (field.number() != 3) continue;
      Line line;
      for (Reader part(field.bytes()); part.Next();) {
        if (part.number() == 1) line.id = part.varint();
        if (part.number() == 2) line.name = std::string(part.bytes());
        if (part.number() == 3) line.start_ns = part.varint();
        if (part.number() == 4) {
          line.events.push_back(ReadEvent(part.bytes(), events, stats));
        }
      }
      plane.lines.push_back(line);
    }
    planes.push_back(plane);
  }
  Check(in_space.ok());
  return planes;
}

}  // namespace xspace

#endif  // TFPLUG_TESTS_PROFILER_XSPACE_READER_H_
