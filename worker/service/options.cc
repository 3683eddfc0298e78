#include "worker/service/options.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/cores.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

struct ByteUnit {
  absl::string_view name;
  double bytes;
};
constexpr ByteUnit kByteUnits[] = {
    {"", 1},         {"b", 1},        {"kib", 1024.0}, {"mib", 0x1p20},
    {"gib", 0x1p30}, {"tib", 0x1p40}, {"kb", 1e3},     {"mb", 1e6},
    {"gb", 1e9},     {"tb", 1e12},    {"k", 1024.0},   {"m", 0x1p20},
    {"g", 0x1p30},   {"t", 0x1p40},
};

// "MemAvailable: 123 kB" of /proc/meminfo; 0 where that cannot be read.
int64_t AvailableMemory() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  int64_t kilobytes = 0;
  std::string unit;
  while (file >> key >> kilobytes) {
    std::getline(file, unit);
    if (key == "MemAvailable:") return kilobytes * 1024;
  }
  return 0;
}

// What a tier's ranges are aligned to.
constexpr int64_t kNvmeBlock = 4096;

absl::Status ResolveNvme(WorkerOptions& options) {
  if (options.nvme.empty() && options.nvme_size > 0) {
    return absl::InvalidArgumentError(
        "--nvme-size: of which directory's disk? say it with --nvme DIR");
  }
  options.nvme_size -= options.nvme_size % kNvmeBlock;
  if (!options.nvme.empty() && options.nvme_size == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--nvme: how much of ", options.nvme,
                     "'s disk may jobs take? say it with --nvme-size 100GiB"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int64_t> ParseBytes(absl::string_view text) {
  const absl::string_view trimmed = absl::StripAsciiWhitespace(text);
  const size_t digits =
      std::min(trimmed.find_first_not_of("0123456789."), trimmed.size());
  const std::string unit =
      absl::AsciiStrToLower(absl::StripAsciiWhitespace(trimmed.substr(digits)));
  double number = 0;
  if (absl::SimpleAtod(trimmed.substr(0, digits), &number) && number > 0) {
    for (const ByteUnit& known : kByteUnits) {
      if (unit == known.name && number * known.bytes < 0x1p62) {
        return static_cast<int64_t>(number * known.bytes);
      }
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", text, "\" is no amount of memory; write it like 8GiB or 512MiB"));
}

absl::StatusOr<absl::optional<int>> GpuOrdinal(absl::string_view device) {
  if (device == "cpu") return absl::optional<int>();
  absl::string_view number = device;
  int ordinal = -1;
  if (absl::ConsumePrefix(&number, "cuda:") &&
      absl::SimpleAtoi(number, &ordinal) && ordinal >= 0 && ordinal < 1024) {
    return absl::optional<int>(ordinal);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--device: \"", device,
                   "\" is no device; use cpu, or cuda:0 for the first GPU"));
}

absl::StatusOr<WorkerOptions> ResolveOptions(WorkerOptions options) {
  ASSIGN_OR_RETURN(const absl::optional<int> gpu, GpuOrdinal(options.device));
  if (options.name.empty()) {
    return absl::InvalidArgumentError("--name: must not be empty");
  }
  if (options.threads == 0) options.threads = UsableCoreCount();
  if (options.threads < 0 || options.threads > 1024) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--threads: ", options.threads, " is not between 1 and 1024"));
  }
  RETURN_IF_ERROR(ResolveNvme(options));
  const int64_t available = AvailableMemory();
  if (gpu.has_value()) {
    if (options.host_memory == 0) options.host_memory = available / 2;
    return options;
  }
  if (options.device_memory == 0) options.device_memory = available / 10 * 8;
  if (options.host_memory == 0) {
    options.host_memory =
        std::max<int64_t>(available - options.device_memory, 1 << 20);
  }
  if (options.device_memory <= 0) {
    return absl::InvalidArgumentError(
        "--device-memory: cannot tell how much memory is available; say it "
        "with --device-memory 8GiB");
  }
  return options;
}

}  // namespace troupe
