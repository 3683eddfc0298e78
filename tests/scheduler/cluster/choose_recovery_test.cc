#include "scheduler/cluster/choose_recovery.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/copies.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

// A mesh, and by rank the number of its part of the state: ranks with the same
// number hold the same.
struct Case {
  std::string name;
  Plan plan;
  std::vector<int> part;
};

void AddAxis(const std::string& name, int size, Plan& plan) {
  Axis& axis = *plan.mutable_mesh()->add_axes();
  axis.set_name(name);
  axis.set_size(size);
}

// One unit per stage, and a role for each stage.
Case MakeCase(int pipeline, int data, bool replicas) {
  Case made = {.name = absl::StrCat("pipeline ", pipeline, ", data ", data,
                                    replicas ? ", alike" : ", in slices")};
  AddAxis("pipeline", pipeline, made.plan);
  AddAxis("data", data, made.plan);
  made.plan.add_groups()->add_spans()->set_axis("data");
  for (int stage = 0; stage < pipeline; ++stage) {
    made.plan.add_units()->add_parts()->set_elements(4);
    Role& role = *made.plan.add_roles();
    Role::Place& at = *role.add_at();
    at.set_axis("pipeline");
    at.set_place(stage);
    Placement& placement = *role.add_placements();
    placement.set_unit(stage);
    Placement::Part& part = *placement.add_parts();
    if (replicas) part.set_shared(0);
  }
  for (int rank = 0; rank < pipeline * data; ++rank) {
    made.part.push_back(replicas ? rank / data : rank);
  }
  return made;
}

KeptCopy CopyOf(int64_t step, bool peer) {
  KeptCopy copy;
  copy.mutable_state()->set_step(step);
  copy.mutable_state()->set_samples_consumed(10 * step);
  copy.set_own(true);
  copy.set_peer(peer);
  return copy;
}

bool Has(const std::vector<KeptCopy>& kept, int64_t step) {
  for (const KeptCopy& copy : kept) {
    if (copy.state().step() == step) return true;
  }
  return false;
}

// Which parts each rank has, at this step: by rank that has a copy, its own and
// that of the rank half the way around before it.
bool IsWhole(const Case& of, const KeptByRank& kept, int64_t step,
             bool mirrors) {
  const int ranks = static_cast<int>(kept.size());
  std::vector<bool> there(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    if (!Has(kept[rank], step)) continue;
    there[of.part[rank]] = true;
    if (mirrors) there[of.part[MirroredBy(of.plan, rank)]] = true;
  }
  for (int rank = 0; rank < ranks; ++rank) {
    if (!there[of.part[rank]]) return false;
  }
  return true;
}

void CheckHandovers(const Case& of, const KeptByRank& kept,
                    const Recovery& recovery) {
  const int64_t step = recovery.state().step();
  EXPECT_EQ(recovery.state().samples_consumed(), 10 * step);
  std::vector<int> brought(kept.size());
  for (const Handover& handover : recovery.handovers()) {
    ++brought[handover.to()];
    ASSERT_TRUE(Has(kept[handover.from()], step));
    const int whose = handover.peer() ? MirroredBy(of.plan, handover.from())
                                      : handover.from();
    EXPECT_EQ(of.part[whose], of.part[handover.to()]);
  }
  for (size_t rank = 0; rank < kept.size(); ++rank) {
    EXPECT_EQ(brought[rank], Has(kept[rank], step) ? 0 : 1) << rank;
  }
}

