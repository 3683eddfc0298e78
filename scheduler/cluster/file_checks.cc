#include "scheduler/cluster/file_checks.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/one_line.h"

namespace troupe {
namespace {

// Idle ones first: they have nothing else to do. One of each host, then more of
// the same hosts, whose roots and mounts may be others.
std::vector<const Worker*> WhoLook(const WorkerTable& workers, size_t most) {
  std::vector<const Worker*> chosen;
  std::vector<const Worker*> others;
  std::set<std::string> hosts;
  for (const bool idle : {true, false}) {
    for (const Worker* worker : workers.InService()) {
      if (worker->idle() != idle || !worker->checks_files) continue;
      const bool is_first =
          hosts.insert(worker->status.description().host()).second;
      (is_first ? chosen : others).push_back(worker);
    }
  }
  chosen.insert(chosen.end(), others.begin(), others.end());
  if (chosen.size() > most) chosen.resize(most);
  return chosen;
}

}  // namespace

int64_t FileChecks::Start(const JobSpec& job, absl::Time now,
                          Actions& actions) {
  if (checks_.size() >= limits_.file_checks_max) return 0;
  const std::vector<const Worker*> chosen =
      WhoLook(workers_, limits_.file_check_workers_max);
  if (chosen.empty()) return 0;
  const int64_t number = next_++;
  Check& check = checks_[number];
  check.began = now;
  for (const Worker* worker : chosen) {
    check.asked[worker->id] = worker->name();
    SendToWorker send{worker->id, {}};
    send.message.mutable_check_files()->set_request(number);
    *send.message.mutable_check_files()->mutable_job() = job;
    actions.push_back(std::move(send));
  }
  return number;
}

void FileChecks::HandleMessage(WorkerId from, const JobFilesChecked& answer,
                               Actions& actions) {
  const auto it = checks_.find(answer.request());
  if (it == checks_.end()) return;
  Check& check = it->second;
  const auto asked = check.asked.find(from);
  if (asked == check.asked.end()) return;
  const std::string name = std::move(asked->second);
  check.asked.erase(asked);
  if (answer.error().empty()) {
    check.error.clear();
    check.asked.clear();
  } else if (check.error.empty()) {
    check.error = absl::StrCat(
        OneLine(answer.error(), limits_.reason_bytes_max), " (on ", name, ")");
  }
  if (check.asked.empty()) End(it, actions);
}

void FileChecks::WorkerGone(WorkerId worker, Actions& actions) {
  for (auto it = checks_.begin(); it != checks_.end();) {
    // It might have found all well.
    const bool was_asked = it->second.asked.count(worker) > 0;
    if (was_asked) it->second.error.clear();
    it = was_asked ? End(it, actions) : std::next(it);
  }
}

void FileChecks::Tick(absl::Time now, Actions& actions) {
  for (auto it = checks_.begin(); it != checks_.end();) {
    const bool late = now - it->second.began >= limits_.file_check_max;
    if (late) it->second.error.clear();
    it = late ? End(it, actions) : std::next(it);
  }
}

void FileChecks::Forgive(absl::Duration time) {
  for (auto& [number, check] : checks_) check.began += time;
}

FileChecks::Checks::iterator FileChecks::End(Checks::iterator it,
                                             Actions& actions) {
  FilesLookedAt looked{.request = it->first};
  if (!it->second.error.empty()) {
    looked.status = absl::InvalidArgumentError(it->second.error);
  }
  actions.push_back(std::move(looked));
  return checks_.erase(it);
}

}  // namespace troupe
