#include "worker/calibrate/other_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "proto/base/clock.h"

namespace troupe {
namespace {

// Columns of the line "cpu" that follow its name; later ones repeat these.
constexpr size_t kIdle = 3;
constexpr size_t kIoWait = 4;
constexpr size_t kColumns = 8;

double SecondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * time.tv_usec;
}

}  // namespace

int64_t BusyTicks(absl::string_view proc_stat) {
  const absl::string_view line = proc_stat.substr(0, proc_stat.find('\n'));
  if (!absl::StartsWith(line, "cpu ")) return 0;
  const std::vector<absl::string_view> columns =
      absl::StrSplit(line.substr(4), ' ', absl::SkipEmpty());
  int64_t busy = 0;
  for (size_t i = 0; i < columns.size() && i < kColumns; ++i) {
    int64_t ticks = 0;
    if (i == kIdle || i == kIoWait) continue;
    if (absl::SimpleAtoi(columns[i], &ticks)) busy += ticks;
  }
  return busy;
}

OtherLoad::OtherLoad() : start_(Now()) {}

double OtherLoad::Share() const {
  const Times now = Now();
  const double wall = now.wall_seconds - start_.wall_seconds;
  const double others = (now.busy_seconds - start_.busy_seconds) -
                        (now.own_seconds - start_.own_seconds);
  const double cores = std::max(1u, std::thread::hardware_concurrency());
  if (wall <= 0) return 0;
  return std::clamp(others / (wall * cores), 0.0, 1.0);
}

OtherLoad::Times OtherLoad::Now() {
  std::ifstream file("/proc/stat");
  std::string line;
  std::getline(file, line);
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const double ticks_per_second =
      static_cast<double>(std::max(1L, sysconf(_SC_CLK_TCK)));
  return {.wall_seconds = 1e-9 * RealClock().MonotonicNanos(),
          .busy_seconds = BusyTicks(line) / ticks_per_second,
          .own_seconds = SecondsOf(usage.ru_utime) + SecondsOf(usage.ru_stime)};
}

}  // namespace troupe
