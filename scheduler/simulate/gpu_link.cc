#include "scheduler/simulate/gpu_link.h"

#include <cstdio>

#include "absl/strings/match.h"

namespace troupe {
namespace {

constexpr double kReached = 0.75;
constexpr double kLatencyUs = 10;  // a step of a ring, its launch included

struct NvLink {
  const char* name;         // part of the GPU's
  double bytes_per_second;  // of all its links, in one direction
};
constexpr NvLink kNvLinks[] = {
    {"A100-SXM", 300e9}, {"A800-SXM", 200e9}, {"H100 80GB HBM3", 450e9},
    {"H200", 450e9},     {"B200", 900e9},     {"B300", 900e9},
};

LinkRate Reached(double bytes_per_second) {
  LinkRate link;
  link.set_latency_us(kLatencyUs);
  link.set_bytes_per_second(kReached * bytes_per_second);
  return link;
}

}  // namespace

absl::optional<LinkRate> NcclLinkOf(const Gpu& gpu) {
  for (const NvLink& row : kNvLinks) {
    if (absl::StrContains(gpu.name(), row.name)) {
      return Reached(row.bytes_per_second);
    }
  }
  double transfers = 0;  // 1e9 a second, of a bit each
  int lanes = 0;
  if (std::sscanf(gpu.link().c_str(), "PCIe %lf GT/s x%d", &transfers,
                  &lanes) == 2 &&
      transfers > 0 && lanes > 0) {
    return Reached(1e9 * transfers * lanes / 8);
  }
  return absl::nullopt;
}

}  // namespace troupe
