#include "tests/worker/metrics/read_events.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "storage/engine/little_endian.h"

namespace troupe {
namespace {

// Undoes what TFRecord does to a checksum, instead of doing the same.
uint32_t Unmasked(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

// Takes `bytes` bytes off the file's rest.
absl::string_view Take(size_t bytes, absl::string_view& rest) {
  CHECK_GE(rest.size(), bytes) << "the file ends within a record";
  const absl::string_view taken = rest.substr(0, bytes);
  rest.remove_prefix(bytes);
  return taken;
}

absl::string_view TakeChecked(size_t bytes, absl::string_view& rest) {
  const absl::string_view taken = Take(bytes, rest);
  const auto masked = LoadLittleEndian<uint32_t>(Take(4, rest).data());
  CHECK_EQ(Unmasked(masked), Crc32c(taken)) << "a wrong checksum";
  return taken;
}

}  // namespace

std::vector<tensorboard::Event> ReadEvents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  CHECK(in.good()) << path;
  std::ostringstream text;
  text << in.rdbuf();
  const std::string bytes = text.str();
  absl::string_view rest = bytes;
  std::vector<tensorboard::Event> events;
  while (!rest.empty()) {
    const auto length = LoadLittleEndian<uint64_t>(TakeChecked(8, rest).data());
    CHECK(events.emplace_back().ParseFromString(
        std::string(TakeChecked(length, rest))))
        << path;
  }
  CHECK(!events.empty()) << path;
  CHECK_EQ(events[0].file_version(), "brain.Event:2") << path;
  return events;
}

std::vector<std::string> EventFilesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (absl::StrContains(name, "tfevents")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Curves ReadCurves(const std::string& folder) {
  Curves curves;
  for (const std::string& name : EventFilesIn(folder)) {
    for (const auto& event : ReadEvents(absl::StrCat(folder, "/", name))) {
      if (event.session_log().status() == tensorboard::SessionLog::START) {
        for (auto& [tag, curve] : curves) {
          curve.erase(curve.lower_bound(event.step()), curve.end());
        }
      }
      for (const auto& value : event.summary().value()) {
        const bool is_new = curves[value.tag()]
                                .emplace(event.step(), value.simple_value())
                                .second;
        CHECK(is_new) << value.tag() << " twice in step " << event.step();
      }
    }
  }
  return curves;
}

}  // namespace troupe
