#include "scheduler/cluster/who_waits.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "proto/plan/groups.h"
#include "proto/plan/mesh.h"
#include "scheduler/cluster/rank_position.h"

namespace troupe {
namespace {

class Tracer {
 public:
  Tracer(const Plan& plan, const std::vector<RankReport>& ranks,
         const ViewOptions& options)
      : plan_(plan), ranks_(ranks) {
    for (const RankReport& rank : ranks) {
      views_.push_back(ViewOf(rank, plan.lanes(), options));
    }
  }

  Waits Trace() {
    const int start = Start();
    if (start < 0) return Ends(AllBusy());
    std::vector<int> parents(ranks_.size(), -1);
    const std::vector<int> ends = Follow(start, parents);
    if (ends.empty()) return Circle(start);
    Waits waits = Ends(ends);
    std::vector<int> path = {Worst(ends).front()};
    while (path.back() != start) path.push_back(parents[path.back()]);
    std::reverse(path.begin(), path.end());
    AddWaiters(path, waits);
    return waits;
  }

 private:
  // A collective that some rank is in: where its programs are, the group, which
  // one of it, the kind and the unit.
  using Meeting = std::tuple<RankPosition, int, int, int, int>;

  std::vector<int> AllBusy() const;
  int Start();
  std::vector<int> Follow(int start, std::vector<int>& parents);
  // Those that this rank's instruction needs and that have not come to it.
  std::vector<int> MissingFor(int rank);
  std::vector<int> MissingIn(const Group& group, int rank) const;
  // The rank that it sends to or receives from; -1: there is none.
  int PeerOf(int rank) const;
  bool HasCome(int rank, int other) const;
  // The first few of them, those most to blame first.
  std::vector<int> Worst(const std::vector<int>& ranks) const;
  Waits Ends(const std::vector<int>& ranks) const;
  Waits Circle(int start);
  void AddWaiters(const std::vector<int>& path, Waits& waits);
  std::string WaiterClause(int rank, int next);

