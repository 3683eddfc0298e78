#include "scheduler/planner/choose_ways.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "proto/plan/ways.h"
#include "proto/plan/worker_refusal.h"
#include "scheduler/planner/choose_backends.h"
#include "scheduler/planner/planner.h"
#include "tests/scheduler/example_job.h"
#include "tests/scheduler/planner/on_hosts.h"

namespace troupe {
namespace {

// Four on two hosts, with levels that take about as long as each other, and
// links so slow that pieces pay for their latencies.
std::vector<WorkerDescription> WithEvenLevels() {
  std::vector<WorkerDescription> workers = OnHosts("aabb");
  for (WorkerDescription& worker : workers) {
    worker.mutable_calibration()->mutable_shared_memory()->set_bytes_per_second(
        2e6);
    LinkRate& network = *worker.mutable_network()->mutable_rate();
    network.set_bytes_per_second(1e6);
    *worker.mutable_nics(0)->mutable_link()->mutable_rate() = network;
  }
  return workers;
}

std::string LevelsText(const Group& group) {
  return absl::StrJoin(
      group.levels(), ", ", [](std::string* out, const Group::Level& level) {
        absl::StrAppend(out, level.size(), " by ", level.stride());
      });
}

// "gloo: shared_memory, gloo": of all members, then of the levels.
std::string CarrierText(const Group::Carrier& carrier) {
  return absl::StrCat(
      carrier.backend(), ": ",
      absl::StrJoin(carrier.levels(), ", ",
                    [](std::string* out, const Group::Carrier::OfLevel& level) {
                      absl::StrAppend(out,
                                      absl::StrJoin(level.backends(), " "));
                    }));
}

TEST(ChooseWays, AJobMayNameTheRow) {
  const auto plan = CompilePlan(DataJob(4, "two_level"), OnHosts("aabb"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const Group& data = GroupNamed(*plan, "data");
  EXPECT_EQ(LevelsText(data), "2 by 1, 2 by 2");
  ASSERT_EQ(data.carriers_size(), 1);
  EXPECT_EQ(CarrierText(data.carriers(0)), "gloo: shared_memory, gloo");
  const auto flat = CompilePlan(DataJob(4, "flat"), OnHosts("aabb"));
  ASSERT_TRUE(flat.ok()) << flat.status();
  EXPECT_EQ(LevelsText(GroupNamed(*flat, "data")), "");
  EXPECT_TRUE(absl::StrContains(GroupNamed(*flat, "data").why_flat(),
                                "the job says so"));
  EXPECT_EQ(plan->fingerprint() == flat->fingerprint(), false)
      << "the job is part of it";
}

TEST(ChooseWays, MembersMayTakeTurnsOnHosts) {
  const auto plan = CompilePlan(DataJob(4, "two_level"), OnHosts("abab"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(LevelsText(GroupNamed(*plan, "data")), "2 by 2, 2 by 1");
}

TEST(ChooseWays, OneHostHasNoLevels) {
  const auto plan = CompilePlan(DataJob(4, "two_level"), OnHosts("aaaa"));
  ASSERT_TRUE(plan.ok()) << "a job that fits on fewer hosts is not refused";
  for (const Group& group : plan->groups()) {
    EXPECT_FALSE(HasSteps(group)) << group.name();
    EXPECT_EQ(group.why_flat(), "");
  }
}

void ExpectRefusal(const JobSpec& job, const std::string& hosts,
                   const std::string& why) {
  const absl::Status status = CompilePlan(job, OnHosts(hosts)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StartsWith(status.message(), "communication.all_reduce: "))
      << status;
  EXPECT_TRUE(absl::StrContains(status.message(), why)) << status;
}

TEST(ChooseWays, RefusesWhatAGroupCannotDo) {
  ExpectRefusal(DataJob(4, "two_level"), "aaab",
                "group data of 4 ranks cannot do so: two_level: of its members "
                "some hosts have 3 and others 1");
  ExpectRefusal(DataJob(4, "ring"), "aabb", "\"ring\" is unknown");
  ExpectRefusal(DataJob(4, "ring"), "aaaa",
                "there are flat, two_level, blueconnect, halving, tree");
  ExpectRefusal(DataJob(4, "blueconnect"), "aaab",
                "group data of 4 ranks cannot do so: blueconnect: of its "
                "members some hosts have 3 and others 1");
  EXPECT_TRUE(CompilePlan(DataJob(4, "auto"), OnHosts("aaab")).ok());
  // Three are no product of smaller numbers.
  const auto plan = CompilePlan(DataJob(3), OnHosts("aab"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(absl::StrContains(GroupNamed(*plan, "data").why_flat(),
                                "some hosts have 2 and others 1"));
}

// With a member a host there is one level: what the job names is the flat row.
TEST(ChooseWays, OneMemberAHostIsFlatWhateverTheJobNames) {
  for (const char* row : {"two_level", "blueconnect"}) {
    const auto apart = CompilePlan(DataJob(4, row), OnHosts("abcd"));
    ASSERT_TRUE(apart.ok()) << apart.status();
    EXPECT_FALSE(HasSteps(GroupNamed(*apart, "data")));
    EXPECT_TRUE(absl::StrContains(
        GroupNamed(*apart, "data").why_flat(),
        absl::StrCat(row, ": each of its members has a host to itself")));
  }
  JobSpec job = DataJob(2, "two_level");
  job.mutable_parallelism()->set_tensor(2);
  const auto pairs = CompilePlan(job, OnHosts("aabb"));
  ASSERT_TRUE(pairs.ok()) << pairs.status();
  EXPECT_TRUE(absl::StrContains(GroupNamed(*pairs, "data").why_flat(),
                                "a host to itself"));
}

// Both groups of a name, or none: parameters that are on both ranks of a
// tensor-parallel pair are summed by each of them.
TEST(ChooseWays, GroupsOfANameAreAlike) {
  JobSpec job = DataJob(4, "");
  job.mutable_parallelism()->set_tensor(2);
  const auto plan = CompilePlan(job, OnHosts("abaababa"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const Group& data = GroupNamed(*plan, "data");
  EXPECT_FALSE(HasSteps(data));
  EXPECT_TRUE(absl::StrContains(data.why_flat(),
                                "data-0 and data-1 lie on hosts in different "
                                "ways"))
      << data.why_flat();
}

// Small sums are all latency, which steps have more of; large ones wait for the
// network, over which less goes from a host.
TEST(ChooseWays, ChoosesByCost) {
  std::vector<WorkerDescription> workers = OnHosts("aaaabbbb");
  const auto fast = CompilePlan(DataJob(8), workers);
  ASSERT_TRUE(fast.ok()) << fast.status();
  const Group& data = GroupNamed(*fast, "data");
  for (const ExchangePrediction& exchange : fast->prediction().exchanges()) {
    EXPECT_LE(exchange.seconds(), exchange.flat_seconds() * (1 + 1e-9))
        << exchange.DebugString();
    EXPECT_EQ(exchange.row() == "flat",
              WayOf(data, exchange.collective(), exchange.bytes()) == nullptr);
  }
  // The other way around: where steps are dear, all of it is flat.
  for (WorkerDescription& worker : workers) {
    worker.mutable_calibration()->mutable_shared_memory()->set_latency_us(1e6);
  }
  const auto slow = CompilePlan(DataJob(8), workers);
  ASSERT_TRUE(slow.ok()) << slow.status();
  EXPECT_FALSE(HasSteps(GroupNamed(*slow, "data")));
  EXPECT_TRUE(absl::StrContains(GroupNamed(*slow, "data").why_flat(),
                                "is flat: that takes "));
  EXPECT_NE(fast->fingerprint(), slow->fingerprint())
      << "sums of other bits are another plan";
}

// A job that goes on after its workers were measured anew.
TEST(ChooseWays, KeepsTheWaysOfThePlanBefore) {
  const std::vector<WorkerDescription> fast = OnHosts("aaaabbbb");
  std::vector<WorkerDescription> slow = fast;
  for (WorkerDescription& worker : slow) {
    worker.mutable_calibration()->mutable_shared_memory()->set_latency_us(1e6);
  }
  const auto levels = CompilePlan(DataJob(8), fast);
  const auto flat = CompilePlan(DataJob(8), slow);
  ASSERT_TRUE(levels.ok() && flat.ok()) << levels.status() << flat.status();
  ASSERT_FALSE(HaveSameWays(*levels, *flat));
  EXPECT_FALSE(WithWaysOf(*flat, slow, *flat).has_value());

  const auto still_levels = WithWaysOf(*levels, slow, *flat);
  ASSERT_TRUE(still_levels.has_value());
  EXPECT_TRUE(HaveSameWays(still_levels->plan, *levels));
  EXPECT_EQ(still_levels->plan.fingerprint(), levels->fingerprint());
  EXPECT_GT(still_levels->plan.prediction().step_seconds(),
            flat->prediction().step_seconds())
      << "predicted as it goes";
  const auto still_flat = WithWaysOf(*flat, fast, *levels);
  ASSERT_TRUE(still_flat.has_value());
  EXPECT_EQ(still_flat->plan.fingerprint(), flat->fingerprint());
  EXPECT_TRUE(absl::StrContains(GroupNamed(still_flat->plan, "data").why_flat(),
                                "it was so before"));

  const std::vector<WorkerDescription> uneven = OnHosts("aaabbbbb");
  EXPECT_FALSE(WithWaysOf(*levels, uneven, *CompilePlan(DataJob(8), uneven)))
      << "not possible there";
  const std::vector<WorkerDescription> four = OnHosts("aabb");
  EXPECT_FALSE(WithWaysOf(*flat, four, *CompilePlan(DataJob(4), four)))
      << "another mesh has bits of its own";
  const auto one_host = CompilePlan(DataJob(8), OnHosts("aaaaaaaa"));
  EXPECT_FALSE(WithWaysOf(*one_host, fast, *levels))
      << "over shared memory it was another order anyway";
}

// They may decide the bits, and the name of the row does not say them.
TEST(ChooseWays, KeepsThePiecesOfThePlanBefore) {
  const std::vector<WorkerDescription> even = WithEvenLevels();
  std::vector<WorkerDescription> slow = even;
  for (WorkerDescription& worker : slow) {
    worker.mutable_calibration()->mutable_shared_memory()->set_latency_us(1e6);
  }
  const auto many = CompilePlan(DataJob(4, "blueconnect"), even);
  const auto whole = CompilePlan(DataJob(4, "blueconnect"), slow);
  const auto flat = CompilePlan(DataJob(4, "flat"), even);
  ASSERT_TRUE(many.ok() && whole.ok() && flat.ok())
      << many.status() << whole.status() << flat.status();
  ASSERT_FALSE(HaveSameWays(*many, *whole));
  const auto still_many = WithWaysOf(*many, slow, *whole);
  ASSERT_TRUE(still_many.has_value());
  EXPECT_EQ(still_many->plan.fingerprint(), many->fingerprint());
  const auto still_whole = WithWaysOf(*whole, even, *many);
  ASSERT_TRUE(still_whole.has_value());
  EXPECT_EQ(still_whole->plan.fingerprint(), whole->fingerprint());
  EXPECT_FALSE(WithWaysOf(*flat, even, *many).has_value())
      << "the job names another row";
}

TEST(ChooseWays, ScalarsStayFlat) {
  const auto plan = CompilePlan(DataJob(4, "two_level"), OnHosts("aabb"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const Group& group : plan->groups()) {
    for (const Role& role : plan->roles()) {
      for (const Program& program : role.programs()) {
        for (const Instruction& instruction : program.instructions()) {
          if (instruction.kind() != Instruction::REDUCE_SCALARS) continue;
          if (&plan->groups(instruction.group()) != &group) continue;
          EXPECT_EQ(WayOf(group, ALL_REDUCE, 8), nullptr);
        }
      }
    }
  }
}

void ClearWays(Plan& plan) {
  for (Group& group : *plan.mutable_groups()) {
    group.clear_carriers();
    group.clear_levels();
    group.clear_ways();
    group.clear_why_flat();
  }
}

// Rates of 0 are a machine's fault, not a reason to be any faster.
TEST(ChooseWays, SurvivesLinksThatCarryNothing) {
  std::vector<WorkerDescription> workers = OnHosts("aabb");
  Plan plan = *CompilePlan(DataJob(4), workers);
  for (WorkerDescription& worker : workers) {
    worker.mutable_nics(0)->mutable_link()->mutable_rate()->Clear();
    worker.clear_network();
  }
  ClearWays(plan);
  ChooseBackends(workers, plan.mesh(), *plan.mutable_groups());
  ASSERT_TRUE(ChooseWays(workers, plan).ok());
  EXPECT_FALSE(HasSteps(GroupNamed(plan, "data")));
}

// For a worker of another host that takes the place of rank 3.
TEST(ChooseWays, StaysWhenARankMoves) {
  const auto plan = CompilePlan(DataJob(4, "two_level"), OnHosts("aabb"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  Plan moved = *plan;
  for (Group& group : *moved.mutable_groups()) group.clear_carriers();
  ChooseBackends(OnHosts("aabc"), moved.mesh(), *moved.mutable_groups());
  const Group& data = GroupNamed(moved, "data");
  EXPECT_TRUE(CheckWays(data, 4).ok());
  EXPECT_EQ(LevelsText(data), "2 by 1, 2 by 2");
  EXPECT_EQ(CarrierText(data.carriers(0)), "gloo: shared_memory gloo, gloo");
  EXPECT_EQ(moved.fingerprint(), plan->fingerprint());
}

// A rank that comes to the host of all others of its level: sums over sockets,
// as before.
TEST(ChooseWays, KeepsTheOrderOfSumsBetweenHosts) {
  const auto plan = CompilePlan(DataJob(6, "two_level"), OnHosts("aabbcc"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  Plan moved = *plan;
  for (Group& group : *moved.mutable_groups()) group.clear_carriers();
  ChooseBackends(OnHosts("aaaaaa"), moved.mesh(), *moved.mutable_groups());
  EXPECT_EQ(CarrierText(GroupNamed(moved, "data").carriers(0)),
            "shared_memory: shared_memory, gloo");
}

// Those on GPUs go over NCCL, which crosses hosts as it likes.
TEST(ChooseWays, NcclChoosesItself) {
  std::vector<WorkerDescription> workers = OnHosts("aabb");
  Plan plan = *CompilePlan(DataJob(4), workers);
  for (size_t i = 0; i < workers.size(); ++i) {
    workers[i].mutable_gpu()->set_uuid(absl::StrCat("gpu-", i));
  }
  ClearWays(plan);
  ChooseBackends(workers, plan.mesh(), *plan.mutable_groups());
  ASSERT_TRUE(ChooseWays(workers, plan).ok());
  const Group& data = GroupNamed(plan, "data");
  EXPECT_FALSE(HasSteps(data));
  EXPECT_TRUE(absl::StrContains(data.why_flat(), "NCCL")) << data.why_flat();
  plan.mutable_job()->mutable_communication()->set_all_reduce("two_level");
  EXPECT_TRUE(absl::StrContains(ChooseWays(workers, plan).message(), "NCCL"));
}

// Columns of four on two hosts: their reduces go as all-reduces do.
JobSpec SquareJob(const std::string& all_reduce) {
  JobSpec job = ExampleJob({.micro_batch_size = 4});
  job.mutable_model()->set_num_attention_heads(4);
  job.mutable_parallelism()->set_tensor(16);
  job.mutable_parallelism()->set_tensor_method("2d");
  if (!all_reduce.empty()) {
    job.mutable_communication()->set_all_reduce(all_reduce);
  }
  return job;
}

TEST(ChooseWays, AReduceGoesAsAnAllReduce) {
  const std::string hosts = "aaaaaaaabbbbbbbb";
  const auto plan = CompilePlan(SquareJob("two_level"), OnHosts(hosts));
  ASSERT_TRUE(plan.ok()) << plan.status();
  int reduces = 0;
  for (const ExchangePrediction& exchange : plan->prediction().exchanges()) {
    if (exchange.collective() != REDUCE) continue;
    ++reduces;
    EXPECT_EQ(exchange.row(), "two_level") << exchange.DebugString();
    EXPECT_EQ(exchange.levels_size(), 2);
    EXPECT_NE(
        WayOf(GroupNamed(*plan, exchange.group()), REDUCE, exchange.bytes()),
        nullptr);
  }
  EXPECT_GT(reduces, 0);
  ExpectRefusal(SquareJob("two_level"), "aaaaaaaaaaaabbbb",
                "some hosts have 3 and others 1");
}

// Rounded once, as all-reduces of narrow numbers are.
TEST(ChooseWays, ANarrowReduceIsFlat) {
  JobSpec job = SquareJob("");
  job.mutable_training()->set_precision("bf16");
  const auto plan = CompilePlan(job, OnHosts("aaaaaaaabbbbbbbb"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  int reduces = 0;
  for (const ExchangePrediction& exchange : plan->prediction().exchanges()) {
    if (exchange.collective() != REDUCE) continue;
    ++reduces;
    EXPECT_EQ(exchange.row(), "flat") << exchange.DebugString();
  }
  EXPECT_GT(reduces, 0);
}

// Pieces are the planner's to choose, where the job names the row and where it
// does not; what it chooses is the least of what there is.
TEST(ChooseWays, PiecesAreThoseThatTakeTheLeast) {
  const std::vector<WorkerDescription> workers = WithEvenLevels();
  const auto named = CompilePlan(DataJob(4, "blueconnect"), workers);
  const auto in_turn = CompilePlan(DataJob(4, "two_level"), workers);
  const auto halves = CompilePlan(DataJob(4, "halving"), workers);
  const auto tree = CompilePlan(DataJob(4, "tree"), workers);
  const auto chosen = CompilePlan(DataJob(4), workers);
  ASSERT_TRUE(named.ok() && in_turn.ok() && chosen.ok())
      << named.status() << in_turn.status() << chosen.status();
  ASSERT_TRUE(halves.ok() && tree.ok()) << halves.status() << tree.status();
  ASSERT_EQ(named->prediction().exchanges_size(),
            in_turn->prediction().exchanges_size());
  bool any = false;
  for (int e = 0; e < named->prediction().exchanges_size(); ++e) {
    const ExchangePrediction& pieces = named->prediction().exchanges(e);
    const ExchangePrediction& whole = in_turn->prediction().exchanges(e);
    EXPECT_EQ(pieces.row(), "blueconnect");
    EXPECT_LE(pieces.seconds(), whole.seconds());
    EXPECT_EQ(pieces.bytes_sent(), whole.bytes_sent());
    EXPECT_EQ(pieces.pieces() > 1, pieces.seconds() < whole.seconds());
    const ExchangePrediction& taken = chosen->prediction().exchanges(e);
    EXPECT_NEAR(
        taken.seconds(),
        std::min({pieces.seconds(), whole.seconds(), whole.flat_seconds(),
                  halves->prediction().exchanges(e).seconds(),
                  tree->prediction().exchanges(e).seconds()}),
        1e-9 * taken.seconds());
    if (taken.row() != "blueconnect") continue;
    EXPECT_GT(taken.pieces(), 1);
    any = true;
  }
  EXPECT_TRUE(any) << chosen->prediction().exchanges(0).DebugString();
}

// To the byte, and what a level takes of it.
TEST(ChooseWays, PredictsBytesAndTimeOfEachLevel) {
  const auto plan = CompilePlan(DataJob(4, "two_level"), OnHosts("aabb"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_GT(plan->prediction().exchanges_size(), 0);
  for (const ExchangePrediction& exchange : plan->prediction().exchanges()) {
    EXPECT_EQ(exchange.row(), "two_level");
    EXPECT_EQ(exchange.ranks(), 4);
    ASSERT_EQ(exchange.levels_size(), 2);
    const auto& within = exchange.levels(0);
    const auto& across = exchange.levels(1);
    EXPECT_EQ(within.name(), "within hosts");
    EXPECT_EQ(within.size(), 2);
    EXPECT_EQ(within.bytes(), exchange.bytes());  // half of it, twice
    EXPECT_EQ(across.bytes(), exchange.bytes() / 2);
    EXPECT_EQ(exchange.bytes_sent(), exchange.bytes() * 3 / 2);
    EXPECT_NEAR(within.seconds() + across.seconds(), exchange.seconds(),
                1e-9 * exchange.seconds());
    // Both ranks of a host send a quarter, twice, over its adapter.
    EXPECT_GE(across.seconds(), exchange.bytes() / 1e8);
  }
}

}  // namespace
}  // namespace troupe
