#include "scheduler/cluster/wait_reason.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "scheduler/cluster/placement.h"

namespace troupe {
namespace {

constexpr size_t kNamesMax = 8;

std::string Are(int64_t count) { return count == 1 ? " is " : " are "; }

std::string Workers(int count) {
  return absl::StrCat(count, count == 1 ? " worker" : " workers");
}

}  // namespace

std::string NameList(const std::vector<const Worker*>& workers) {
  std::vector<absl::string_view> names;
  for (const Worker* worker : workers) names.push_back(worker->name());
  const size_t shown = std::min(names.size(), kNamesMax);
  const size_t more = names.size() - shown;
  std::partial_sort(names.begin(), names.begin() + shown, names.end(),
                    NaturalLess);
  names.resize(shown);
  std::string list = absl::StrJoin(names, ", ");
  if (more > 0) absl::StrAppend(&list, " and ", more, " more");
  return list;
}

std::string WaitReason(int needed, const WorkerTable& workers) {
  const std::vector<const Worker*> alive = workers.Alive();
  const std::vector<const Worker*> idle = workers.Idle();
  std::string reason = absl::StrCat("waits for ", Workers(needed), "; ");
  if (alive.empty()) return reason + "none is registered";
  if (static_cast<int>(alive.size()) < needed) {
    return absl::StrCat(reason, "only ", alive.size(), Are(alive.size()),
                        "registered: ", NameList(alive));
  }
  if (idle.empty()) {
    absl::StrAppend(&reason, "none is idle");
  } else {
    absl::StrAppend(&reason, idle.size(), Are(idle.size()),
                    "idle: ", NameList(idle));
  }
  std::map<int64_t, int> busy;  // by job; 0: texts
  int64_t text = 0;             // the first of them
  for (const Worker* worker : alive) {
    if (worker->idle()) continue;
    ++busy[worker->status.job()];
    if (text == 0) text = worker->status.text();
  }
  for (const auto& [job, count] : busy) {
    absl::StrAppend(&reason, "; ", count, Are(count), "busy with ",
                    job > 0      ? absl::StrCat("job ", job)
                    : count == 1 ? absl::StrCat("text ", text)
                                 : "texts");
  }
  return reason;
}

}  // namespace troupe
