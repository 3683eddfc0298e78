#include "tests/faults/integrity_invariants.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

// Its seat, where what it says of this rank is heard; null: it is not.
const RankSeat* SeatThatIsHeard(WorkerId from, const RankRef& ref,
                                const Cluster& cluster) {
  const auto job = cluster.FindJob(JobId(ref.job()));
  if (!job.ok() || (*job)->run == nullptr) return nullptr;
  const Run& run = *(*job)->run;
  if (run.attempt != ref.attempt() || run.is<phase::Storing>()) return nullptr;
  const RankSeat& seat = run.ranks[ref.rank()];
  return seat.worker == from && seat.live() ? &seat : nullptr;
}

bool IsOver(const AttemptKey& key, const Cluster& cluster) {
  const auto job = cluster.FindJob(JobId(key.first));
  return !job.ok() || (*job)->run == nullptr || (*job)->attempt != key.second ||
         (*job)->run->between_attempts();
}

bool IsThere(const std::string& name, const Cluster& cluster) {
  const auto& workers = cluster.workers().all();
  return std::any_of(workers.begin(), workers.end(), [&](const auto& worker) {
    return worker.second.name() == name;
  });
}

}  // namespace

void IntegrityInvariants::Hear(WorkerId from, const WorkerMessage& message,
                               const Cluster& cluster) {
  if (!message.has_step()) return;
  const RankRef& ref = message.step().ref();
  const StepRecord& record = message.step().record();
  const RankSeat* const seat = SeatThatIsHeard(from, ref, cluster);
  if (seat == nullptr) return;
  const Job& job = **cluster.FindJob(JobId(ref.job()));
  if (record.step() <= job.run->steps.last()) return;
  const AttemptKey key = KeyOf(ref);
  auto& reports = heard_[key][record.step()];
  reports.emplace(ref.rank(), Report{record.loss(), seat->worker_name});
  const bool alike =
      std::all_of(reports.begin(), reports.end(), [&](const auto& report) {
        return report.second.loss == reports.begin()->second.loss;
      });
  if (alike) return;
  SimulatedAttempt& attempt = attempts_.at(key);
  differed_ += attempt.known_wrong == SimulatedAttempt::kNeverWrong;
  attempt.known_wrong = std::min(attempt.known_wrong, record.step());
  to_judge_.insert(key);
}

void IntegrityInvariants::Judge(const AttemptKey& key, const Cluster& cluster) {
  const SimulatedAttempt& attempt = attempts_.at(key);
  const auto& reports = heard_.at(key).at(attempt.known_wrong);
  std::map<double, std::vector<std::string>> by_loss;
  for (const auto& [rank, report] : reports) {
    by_loss[report.loss].push_back(report.worker);
  }
  const auto most = std::max_element(by_loss.begin(), by_loss.end(),
                                     [](const auto& a, const auto& b) {
                                       return a.second.size() < b.second.size();
                                     });
  if (2 * static_cast<int>(most->second.size()) <= attempt.ranks) return;
  for (const auto& [loss, workers] : by_loss) {
    if (loss == most->first) continue;
    for (const std::string& worker : workers) {
      if (!IsThere(worker, cluster)) continue;  // nothing is kept of it
      aside_[worker] = absl::StrCat("in step ", attempt.known_wrong, " of job ",
                                    key.first, ", attempt ", key.second);
      ++known_;
      for (const auto& [id, now] : cluster.workers().all()) {
        const bool has_another =
            now.name() == worker && now.status.job() != key.first;
        if (has_another) keeps_[worker] = now.status.job();
      }
    }
  }
}

void IntegrityInvariants::JudgeThoseOfBefore(const AttemptKey& key,
                                             const Cluster& cluster) {
  for (auto it = to_judge_.begin(); it != to_judge_.end();) {
    const bool before = it->first == key.first && it->second < key.second;
    if (before) Judge(*it, cluster);
    it = before ? to_judge_.erase(it) : std::next(it);
  }
}

void IntegrityInvariants::OnAction(const Action& action,
                                   const Cluster& cluster) {
  const auto* const send = std::get_if<SendToWorker>(&action);
  if (send == nullptr) return;
  if (send->message.has_start()) {
    const RankRef& ref = send->message.start().ref();
    JudgeThoseOfBefore(KeyOf(ref), cluster);
    const Worker* const worker = cluster.workers().Find(send->worker);
    if (worker == nullptr) return;
    const auto keeps = keeps_.find(worker->name());
    if (keeps != keeps_.end() && keeps->second == ref.job()) return;
    EXPECT_EQ(aside_.count(worker->name()), 0u)
        << worker->name() << " computed wrongly " << aside_.at(worker->name())
        << ", and is given " << ref.ShortDebugString();
  } else if (send->message.has_commit()) {
    const CheckpointCommit& commit = send->message.commit();
    EXPECT_LT(commit.step(), attempts_.at(KeyOf(commit.ref())).known_wrong)
        << "a checkpoint is committed that came of a wrong step: "
        << commit.ref().ShortDebugString();
  }
}

void IntegrityInvariants::Check(const Cluster& cluster) {
  for (auto it = to_judge_.begin(); it != to_judge_.end();) {
    const bool over = IsOver(*it, cluster);
    if (over) Judge(*it, cluster);
    it = over ? to_judge_.erase(it) : std::next(it);
  }
  for (const auto& [id, worker] : cluster.workers().all()) {
    if (!worker.alive()) continue;
    EXPECT_TRUE(!worker.status.cordoned() || flipped_.count(worker.name()) > 0)
        << worker.name() << " is cordoned, and never computed wrongly: "
        << worker.status.set_aside();
    const auto aside = aside_.find(worker.name());
    EXPECT_TRUE(worker.status.cordoned() || aside == aside_.end())
        << worker.name() << " computed wrongly " << aside->second
        << ", and is not cordoned";
  }
}

void IntegrityInvariants::PutBack(const std::string& worker) {
  aside_.erase(worker);
  keeps_.erase(worker);
  // Before the end of an attempt in which it was wrong: that is forgiven, too.
  for (auto it = to_judge_.begin(); it != to_judge_.end();) {
    const auto& reports = heard_.at(*it).at(attempts_.at(*it).known_wrong);
    const bool was_in_it = std::any_of(
        reports.begin(), reports.end(),
        [&](const auto& report) { return report.second.worker == worker; });
    it = was_in_it ? to_judge_.erase(it) : std::next(it);
  }
}

void IntegrityInvariants::Restarted() {
  heard_.clear();
  to_judge_.clear();
  aside_.clear();
  keeps_.clear();
  for (auto& [key, attempt] : attempts_) {
    attempt.known_wrong = SimulatedAttempt::kNeverWrong;
  }
}

}  // namespace troupe
