#include "worker/calibrate/machine_watch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "worker/calibrate/machine_probe.h"

namespace troupe {
namespace {

constexpr double kWindowSeconds = 10;  // of shares
// Between two looks at the times; heartbeats may come more often.
constexpr double kLookSeconds = 0.5;
constexpr double kProbeShare = 1e-3;  // of the time
constexpr int kProbesAtStart = 9;
constexpr int kProbesAtOnce = 8;
constexpr size_t kProbesKept = 33;
constexpr double kProbeKeptSeconds = 60;

}  // namespace

MachineSensors SensorsOf(const Clock& clock, bool gpu) {
  MachineSensors sensors = {
      .wall_seconds = [&clock] { return 1e-9 * clock.MonotonicNanos(); },
      .times = ReadMachineTimes};
  if (!gpu) sensors.probe_us = [&clock] { return ProbeUs(clock); };
  return sensors;
}

MachineWatch::MachineWatch(MachineSensors sensors)
    : sensors_(std::move(sensors)) {
  const MachineTimes first = sensors_.times();
  {
    absl::MutexLock lock(&mutex_);
    looks_.push_back(first);
  }
  RunProbes(kProbesAtStart);
}

void MachineWatch::RunProbes(int count) {
  if (sensors_.probe_us == nullptr) return;
  const double start = sensors_.wall_seconds();
  std::vector<double> taken;
  for (int i = 0; i < count; ++i) taken.push_back(sensors_.probe_us());
  const double end = sensors_.wall_seconds();
  absl::MutexLock lock(&mutex_);
  for (const double us : taken) probes_.push_back({.wall = end, .us = us});
  while (probes_.size() > kProbesKept) probes_.pop_front();
  probed_ = end;
  probe_cost_ = (end - start) / count;
}

void MachineWatch::Probe() {
  int count = 0;
  {
    absl::MutexLock lock(&mutex_);
    const double allowed = (sensors_.wall_seconds() - probed_) * kProbeShare;
    if (probe_cost_ <= 0 || allowed < probe_cost_) return;
    count = static_cast<int>(
        std::min<double>(kProbesAtOnce, allowed / probe_cost_));
  }
  RunProbes(count);
}

MachineReading MachineWatch::Read() {
  const MachineTimes now = sensors_.times();
  absl::MutexLock lock(&mutex_);
  // The oldest stays until another is as old as the window.
  while (looks_.size() > 1 && looks_[1].wall <= now.wall - kWindowSeconds) {
    looks_.pop_front();
  }
  MachineReading reading = SharesBetween(looks_.front(), now);
  if (now.wall >= looks_.back().wall + kLookSeconds) looks_.push_back(now);
  // The newest say more than none, however old they are.
  while (probes_.size() > kProbesAtOnce &&
         probes_.front().wall < now.wall - kProbeKeptSeconds) {
    probes_.pop_front();
  }
  std::vector<double> us;
  for (const ProbeResult& probe : probes_) us.push_back(probe.us);
  if (!us.empty()) {
    const auto median = us.begin() + us.size() / 2;
    std::nth_element(us.begin(), median, us.end());
    reading.set_probe_us(*median);
  }
  return reading;
}

}  // namespace troupe
