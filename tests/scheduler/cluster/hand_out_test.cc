#include "scheduler/cluster/hand_out.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/proto/plan/made_roles.h"
#include "tests/scheduler/cluster/fake_compiler.h"

namespace troupe {
namespace {

TEST(HandOut, CompletesAnAssignment) {
  const FakeCompiler compiler;
  auto common = std::make_shared<HandOut>();
  common->assignment.add_worker_names("w0");
  common->assignment.add_worker_names("w1");
  common->assignment.set_resume("/c/1");
  Plan plan;
  plan.set_fingerprint("f");
  common->plan = std::make_shared<const Plan>(std::move(plan));
  SendToWorker send{WorkerId(7), {}, common};
  send.message.mutable_start()->mutable_ref()->set_rank(1);
  send.message.mutable_start()->set_trace_every(10);
  const Assignment start = Completed(send, compiler).start();
  EXPECT_EQ(start.ref().rank(), 1);
  EXPECT_EQ(start.trace_every(), 10);
  EXPECT_EQ(start.worker_names(1), "w1");
  EXPECT_EQ(start.resume(), "/c/1");
  EXPECT_EQ(start.plan().fingerprint(), "f");
  EXPECT_EQ(start.plan().rank(), 1);
}

// Of each rank that they name, which need not be the one that is asked.
TEST(HandOut, CompletesThePlansOfCopies) {
  const FakeCompiler compiler;
  auto common = std::make_shared<HandOut>();
  Plan plan;
  plan.set_fingerprint("f");
  common->plan = std::make_shared<const Plan>(std::move(plan));
  SendToWorker send{WorkerId(7), {}, common};
  SaveCopies& asked = *send.message.mutable_save_copies();
  asked.add_copies()->mutable_plan()->set_rank(0);
  asked.add_copies()->mutable_plan()->set_rank(3);
  asked.mutable_copies(1)->set_peer(true);
  const SaveCopies writes = Completed(send, compiler).save_copies();
  EXPECT_FALSE(writes.has_commits());
  ASSERT_EQ(writes.copies_size(), 2);
  EXPECT_EQ(writes.copies(0).plan().fingerprint(), "f");
  EXPECT_EQ(writes.copies(1).plan().fingerprint(), "f");
  EXPECT_EQ(writes.copies(1).plan().rank(), 3);
  EXPECT_TRUE(writes.copies(1).peer());
  asked.mutable_commits()->set_rank(2);
  const SaveCopies commits = Completed(send, compiler).save_copies();
  EXPECT_EQ(commits.commits().fingerprint(), "f");
  EXPECT_EQ(commits.commits().rank(), 2);
}

// The copy that this makes is one for all ranks, and there is none before a
// rank's part is sent.
TEST(HandOut, APlanOnOtherMachinesIsConnectedOnceAndWhenItIsSent) {
  FakeCompiler compiler;
  std::vector<std::string> moved;
  compiler.before_plan_for = [&](const std::vector<WorkerDescription>& on) {
    moved.push_back(on[0].name());
  };
  auto common = std::make_shared<HandOut>();
  Plan plan;
  plan.set_fingerprint("f");
  common->plan = std::make_shared<const Plan>(std::move(plan));
  common->machines.resize(2);
  common->machines[0].set_name("w7");
  common->moved =
      std::make_shared<const MovedPlan>(common->plan, common->machines);
  EXPECT_TRUE(moved.empty());
  for (const int rank : {0, 1}) {
    SendToWorker send{WorkerId(7), {}, common};
    send.message.mutable_start()->mutable_ref()->set_rank(rank);
    const Assignment start = Completed(send, compiler).start();
    EXPECT_EQ(start.plan().fingerprint(), "f");
    EXPECT_EQ(start.plan().rank(), rank);
  }
  EXPECT_EQ(moved, std::vector<std::string>{"w7"});
}

// Of two hosts; rank 0 loads nothing.
TEST(HandOut, EachMachinesDataIsCheckedOnce) {
  Plan plan = PlanOfPlaces(5);
  for (int rank = 1; rank < 5; ++rank) {
    plan.mutable_roles(rank)->add_programs()->add_instructions()->set_kind(
        Instruction::LOAD_BATCH);
  }
  const CompiledJob job = MakeCompiledJob(std::move(plan), Timeline());
  EXPECT_EQ(job.loads_data, (std::vector<bool>{false, true, true, true, true}));
  EXPECT_EQ(RanksThatCheckData(job.loads_data, {"a", "a", "b", "b", "a"}),
            (std::vector<bool>{false, true, true, false, false}));
}

TEST(HandOut, LeavesOtherMessagesAsTheyAre) {
  SendToWorker send{WorkerId(7), {}};
  send.message.mutable_stop()->set_reason("why");
  EXPECT_EQ(Completed(send, FakeCompiler()).stop().reason(), "why");
}

}  // namespace
}  // namespace troupe
