#include "storage/spill/spill_header.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/crc32c.h"
#include "proto/base/one_line.h"
#include "storage/disk/file_lock.h"

namespace troupe {
namespace {

constexpr absl::string_view kNamePrefix = "troupe-spill-";
constexpr size_t kNameDigits = 8;
constexpr absl::string_view kBegin = "troupe spill file ";
constexpr absl::string_view kVersion = "1";
constexpr absl::string_view kChecksum = ", crc32c ";
constexpr size_t kNameBytesMax = 128;

std::string Hex(uint32_t value) {
  return absl::StrCat(absl::Hex(value, absl::kZeroPad8));
}

}  // namespace

std::string SpillHeader(const SpillOwner& owner) {
  const std::string text = absl::StrCat(
      kBegin, kVersion, ": cluster ", OneLine(owner.cluster, kNameBytesMax),
      ", job ", OneLine(owner.job, kNameBytesMax), ", rank ", owner.rank, ", ",
      ThisProcessName());
  return absl::StrCat(text, kChecksum, Hex(Crc32c(text)));
}

bool IsSpillHeader(absl::string_view text) {
  const absl::string_view line = text.substr(0, text.find('\n'));
  const size_t checksum = line.rfind(kChecksum);
  if (!absl::StartsWith(line, kBegin) || checksum == line.npos) return false;
  return line.substr(checksum + kChecksum.size()) ==
         Hex(Crc32c(line.substr(0, checksum)));
}

std::string NewSpillPath(const std::string& directory) {
  std::random_device random;
  return std::filesystem::path(directory) /
         absl::StrCat(kNamePrefix, Hex(random()));
}

bool IsSpillName(absl::string_view name) {
  return absl::ConsumePrefix(&name, kNamePrefix) &&
         name.size() == kNameDigits &&
         std::all_of(name.begin(), name.end(), absl::ascii_isxdigit);
}

}  // namespace troupe