// Each rank is lost, or has one of the two steps, or both.
void CheckAll(const Case& of) {
  const int ranks = static_cast<int>(of.part.size());
  const bool mirrors = NeedsMirrors(of.plan);
  int recovered = 0, given_up = 0;
  for (int which = 0; which < 1 << (2 * ranks); ++which) {
    SCOPED_TRACE(absl::StrCat(of.name, ", copies ", which));
    KeptByRank kept(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      for (const int bit : {0, 1}) {
        if ((which >> (2 * rank + bit) & 1) == 0) continue;
        kept[rank].push_back(CopyOf(4 + 2 * bit, mirrors));
      }
    }
    const absl::optional<Recovery> chosen = ChooseRecovery(of.plan, kept);
    const bool newer = IsWhole(of, kept, 6, mirrors);
    const bool older = IsWhole(of, kept, 4, mirrors);
    ASSERT_EQ(chosen.has_value(), newer || older);
    ++(chosen.has_value() ? recovered : given_up);
    if (!chosen.has_value()) continue;
    ASSERT_EQ(chosen->state().step(), newer ? 6 : 4);
    CheckHandovers(of, kept, *chosen);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(recovered, 0) << of.name;
  EXPECT_GT(given_up, 0) << of.name;
}

TEST(ChooseRecovery, TakesTheNewestStepThatIsWholeSomewhere) {
  for (const bool replicas : {true, false}) {
    for (int ranks = 2; ranks <= 4; ++ranks) {
      CheckAll(MakeCase(1, ranks, replicas));
      CheckAll(MakeCase(ranks, 1, replicas));
    }
    CheckAll(MakeCase(2, 2, replicas));
    CheckAll(MakeCase(3, 2, replicas));
    Case opposite = MakeCase(3, 2, replicas);
    opposite.name += ", opposite";
    opposite.plan.add_groups()->set_name(kOppositeCopiesGroup);
    CheckAll(opposite);
  }
}

TEST(ChooseRecovery, ARankAloneGoesOnFromItsOwnCopyOrNotAtAll) {
  const Case alone = MakeCase(1, 1, false);
  EXPECT_FALSE(ChooseRecovery(alone.plan, KeptByRank(1)).has_value());
  const auto chosen = ChooseRecovery(alone.plan, {{CopyOf(4, false)}});
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(chosen->handovers_size(), 0);
}

struct IdleWorkers {
  explicit IdleWorkers(const std::vector<WorkerDescription>& descriptions) {
    for (size_t i = 0; i < descriptions.size(); ++i) {
      Worker& worker = workers.emplace_back();
      worker.id = WorkerId(static_cast<int64_t>(i) + 1);
      *worker.status.mutable_description() = descriptions[i];
      worker.status.set_state(WorkerStatus::IDLE);
    }
  }
  std::vector<std::string> Fill(const std::vector<VacantPlace>& places,
                                const Prediction& prediction,
                                const FailedStarts& failed = {}) const {
    std::vector<const Worker*> idle;
    for (const Worker& worker : workers) idle.push_back(&worker);
    std::vector<std::string> names;
    for (const Worker* worker : FillPlaces(places, prediction, idle, failed)) {
      names.push_back(worker == nullptr ? "-" : worker->name());
    }
    return names;
  }
  std::vector<Worker> workers;
};

WorkerDescription Machine(const std::string& name, const std::string& host,
                          int64_t bytes = 100, bool gpu = false) {
  WorkerDescription machine;
  machine.set_name(name);
  machine.set_host(host);
  if (gpu) machine.mutable_gpu();
  TierBudget& budget = *machine.add_budgets();
  budget.set_tier(DEVICE);
  budget.set_bytes(bytes);
  return machine;
}

Prediction Needs(const std::vector<int64_t>& bytes_by_rank) {
  Prediction prediction;
  for (const int64_t bytes : bytes_by_rank) {
    MemoryItem& item = *prediction.add_ranks()->add_memory();
    item.set_tier(DEVICE);
    item.set_bytes(bytes);
  }
  return prediction;
}

using Names = std::vector<std::string>;

TEST(FillPlaces, TakesTheSameHostFirstAndTheSameKindOnly) {
  const std::vector<VacantPlace> places = {
      {.rank = 0, .lost = Machine("a", "x")},
      {.rank = 1, .lost = Machine("b", "y")}};
  const Prediction needs = Needs({10, 10});
  EXPECT_EQ(IdleWorkers({Machine("w10", "y"), Machine("w2", "z")})
                .Fill(places, needs),
            (Names{"w2", "w10"}));
  EXPECT_EQ(IdleWorkers({Machine("w10", "z"), Machine("w2", "z")})
                .Fill(places, needs),
            (Names{"w2", "w10"}));
  EXPECT_EQ(
      IdleWorkers({Machine("w1", "x", 100, /*gpu=*/true), Machine("w2", "z")})
          .Fill(places, needs),
      (Names{"w2", "-"}));
  EXPECT_EQ(IdleWorkers({}).Fill(places, needs), (Names{"-", "-"}));
}

TEST(FillPlaces, KeepsCopiesOnSeveralHostsWhereItCan) {
  std::vector<VacantPlace> places = {
      {.rank = 0, .lost = Machine("a", "x"), .copies_on = {"y"}}};
  const Prediction needs = Needs({10, 10});
  const IdleWorkers idle({Machine("w1", "y"), Machine("w2", "z")});
  EXPECT_EQ(idle.Fill(places, needs), Names{"w2"});
  // Its own host has what is near to it; and any is better than none.
  EXPECT_EQ(
      IdleWorkers({Machine("w1", "z"), Machine("w2", "x")}).Fill(places, needs),
      Names{"w2"});
  EXPECT_EQ(IdleWorkers({Machine("w1", "y")}).Fill(places, needs), Names{"w1"});
  // Both find one, though one of them would do for either.
  places.push_back({.rank = 1, .lost = Machine("b", "x"), .copies_on = {"z"}});
  EXPECT_EQ(idle.Fill(places, needs), (Names{"w2", "w1"}));
}

// The first place would take the one worker that is apart from the copies of
// the second one.
TEST(FillPlaces, WorkersChangePlacesForCopiesOnSeveralHosts) {
  const std::vector<VacantPlace> places = {
      {.rank = 0, .lost = Machine("a", "x")},
      {.rank = 1, .lost = Machine("b", "x"), .copies_on = {"z"}}};
  const IdleWorkers idle({Machine("w1", "y"), Machine("w2", "z")});
  EXPECT_EQ(idle.Fill(places, Needs({10, 10})), (Names{"w2", "w1"}));
  // Not onto a host with copies, nor where it has no room.
  EXPECT_EQ(
      idle.Fill({{.rank = 0, .lost = Machine("a", "x"), .copies_on = {"z"}},
                 places[1]},
                Needs({10, 10})),
      (Names{"w1", "w2"}));
  const IdleWorkers small({Machine("w1", "y", 20), Machine("w2", "z", 10)});
  EXPECT_EQ(small.Fill(places, Needs({20, 10})), (Names{"w1", "w2"}));
  // A bad worker is no better for its host.
  EXPECT_EQ(
      IdleWorkers({Machine("w1", "y"), Machine("w2", "z"), Machine("w3", "v")})
          .Fill(places, Needs({10, 10}), {{"w3", "its disk is full"}}),
      (Names{"w2", "w1"}));
}

TEST(HostsOfCopies, AreThoseOfMirrorsOrOfAllThatAreAlike) {
  const auto hosts_of = [](int zero, const std::vector<std::string>& hosts) {
    JobSpec job = ExampleJob({.data = 4});
    job.mutable_parallelism()->set_zero(zero);
    job.mutable_recovery();
    return HostsOfCopies(ExamplePlan(job), 0, hosts);
  };
  using Hosts = std::set<std::string>;
  EXPECT_EQ(hosts_of(1, {"a", "b", "c", "d"}), (Hosts{"c"}));
  EXPECT_EQ(hosts_of(0, {"a", "b", "b", "b"}), (Hosts{"b"}));
  EXPECT_EQ(hosts_of(0, {"a", "b", "b", "c"}), Hosts());
}

TEST(FillPlaces, TakesWhoHasRoom) {
  const std::vector<VacantPlace> places = {
      {.rank = 1, .lost = Machine("b", "x")}};
  const IdleWorkers idle({Machine("small", "x", 49), Machine("w", "y", 50)});
  EXPECT_EQ(idle.Fill(places, Needs({10, 50})), Names{"w"});
  EXPECT_EQ(idle.Fill(places, Needs({10, 51})), Names{"-"});
}

TEST(FillPlaces, FillsAllPlacesWhereThereIsAWay) {
  const IdleWorkers idle(
      {Machine("w1", "x", 30), Machine("w2", "y", 20), Machine("w3", "z", 10)});
  std::vector<VacantPlace> places;
  for (int rank = 0; rank < 3; ++rank) {
    places.push_back({.rank = rank, .lost = Machine("a", "x")});
  }
  // The worker with the most would do for the first place, too.
  EXPECT_EQ(idle.Fill(places, Needs({10, 20, 30})), (Names{"w3", "w2", "w1"}));
  EXPECT_EQ(idle.Fill(places, Needs({30, 20, 10})), (Names{"w1", "w2", "w3"}));
  const Names none = idle.Fill(places, Needs({20, 20, 20}));
  EXPECT_EQ(std::count(none.begin(), none.end(), "-"), 1);
}

}  // namespace
}  // namespace troupe
