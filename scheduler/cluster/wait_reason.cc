#include "scheduler/cluster/wait_reason.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "scheduler/cluster/place_ranks.h"

namespace troupe {
namespace {

constexpr size_t kNamesMax = 8;

std::string Are(int64_t count) { return count == 1 ? " is " : " are "; }

std::string Workers(int count) {
  return absl::StrCat(count, count == 1 ? " worker" : " workers");
}

}  // namespace

std::string WaitsForStore(const absl::Status& store) {
  return absl::StrCat("waits until the scheduler can write its store again: ",
                      store.message());
}

std::string NameList(std::vector<std::string> names) {
  const size_t shown = std::min(names.size(), kNamesMax);
  const size_t more = names.size() - shown;
  names.resize(shown);
  return absl::StrCat(absl::StrJoin(names, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

std::string NameList(const std::vector<const Worker*>& workers) {
  std::vector<std::string> names;
  for (const Worker* worker : workers) names.push_back(worker->name());
  const size_t shown = std::min(names.size(), kNamesMax);
  std::partial_sort(names.begin(), names.begin() + shown, names.end(),
                    NaturalLess);
  return NameList(std::move(names));
}

namespace {

// "; 1 is set aside: worker-3; 1 is leaving: worker-4", or nothing.
std::string WhoIsOutOfService(const WorkerTable& workers) {
  std::vector<const Worker*> aside;
  std::vector<const Worker*> leaving;
  for (const Worker* worker : workers.Alive()) {
    if (worker->in_service()) continue;
    (worker->leaving ? leaving : aside).push_back(worker);
  }
  std::string text;
  const auto say = [&text](const std::vector<const Worker*>& those,
                           const char* what) {
    if (those.empty()) return;
    absl::StrAppend(&text, "; ", those.size(), Are(those.size()), what, ": ",
                    NameList(those));
  };
  say(aside, "set aside");
  say(leaving, "leaving");
  return text;
}

std::string WhoIsRegistered(const WorkerTable& workers) {
  const int64_t count = workers.in_service_count();
  const std::string others = WhoIsOutOfService(workers);
  if (count == 0) return absl::StrCat("none is in service", others);
  return absl::StrCat(count, Are(count),
                      others.empty() ? "registered: " : "in service: ",
                      NameList(workers.InService()), others);
}

std::string WhoIsIdle(const WorkerTable& workers) {
  const std::vector<const Worker*> idle = workers.Idle();
  std::string text = idle.empty() ? "none is idle"
                                  : absl::StrCat(idle.size(), Are(idle.size()),
                                                 "idle: ", NameList(idle));
  std::map<int64_t, int> busy;  // by job; 0: texts
  int64_t first = 0;            // of the texts
  for (const Worker* worker : workers.InService()) {
    if (worker->idle()) continue;
    ++busy[worker->status.job()];
    if (first == 0) first = worker->status.text();
  }
  for (const auto& [job, count] : busy) {
    absl::StrAppend(&text, "; ", count, Are(count), "busy with ",
                    job > 0      ? absl::StrCat("job ", job)
                    : count == 1 ? absl::StrCat("text ", first)
                                 : "texts");
  }
  return text + WhoIsOutOfService(workers);
}

}  // namespace

std::string WaitReasons::For(int needed) {
  const std::string reason = absl::StrCat("waits for ", Workers(needed), "; ");
  if (workers_.alive_count() == 0) return reason + "none is registered";
  if (of_one_kind_ < 0) of_one_kind_ = MostOfOneKind(workers_.InService());
  if (of_one_kind_ < needed) {
    if (registered_.empty()) registered_ = WhoIsRegistered(workers_);
    const int64_t count = workers_.in_service_count();
    if (count == 0) return reason + registered_;
    if (count < needed) return absl::StrCat(reason, "only ", registered_);
    return absl::StrCat(reason, "at most ", of_one_kind_,
                        " are of one kind, GPU or CPU; ", registered_);
  }
  if (occupied_.empty()) occupied_ = WhoIsIdle(workers_);
  return reason + occupied_;
}

}  // namespace troupe