  const Plan& plan_;
  const std::vector<RankReport>& ranks_;
  std::vector<RankView> views_;
  std::map<Meeting, std::vector<int>> missing_;
};

std::vector<int> Tracer::AllBusy() const {
  std::vector<int> busy;
  for (size_t r = 0; r < views_.size(); ++r) {
    if (views_[r].state != RankView::kBetween) busy.push_back(r);
  }
  return busy;
}

// The rank that has waited longest; -1: none waits.
int Tracer::Start() {
  std::vector<int> meeting;
  for (size_t r = 0; r < views_.size(); ++r) {
    if (views_[r].state == RankView::kMeets) meeting.push_back(r);
  }
  // To the second: heartbeats are no more exact.
  std::stable_sort(meeting.begin(), meeting.end(), [this](int a, int b) {
    return absl::ToInt64Seconds(views_[a].time) >
           absl::ToInt64Seconds(views_[b].time);
  });
  const auto waits =
      std::find_if(meeting.begin(), meeting.end(),
                   [this](int r) { return !MissingFor(r).empty(); });
  return waits == meeting.end() ? -1 : *waits;
}

// Those that wait for nobody, of all that `start` waits for by way of others.
std::vector<int> Tracer::Follow(int start, std::vector<int>& parents) {
  std::vector<int> ends;
  std::vector<bool> seen(ranks_.size());
  std::deque<int> queue = {start};
  seen[start] = true;
  for (; !queue.empty(); queue.pop_front()) {
    const int rank = queue.front();
    const std::vector<int> missing = MissingFor(rank);
    if (missing.empty()) ends.push_back(rank);
    for (const int next : missing) {
      if (seen[next]) continue;
      seen[next] = true;
      parents[next] = rank;
      queue.push_back(next);
    }
  }
  return ends;
}

std::vector<int> Tracer::MissingFor(int rank) {
  if (views_[rank].state != RankView::kMeets) return {};
  const Instruction& current = views_[rank].lane->current();
  if (current.has_peer()) {
    const int peer = PeerOf(rank);
    if (peer < 0 || peer == rank || HasCome(rank, peer)) return {};
    return {peer};
  }
  const int group = current.group();
  if (group < 0 || group >= plan_.groups_size()) return {};
  const Meeting meeting(PositionOf(ranks_[rank].progress), group,
                        GroupNumber(plan_.mesh(), plan_.groups(group), rank),
                        current.kind(), current.unit());
  const auto known = missing_.find(meeting);
  if (known != missing_.end()) return known->second;
  return missing_[meeting] = MissingIn(plan_.groups(group), rank);
}

std::vector<int> Tracer::MissingIn(const Group& group, int rank) const {
  std::vector<int> missing;
  for (const int member : MembersOf(plan_.mesh(), group, rank)) {
    if (member == rank || member >= static_cast<int>(ranks_.size())) continue;
    if (!HasCome(rank, member)) missing.push_back(member);
  }
  return missing;
}

int Tracer::PeerOf(int rank) const {
  const int place = views_[rank].lane->current().peer();
  if (place < 0 || place >= AxisSize(plan_.mesh(), "pipeline")) return -1;
  const int peer = PeerRank(plan_.mesh(), rank, place);
  return peer < static_cast<int>(ranks_.size()) ? peer : -1;
}

// Whether the other has come to, or past, what this rank meets it in. One that
// is silent has stopped, wherever that was.
bool Tracer::HasCome(int rank, int other) const {
  if (views_[other].state == RankView::kSilent) return false;
  return HasComeTo(
      {.instruction = views_[rank].lane->current(),
       .pipeline_place = CoordinateOn(plan_.mesh(), "pipeline", rank),
       .position = PositionOf(ranks_[rank].progress)},
      ranks_[other].progress);
}

std::vector<int> Tracer::Worst(const std::vector<int>& ranks) const {
  std::vector<int> worst = ranks;
  const auto blame = [this](int rank) {
    const RankView& view = views_[rank];
    return std::make_pair(view.state != RankView::kSilent, -view.time);
  };
  std::stable_sort(worst.begin(), worst.end(),
                   [&](int a, int b) { return blame(a) < blame(b); });
  if (worst.size() > kCulpritsNamed) worst.resize(kCulpritsNamed);
  return worst;
}

Waits Tracer::Ends(const std::vector<int>& ranks) const {
  Waits waits;
  for (const int rank : ranks) {
    waits.culprits.push_back(
        {.rank = rank, .silent = views_[rank].state == RankView::kSilent});
  }
  std::sort(waits.culprits.begin(), waits.culprits.end(),
            [](const Culprit& a, const Culprit& b) { return a.rank < b.rank; });
  for (const int rank : Worst(ranks))
    waits.ends.push_back(EndWords(rank, ranks_[rank], views_[rank]));
  if (waits.ends.size() < ranks.size()) {
    absl::StrAppend(&waits.ends.back(), ", and ",
                    ranks.size() - waits.ends.size(), " more");
  }
  return waits;
}

// Everybody waits for somebody: follows the first of each until one is there
// again.
Waits Tracer::Circle(int start) {
  std::vector<int> path = {start};
  std::vector<int>::iterator first;
  while (true) {
    const int next = MissingFor(path.back()).front();
    first = std::find(path.begin(), path.end(), next);
    if (first != path.end()) break;
    path.push_back(next);
  }
  path.erase(path.begin(), first);
  Waits waits;
  for (const int rank : path) waits.culprits.push_back({.rank = rank});
  std::sort(waits.culprits.begin(), waits.culprits.end(),
            [](const Culprit& a, const Culprit& b) { return a.rank < b.rank; });
  path.push_back(path.front());
  AddWaiters(path, waits);
  waits.ends = {"they wait for one another"};
  return waits;
}

// All of the path but its last, which nobody of it waits for.
void Tracer::AddWaiters(const std::vector<int>& path, Waits& waits) {
  const int count = static_cast<int>(path.size()) - 1;
  for (int i = 0; i < count; ++i) {
    if (count > kWaitersNamed && i == kWaitersNamed - 1) {
      waits.waiters.push_back(
          absl::StrCat("... (", count - kWaitersNamed, " more)"));
      i = count - 1;
    }
    waits.waiters.push_back(WaiterClause(path[i], path[i + 1]));
  }
}

std::string Tracer::WaiterClause(int rank, int next) {
  const Instruction& current = views_[rank].lane->current();
  const std::string name = InstructionName(current);
  if (current.has_peer()) {
    return absl::StrCat("rank ", rank, " waits for ", name,
                        current.kind() == Instruction::SEND ? " to" : " from",
                        " rank ", next);
  }
  const std::vector<int> missing = MissingFor(rank);
  const std::string who = absl::StrCat("rank ", rank, " waits in ", name);
  if (missing.size() == 1) return absl::StrCat(who, " for rank ", next);
  if (missing.size() <= kCulpritsNamed) {
    return absl::StrCat(who, " for ranks ", absl::StrJoin(missing, ", "));
  }
  return absl::StrCat(who, " for rank ", next, " and ", missing.size() - 1,
                      " more");
}

}  // namespace

std::string Waits::Text() const {
  std::vector<std::string> clauses = waiters;
  clauses.insert(clauses.end(), ends.begin(), ends.end());
  return absl::StrJoin(clauses, "; ");
}

Waits WhoWaits(const Plan& plan, const std::vector<RankReport>& ranks,
               const ViewOptions& options) {
  return Tracer(plan, ranks, options).Trace();
}

}  // namespace troupe
