#include "proto/plan/machine_pace.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace troupe {
namespace {

// What the workers of one host say, put together.
struct Host {
  double stolen = 0;
  double busy = 0;
  double own = 0;     // of all these workers
  double wanted = 0;  // of the cores, by their threads
  // Probe now over then; 0: not measured. Of the fastest: while one probes,
  // another may compute on the same core.
  double probe_ratio = 0;
};

void Add(const WorkerDescription& worker, Host& host) {
  const MachineReading& reading = worker.machine();
  host.stolen = std::max(host.stolen, reading.stolen_share());
  host.busy = std::max(host.busy, reading.busy_share());
  host.own += reading.own_share();
  host.wanted += worker.threads() / std::max(1.0, double(worker.host_cores()));
  const double then = worker.calibration().probe_us();
  if (then <= 0 || reading.probe_us() <= 0) return;
  const double ratio = reading.probe_us() / then;
  host.probe_ratio =
      host.probe_ratio > 0 ? std::min(host.probe_ratio, ratio) : ratio;
}

// Of the time that the workers want, what they get beside other processes,
// which use `others` of the `there` that the hypervisor leaves.
double PartGot(const Host& host, double there, double others) {
  const double wanted = there * std::min(1.0, host.wanted);
  if (wanted <= 0) return 1;
  double left = there - others;
  // Workers that hardly run have not made others share yet: they will.
  if (host.own < wanted / 2) {
    left = std::max(left, there * wanted / (wanted + others));
  }
  return std::min(1.0, left / wanted);
}

MachinePace PaceOf(const Host& host) {
  constexpr double kLeast = 0.05;  // below it a ratio says nothing
  const double there = std::max(kLeast, 1 - host.stolen);
  const double others = std::clamp(host.busy - host.own, 0.0, there);
  const double got = std::max(kLeast, PartGot(host, there, others));
  const double ratio = host.probe_ratio > 0 ? host.probe_ratio : 1;
  MachinePace pace;
  pace.set_slower(ratio / (there * got) - 1);
  pace.set_stolen(host.stolen);
  pace.set_others(others);
  return pace;
}

long Percent(double share) { return std::lround(100 * share); }

std::string SpeedText(const MachinePace& pace) {
  const long slower = Percent(pace.slower());
  if (slower > 0) return absl::StrCat(slower, " % slower");
  if (slower < 0) return absl::StrCat(-slower, " % faster");
  return "as fast";
}

std::string PartsText(const MachinePace& pace) {
  std::vector<std::string> parts;
  if (Percent(pace.stolen()) > 0) {
    parts.push_back(absl::StrCat(Percent(pace.stolen()), " % stolen"));
  }
  if (Percent(pace.others()) > 0) {
    parts.push_back(absl::StrCat("others use ", Percent(pace.others()), " %"));
  }
  if (parts.empty()) return "";
  return absl::StrCat(" (", absl::StrJoin(parts, ", "), ")");
}

}  // namespace

absl::optional<MachinePace> PaceOf(
    const std::vector<const WorkerDescription*>& workers) {
  std::map<std::string, Host> hosts;
  for (const WorkerDescription* worker : workers) {
    if (worker->has_machine()) Add(*worker, hosts[worker->host()]);
  }
  absl::optional<MachinePace> slowest;
  for (const auto& [name, host] : hosts) {
    const MachinePace pace = PaceOf(host);
    if (!slowest.has_value() || pace.slower() > slowest->slower()) {
      slowest = pace;
    }
  }
  return slowest;
}

bool IsWorthSaying(const MachinePace& pace) {
  return std::abs(Percent(pace.slower())) >= 5;
}

std::string PaceText(const MachinePace& pace) {
  return absl::StrCat(SpeedText(pace),
                      Percent(pace.slower()) == 0 ? " as" : " than",
                      " at calibration", PartsText(pace));
}

std::string ShortPaceText(const MachinePace& pace) {
  return absl::StrCat(SpeedText(pace), PartsText(pace));
}

}  // namespace troupe
