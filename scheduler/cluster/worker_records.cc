#include "scheduler/cluster/worker_records.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace troupe {

std::string WorkerRecord::WhySetAside() const {
  if (cordoned) {
    return cordoned_why.empty() ? "cordoned"
                                : absl::StrCat("cordoned: ", cordoned_why);
  }
  if (!set_aside) return "";
  std::string jobs;
  for (const LocalFailure& failure : failures) {
    absl::StrAppend(&jobs, jobs.empty() ? "" : ", ", failure.job.value());
  }
  return absl::StrCat("jobs ", jobs, " failed on it, and not elsewhere; last: ",
                      failures.empty() ? "" : failures.back().why);
}

bool IsToBeSetAside(const InService& workers, int failures_max) {
  return workers.failures >= failures_max &&
         2 * (workers.in_service - 1) >= workers.alive;
}

void WorkerRecords::Restore(std::vector<WorkerRecord> records) {
  for (WorkerRecord& record : records) {
    const std::string name = record.name;
    set_aside_ += record.set_aside;
    records_[name] = std::move(record);
  }
}

const WorkerRecord& WorkerRecords::Of(const std::string& name) const {
  static const auto& kNothing = *new WorkerRecord();
  const auto it = records_.find(name);
  return it == records_.end() ? kNothing : it->second;
}

WorkerRecord* WorkerRecords::Record(const std::string& name) {
  const auto it = records_.find(name);
  if (it != records_.end()) return &it->second;
  if (records_.size() >= kRecordsMax) return nullptr;
  WorkerRecord& record = records_[name];
  record.name = name;
  return &record;
}

void WorkerRecords::Changed(const std::string& name) { changed_.insert(name); }

void WorkerRecords::Cordon(const std::string& name, const std::string& why) {
  WorkerRecord* const record = Record(name);
  if (record == nullptr) return;
  record->cordoned = true;
  record->cordoned_why = why;
  Changed(name);
}

void WorkerRecords::Uncordon(const std::string& name) {
  const auto it = records_.find(name);
  if (it == records_.end()) return;
  set_aside_ -= it->second.set_aside;
  records_.erase(it);
  Changed(name);
}

void WorkerRecords::Doubt(const std::string& name) {
  if (WorkerRecord* const record = Record(name)) record->doubted = true;
}

bool WorkerRecords::AddFailure(const std::string& name, JobId job,
                               const std::string& why) {
  WorkerRecord* const record = Record(name);
  if (record == nullptr) return false;
  record->doubted = true;
  auto& failures = record->failures;
  const auto same = std::find_if(
      failures.begin(), failures.end(),
      [job](const LocalFailure& failure) { return failure.job == job; });
  if (same != failures.end()) return false;
  if (failures.size() >= kFailuresMax) failures.erase(failures.begin());
  failures.push_back({job, why});
  Changed(name);
  return true;
}

void WorkerRecords::SetAside(const std::string& name) {
  WorkerRecord* const record = Record(name);
  if (record == nullptr || record->set_aside) return;
  record->set_aside = true;
  ++set_aside_;
  Changed(name);
}

void WorkerRecords::ForgetFailures(const std::string& name) {
  const auto it = records_.find(name);
  if (it == records_.end()) return;
  WorkerRecord& record = it->second;
  record.doubted = false;
  if (record.set_aside) return;
  if (!record.failures.empty()) Changed(name);
  record.failures.clear();
  if (record.empty()) records_.erase(it);
}

std::vector<WorkerRecord> WorkerRecords::TakeChanged() {
  std::vector<WorkerRecord> changed;
  for (const std::string& name : std::exchange(changed_, {})) {
    changed.push_back(Of(name));
    changed.back().name = name;
  }
  return changed;
}

}  // namespace troupe
