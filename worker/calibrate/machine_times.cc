#include "worker/calibrate/machine_times.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/clock.h"
#include "proto/base/cores.h"
#include "proto/base/file_text.h"

namespace troupe {
namespace {

// Columns after the name; what follows these is part of the first two.
enum Column { kUser, kNice, kSystem, kIdle, kIoWait, kIrq, kSoftIrq, kSteal };

double SecondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * time.tv_usec;
}

// Whether the line is of one of the cores.
bool IsOf(absl::string_view name, const std::vector<int>& cores) {
  int core = 0;
  return absl::ConsumePrefix(&name, "cpu") && absl::SimpleAtoi(name, &core) &&
         std::binary_search(cores.begin(), cores.end(), core);
}

double Share(double part, double whole) {
  return std::clamp(part / whole, 0.0, 1.0);
}

}  // namespace

MachineTimes ParseProcStat(absl::string_view proc_stat,
                           const std::vector<int>& cores,
                           double ticks_per_second) {
  MachineTimes times;
  for (const absl::string_view line : absl::StrSplit(proc_stat, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.empty() || !IsOf(words[0], cores)) continue;
    ++times.cores;
    for (size_t column = 0; column <= kSteal; ++column) {
      int64_t ticks = 0;
      if (column + 1 >= words.size()) break;
      if (!absl::SimpleAtoi(words[column + 1], &ticks)) continue;
      const double seconds = ticks / ticks_per_second;
      if (column == kSteal) {
        times.stolen += seconds;
      } else if (column != kIdle && column != kIoWait) {
        times.busy += seconds;
      }
    }
  }
  return times;
}

MachineTimes ReadMachineTimes() {
  MachineTimes times =
      ParseProcStat(FileText("/proc/stat").value_or(""), UsableCores(),
                    std::max(1.0, double(sysconf(_SC_CLK_TCK))));
  times.wall = 1e-9 * RealClock().MonotonicNanos();
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage = {};
    getrusage(who, &usage);
    times.own += SecondsOf(usage.ru_utime) + SecondsOf(usage.ru_stime);
  }
  return times;
}

MachineReading SharesBetween(const MachineTimes& start,
                             const MachineTimes& end) {
  MachineReading reading;
  constexpr double kWallMin = 0.2;
  const double wall = end.wall - start.wall;
  const double all = wall * std::min(start.cores, end.cores);
  if (wall < kWallMin || all <= 0) return reading;
  reading.set_stolen_share(Share(end.stolen - start.stolen, all));
  reading.set_busy_share(Share(end.busy - start.busy, all));
  reading.set_own_share(Share(end.own - start.own, all));
  return reading;
}

double LostShare(const MachineReading& reading) {
  const double others =
      std::max(0.0, reading.busy_share() - reading.own_share());
  return std::min(1.0, reading.stolen_share() + others);
}

}  // namespace troupe
