#include "scheduler/simulate/processor.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "proto/base/check.h"

namespace troupe {
namespace {

// Of the clock: so near is there. Sums of doubles are never exact.
constexpr double kToleranceNs = 0.5;

}  // namespace

bool Processor::Running::operator>(const Running& other) const {
  return std::tie(end, task.at.rank, task.at.instruction) >
         std::tie(other.end, other.task.at.rank, other.task.at.instruction);
}

void Processor::AdvanceTo(int64_t now) {
  CHECK_GE(now, now_);
  clock_ += static_cast<double>(now - now_) * Rate();
  now_ = now;
}

void Processor::Start(int64_t now, const Task& task) {
  AdvanceTo(now);
  wanted_ += task.cores;
  running_.push({.end = clock_ + static_cast<double>(task.ns), .task = task});
}

int64_t Processor::NextEnd() const {
  CHECK(!idle());
  const double left = running_.top().end - clock_ - kToleranceNs / 2;
  return now_ + static_cast<int64_t>(std::ceil(std::max(0.0, left) / Rate()));
}

std::vector<RankInstruction> Processor::TakeEnded(int64_t now) {
  AdvanceTo(now);
  std::vector<RankInstruction> ended;
  while (!idle() && running_.top().end <= clock_ + kToleranceNs) {
    ended.push_back(running_.top().task.at);
    wanted_ -= running_.top().task.cores;
    running_.pop();
  }
  if (idle()) wanted_ = 0;
  return ended;
}

}  // namespace troupe
