#include "tests/faults/simulated_store.h"

#include <algorithm>
#include <utility>

namespace troupe {

void SimulatedStore::Add(const Action& action) {
  if (std::holds_alternative<PersistJob>(action) ||
      std::holds_alternative<PersistHandOut>(action) ||
      std::holds_alternative<PersistStep>(action) ||
      std::holds_alternative<PersistEvent>(action) ||
      std::holds_alternative<ForgetJob>(action)) {
    queued_.push_back(action);
  }
  if (const auto* forget = std::get_if<ForgetJob>(&action)) {
    forgotten_.insert(forget->job);
  }
}

void SimulatedStore::Write(const absl::Status& disk) {
  if (disk.ok()) {
    for (const Action& action : queued_) Apply(action);
    queued_.clear();
  }
  for (const Done& done : std::exchange(flushes_, {})) done(disk);
}

void SimulatedStore::Apply(const Action& action) {
  if (const auto* job = std::get_if<PersistJob>(&action)) {
    const JobId id(job->row->status.id());
    const JobState state = job->row->status.state();
    jobs_[id] = *job->row;
    if (state == QUEUED || Job::IsEnded(state)) hand_outs_.erase(id);
  } else if (const auto* handed = std::get_if<PersistHandOut>(&action)) {
    hand_outs_[handed->job] = *handed;
  } else if (const auto* step = std::get_if<PersistStep>(&action)) {
    steps_[step->job][step->step.step()] = step->step;
  } else if (const auto* event = std::get_if<PersistEvent>(&action)) {
    events_[event->job][event->index] = event->event;
  } else if (const auto* forget = std::get_if<ForgetJob>(&action)) {
    Forget(forget->job);
  }
}

void SimulatedStore::Forget(JobId job) {
  forgotten_.insert(job);
  jobs_.erase(job);
  steps_.erase(job);
  events_.erase(job);
  hand_outs_.erase(job);
}

std::set<int64_t> SimulatedStore::StepsOf(JobId job) const {
  std::set<int64_t> numbers;
  const auto steps = steps_.find(job);
  if (steps == steps_.end()) return numbers;
  for (const auto& [number, record] : steps->second) numbers.insert(number);
  return numbers;
}

void SimulatedStore::Crash() {
  queued_.clear();
  flushes_.clear();
}

std::vector<StoredJob> SimulatedStore::Load(const Limits& limits) {
  std::vector<StoredJob> loaded;
  std::vector<JobId> old;
  int ended = 0;
  for (auto it = jobs_.rbegin(); it != jobs_.rend(); ++it) {
    const auto& [id, row] = *it;
    if (Job::IsEnded(row.status.state()) && ++ended > limits.ended_jobs_kept) {
      old.push_back(id);
      continue;
    }
    StoredJob& job = loaded.emplace_back();
    job.row = row;
    const auto handed = hand_outs_.find(id);
    if (handed != hand_outs_.end() && handed->second.attempt == row.attempt) {
      job.hand_out = handed->second.hand_out;
    }
    for (const auto& [step, record] : steps_[id]) job.steps.push_back(record);
    for (const auto& [index, event] : events_[id]) job.events.push_back(event);
  }
  for (const JobId id : old) Forget(id);
  std::reverse(loaded.begin(), loaded.end());
  return loaded;
}

}  // namespace troupe
